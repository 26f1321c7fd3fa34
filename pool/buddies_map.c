/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buddies_map.c - the set of objects as their owners tell it
 *
 * Owns the map: for each page, in private memory, where in it objects were
 * claimed. Believes nothing of a frame but its kind. Not thread-safe: the pool
 * stands still meanwhile.
 */
#include <errno.h>
#include <stdlib.h>

#include "pool/buddies.h"

struct buddies_map {
	uint32_t end;		  /* pages there may be objects in */
	struct buddies claimed[]; /* in a whole page the first has all chunks */
};

int buddies_map_create(struct pool *pool, void **result)
{
	uint32_t end = arena_extent(pool->arena, ARENA_POOL);
	struct buddies_map *map;

	map = calloc(1, sizeof(*map) + (size_t)end * sizeof(map->claimed[0]));
	if (!map)
		return -ENOMEM;
	map->end = end;
	*result = map;
	return 0;
}

void buddies_map_destroy(struct pool *pool, void *map)
{
	free(map);
}

/* Chunks start to start + chunks - 1, and those of an object that is there. */
static bool overlap(const struct buddies *buddies, enum buddy_slot slot,
		    unsigned int start, unsigned int chunks)
{
	unsigned int there = buddy_start(buddies, slot);

	return start < there + buddies->chunks[slot] && there < start + chunks;
}

/* A place that an object of a page of this kind may have? */
static bool is_place(const struct pool *pool, unsigned int kind,
		     unsigned int start, size_t size)
{
	unsigned int chunks;

	if (kind == KIND_WHOLE)
		return start == 0 && size > BUDDY_LARGEST && size <= PAGE_SIZE;
	if (kind != KIND_BUDDIES || size == 0 || size > BUDDY_LARGEST)
		return false;
	chunks = buddy_chunks(size);
	return start + chunks <= CHUNKS &&
	       (buddy_slot(start, chunks) != BUDDY_MIDDLE ||
		pool->per_page == BUDDY_SLOTS);
}

int buddies_map_claim(struct pool *pool, void *opaque, uint64_t handle,
		      size_t size, uint32_t owner)
{
	struct buddies_map *map = opaque;
	uint64_t page = buddy_handle_page(handle);
	unsigned int start = buddy_handle_start(handle), chunks = CHUNKS;
	const struct arena_frame *frame;
	struct buddies *claimed;
	enum buddy_slot slot;

	if (handle == 0 || page >= map->end)
		return -ERANGE;
	frame = pool_frame(pool->arena, page);
	if (!is_place(pool, frame->kind, start, size))
		return -ERANGE;
	if (frame->kind == KIND_BUDDIES)
		chunks = buddy_chunks(size);
	claimed = &map->claimed[page];
	slot = buddy_slot(start, chunks);
	if (claimed->chunks[slot])
		return -EEXIST;
	for (enum buddy_slot other = 0; other < BUDDY_SLOTS; other++)
		if (overlap(claimed, other, start, chunks))
			return -EEXIST;
	if (owner != (frame->kind == KIND_WHOLE
			      ? frame->owner
			      : *buddy_owner(pool, page, start, chunks)))
		return -EINVAL;
	claimed->chunks[slot] = chunks;
	if (slot == BUDDY_MIDDLE)
		claimed->middle = start;
	return 0;
}

static unsigned int count_objects(const struct buddies *buddies)
{
	return !!buddies->chunks[BUDDY_FIRST] +
	       !!buddies->chunks[BUDDY_MIDDLE] + !!buddies->chunks[BUDDY_LAST];
}

int buddies_map_finish(struct pool *pool, void *opaque,
		       struct arena_map *arena_map)
{
	const struct buddies_map *map = opaque;

	for (uint32_t page = 0; page < map->end; page++) {
		int err = 0;

		if (count_objects(&map->claimed[page]))
			err = arena_claim(arena_map, ARENA_POOL, page, 1);
		if (err)
			return err;
	}
	return 0;
}

/* What is in a page as its frame tells it. */
static struct buddies live_in(const struct pool *pool, uint32_t page)
{
	const struct arena_frame *frame = pool_frame(pool->arena, page);

	if (frame->kind == KIND_BUDDIES)
		return buddies_load(frame);
	return (struct buddies){.chunks[BUDDY_FIRST] =
					frame->kind == KIND_WHOLE ? CHUNKS : 0};
}

static unsigned int differences_in(const struct buddies *live,
				   const struct buddies *claimed)
{
	unsigned int differences = 0;

	for (enum buddy_slot slot = 0; slot < BUDDY_SLOTS; slot++)
		differences += live->chunks[slot] != claimed->chunks[slot] ||
			       (slot == BUDDY_MIDDLE &&
				live->middle != claimed->middle);
	return differences;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* By how much the pool's counts of pages are wrong. */
static uint64_t compare_counts(struct pool *pool, const struct buddies_map *map)
{
	uint64_t pages[BUDDY_SLOTS + 1] = {0}, whole = 0, differences;

	for (uint32_t page = 0; page < map->end; page++) {
		const struct buddies *claimed = &map->claimed[page];

		if (claimed->chunks[BUDDY_FIRST] == CHUNKS)
			whole++;
		else
			pages[count_objects(claimed)]++;
	}
	pthread_mutex_lock(&pool->lock);
	differences = distance(whole, pool->whole);
	for (unsigned int count = 1; count <= BUDDY_SLOTS; count++)
		differences += distance(pages[count], pool->pages[count]);
	pthread_mutex_unlock(&pool->lock);
	return differences;
}

/* Objects one by one; and when all agree, whether they were counted right. */
uint64_t buddies_map_compare(struct pool *pool, void *opaque)
{
	const struct buddies_map *map = opaque;
	uint32_t end = arena_extent(pool->arena, ARENA_POOL);
	uint64_t differences = 0;

	for (uint32_t page = 0; page < map->end || page < end; page++) {
		struct buddies live = {0}, claimed = {0};

		if (page < end)
			live = live_in(pool, page);
		if (page < map->end)
			claimed = map->claimed[page];
		differences += differences_in(&live, &claimed);
	}
	return differences ? differences : compare_counts(pool, map);
}

/* Live state starts out empty, as buddies_create() left it. */
int buddies_map_settle(struct pool *pool, void *opaque)
{
	const struct buddies_map *map = opaque;

	pthread_mutex_lock(&pool->lock);
	for (uint32_t page = 0; page < map->end; page++) {
		const struct buddies *claimed = &map->claimed[page];
		struct arena_frame *frame = pool_frame(pool->arena, page);

		if (!count_objects(claimed))
			continue;
		frame->inuse = count_objects(claimed);
		if (frame->kind == KIND_WHOLE) {
			pool->whole++;
			continue;
		}
		buddies_store(frame, claimed);
		buddies_enlist(pool, page);
	}
	pthread_mutex_unlock(&pool->lock);
	return 0;
}
