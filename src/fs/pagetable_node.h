/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pagetable_node.h - the root word and the nodes, for pagetable*.c alone
 *
 * Everything is built aside and published by one release store, old nodes are
 * freed after it: that order is for whoever maps the arena after a crash.
 * Within the program the caller's lock orders all accesses, so loads are
 * relaxed.
 */
#ifndef ZRAMFS_PAGETABLE_NODE_H
#define ZRAMFS_PAGETABLE_NODE_H

#include <stdatomic.h>

#include "fs/pagetable.h"

#define FANOUT_SHIFT 6
#define FANOUT	     (1u << FANOUT_SHIFT)
#define FANOUT_MASK  (FANOUT - 1)
#define LEAF_BYTES   (FANOUT * sizeof(pagetable_cell))

/* The smallest leaf has four cells: blocks are of 16 bytes and more. */
#define ORDER_MIN 2

/* Nine levels of six bits hold the 52 bits of an index. */
#define HEIGHT_MAX 9

/* The root word: block in the upper half, then leaf order, then height. */
#define ROOT_BLOCK_SHIFT 32
#define ROOT_ORDER_SHIFT 8
#define ROOT_BYTE_MASK	 0xffu

struct inner {
	_Atomic uint32_t child[FANOUT];
};

/* The root word, taken apart. order is FANOUT_SHIFT above height 1. */
struct shape {
	unsigned int height;
	unsigned int order;
	uint32_t block;
};

static inline struct shape shape_unpack(uint64_t root)
{
	return (struct shape){
		.height = root & ROOT_BYTE_MASK,
		.order = root >> ROOT_ORDER_SHIFT & ROOT_BYTE_MASK,
		.block = root >> ROOT_BLOCK_SHIFT,
	};
}

static inline uint64_t shape_pack(struct shape shape)
{
	return (uint64_t)shape.block << ROOT_BLOCK_SHIFT |
	       (uint64_t)shape.order << ROOT_ORDER_SHIFT | shape.height;
}

static inline struct shape shape_of(const struct pagetable *table)
{
	return shape_unpack(
		atomic_load_explicit(&table->root, memory_order_relaxed));
}

static inline void shape_publish(struct pagetable *table, struct shape shape)
{
	atomic_store_explicit(&table->root, shape_pack(shape),
			      memory_order_release);
}

/* How many indices the tree can hold as it is. */
static inline uint64_t shape_span(struct shape shape)
{
	if (shape.height == 0)
		return 1;
	if (shape.height == 1)
		return UINT64_C(1) << shape.order;
	return UINT64_C(1) << (FANOUT_SHIFT * shape.height);
}

static inline unsigned int level_shift(unsigned int level)
{
	return FANOUT_SHIFT * (level - 1);
}

static inline _Atomic uint32_t *inner_child(const struct slab *blocks,
					    uint32_t block, unsigned int slot)
{
	struct inner *inner = slab_address(blocks, block);

	return &inner->child[slot];
}

static inline uint32_t inner_load(const struct slab *blocks, uint32_t block,
				  unsigned int slot)
{
	return atomic_load_explicit(inner_child(blocks, block, slot),
				    memory_order_relaxed);
}

static inline uint32_t cell_load(const pagetable_cell *cell)
{
	return atomic_load_explicit(cell, memory_order_relaxed);
}

/* Free all below a node and itself; also leaves at height 1 of any order. */
void pagetable_free_subtree(struct slab *blocks, uint32_t block,
			    unsigned int height);

/*
 * Free empty nodes below this one in first..last, which are relative to it.
 * True when the node itself, whose leaves have full size, is empty.
 */
bool pagetable_prune_node(struct slab *blocks, uint32_t block,
			  unsigned int height, uint64_t first, uint64_t last);

#endif
