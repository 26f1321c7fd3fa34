/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slab.c - cutting pages into blocks of one size
 *
 * Pages with room are listed for each size. A page that was full goes to the
 * front when a block of it is freed, and to the back when three quarters of it
 * are free: so pages tend to be full or to become empty.
 *
 * Readers without locks may still look at a block that has just been freed, or
 * given out anew: the layer above must be able to tell from the block's first
 * bytes that it is stale. So freeing writes to the last four bytes only, and
 * clearing is done by atomic stores of 8 bytes, which such a reader may race
 * with.
 *
 * Each size's mutex guards its list, its counters and all of its pages'
 * frames but for `kind`, which does not change while a block is live.
 */
#include "arena/lock.h"
#include "arena/slab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arena/slab_internal.h"
#include "fault.h"

static int set_classes(struct slab *slab, const uint16_t *sizes)
{
	unsigned int units = 0;

	memset(slab->class_of, NO_CLASS, sizeof(slab->class_of));
	for (unsigned int i = 0; i < slab->nr_classes; i++) {
		if (!sizes[i] || sizes[i] % SLAB_UNIT || sizes[i] > PAGE_SIZE ||
		    (i && sizes[i] <= sizes[i - 1]))
			return -EINVAL;
		slab->classes[i].size = sizes[i];
		slab->classes[i].head = ARENA_NIL;
		slab->classes[i].tail = ARENA_NIL;
		for (; units <= sizes[i] / SLAB_UNIT; units++)
			slab->class_of[units] = i;
	}
	return 0;
}

int slab_create(struct slab **result, struct arena *arena,
		enum arena_region region, const uint16_t *sizes,
		unsigned int nr_sizes)
{
	struct slab *slab;
	size_t bytes = sizeof(*slab) + nr_sizes * sizeof(struct slab_class);
	int err;

	if (!nr_sizes || nr_sizes > SLAB_CLASSES_MAX)
		return -EINVAL;
	slab = aligned_alloc(_Alignof(struct slab), bytes);
	if (!slab)
		return -ENOMEM;
	memset(slab, 0, bytes);
	slab->arena = arena;
	slab->region = region;
	slab->nr_classes = nr_sizes;
	err = set_classes(slab, sizes);
	for (unsigned int i = 0; i < nr_sizes && !err; i++) {
		err = -lock_init(&slab->classes[i].lock);
		if (!err)
			continue;
		while (i--)
			pthread_mutex_destroy(&slab->classes[i].lock);
	}
	if (err) {
		free(slab);
		return err;
	}
	*result = slab;
	return 0;
}

void slab_destroy(struct slab *slab)
{
	if (!slab)
		return;
	for (unsigned int i = 0; i < slab->nr_classes; i++)
		pthread_mutex_destroy(&slab->classes[i].lock);
	free(slab);
}

void *slab_address(const struct slab *slab, uint32_t block)
{
	/* Pages are contiguous, and so are the numbers of their units. */
	return (char *)arena_page(slab->arena, slab->region, 0) +
	       ((uint64_t)block << SLAB_UNIT_SHIFT);
}

static void clear(void *address, size_t size)
{
	uint64_t *word = address;

	for (size_t i = 0; i < size / sizeof(*word); i++)
		__atomic_store_n(&word[i], 0, __ATOMIC_RELAXED);
}

void slab_list_add(struct slab *slab, struct slab_class *class, uint32_t page,
		   bool at_tail)
{
	struct arena_frame *frame = frame_of(slab, page);
	uint32_t prev = at_tail ? class->tail : ARENA_NIL;
	uint32_t next = at_tail ? ARENA_NIL : class->head;

	frame->prev = prev;
	frame->next = next;
	if (prev == ARENA_NIL)
		class->head = page;
	else
		frame_of(slab, prev)->next = page;
	if (next == ARENA_NIL)
		class->tail = page;
	else
		frame_of(slab, next)->prev = page;
}

static void list_remove(struct slab *slab, struct slab_class *class,
			uint32_t page)
{
	const struct arena_frame *frame = frame_of(slab, page);

	if (frame->prev == ARENA_NIL)
		class->head = frame->next;
	else
		frame_of(slab, frame->prev)->next = frame->next;
	if (frame->next == ARENA_NIL)
		class->tail = frame->prev;
	else
		frame_of(slab, frame->next)->prev = frame->prev;
}

/*
 * A page from the arena. Page 0 has no block to give when blocks are larger
 * than half a page; then it has to be another.
 */
static int take_page(struct slab *slab, unsigned int size, unsigned int flags,
		     uint32_t *page)
{
	int err = arena_alloc(slab->arena, slab->region, 1, flags, page);

	if (err || first_position(*page) < positions(size))
		return err;
	err = arena_alloc(slab->arena, slab->region, 1, flags, page);
	arena_free(slab->arena, slab->region, 0, 1);
	return err;
}

