/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buddies.h - what the pools zbud and z3fold share; private to them
 *
 * Both keep a few objects in each page, and differ in how many. buddies.c
 * explains the whole, allocates and frees; buddies_page.c keeps the pages;
 * buddies_compact.c moves objects; buddies_map.c rebuilds and checks.
 */
#ifndef ZRAMFS_BUDDIES_H
#define ZRAMFS_BUDDIES_H

#include <pthread.h>
#include <string.h>

#include "pool/frame_list.h"
#include "pool/pool.h"

/* Objects begin and end at multiples of this: as in the kernel's zbud.c. */
#define CHUNK_SIZE 64u
#define CHUNKS	   (PAGE_SIZE / CHUNK_SIZE)

/* What each object costs besides its bytes: its owner's number. */
#define BUDDY_OWNER 4u

/* An object that leaves no chunk to a buddy may as well be a whole page. */
#define BUDDY_LARGEST (PAGE_SIZE - CHUNK_SIZE - BUDDY_OWNER)

/* Kinds of page frames, which are truth. */
#define KIND_BUDDIES 1 /* up to per_page objects */
#define KIND_WHOLE   2 /* one of PAGE_SIZE; the frame's owner is its owner */

/*
 * The first object of a page begins where the page does, the last ends where
 * the page does, and the middle one does neither: so that an object's start
 * and length tell which it is.
 */
enum buddy_slot {
	BUDDY_FIRST,
	BUDDY_MIDDLE,
	BUDDY_LAST,
	BUDDY_SLOTS
};

/* What is where in a page: in its frame, where a whole page has its owner. */
struct buddies {
	uint8_t chunks[BUDDY_SLOTS]; /* lengths; 0 if there is no such object */
	uint8_t middle;		     /* where that begins; 0 if there is none */
};

/*
 * Pages with the same number of objects, and room for more: a list for each
 * size that the largest object they have room for may have.
 */
struct buddy_lists {
	uint32_t list[CHUNKS];
	uint32_t pages[CHUNKS];
	uint64_t listed; /* bit n: list[n] is not empty */
};

struct pool {
	struct arena *arena;
	const struct pool_owner_ops *owner_ops;
	void *context;
	unsigned int per_page; /* objects: 2 or 3 */
	/* Guards all below, and frames (but kind) and owners in the pages. */
	pthread_mutex_t lock;
	struct buddy_lists lists[BUDDY_SLOTS]; /* [n]: of n objects; not [0] */
	uint64_t pages[BUDDY_SLOTS + 1];       /* [n]: of n objects */
	uint64_t whole;			       /* whole pages */
	uint64_t chunks;		       /* in use, but in whole pages */
	uint64_t pages_compacted;
	uint64_t objects_moved;
};

/* Chunks for an object of 1 to BUDDY_LARGEST bytes. */
static inline unsigned int buddy_chunks(size_t size)
{
	return (size + BUDDY_OWNER + CHUNK_SIZE - 1) / CHUNK_SIZE;
}

/* Handles: a page's number, and the chunk in it where the object begins. */
#define BUDDY_START_BITS 6

static inline uint64_t buddy_handle(uint32_t page, unsigned int start)
{
	return ((uint64_t)page << BUDDY_START_BITS | start) + 1;
}

static inline uint64_t buddy_handle_page(uint64_t handle)
{
	return (handle - 1) >> BUDDY_START_BITS;
}

static inline unsigned int buddy_handle_start(uint64_t handle)
{
	return (handle - 1) & (CHUNKS - 1);
}

static inline enum buddy_slot buddy_slot(unsigned int start,
					 unsigned int chunks)
{
	if (start == 0)
		return BUDDY_FIRST;
	return start + chunks == CHUNKS ? BUDDY_LAST : BUDDY_MIDDLE;
}

static inline unsigned int buddy_start(const struct buddies *buddies,
				       enum buddy_slot slot)
{
	switch (slot) {
	case BUDDY_FIRST:
		return 0;
	case BUDDY_MIDDLE:
		return buddies->middle;
	default:
		return CHUNKS - buddies->chunks[BUDDY_LAST];
	}
}

/* The frame of a page of kind KIND_BUDDIES holds these. */
static inline struct buddies buddies_load(const struct arena_frame *frame)
{
	struct buddies buddies;

	_Static_assert(sizeof(buddies) == sizeof(frame->owner), "it fits");
	memcpy(&buddies, &frame->owner, sizeof(buddies));
	return buddies;
}

