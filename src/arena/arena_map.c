/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * arena_map.c - claims: the used pages as the layers above tell them
 *
 * A map has one bit for each page of each region, in private memory. It may
 * be compared with the live state, or become it (arena_settle), once, after an
 * attach, before any page is given out. Takes the regions' locks only; nobody
 * else may allocate or free meanwhile.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arena/arena_internal.h"

struct arena_map {
	struct {
		uint64_t *words;
		uint32_t nr_words;
	} region[ARENA_REGIONS];
};

/* Rounded up, as frames are looked at a group at a time. */
static uint64_t map_bytes(uint32_t nr_words)
{
	return (nr_words + GROUP_WORDS) * sizeof(uint64_t);
}

int arena_map_create(struct arena_map **result, const struct arena *arena)
{
	struct arena_map *map = calloc(1, sizeof(*map));

	if (!map)
		return -ENOMEM;
	for (unsigned int r = 0; r < ARENA_REGIONS; r++) {
		uint32_t nr_words = arena->region[r].map.nr_words;
		/* From mmap: parts that are never claimed cost nothing. */
		void *words = mmap(
			NULL, map_bytes(nr_words), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (words == MAP_FAILED) {
			arena_map_destroy(map);
			return -ENOMEM;
		}
		map->region[r].words = words;
		map->region[r].nr_words = nr_words;
	}
	*result = map;
	return 0;
}

void arena_map_destroy(struct arena_map *map)
{
	if (!map)
		return;
	for (unsigned int r = 0; r < ARENA_REGIONS; r++)
		if (map->region[r].words)
			munmap(map->region[r].words,
			       map_bytes(map->region[r].nr_words));
	free(map);
}

int arena_claim(struct arena_map *map, enum arena_region region, uint32_t page,
		unsigned int nr)
{
	uint64_t end = (uint64_t)page + nr;
	uint64_t *words = map->region[region].words;

	if (end > (uint64_t)map->region[region].nr_words * WORD_PAGES)
		return -ERANGE;
	for (uint64_t i = page; i < end; i++)
		if (words[i / WORD_PAGES] & pagemap_mask(i, 1))
			return -EEXIST;
	for (uint64_t i = page; i < end; i++)
		words[i / WORD_PAGES] |= pagemap_mask(i, 1);
	return 0;
}

uint64_t arena_map_compare(const struct arena_map *map,
			   const struct arena *arena)
{
	uint64_t differences = 0;

	for (unsigned int r = 0; r < ARENA_REGIONS; r++) {
		struct region *region = (struct region *)&arena->region[r];

		pthread_mutex_lock(&region->lock);
		for (uint32_t i = 0; i < region->map.nr_words; i++)
			differences +=
				__builtin_popcountll(map->region[r].words[i] ^
						     region->map.words[i].used);
		pthread_mutex_unlock(&region->lock);
	}
	return differences;
}

/* The first claimed (or unclaimed) page from `page` on, or `end`. */
static uint64_t next_page(const uint64_t *words, uint64_t page, uint64_t end,
			  bool claimed)
{
	while (page < end) {
		uint64_t bits = words[page / WORD_PAGES];

		bits = (claimed ? bits : ~bits) >> (page % WORD_PAGES);
		if (bits) {
			page += __builtin_ctzll(bits);
			return page < end ? page : end;
		}
		page = (page / WORD_PAGES + 1) * WORD_PAGES;
	}
	return end;
}

/* Does the map claim a page in this group? */
static bool group_claimed(const uint64_t *words, uint32_t group)
{
	uint64_t any = 0;

	for (unsigned int i = 0; i < GROUP_WORDS; i++)
		any |= words[group * GROUP_WORDS + i];
	return any != 0;
}

/*
 * Punch what is resident in [offset, offset + pages) and not claimed. words
 * has a bit for each page. The system tells what is resident, so that this
 * takes time for what there is and not for what there could be.
 */
static int punch_unclaimed(const struct arena *arena, uint64_t offset,
			   uint64_t pages, const uint64_t *words)
{
	uint64_t page = 0;

	while (page < pages) {
		off_t data, hole;
		uint64_t end;

		data = lseek(arena->fd, offset + page * PAGE_SIZE, SEEK_DATA);
		if (data < 0)
			return errno == ENXIO ? 0 : -errno;
		if ((uint64_t)data >= offset + pages * PAGE_SIZE)
			return 0;
		hole = lseek(arena->fd, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		page = (data - offset) / PAGE_SIZE;
		end = (hole - offset + PAGE_SIZE - 1) / PAGE_SIZE;
		if (end > pages)
			end = pages;
		while (page < end) {
			uint64_t from = next_page(words, page, end, false);
			uint64_t to = next_page(words, from, end, true);
			int err = 0;

			if (to > from)
				err = arena_punch(arena,
						  offset + from * PAGE_SIZE,
						  (to - from) * PAGE_SIZE);
			if (err)
				return err;
			page = to;
		}
	}
	return 0;
}

/* Frames of free pages become zero, and go where a whole page of them is. */
static int settle_frames(struct arena *arena, struct region *region,
			 const uint64_t *words)
{
	uint32_t groups = (region->pages + GROUP_PAGES - 1) >> GROUP_SHIFT;
	uint64_t *claimed;
	int err;

	claimed = calloc(groups / WORD_PAGES + 1, sizeof(*claimed));
	if (!claimed)
		return -ENOMEM;
	for (uint32_t group = 0; group < groups; group++) {
		uint64_t end = ((uint64_t)group + 1) * GROUP_PAGES;
		uint64_t page = (uint64_t)group * GROUP_PAGES;

		if (!group_claimed(words, group))
			continue;
		claimed[group / WORD_PAGES] |= pagemap_mask(group, 1);
		region->frames_touched[group] = 1;
		counter_add(&arena->fixed, 1);
		counter_add(&arena->total, 1);
		for (; page < end; page++)
			if (next_page(words, page, page + 1, true) > page)
				region->frames[page] = (struct arena_frame){0};
	}
	err = punch_unclaimed(arena, region->frames_offset, groups, claimed);
	free(claimed);
	return err;
}

static void settle_pages(struct arena *arena, struct region *region,
			 const uint64_t *words)
{
	uint64_t used = 0;
	uint32_t extent = 0;

	for (uint32_t i = 0; i < region->map.nr_words; i++) {
		if (!words[i])
			continue;
		region->map.words[i].used = words[i];
		used += __builtin_popcountll(words[i]);
		extent = (i + 1) * WORD_PAGES - __builtin_clzll(words[i]);
	}
	counter_add(&region->resident, used);
	counter_add(&arena->total, used);
	atomic_store_explicit(region->extent, extent, memory_order_release);
}

int arena_settle(struct arena *arena, const struct arena_map *map)
{
	assert(!arena->settled);
	/* First what can fail; until then nothing has been changed here. */
	for (unsigned int r = 0; r < ARENA_REGIONS; r++) {
		const struct region *region = &arena->region[r];
		int err = punch_unclaimed(arena, region->offset, region->pages,
					  map->region[r].words);

		if (err)
			return err;
	}
	for (unsigned int r = 0; r < ARENA_REGIONS; r++) {
		struct region *region = &arena->region[r];
		int err = 0;

		pthread_mutex_lock(&region->lock);
		settle_pages(arena, region, map->region[r].words);
		if (region->frames)
			err = settle_frames(arena, region,
					    map->region[r].words);
		pthread_mutex_unlock(&region->lock);
		if (err)
			return err;
	}
	arena->settled = true;
	return 0;
}
