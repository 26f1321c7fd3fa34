/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buddies_page.c - pages of a few objects: what is where, and who has room
 *
 * Owns the frames of the pool's pages, and the lists by room. Takes no lock;
 * asks owners only before it moves a middle object, which is the one thing
 * here that touches objects' bytes.
 */
#include <assert.h>

#include "pool/buddies.h"

int buddies_page_create(struct pool *pool, unsigned int kind,
			unsigned int flags, uint32_t *page)
{
	int err = arena_alloc(pool->arena, ARENA_POOL, 1, flags, page);

	if (err)
		return err;
	*pool_frame(pool->arena, *page) = (struct arena_frame){
		.kind = kind, .prev = ARENA_NIL, .next = ARENA_NIL};
	return 0;
}

void buddies_page_destroy(struct pool *pool, uint32_t page)
{
	*pool_frame(pool->arena, page) = (struct arena_frame){0};
	arena_free(pool->arena, ARENA_POOL, page, 1);
}

static unsigned int chunks_used(const struct buddies *buddies)
{
	return buddies->chunks[BUDDY_FIRST] + buddies->chunks[BUDDY_MIDDLE] +
	       buddies->chunks[BUDDY_LAST];
}

/* Chunks that an object could have before and behind the middle one. */
static unsigned int room_before(const struct buddies *buddies)
{
	return buddies->chunks[BUDDY_FIRST] ? 0 : buddies->middle;
}

static unsigned int room_behind(const struct buddies *buddies)
{
	return buddies->chunks[BUDDY_LAST]
		       ? 0
		       : CHUNKS - buddies->middle -
				 buddies->chunks[BUDDY_MIDDLE];
}

/*
 * To which end of the page the middle object can move, without overlapping
 * where it is now. BUDDY_MIDDLE if to none. All that is free is then in one
 * piece.
 */
static enum buddy_slot middle_moves_to(const struct buddies *buddies)
{
	unsigned int chunks = buddies->chunks[BUDDY_MIDDLE];

	if (chunks && room_before(buddies) >= chunks)
		return BUDDY_FIRST;
	if (chunks && room_behind(buddies) >= chunks)
		return BUDDY_LAST;
	return BUDDY_MIDDLE;
}

/* As it is, or once the middle object has moved. */
unsigned int buddies_room(const struct pool *pool, uint32_t page)
{
	const struct arena_frame *frame = pool_frame(pool->arena, page);
	struct buddies buddies = buddies_load(frame);
	unsigned int before, behind;

	if (frame->inuse == pool->per_page)
		return 0;
	if (!buddies.chunks[BUDDY_MIDDLE] ||
	    middle_moves_to(&buddies) != BUDDY_MIDDLE)
		return CHUNKS - chunks_used(&buddies);
	before = room_before(&buddies);
	behind = room_behind(&buddies);
	return before > behind ? before : behind;
}

/*
 * Where an object would go in a page as it is, if there is one less than there
 * may be. Of two places the smaller is taken. BUDDY_SLOTS if nowhere.
 */
static enum buddy_slot choose_slot(const struct buddies *buddies,
				   unsigned int chunks)
{
	unsigned int before, behind;

	if (!buddies->chunks[BUDDY_MIDDLE]) {
		if (chunks_used(buddies) + chunks > CHUNKS)
			return BUDDY_SLOTS;
		if (!buddies->chunks[BUDDY_FIRST])
			return BUDDY_FIRST;
		return buddies->chunks[BUDDY_LAST] ? BUDDY_MIDDLE : BUDDY_LAST;
	}
	before = room_before(buddies);
	behind = room_behind(buddies);
	if (before >= chunks && (before <= behind || behind < chunks))
		return BUDDY_FIRST;
	return behind >= chunks ? BUDDY_LAST : BUDDY_SLOTS;
}

/* Beside the smaller neighbour: see z3fold.c. */
static unsigned int middle_start(const struct buddies *buddies,
				 unsigned int chunks)
{
	unsigned int first = buddies->chunks[BUDDY_FIRST];
	unsigned int last = buddies->chunks[BUDDY_LAST];

	return first <= last ? first : CHUNKS - last - chunks;
}

void buddies_enlist(struct pool *pool, uint32_t page)
{
	const struct arena_frame *frame = pool_frame(pool->arena, page);
	struct buddies buddies = buddies_load(frame);
	unsigned int room = buddies_room(pool, page);
	struct buddy_lists *lists = &pool->lists[frame->inuse];

	pool->pages[frame->inuse]++;
	pool->chunks += chunks_used(&buddies);
	if (room == 0)
		return;
	frame_list_add(pool->arena, &lists->list[room], page);
	lists->pages[room]++;
	lists->listed |= UINT64_C(1) << room;
}

void buddies_unlist(struct pool *pool, uint32_t page)
{
	const struct arena_frame *frame = pool_frame(pool->arena, page);
	struct buddies buddies = buddies_load(frame);
	unsigned int room = buddies_room(pool, page);
	struct buddy_lists *lists = &pool->lists[frame->inuse];

	pool->pages[frame->inuse]--;
	pool->chunks -= chunks_used(&buddies);
	if (room == 0)
		return;
	frame_list_del(pool->arena, &lists->list[room], page);
	if (--lists->pages[room] == 0)
		lists->listed &= ~(UINT64_C(1) << room);
}

