/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pool.h - where compressed pages are kept
 *
 * A pool packs objects of 1 to PAGE_SIZE bytes into pages of the arena's POOL
 * region. It never looks into them. Each object has an owner: a 32-bit number
 * that the pool keeps with it, and gives back when it wants to move it.
 *
 * A handle names an object, fits in POOL_HANDLE_BITS bits and is never 0. It
 * stays valid until pool_free(), or until the owner has agreed to a move.
 *
 * Truth: the owners' handles (with their lengths), the objects' bytes, and
 * what the pool writes into the page frames (their kind) before the first
 * object of a zspage exists. Free lists, counts and fullness are derived.
 *
 * Thread-safe, unless said otherwise. Errors are negative errno.
 */
#ifndef ZRAMFS_POOL_H
#define ZRAMFS_POOL_H

#include "arena/arena.h"

#define POOL_HANDLE_BITS 44
#define POOL_CLASSES_MAX 256

struct pool;

/*
 * How a pool moves an object, in order: move_begin() asks the owner to hold
 * the object still, with nobody reading it, and returns the object's size as
 * it was at alloc; the pool copies the bytes; and move_end() tells the handle
 * that is valid from now on: a new one, after which the old one is dead, or
 * the old one if the pool has found no better place. 0 from move_begin(): not
 * now, or the owner no longer has that handle; the object stays and move_end()
 * is not called. Called with a pool lock held: they may not call back into
 * the pool, must not wait for long, and must not allocate.
 */
struct pool_owner_ops {
	size_t (*move_begin)(void *context, uint32_t owner, uint64_t handle);
	void (*move_end)(void *context, uint32_t owner, uint64_t handle);
};

struct pool_stats {
	uint64_t objects;	  /* in use */
	uint64_t object_bytes;	  /* in use, at their class's size */
	uint64_t pages;		  /* taken from the arena */
	uint64_t pages_compacted; /* freed by compaction since creation */
	uint64_t objects_moved;
};

/* One line of the kernel's debugfs file zsmalloc/.../classes. */
struct pool_class_stats {
	uint32_t size; /* bytes of an object, its header too */
	uint32_t pages_per_zspage;
	uint32_t objects_per_zspage;
	uint64_t zspages[5];	    /* empty, low (<1/2), medium, high, full */
	uint64_t objects_allocated; /* room for */
	uint64_t objects_used;
	uint64_t pages_used;
	uint64_t pages_freeable; /* what compaction could give back */
};

struct pool_ops {
	const char *name;
	/* Largest object worth storing: above it, the page itself is kept. */
	size_t (*largest)(const struct pool *pool);
	int (*create)(struct pool **pool, struct arena *arena,
		      const struct pool_owner_ops *owner_ops, void *context);
	void (*destroy)(struct pool *pool);
	/* flags: ARENA_RESERVE or 0. -ENOSPC when the arena is at its limit. */
	int (*alloc)(struct pool *pool, size_t size, uint32_t owner,
		     unsigned int flags, uint64_t *handle);
	/* Never allocates, cannot fail. size: as it was at alloc. */
	void (*free)(struct pool *pool, uint64_t handle, size_t size);
	/* The object's bytes, contiguous. */
	void *(*map)(const struct pool *pool, uint64_t handle, size_t size);
	/*
	 * Move objects out of sparse zspages, until about `enough` pages are
	 * given back or there are none to be won. Returns how many.
	 */
	uint64_t (*compact)(struct pool *pool, uint64_t enough);
	void (*stats)(const struct pool *pool, struct pool_stats *stats);
	/* Fills up to POOL_CLASSES_MAX; returns how many. */
	unsigned int (*class_stats)(const struct pool *pool,
				    struct pool_class_stats *stats);
	/*
	 * Claims, as arena.h's; none is thread-safe. claim(): -EEXIST, -ERANGE
	 * (no such object), -EINVAL (the owner kept with it is another).
	 */
	int (*map_create)(struct pool *pool, void **map);
	int (*map_claim)(struct pool *pool, void *map, uint64_t handle,
			 size_t size, uint32_t owner);
	/* Claims the zspages' pages in the arena's map. */
	int (*map_finish)(struct pool *pool, void *map,
			  struct arena_map *arena_map);
	/* Number of objects on which live state and map disagree. */
	uint64_t (*map_compare)(struct pool *pool, void *map);
	/* After an attach: rebuild the live state from the map. */
	int (*map_settle)(struct pool *pool, void *map);
	void (*map_destroy)(struct pool *pool, void *map);
};

extern const struct pool_ops pool_zsmalloc;
extern const struct pool_ops pool_z3fold;
extern const struct pool_ops pool_zbud;

/* NULL if there is none of that name. */
const struct pool_ops *pool_by_name(const char *name);

#endif