static int add_page(struct slab *slab, struct slab_class *class,
		    unsigned int flags)
{
	struct arena_frame *frame;
	uint32_t page;
	int err;

	err = take_page(slab, class->size, flags, &page);
	if (err)
		return err;
	frame = frame_of(slab, page);
	frame->inuse = 0;
	frame->free = 0;
	frame->state = first_position(page);
	frame->kind = class->size;
	slab_list_add(slab, class, page, false);
	class->pages++;
	return 0;
}

int slab_alloc(struct slab *slab, size_t size, unsigned int flags,
	       uint32_t *result)
{
	size_t units = (size + SLAB_UNIT - 1) / SLAB_UNIT;
	struct arena_frame *frame;
	struct slab_class *class;
	uint32_t block;
	int err = 0;

	if (units > PAGE_UNITS || slab->class_of[units] == NO_CLASS)
		return -EINVAL;
	if (fault_alloc())
		return -ENOSPC;
	class = &slab->classes[slab->class_of[units]];
	pthread_mutex_lock(&class->lock);
	if (class->head == ARENA_NIL)
		err = add_page(slab, class, flags & ARENA_RESERVE);
	if (err) {
		pthread_mutex_unlock(&class->lock);
		return err;
	}
	frame = frame_of(slab, class->head);
	if (frame->free) {
		block = class->head << SLAB_SHIFT | (frame->free - 1u);
		frame->free = next_free(slab, block, class->size);
	} else {
		block = block_at(class->head, class->size, frame->state);
		frame->state++;
	}
	frame->inuse++;
	if (!has_room(frame, class->size))
		list_remove(slab, class, class->head);
	class->blocks++;
	pthread_mutex_unlock(&class->lock);

	fault_point("block taken");
	clear(slab_address(slab, block), class->size);
	*result = block;
	return 0;
}

/* Is this block in its page's chain? For when it looks like it. */
static bool is_chained(const struct slab *slab, uint32_t block,
		       unsigned int size)
{
	unsigned int unit = frame_of(slab, page_of(block))->free;

	while (unit && unit - 1 != unit_of(block))
		unit = next_free(
			slab, page_of(block) << SLAB_SHIFT | (unit - 1), size);
	return unit != 0;
}

/* Is this the number of a block that was given out and not freed since? */
static bool is_live(const struct slab *slab, uint32_t block, unsigned int size)
{
	const struct arena_frame *frame = frame_of(slab, page_of(block));
	unsigned int position = unit_of(block) * SLAB_UNIT / size;
	uint32_t link = *link_of(slab, block, size);

	return frame->kind == size && frame->inuse &&
	       block == block_at(page_of(block), size, position) &&
	       position < frame->state &&
	       !((link & FREE_MASK) == FREE_MARK &&
		 is_chained(slab, block, size));
}

/* Put a page whose use has changed where it belongs, or give it back. */
static void place_page(struct slab *slab, struct slab_class *class,
		       uint32_t page, bool was_full)
{
	struct arena_frame *frame = frame_of(slab, page);

	if (!frame->inuse) {
		if (!was_full)
			list_remove(slab, class, page);
		class->pages--;
		arena_free(slab->arena, slab->region, page, 1);
	} else if (was_full) {
		slab_list_add(slab, class, page, false);
	} else if (frame->inuse == positions(class->size) / 4 &&
		   class->tail != page) {
		/* Last to be filled, so that it may become empty. */
		list_remove(slab, class, page);
		slab_list_add(slab, class, page, true);
	}
}

void slab_free(struct slab *slab, uint32_t block)
{
	uint32_t page = page_of(block);
	struct arena_frame *frame;
	struct slab_class *class;
	unsigned int size;
	bool was_full;

	if (block == SLAB_NONE)
		return;
	assert(page < arena_extent(slab->arena, slab->region));
	frame = frame_of(slab, page);
	size = frame->kind;
	assert(size && size == slab_size_for(slab, size) &&
	       "block freed in a page that is not in use");
	class = &slab->classes[slab->class_of[size / SLAB_UNIT]];

	pthread_mutex_lock(&class->lock);
	assert(is_live(slab, block, size) && "block freed that is not live");
	was_full = !has_room(frame, size);
	chain_block(slab, frame, block, size);
	fault_point("block given back");
	frame->inuse--;
	class->blocks--;
	place_page(slab, class, page, was_full);
	pthread_mutex_unlock(&class->lock);
}

size_t slab_size(const struct slab *slab, uint32_t block)
{
	return frame_of(slab, page_of(block))->kind;
}

size_t slab_size_for(const struct slab *slab, size_t size)
{
	size_t units = (size + SLAB_UNIT - 1) / SLAB_UNIT;

	if (units > PAGE_UNITS || slab->class_of[units] == NO_CLASS)
		return 0;
	return slab->classes[slab->class_of[units]].size;
}

void slab_usage(const struct slab *slab, struct slab_usage *usage)
{
	*usage = (struct slab_usage){0};
	for (unsigned int i = 0; i < slab->nr_classes; i++) {
		struct slab_class *class =
			(struct slab_class *)&slab->classes[i];

		pthread_mutex_lock(&class->lock);
		usage->blocks += class->blocks;
		usage->bytes += class->blocks * class->size;
		usage->pages += class->pages;
		pthread_mutex_unlock(&class->lock);
	}
}
