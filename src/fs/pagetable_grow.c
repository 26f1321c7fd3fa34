/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pagetable_grow.c - making room for cells in the radix tree
 *
 * The new top of the tree is built beside the present one and published last,
 * so that a lack of memory at any point leaves the table as it was. Never
 * changes a cell.
 */
#include <errno.h>

#include "fault.h"
#include "fs/pagetable_node.h"

static unsigned int order_for(uint64_t last)
{
	unsigned int order = ORDER_MIN;

	while (last >> order)
		order++;
	return order;
}

static unsigned int height_for(uint64_t last)
{
	unsigned int height = 1;

	while (last >> (FANOUT_SHIFT * height))
		height++;
	return height;
}

/* A larger leaf with the cells of the present one, or of the struct. */
static int grow_leaf(struct slab *blocks, const struct pagetable *table,
		     struct shape *shape, unsigned int order,
		     unsigned int flags)
{
	uint64_t cells = shape_span(*shape);
	const pagetable_cell *from =
		shape->height ? slab_address(blocks, shape->block)
			      : &table->first;
	pagetable_cell *to;
	uint32_t block;
	uint64_t slot;
	int err;

	err = slab_alloc(blocks, sizeof(*to) << order, flags, &block);
	if (err)
		return err;
	to = slab_address(blocks, block);
	for (slot = 0; slot < cells; slot++)
		atomic_store_explicit(&to[slot], cell_load(&from[slot]),
				      memory_order_relaxed);
	*shape = (struct shape){1, order, block};
	return 0;
}

/* Put inner nodes on top, until the tree is as high as asked. */
static int raise(struct slab *blocks, struct shape *shape, unsigned int height,
		 unsigned int flags)
{
	uint32_t block;
	int err;

	while (shape->height < height) {
		err = slab_alloc(blocks, sizeof(struct inner), flags, &block);
		if (err)
			return err;
		atomic_store_explicit(inner_child(blocks, block, 0),
				      shape->block, memory_order_relaxed);
		shape->block = block;
		shape->height++;
	}
	return 0;
}

/*
 * A shape that has room for last, beside the present one. On error *shape says
 * what has been made so far.
 */
static int grow(struct slab *blocks, const struct pagetable *table,
		struct shape *shape, uint64_t last, unsigned int flags)
{
	uint32_t block;
	int err;

	if (last < FANOUT)
		return grow_leaf(blocks, table, shape, order_for(last), flags);
	if (shape->height == 0 && !cell_load(&table->first)) {
		/* Nothing to keep at index 0: the top node stands alone. */
		err = slab_alloc(blocks, sizeof(struct inner), flags, &block);
		if (!err)
			*shape = (struct shape){height_for(last), FANOUT_SHIFT,
						block};
		return err;
	}
	if (shape->order < FANOUT_SHIFT) {
		err = grow_leaf(blocks, table, shape, FANOUT_SHIFT, flags);
		if (err)
			return err;
	}
	return raise(blocks, shape, height_for(last), flags);
}

/* Make all leaves of first..last, in a tree that has the height for them. */
static int populate(struct slab *blocks, struct shape shape, uint64_t first,
		    uint64_t last, unsigned int flags)
{
	uint64_t index;

	for (index = first & ~(uint64_t)FANOUT_MASK; index <= last;
	     index += FANOUT) {
		uint32_t block = shape.block;
		unsigned int level;

		for (level = shape.height; level > 1; level--) {
			_Atomic uint32_t *child = inner_child(
				blocks, block,
				index >> level_shift(level) & FANOUT_MASK);
			int err;

			block = atomic_load_explicit(child,
						     memory_order_relaxed);
			if (block != SLAB_NONE)
				continue;
			err = slab_alloc(blocks,
					 level == 2 ? LEAF_BYTES
						    : sizeof(struct inner),
					 flags, &block);
			if (err)
				return err;
			atomic_store_explicit(child, block,
					      memory_order_release);
		}
	}
	return 0;
}

/* Take back what an unpublished shape has beyond the present one. */
static void shrink_back(struct slab *blocks, struct shape present,
			struct shape shape, uint64_t first, uint64_t last)
{
	while (shape.height > present.height) {
		uint32_t block = shape.block;
		unsigned int slot;

		shape.block = SLAB_NONE;
		if (shape.height > 1)
			shape.block = inner_load(blocks, block, 0);
		for (slot = 1; shape.height > 1 && slot < FANOUT; slot++)
			pagetable_free_subtree(blocks,
					       inner_load(blocks, block, slot),
					       shape.height - 1);
		slab_free(blocks, block);
		shape.height--;
		if (shape.block == SLAB_NONE)
			return;
	}
	if (shape.block != present.block)
		slab_free(blocks, shape.block); /* the larger leaf */
	else if (present.height > 1 && first < shape_span(present))
		pagetable_prune_node(
			blocks, present.block, present.height, first,
			last < shape_span(present) ? last
						   : shape_span(present) - 1);
}

int pagetable_reserve(struct slab *blocks, struct pagetable *table,
		      uint64_t first, uint64_t last, unsigned int flags)
{
	struct shape present = shape_of(table), shape = present;
	int err = 0;

	if (pagetable_covers(blocks, table, first, last))
		return 0;
	if (last >= shape_span(present))
		err = grow(blocks, table, &shape, last, flags);
	if (!err)
		err = populate(blocks, shape, first, last, flags);
	if (err) {
		shrink_back(blocks, present, shape, first, last);
		return err;
	}
	if (shape_pack(shape) == shape_pack(present))
		return 0;
	fault_point("table grown");
	shape_publish(table, shape);
	fault_point("grown table published");
	atomic_store_explicit(&table->first, 0, memory_order_relaxed);
	/* A leaf below full size was copied, a full one is in the tree still.
	 */
	if (present.height == 1 && present.order < FANOUT_SHIFT)
		slab_free(blocks, present.block);
	return 0;
}
