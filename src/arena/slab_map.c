/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slab_map.c - scanning a slab, and claims: the blocks as their owners tell
 * them
 *
 * A map has one bit for each unit that a block could start at, in private
 * memory. Nothing here is thread-safe, so no lock is taken.
 */
#include "arena/slab.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "arena/arena_internal.h"
#include "arena/slab_internal.h"

#define PAGE_WORDS (PAGE_UNITS / 64)

struct slab_map {
	const struct slab *slab;
	uint32_t pages;
	uint64_t (*claimed)[PAGE_WORDS];
};

/* The size of the blocks in a page, 0 if it is not in use (by this slab). */
static unsigned int page_size_of(const struct slab *slab, uint32_t page)
{
	unsigned int kind;

	if (!arena_frame_touched(slab->arena, slab->region, page))
		return 0;
	kind = frame_of(slab, page)->kind;
	return kind && kind == slab_size_for(slab, kind) ? kind : 0;
}

/* One past the last position that has been given out; kept after a crash. */
static unsigned int given(const struct slab *slab, uint32_t page,
			  unsigned int size)
{
	unsigned int state = frame_of(slab, page)->state;

	return state < positions(size) ? state : positions(size);
}

int slab_scan(struct slab *slab,
	      int (*visit)(void *context, uint32_t block, void *address),
	      void *context)
{
	uint32_t extent = arena_extent(slab->arena, slab->region);

	for (uint32_t page = 0; page < extent; page++) {
		unsigned int size = page_size_of(slab, page);
		unsigned int i = first_position(page);

		for (; size && i < given(slab, page, size); i++) {
			uint32_t block = block_at(page, size, i);
			int result = visit(context, block,
					   slab_address(slab, block));

			if (result)
				return result;
		}
	}
	return 0;
}

int slab_map_create(struct slab_map **result, const struct slab *slab)
{
	struct slab_map *map = malloc(sizeof(*map));
	void *claimed;

	if (!map)
		return -ENOMEM;
	map->slab = slab;
	/* One more, as an empty mapping is none. */
	map->pages = arena_extent(slab->arena, slab->region);
	claimed = mmap(NULL, (map->pages + 1ul) * sizeof(*map->claimed),
		       PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (claimed == MAP_FAILED) {
		free(map);
		return -ENOMEM;
	}
	map->claimed = claimed;
	*result = map;
	return 0;
}

void slab_map_destroy(struct slab_map *map)
{
	if (!map)
		return;
	munmap(map->claimed, (map->pages + 1ul) * sizeof(*map->claimed));
	free(map);
}

static bool is_claimed(const struct slab_map *map, uint32_t block)
{
	unsigned int unit = unit_of(block);

	return map->claimed[page_of(block)][unit / 64] >> (unit % 64) & 1;
}

static bool page_claimed(const struct slab_map *map, uint32_t page)
{
	uint64_t any = 0;

	for (unsigned int i = 0; i < PAGE_WORDS; i++)
		any |= map->claimed[page][i];
	return any != 0;
}

int slab_claim(struct slab_map *map, uint32_t block)
{
	unsigned int unit = unit_of(block);
	uint32_t page = page_of(block);
	unsigned int size;

	if (block == SLAB_NONE || page >= map->pages)
		return -ERANGE;
	size = page_size_of(map->slab, page);
	if (!size || unit * SLAB_UNIT % size ||
	    unit * SLAB_UNIT / size >= given(map->slab, page, size))
		return -ERANGE;
	if (is_claimed(map, block))
		return -EEXIST;
	map->claimed[page][unit / 64] |= 1ull << (unit % 64);
	return 0;
}

int slab_map_finish(struct slab_map *map, struct arena_map *arena_map)
{
	for (uint32_t page = 0; page < map->pages; page++) {
		int err = 0;

		if (page_claimed(map, page))
			err = arena_claim(arena_map, map->slab->region, page,
					  1);
		if (err)
			return err;
	}
	return 0;
}

/*
 * Mark the units of the page's free blocks, as the live state has them. A
 * chain that is broken, or goes in a circle, is followed no further: what is
 * missing then shows as differences.
 */
static void mark_free(const struct slab *slab, uint32_t page, unsigned int size,
		      uint64_t *is_free)
{
	const struct arena_frame *frame = frame_of(slab, page);
	unsigned int unit = frame->free;

	for (unsigned int n = positions(size); unit && n; n--) {
		uint32_t link;

		if (--unit * SLAB_UNIT % size)
			break;
		is_free[unit / 64] |= 1ull << (unit % 64);
		link = *link_of(slab, page << SLAB_SHIFT | unit, size);
		unit = (link & FREE_MASK) == FREE_MARK ? link & ~FREE_MASK : 0;
		if (unit > PAGE_UNITS)
			break;
	}
	for (unsigned int i = frame->state; i < positions(size); i++) {
		unit = unit_of(block_at(page, size, i));
		is_free[unit / 64] |= 1ull << (unit % 64);
	}
}

uint64_t slab_map_compare(const struct slab_map *map, const struct slab *slab)
{
	uint64_t differences = 0;

	for (uint32_t page = 0; page < map->pages; page++) {
		unsigned int size = page_size_of(slab, page);
		uint64_t is_free[PAGE_WORDS] = {0};
		unsigned int inuse = 0;

		if (!size)
			continue;
		mark_free(slab, page, size, is_free);
		for (unsigned int i = first_position(page); i < positions(size);
		     i++) {
			uint32_t block = block_at(page, size, i);
			unsigned int unit = unit_of(block);
			bool live = !(is_free[unit / 64] >> (unit % 64) & 1);

			inuse += live;
			differences += live != is_claimed(map, block);
		}
		differences += inuse != frame_of(slab, page)->inuse;
	}
	return differences;
}

static void settle_page(struct slab *slab, const struct slab_map *map,
			uint32_t page, unsigned int size)
{
	struct slab_class *class =
		&slab->classes[slab->class_of[size / SLAB_UNIT]];
	struct arena_frame *frame = frame_of(slab, page);

	frame->inuse = 0;
	frame->free = 0;
	frame->state = given(slab, page, size);
	/* Backwards, so that the chain is in ascending order. */
	for (unsigned int i = frame->state; i-- > first_position(page);) {
		uint32_t block = block_at(page, size, i);

		if (is_claimed(map, block))
			frame->inuse++;
		else
			chain_block(slab, frame, block, size);
	}
	class->blocks += frame->inuse;
	class->pages++;
	if (has_room(frame, size))
		slab_list_add(slab, class, page, true);
}

int slab_settle(struct slab *slab, const struct slab_map *map)
{
	for (unsigned int i = 0; i < slab->nr_classes; i++)
		if (slab->classes[i].pages)
			return -EBUSY;
	for (uint32_t page = 0; page < map->pages; page++)
		if (page_claimed(map, page))
			settle_page(slab, map, page, page_size_of(slab, page));
	return 0;
}
