/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buddies_compact.c - give objects that are alone in their pages company
 *
 * Pages are taken one after the other, those with one object before those with
 * two, the emptiest first; if there is a place in other pages for all of its
 * objects, they move there, each to the page that it fits best, and the page
 * is given back.
 *
 * With two objects to a page that finds the most pairs there are: the smallest
 * object is paired with the largest that leaves room for it, and one that no
 * object can be paired with stays alone. With three it is a heuristic.
 *
 * Allocates nothing. Holds the pool's lock for one page at a time. Ends though
 * owners refuse and other threads allocate and free: it tries as many pages as
 * each list had when it came to it.
 */
#include "pool/buddies.h"

/* A page's objects, larger before smaller. Returns how many. */
static unsigned int by_size(const struct buddies *buddies,
			    enum buddy_slot slots[BUDDY_SLOTS])
{
	unsigned int nr = 0;

	for (enum buddy_slot slot = 0; slot < BUDDY_SLOTS; slot++) {
		unsigned int at = nr;

		if (!buddies->chunks[slot])
			continue;
		for (; at > 0 &&
		       buddies->chunks[slots[at - 1]] < buddies->chunks[slot];
		     at--)
			slots[at] = slots[at - 1];
		slots[at] = slot;
		nr++;
	}
	return nr;
}

/* Is there a place in other pages for all that a page of one or two has? */
static bool can_empty(const struct pool *pool, const struct buddies *buddies,
		      const enum buddy_slot *slots, unsigned int nr,
		      uint32_t page)
{
	unsigned int larger = buddies->chunks[slots[0]], smaller;
	uint32_t to = buddies_find(pool, larger, page, ARENA_NIL);

	if (nr == 1 || to == ARENA_NIL)
		return to != ARENA_NIL;
	smaller = buddies->chunks[slots[1]];
	if (pool_frame(pool->arena, to)->inuse + nr <= pool->per_page &&
	    buddies_room(pool, to) >= larger + smaller)
		return true;
	return buddies_find(pool, smaller, page, to) != ARENA_NIL;
}

/* Returns whether it has moved, and if so whether its page is empty. */
static bool move_object(struct pool *pool, uint32_t page, unsigned int start,
			unsigned int chunks, bool *empty)
{
	uint32_t owner = *buddy_owner(pool, page, start, chunks);
	uint64_t handle = buddy_handle(page, start), new = handle;
	uint32_t to;
	bool moved;

	if (!pool->owner_ops->move_begin(pool->context, owner, handle))
		return false;
	to = buddies_find(pool, chunks, page, ARENA_NIL);
	moved = to != ARENA_NIL && buddies_take(pool, to, chunks, owner, &new);
	if (moved)
		memcpy(buddy_chunk(pool, to, buddy_handle_start(new)),
		       buddy_chunk(pool, page, start), chunks * CHUNK_SIZE);
	pool->owner_ops->move_end(pool->context, owner, new);
	if (moved) {
		pool->objects_moved++;
		*empty = buddies_put(pool, page, start, chunks);
	}
	return moved;
}

/* True if the page is empty and in no list. */
static bool empty_page(struct pool *pool, uint32_t page)
{
	struct buddies buddies = buddies_load(pool_frame(pool->arena, page));
	enum buddy_slot slots[BUDDY_SLOTS];
	unsigned int nr = by_size(&buddies, slots);
	bool empty = false;

	if (!can_empty(pool, &buddies, slots, nr, page))
		return false;
	for (unsigned int i = 0; i < nr; i++)
		if (!move_object(pool, page, buddy_start(&buddies, slots[i]),
				 buddies.chunks[slots[i]], &empty))
			return false;
	return empty;
}

/*
 * The page that a list has had longest. If it stays it becomes the youngest:
 * the list is a circle, in which that is the next.
 */
static bool compact_one(struct pool *pool, uint32_t *list)
{
	uint32_t page;
	bool empty = false;

	pthread_mutex_lock(&pool->lock);
	page = frame_list_oldest(pool->arena, *list);
	if (page != ARENA_NIL) {
		*list = page;
		empty = empty_page(pool, page);
	}
	if (empty)
		pool->pages_compacted++;
	pthread_mutex_unlock(&pool->lock);
	if (empty)
		buddies_page_destroy(pool, page);
	return empty;
}

static uint64_t compact_list(struct pool *pool, struct buddy_lists *lists,
			     unsigned int room, uint64_t enough)
{
	uint64_t freed = 0;
	uint32_t tries;

	pthread_mutex_lock(&pool->lock);
	tries = lists->pages[room];
	pthread_mutex_unlock(&pool->lock);
	while (tries-- > 0 && freed < enough)
		freed += compact_one(pool, &lists->list[room]);
	return freed;
}

uint64_t buddies_compact(struct pool *pool, uint64_t enough)
{
	uint64_t freed = 0;

	for (unsigned int count = 1; count < pool->per_page; count++)
		for (unsigned int room = CHUNKS; room-- > 0 && freed < enough;)
			freed += compact_list(pool, &pool->lists[count], room,
					      enough - freed);
	return freed;
}

/* As buddies_find(), in a copy of the lists' lengths. */
static bool find_place(uint32_t pages[BUDDY_SLOTS][CHUNKS],
		       unsigned int per_page, unsigned int chunks,
		       unsigned int *count, unsigned int *room)
{
	for (*room = chunks; *room < CHUNKS; ++*room)
		for (*count = per_page - 1; *count; --*count)
			if (pages[*count][*room])
				return true;
	return false;
}

uint64_t buddies_freeable(const struct pool *pool)
{
	uint32_t pages[BUDDY_SLOTS][CHUNKS];
	unsigned int per_page = pool->per_page, count, room;
	uint64_t freeable = 0;

	for (count = 1; count < per_page; count++)
		memcpy(pages[count], pool->lists[count].pages,
		       sizeof(pages[count]));
	for (unsigned int from = CHUNKS - 1; from > 0; from--) {
		unsigned int chunks = CHUNKS - from;

		while (pages[1][from]) {
			pages[1][from]--;
			if (!find_place(pages, per_page, chunks, &count,
					&room)) {
				pages[1][from]++;
				break;
			}
			pages[count][room]--;
			if (count + 1 < per_page && room > chunks)
				pages[count + 1][room - chunks]++;
			freeable++;
		}
	}
	return freeable;
}
