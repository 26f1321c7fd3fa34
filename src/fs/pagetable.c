/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pagetable.c - finding, freeing and claiming in the radix tree
 *
 * Takes cells as they are, and looks into one only for whether it is 0. How
 * the tree grows is in pagetable_grow.c, how nodes look in pagetable_node.h.
 */
#include <errno.h>

#include "fault.h"
#include "fs/pagetable_node.h"

/* --- finding ----------------------------------------------------------- */

pagetable_cell *pagetable_find(const struct slab *blocks,
			       const struct pagetable *table, uint64_t index)
{
	struct shape shape = shape_of(table);
	uint32_t block = shape.block;
	unsigned int level;

	if (index >= shape_span(shape))
		return NULL;
	if (shape.height == 0)
		return (pagetable_cell *)&table->first;
	for (level = shape.height; level > 1; level--) {
		block = inner_load(blocks, block,
				   index >> level_shift(level) & FANOUT_MASK);
		if (block == SLAB_NONE)
			return NULL;
	}
	return (pagetable_cell *)slab_address(blocks, block) +
	       (index & FANOUT_MASK);
}

/*
 * One walk from the root down to the leaf of *index, passing absent subtrees
 * by: *index moves on to where something may be. NULL when the walk came to
 * the end of a node; the next one starts at the node after it.
 */
static pagetable_cell *next_in_path(const struct slab *blocks,
				    struct shape shape, uint64_t *index,
				    uint64_t last)
{
	uint32_t block = shape.block;
	unsigned int level, slot, shift;
	pagetable_cell *leaf;

	for (level = shape.height; level > 1; level--) {
		uint32_t child;

		shift = level_shift(level);
		slot = *index >> shift & FANOUT_MASK;
		while ((child = inner_load(blocks, block, slot)) == SLAB_NONE) {
			*index = ((*index >> shift) + 1) << shift;
			if (++slot == FANOUT)
				return NULL;
		}
		block = child;
	}
	leaf = slab_address(blocks, block);
	for (slot = *index & FANOUT_MASK;
	     slot < 1u << shape.order && *index <= last; slot++, ++*index)
		if (cell_load(&leaf[slot]))
			return &leaf[slot];
	return NULL;
}

pagetable_cell *pagetable_next(const struct slab *blocks,
			       const struct pagetable *table, uint64_t *index,
			       uint64_t last)
{
	struct shape shape = shape_of(table);
	uint64_t span = shape_span(shape);

	if (last >= span)
		last = span - 1;
	if (shape.height == 0)
		return *index == 0 && cell_load(&table->first)
			       ? (pagetable_cell *)&table->first
			       : NULL;
	while (*index <= last) {
		pagetable_cell *cell = next_in_path(blocks, shape, index, last);

		/* Skipping may have led past last. */
		if (cell)
			return *index <= last ? cell : NULL;
	}
	return NULL;
}

bool pagetable_covers(const struct slab *blocks, const struct pagetable *table,
		      uint64_t first, uint64_t last)
{
	struct shape shape = shape_of(table);
	uint64_t index;

	if (last >= shape_span(shape))
		return false;
	if (shape.height <= 1)
		return true;
	for (index = first & ~(uint64_t)FANOUT_MASK; index <= last;
	     index += FANOUT)
		if (!pagetable_find(blocks, table, index))
			return false;
	return true;
}

/* --- freeing ----------------------------------------------------------- */

void pagetable_free_subtree(struct slab *blocks, uint32_t block,
			    unsigned int height)
{
	unsigned int slot;

	if (block == SLAB_NONE)
		return;
	for (slot = 0; height > 1 && slot < FANOUT; slot++)
		pagetable_free_subtree(blocks, inner_load(blocks, block, slot),
				       height - 1);
	slab_free(blocks, block);
}

static bool leaf_is_empty(const struct slab *blocks, uint32_t block,
			  unsigned int from, unsigned int cells)
{
	const pagetable_cell *leaf = slab_address(blocks, block);

	for (; from < cells; from++)
		if (cell_load(&leaf[from]))
			return false;
	return true;
}

static bool inner_is_empty(const struct slab *blocks, uint32_t block,
			   unsigned int from)
{
	for (; from < FANOUT; from++)
		if (inner_load(blocks, block, from) != SLAB_NONE)
			return false;
	return true;
}

