/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pagetable.h - a sparse array of 32-bit cells, costing memory where used
 *
 * Maps an index (a file's page number, a directory's cookie) below 2^52 to a
 * cell. An empty cell is 0. It is a radix tree with a fan-out of 64 whose
 * nodes are blocks of the BLOCKS slab, named by number:
 *
 *   height 0  no node: index 0 is the cell in the struct itself
 *   height 1  one leaf of 4, 8, 16, 32 or 64 cells, as many as needed
 *   height h  inner nodes of 64 block numbers over leaves of 64 cells
 *
 * The root word holds height, leaf order and block number, and is replaced by
 * one store, as is each block number in an inner node: a reader, or a program
 * that maps the arena after a crash, sees the old shape or the new.
 *
 * Locking is the caller's. With a shared lock: find, next, and atomic changes
 * of cells. With an exclusive lock: reserve, prune, release, and nothing else
 * meanwhile. A cell's address stays valid until a call under the exclusive
 * lock.
 */
#ifndef ZRAMFS_PAGETABLE_H
#define ZRAMFS_PAGETABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "arena/slab.h"

#define PAGETABLE_INDEX_MAX ((UINT64_C(1) << 52) - 1)

typedef _Atomic uint32_t pagetable_cell;

/* Lies in inodes, in the arena. All zero: empty. */
struct pagetable {
	_Atomic uint64_t root;
	pagetable_cell first;
};

/* The cell of an index, NULL where there is no memory for one (it is empty). */
pagetable_cell *pagetable_find(const struct slab *blocks,
			       const struct pagetable *table, uint64_t index);

/*
 * The first cell at or after *index and at or before last that is not empty;
 * *index becomes its index. NULL if there is none. Skips absent subtrees at
 * once, so that a sparse table of any width is walked in the time of its
 * nodes.
 */
pagetable_cell *pagetable_next(const struct slab *blocks,
			       const struct pagetable *table, uint64_t *index,
			       uint64_t last);

/* True when pagetable_find() would succeed for all of first..last. */
bool pagetable_covers(const struct slab *blocks, const struct pagetable *table,
		      uint64_t first, uint64_t last);

/*
 * Make pagetable_find() succeed for first..last. -ENOSPC: no memory; then what
 * was added has been taken back, and cells are as they were.
 */
int pagetable_reserve(struct slab *blocks, struct pagetable *table,
		      uint64_t first, uint64_t last, unsigned int flags);

/*
 * Free nodes that hold only empty cells in first..last, and make the tree
 * lower or the leaf smaller where that is now possible. Never allocates: a
 * leaf shrinks only when that needs no new block.
 */
void pagetable_prune(struct slab *blocks, struct pagetable *table,
		     uint64_t first, uint64_t last);

/* Free all nodes, whatever is in the cells. */
void pagetable_release(struct slab *blocks, struct pagetable *table);

/* Claim all nodes. -EEXIST or -ERANGE when the tree is damaged. */
int pagetable_claim(const struct slab *blocks, const struct pagetable *table,
		    struct slab_map *map);

#endif
