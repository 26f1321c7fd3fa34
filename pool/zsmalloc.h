/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zsmalloc.h - what the files of the zsmalloc pool share; private to them
 *
 * zsmalloc.c explains the whole. zsmalloc_class.c cuts pages into size
 * classes, zsmalloc_zspage.c keeps the zspages of one class, zsmalloc.c
 * allocates and frees, zsmalloc_compact.c moves objects, zsmalloc_map.c
 * rebuilds and checks.
 */
#ifndef ZRAMFS_ZSMALLOC_H
#define ZRAMFS_ZSMALLOC_H

#include <pthread.h>
#include <stdatomic.h>

#include "pool/pool.h"

/* Sizes of objects, header too, are multiples of this. */
#define ZS_STEP	    16
#define ZS_SIZE_MIN 32
/* What each object costs besides its bytes: its owner's number. */
#define ZS_HEADER 4u

/* Longest chain of pages and the waste at which no longer one is sought. */
#define ZS_PAGES_MAX	   12
#define ZS_WASTE_PER_MILLE 10

#define ZS_OBJECTS_PER_PAGE (PAGE_SIZE / ZS_SIZE_MIN)
#define ZS_OBJECTS_MAX	    (ZS_OBJECTS_PER_PAGE * ZS_PAGES_MAX)

/*
 * Fullness groups: eighths of the objects in use. Full zspages have a list of
 * their own, for those who look at all of a class's.
 */
#define ZS_GROUPS 8
#define ZS_FULL	  ZS_GROUPS
#define ZS_NONE	  (ZS_GROUPS + 1)

struct zs_geometry {
	uint16_t size;	  /* bytes of an object, header too */
	uint16_t pages;	  /* of a zspage */
	uint16_t objects; /* in a zspage */
};

/*
 * Fill in up to POOL_CLASSES_MAX classes, ascending by size, the last being
 * the huge pages; class_of[n] for objects of up to n * ZS_STEP bytes, header
 * too. Returns the number of classes. Same result always.
 */
unsigned int zs_geometry_build(struct zs_geometry *geometry,
			       uint8_t class_of[PAGE_SIZE / ZS_STEP + 1]);

struct zs_class {
	/* Guards all below, and frames and owners of this class's zspages. */
	pthread_mutex_t lock;
	struct zs_geometry geometry;  /* constant */
	unsigned int index;	      /* constant */
	uint32_t list[ZS_GROUPS + 1]; /* any zspage of each circle, or NIL */
	uint64_t zspages[ZS_GROUPS + 1];
	uint64_t used;	       /* objects */
	uint64_t strays;       /* of them, those that ask for another class */
	_Atomic uint64_t room; /* free slots; read without the lock, too */
	/*
	 * Objects that ask for this class but are in another. Not under this
	 * class's lock, but under that other's; relaxed: it only counts.
	 */
	_Atomic uint64_t astray;
} __attribute__((aligned(64)));

struct pool {
	struct arena *arena;
	const struct pool_owner_ops *owner_ops;
	void *context;
	unsigned int nr_classes;
	uint8_t class_of[PAGE_SIZE / ZS_STEP + 1];
	pthread_mutex_t compact_lock;	  /* one compaction at a time */
	unsigned int home_at;		  /* class to be emptied; under it */
	_Atomic uint64_t pages_compacted; /* counters only: relaxed */
	_Atomic uint64_t objects_moved;
	struct zs_class classes[POOL_CLASSES_MAX];
};

/* Bits of the objects of a zspage. */
struct zs_bitmap {
	uint64_t word[ZS_OBJECTS_MAX / 64];
};

static inline struct zs_class *zs_huge_class(const struct pool *pool)
{
	return (struct zs_class *)&pool->classes[pool->nr_classes - 1];
}

static inline bool zs_is_huge(const struct zs_class *class)
{
	return class->geometry.objects == 1;
}

/* Largest object of a class, without its header. */
static inline size_t zs_payload(const struct zs_class *class)
{
	return zs_is_huge(class) ? PAGE_SIZE : class->geometry.size - ZS_HEADER;
}

/* The smallest class that holds an object of 1 to PAGE_SIZE bytes. */
static inline struct zs_class *zs_class_for(const struct pool *pool,
					    size_t size)
{
	size_t step = (size + ZS_HEADER + ZS_STEP - 1) / ZS_STEP;

	if (step > PAGE_SIZE / ZS_STEP)
		return zs_huge_class(pool);
	return (struct zs_class *)&pool->classes[pool->class_of[step]];
}

/*
 * An object comes to a class, or (count -1) leaves it. Caller holds its lock.
 * Huge pages stay what they are, so that those in them are not counted.
 */
static inline void zs_count_stray(struct zs_class *class,
				  struct zs_class *wanted, int count)
{
	if (class == wanted || zs_is_huge(class))
		return;
	class->strays += count;
	atomic_fetch_add_explicit(&wanted->astray, count, memory_order_relaxed);
}

/* All zspages of a class. Caller holds its lock. */
static inline uint64_t zs_count_zspages(const struct zs_class *class)
{
	uint64_t count = 0;

	for (unsigned int group = 0; group <= ZS_FULL; group++)
		count += class->zspages[group];
	return count;
}

/* Free slots in zspages that exist. Without the lock it is only a hint. */
static inline uint64_t zs_room(const struct zs_class *class)
{
	return atomic_load_explicit(&class->room, memory_order_relaxed);
}

/* Handles: the number of a zspage's first page, and of an object in it. */
#define ZS_OBJECT_BITS 12