bool pagetable_prune_node(struct slab *blocks, uint32_t block,
			  unsigned int height, uint64_t first, uint64_t last)
{
	unsigned int shift = level_shift(height);
	uint64_t mask = (UINT64_C(1) << shift) - 1;
	uint64_t slot;

	if (height == 1)
		return leaf_is_empty(blocks, block, 0, FANOUT);
	for (slot = first >> shift; slot <= last >> shift; slot++) {
		uint32_t child = inner_load(blocks, block, slot);

		if (child == SLAB_NONE ||
		    !pagetable_prune_node(
			    blocks, child, height - 1,
			    slot == first >> shift ? first & mask : 0,
			    slot == last >> shift ? last & mask : mask))
			continue;
		fault_point("node to be cut off");
		atomic_store_explicit(inner_child(blocks, block, slot),
				      SLAB_NONE, memory_order_release);
		slab_free(blocks, child);
	}
	return inner_is_empty(blocks, block, 0);
}

/* Back to height 0; the cell must be in its place before the shape is. */
static void collapse(struct slab *blocks, struct pagetable *table,
		     uint32_t block, uint32_t value)
{
	atomic_store_explicit(&table->first, value, memory_order_relaxed);
	fault_point("table to be collapsed");
	shape_publish(table, (struct shape){0});
	slab_free(blocks, block);
}

/* Take nodes away at the top that lead to index 0 only. */
static void lower(struct slab *blocks, struct pagetable *table)
{
	struct shape shape = shape_of(table);
	uint32_t block;

	while (shape.height > 1) {
		block = shape.block;
		if (!inner_is_empty(blocks, block, 1))
			return;
		shape.block = inner_load(blocks, block, 0);
		if (shape.block == SLAB_NONE) {
			collapse(blocks, table, block, 0);
			return;
		}
		shape.height--;
		fault_point("table to be lowered");
		shape_publish(table, shape);
		slab_free(blocks, block);
	}
	block = shape.block;
	if (leaf_is_empty(blocks, block, 1, 1u << shape.order))
		collapse(blocks, table, block,
			 cell_load(slab_address(blocks, block)));
}

void pagetable_prune(struct slab *blocks, struct pagetable *table,
		     uint64_t first, uint64_t last)
{
	struct shape shape = shape_of(table);
	uint64_t span = shape_span(shape);

	if (shape.height == 0 || first >= span)
		return;
	if (last >= span)
		last = span - 1;
	if (shape.height > 1)
		pagetable_prune_node(blocks, shape.block, shape.height, first,
				     last);
	lower(blocks, table);
}

void pagetable_release(struct slab *blocks, struct pagetable *table)
{
	struct shape shape = shape_of(table);

	atomic_store_explicit(&table->first, 0, memory_order_relaxed);
	shape_publish(table, (struct shape){0});
	pagetable_free_subtree(blocks, shape.block, shape.height);
}

/* --- claiming ---------------------------------------------------------- */

static int claim_block(const struct slab *blocks, struct slab_map *map,
		       uint32_t block, size_t size)
{
	int err = slab_claim(map, block);

	if (!err && slab_size(blocks, block) < size)
		err = -ERANGE;
	return err;
}

/* limit: number of children that an index can lead to. */
static int claim_subtree(const struct slab *blocks, struct slab_map *map,
			 uint32_t block, unsigned int height,
			 unsigned int limit)
{
	unsigned int slot;
	int err;

	if (height == 1)
		return claim_block(blocks, map, block, LEAF_BYTES);
	err = claim_block(blocks, map, block, sizeof(struct inner));
	for (slot = 0; !err && slot < FANOUT; slot++) {
		uint32_t child = inner_load(blocks, block, slot);

		if (child == SLAB_NONE)
			continue;
		err = slot < limit ? claim_subtree(blocks, map, child,
						   height - 1, FANOUT)
				   : -ERANGE;
	}
	return err;
}

int pagetable_claim(const struct slab *blocks, const struct pagetable *table,
		    struct slab_map *map)
{
	struct shape shape = shape_of(table);
	uint64_t root =
		atomic_load_explicit(&table->root, memory_order_relaxed);

	if (root == 0)
		return 0;
	if (root != shape_pack(shape) || shape.block == SLAB_NONE ||
	    shape.height < 1 || shape.height > HEIGHT_MAX ||
	    shape.order < ORDER_MIN || shape.order > FANOUT_SHIFT ||
	    (shape.height > 1 && shape.order != FANOUT_SHIFT))
		return -ERANGE;
	if (shape.height == 1)
		return claim_block(blocks, map, shape.block,
				   sizeof(pagetable_cell) << shape.order);
	return claim_subtree(
		blocks, map, shape.block, shape.height,
		shape.height < HEIGHT_MAX
			? FANOUT
			: (PAGETABLE_INDEX_MAX >> level_shift(HEIGHT_MAX)) + 1);
}