/* Of a list, the first page that is neither of two. */
static uint32_t first_but(const struct pool *pool, uint32_t list,
			  uint32_t except, uint32_t except_too)
{
	uint32_t page = list;

	if (list == ARENA_NIL)
		return ARENA_NIL;
	do {
		if (page != except && page != except_too)
			return page;
		page = pool_frame(pool->arena, page)->next;
	} while (page != list);
	return ARENA_NIL;
}

/* Bits of the rooms that pages have, of so many chunks or more. */
static uint64_t rooms_from(const struct pool *pool, unsigned int chunks)
{
	uint64_t rooms = 0;

	for (unsigned int count = 1; count < pool->per_page; count++)
		rooms |= pool->lists[count].listed;
	return rooms & ~UINT64_C(0) << chunks;
}

uint32_t buddies_find(const struct pool *pool, unsigned int chunks,
		      uint32_t except, uint32_t except_too)
{
	uint64_t rooms = rooms_from(pool, chunks);

	for (; rooms; rooms &= rooms - 1) {
		unsigned int room = __builtin_ctzll(rooms);

		for (unsigned int count = pool->per_page - 1; count; count--) {
			uint32_t page =
				first_but(pool, pool->lists[count].list[room],
					  except, except_too);

			if (page != ARENA_NIL)
				return page;
		}
	}
	return ARENA_NIL;
}

/* The page's room, by which it is listed, stays as it was. */
static bool move_middle(struct pool *pool, uint32_t page)
{
	struct arena_frame *frame = pool_frame(pool->arena, page);
	struct buddies buddies = buddies_load(frame);
	enum buddy_slot slot = middle_moves_to(&buddies);
	unsigned int chunks = buddies.chunks[BUDDY_MIDDLE];
	unsigned int from = buddies.middle, to;
	uint32_t owner;

	if (slot == BUDDY_MIDDLE)
		return false;
	owner = *buddy_owner(pool, page, from, chunks);
	if (!pool->owner_ops->move_begin(pool->context, owner,
					 buddy_handle(page, from)))
		return false;
	buddies.chunks[slot] = chunks;
	buddies.chunks[BUDDY_MIDDLE] = 0;
	buddies.middle = 0;
	to = buddy_start(&buddies, slot);
	memcpy(buddy_chunk(pool, page, to), buddy_chunk(pool, page, from),
	       chunks * CHUNK_SIZE);
	buddies_store(frame, &buddies);
	pool->owner_ops->move_end(pool->context, owner, buddy_handle(page, to));
	pool->objects_moved++;
	return true;
}

bool buddies_take(struct pool *pool, uint32_t page, unsigned int chunks,
		  uint32_t owner, uint64_t *handle)
{
	struct arena_frame *frame = pool_frame(pool->arena, page);
	struct buddies buddies = buddies_load(frame);
	enum buddy_slot slot = choose_slot(&buddies, chunks);
	unsigned int start;

	if (slot == BUDDY_SLOTS && move_middle(pool, page)) {
		buddies = buddies_load(frame);
		slot = choose_slot(&buddies, chunks);
	}
	if (slot == BUDDY_SLOTS)
		return false;
	if (frame->inuse)
		buddies_unlist(pool, page);
	if (slot == BUDDY_MIDDLE)
		buddies.middle = middle_start(&buddies, chunks);
	buddies.chunks[slot] = chunks;
	start = buddy_start(&buddies, slot);
	*buddy_owner(pool, page, start, chunks) = owner;
	buddies_store(frame, &buddies);
	frame->inuse++;
	buddies_enlist(pool, page);
	*handle = buddy_handle(page, start);
	return true;
}

/* A page stays where it is in its list when nothing is taken of it. */
static bool take_of_list(struct pool *pool, uint32_t list, unsigned int chunks,
			 uint32_t owner, uint64_t *handle)
{
	uint32_t page = list;

	if (list == ARENA_NIL)
		return false;
	do {
		if (buddies_take(pool, page, chunks, owner, handle))
			return true;
		page = pool_frame(pool->arena, page)->next;
	} while (page != list);
	return false;
}

bool buddies_take_anywhere(struct pool *pool, unsigned int chunks,
			   uint32_t owner, uint64_t *handle)
{
	for (unsigned int count = 1; count < pool->per_page; count++)
		for (unsigned int room = chunks; room < CHUNKS; room++)
			if (take_of_list(pool, pool->lists[count].list[room],
					 chunks, owner, handle))
				return true;
	return false;
}

bool buddies_put(struct pool *pool, uint32_t page, unsigned int start,
		 unsigned int chunks)
{
	struct arena_frame *frame = pool_frame(pool->arena, page);
	struct buddies buddies = buddies_load(frame);
	enum buddy_slot slot = buddy_slot(start, chunks);

	/* A second free of the same object, as far as it shows. */
	assert(frame->kind == KIND_BUDDIES && buddies.chunks[slot] == chunks &&
	       buddy_start(&buddies, slot) == start);
	buddies_unlist(pool, page);
	buddies.chunks[slot] = 0;
	if (slot == BUDDY_MIDDLE)
		buddies.middle = 0;
	buddies_store(frame, &buddies);
	frame->inuse--;
	if (frame->inuse == 0)
		return true;
	buddies_enlist(pool, page);
	return false;
}