static inline uint64_t zs_handle(uint32_t page, unsigned int object)
{
	return ((uint64_t)page << ZS_OBJECT_BITS | object) + 1;
}

static inline uint64_t zs_handle_page(uint64_t handle)
{
	return (handle - 1) >> ZS_OBJECT_BITS;
}

static inline unsigned int zs_handle_object(uint64_t handle)
{
	return (handle - 1) & ((1u << ZS_OBJECT_BITS) - 1);
}

/*
 * zsmalloc_zspage.c. "Locked" functions want the lock of the class.
 */

/* The class of a zspage by the frame of its first page; NULL if it is none. */
struct zs_class *zs_zspage_class(const struct pool *pool, uint32_t page);

/* As above, and looks whether the pages behind belong to it: for claims. */
struct zs_class *zs_zspage_check(const struct pool *pool, uint64_t page);

/* Get pages for a zspage; it is in no list yet. -ENOSPC. Wants no lock. */
int zs_zspage_create(struct pool *pool, const struct zs_class *class,
		     unsigned int flags, uint32_t *page);

/* Give the pages of an unlisted, empty zspage back. Wants no lock. */
void zs_zspage_destroy(struct pool *pool, const struct zs_class *class,
		       uint32_t page);

/* Where an object's bytes, or all owners' numbers of a zspage, are. */
void *zs_object(const struct pool *pool, const struct zs_class *class,
		uint32_t page, unsigned int object);
uint32_t *zs_owners(const struct pool *pool, uint32_t page);

/*
 * Move an object that its owner holds still. Both classes' locks are held.
 * True if it was its zspage's last: that is then in no list.
 */
bool zs_move_object(struct pool *pool, struct zs_class *from, uint32_t page,
		    unsigned int object, size_t size, struct zs_class *to,
		    uint32_t to_page);

/* Give a zspage that has run empty back, and count it. Wants no lock. */
uint64_t zs_release(struct pool *pool, const struct zs_class *class,
		    uint32_t page);

/* What a compaction is to win, and what it has won. */
struct zs_goal {
	struct pool *pool;
	uint64_t enough; /* pages to give back */
	uint64_t freed;	 /* pages */
	uint64_t taken;	 /* pages, for strays that come home */
	uint64_t moved;	 /* objects, of all compactions before */
};

/*
 * So many objects moved for each page that would be enough are enough, too:
 * those of the smallest classes are 100 to a page.
 */
#define ZS_MOVES 4

static inline bool zs_is_reached(const struct zs_goal *goal)
{
	uint64_t moved = atomic_load_explicit(&goal->pool->objects_moved,
					      memory_order_relaxed);

	return goal->freed >= goal->enough + goal->taken ||
	       (moved - goal->moved) / ZS_MOVES >= goal->enough;
}

/*
 * zsmalloc_home.c: bring strays back to their classes where that is worth it.
 */
void zs_bring_home(struct zs_goal *goal);

/* Locked: fullest zspage with room, other than `except`; or ARENA_NIL. */
uint32_t zs_fullest(const struct pool *pool, const struct zs_class *class,
		    uint32_t except);

/* Locked: the zspage that a group's list has had longest; or ARENA_NIL. */
uint32_t zs_oldest(const struct pool *pool, const struct zs_class *class,
		   unsigned int group);

/* Locked: make a listed zspage the last that zs_oldest() gives. */
void zs_renew(struct pool *pool, struct zs_class *class, uint32_t page);

/* Locked: take an object of a zspage that has room. Lists the zspage. */
unsigned int zs_take(struct pool *pool, struct zs_class *class, uint32_t page,
		     uint32_t owner);

/*
 * Locked: give an object back. True if it was the last: then the zspage is in
 * no list, and the caller destroys it once it has dropped the lock.
 */
bool zs_put(struct pool *pool, struct zs_class *class, uint32_t page,
	    unsigned int object);

/* Locked: how many objects of a zspage are in use. */
unsigned int zs_inuse(const struct pool *pool, uint32_t page);

/*
 * Locked: which objects are in use. Returns the number of entries of the free
 * chain that make no sense (0 unless memory was damaged).
 */
unsigned int zs_live(const struct pool *pool, const struct zs_class *class,
		     uint32_t page, struct zs_bitmap *live);

/* Locked: list a zspage in which just these objects, at least one, are used. */
void zs_restore(struct pool *pool, struct zs_class *class, uint32_t page,
		const struct zs_bitmap *live);

static inline bool zs_test_bit(const struct zs_bitmap *bitmap, unsigned int bit)
{
	return bitmap->word[bit / 64] >> (bit % 64) & 1;
}

static inline void zs_set_bit(struct zs_bitmap *bitmap, unsigned int bit)
{
	bitmap->word[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static inline void zs_clear_bit(struct zs_bitmap *bitmap, unsigned int bit)
{
	bitmap->word[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
}

/* zsmalloc_compact.c */
uint64_t zs_compact(struct pool *pool, uint64_t enough);
/* From a class's emptiest zspages to its fullest. Wants no lock. */
void zs_gather(struct zs_goal *goal, struct zs_class *class);

/* zsmalloc_map.c */
int zs_map_create(struct pool *pool, void **map);
int zs_map_claim(struct pool *pool, void *map, uint64_t handle, size_t size,
		 uint32_t owner);
int zs_map_finish(struct pool *pool, void *map, struct arena_map *arena_map);
uint64_t zs_map_compare(struct pool *pool, void *map);
int zs_map_settle(struct pool *pool, void *map);
void zs_map_destroy(struct pool *pool, void *map);

#endif