static inline void buddies_store(struct arena_frame *frame,
				 const struct buddies *buddies)
{
	memcpy(&frame->owner, buddies, sizeof(*buddies));
}

static inline void *buddy_chunk(const struct pool *pool, uint32_t page,
				unsigned int chunk)
{
	return (unsigned char *)arena_page(pool->arena, ARENA_POOL, page) +
	       chunk * CHUNK_SIZE;
}

/* The owner's number of an object: behind its bytes, in its last chunk. */
static inline uint32_t *buddy_owner(const struct pool *pool, uint32_t page,
				    unsigned int start, unsigned int chunks)
{
	return (uint32_t *)buddy_chunk(pool, page, start + chunks) - 1;
}

/*
 * buddies_page.c. "Locked" functions want the pool's lock.
 */

/* Get a page, in no list yet. -ENOSPC. Wants no lock. */
int buddies_page_create(struct pool *pool, unsigned int kind,
			unsigned int flags, uint32_t *page);

/* Give back a page that is in no list. Wants no lock. */
void buddies_page_destroy(struct pool *pool, uint32_t page);

/* Locked: count and list a page that has objects; the reverse. */
void buddies_enlist(struct pool *pool, uint32_t page);
void buddies_unlist(struct pool *pool, uint32_t page);

/* The most chunks that an object may have which this page has room for. */
unsigned int buddies_room(const struct pool *pool, uint32_t page);

/*
 * Locked: the page with the smallest room that is enough, the fuller of two
 * that are equal; other than those given. ARENA_NIL if there is none.
 */
uint32_t buddies_find(const struct pool *pool, unsigned int chunks,
		      uint32_t except, uint32_t except_too);

/*
 * Locked: give an object of so many chunks a place in a page, if need be by
 * moving the middle one, and write its owner there. False if there is no room,
 * or the middle one's owner does not agree now.
 */
bool buddies_take(struct pool *pool, uint32_t page, unsigned int chunks,
		  uint32_t owner, uint64_t *handle);

/* Locked: as above, in any page at all. */
bool buddies_take_anywhere(struct pool *pool, unsigned int chunks,
			   uint32_t owner, uint64_t *handle);

/*
 * Locked: give an object's chunks back. True if it was the last: then the page
 * is in no list, and the caller destroys it once it has dropped the lock.
 */
bool buddies_put(struct pool *pool, uint32_t page, unsigned int start,
		 unsigned int chunks);

/* buddies_compact.c */
uint64_t buddies_compact(struct pool *pool, uint64_t enough);

/*
 * Locked: how many pages compaction would free of those with one object, if
 * no owner refuses. Exact for two objects to a page.
 */
uint64_t buddies_freeable(const struct pool *pool);

/* buddies_map.c */
int buddies_map_create(struct pool *pool, void **map);
int buddies_map_claim(struct pool *pool, void *map, uint64_t handle,
		      size_t size, uint32_t owner);
int buddies_map_finish(struct pool *pool, void *map,
		       struct arena_map *arena_map);
uint64_t buddies_map_compare(struct pool *pool, void *map);
int buddies_map_settle(struct pool *pool, void *map);
void buddies_map_destroy(struct pool *pool, void *map);

/* buddies.c */
size_t buddies_largest(const struct pool *pool);
int buddies_create(struct pool **pool, struct arena *arena,
		   const struct pool_owner_ops *owner_ops, void *context,
		   unsigned int per_page);
void buddies_destroy(struct pool *pool);
int buddies_alloc(struct pool *pool, size_t size, uint32_t owner,
		  unsigned int flags, uint64_t *handle);
void buddies_free(struct pool *pool, uint64_t handle, size_t size);
void *buddies_map(const struct pool *pool, uint64_t handle, size_t size);
void buddies_stats(const struct pool *pool, struct pool_stats *stats);
unsigned int buddies_class_stats(const struct pool *pool,
				 struct pool_class_stats *stats);

/* All of a pool of buddies but its name, and how it is created. */
#define BUDDIES_POOL_OPS                                                      \
	.largest = buddies_largest, .destroy = buddies_destroy,               \
	.alloc = buddies_alloc, .free = buddies_free, .map = buddies_map,     \
	.compact = buddies_compact, .stats = buddies_stats,                   \
	.class_stats = buddies_class_stats, .map_create = buddies_map_create, \
	.map_claim = buddies_map_claim, .map_finish = buddies_map_finish,     \
	.map_compare = buddies_map_compare, .map_settle = buddies_map_settle, \
	.map_destroy = buddies_map_destroy

#endif
