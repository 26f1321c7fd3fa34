/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slab_internal.h - what slab.c and slab_map.c share: how blocks lie in pages
 *
 * Of a page's frame, `kind` is the size in bytes, `inuse` the blocks given
 * out, `free` the first free block (its unit in the page + 1, 0: none),
 * `state` how many block positions have been given out since the page was
 * taken: those above hold nothing, are not chained and not visited. It is
 * truth as `kind` is. prev and next are the list of pages with room, one for
 * each size.
 *
 * A free block holds the link to the next one in its last four bytes.
 *
 * Page 0 lacks its first block, which would have number 0.
 */
#ifndef ZRAMFS_SLAB_INTERNAL_H
#define ZRAMFS_SLAB_INTERNAL_H

#include <assert.h>
#include <pthread.h>

#include "arena/slab.h"

#define SLAB_UNIT  (1u << SLAB_UNIT_SHIFT)
#define PAGE_UNITS (PAGE_SIZE >> SLAB_UNIT_SHIFT)

/*
 * High half of a free block's link. A live block may look the same by chance;
 * then the chain is walked before calling it a double free.
 */
#define FREE_MARK 0xf4ee0000u
#define FREE_MASK 0xffff0000u

struct slab_class {
	_Alignas(64) pthread_mutex_t lock;
	uint16_t size;
	uint32_t head; /* pages with room: filled first */
	uint32_t tail; /* and last: those nearly empty */
	uint64_t blocks;
	uint64_t pages;
};

struct slab {
	struct arena *arena;
	enum arena_region region;
	unsigned int nr_classes;
	uint8_t class_of[PAGE_UNITS + 1]; /* by size in units; NO_CLASS */
	struct slab_class classes[];
};

#define NO_CLASS	 0xff
#define SLAB_CLASSES_MAX NO_CLASS

static inline struct arena_frame *frame_of(const struct slab *slab,
					   uint32_t page)
{
	return arena_frame(slab->arena, slab->region, page);
}

static inline uint32_t page_of(uint32_t block)
{
	return block >> SLAB_SHIFT;
}

static inline unsigned int unit_of(uint32_t block)
{
	return block % PAGE_UNITS;
}

/* Block positions of a page, and the first that may be given out. */
static inline unsigned int positions(unsigned int size)
{
	return PAGE_SIZE / size;
}

static inline unsigned int first_position(uint32_t page)
{
	return page == 0;
}

static inline uint32_t block_at(uint32_t page, unsigned int size,
				unsigned int position)
{
	return page << SLAB_SHIFT | position * size / SLAB_UNIT;
}

static inline bool has_room(const struct arena_frame *frame, unsigned int size)
{
	return frame->free || frame->state < positions(size);
}

/* The last four bytes of a block. */
static inline uint32_t *link_of(const struct slab *slab, uint32_t block,
				unsigned int size)
{
	return (uint32_t *)((char *)slab_address(slab, block) + size) - 1;
}

/* The next block in a page's chain after this one, as frame.free has it. */
static inline unsigned int next_free(const struct slab *slab, uint32_t block,
				     unsigned int size)
{
	uint32_t link =
		__atomic_load_n(link_of(slab, block, size), __ATOMIC_RELAXED);

	assert((link & FREE_MASK) == FREE_MARK && "free block written to");
	return link & ~FREE_MASK;
}

/* Put a block in front of its page's chain; frame.inuse is the caller's. */
static inline void chain_block(const struct slab *slab,
			       struct arena_frame *frame, uint32_t block,
			       unsigned int size)
{
	__atomic_store_n(link_of(slab, block, size), FREE_MARK | frame->free,
			 __ATOMIC_RELAXED);
	frame->free = unit_of(block) + 1;
}

/* slab.c, class lock held: list a page that has room. */
void slab_list_add(struct slab *slab, struct slab_class *class, uint32_t page,
		   bool at_tail);

#endif
