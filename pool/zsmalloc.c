/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zsmalloc.c - the zsmalloc pool: allocate and free
 *
 * Theory
 *
 * Compressed pages are of all sizes, many of them above half a page, so that
 * a general allocator, or one that never lets an object cross a page, wastes
 * a third of its memory on them. zsmalloc (Nitin Gupta, for the kernel's
 * zram) cuts chains of several pages, *zspages*, into objects of one size:
 * with one *size class* each 16 bytes, and for each class the length of chain
 * that leaves the smallest tail, the waste is in the order of one percent.
 * Here a chain is a run of pages that are neighbours in the arena, as address
 * space costs nothing in user space. So every object is one piece of memory.
 *
 * What remains wasteful is zspages that are not full. Objects are taken from
 * the fullest that has room, so that others may run empty; empty ones go back
 * to the arena at once. For that the zspages of a class are kept in lists by
 * fullness. What time scatters, compaction gathers: zsmalloc_compact.c.
 *
 * A page that compresses badly is a *huge page*: the last class, an object to
 * a page, stored as it was.
 *
 * An object's class is read from the frame of its zspage, and is not always
 * the smallest that fits it: compaction moves objects into free slots of
 * larger classes, and so does allocation when there is no memory left.
 *
 * Truth
 *
 * Handles, in the hands of the owners; the kind of each page frame, which
 * says of which class a zspage is and is written before its first object is
 * given out; and the owners' numbers in the zspages. Everything else here can
 * be made from these: zsmalloc_map.c does.
 *
 * Locks, from outside in
 *
 *	pool->compact_lock	one compaction at a time
 *	class->lock		smaller class before larger, or by trylock; only
 *				compaction holds two. A class's lock guards its
 *				lists and counts, and the frames (but kind) and
 *				owners' tables of its zspages
 *	the arena's lock	is not taken under a class's lock: pages are
 *				got before and given back after
 *
 * There are no caches of free slots for each thread: an allocation and a free
 * take 60 ns by one thread, 100 to 370 ns when two threads do nothing but that
 * in one class, and to compress a page takes at least 5 us.
 *
 * The kind of a frame is read without a lock: it does not change while the
 * zspage has an object, and whoever asks has the handle of one.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "arena/lock.h"
#include "pool/zsmalloc.h"

static size_t zs_largest(const struct pool *pool)
{
	return zs_payload(&pool->classes[pool->nr_classes - 2]);
}

static int zs_create(struct pool **result, struct arena *arena,
		     const struct pool_owner_ops *owner_ops, void *context)
{
	struct zs_geometry geometry[POOL_CLASSES_MAX];
	struct pool *pool;

	pool = aligned_alloc(_Alignof(struct pool), sizeof(*pool));
	if (!pool)
		return -ENOMEM;
	pool->arena = arena;
	pool->owner_ops = owner_ops;
	pool->context = context;
	pool->nr_classes = zs_geometry_build(geometry, pool->class_of);
	pthread_mutex_init(&pool->compact_lock, NULL);
	atomic_init(&pool->pages_compacted, 0);
	atomic_init(&pool->objects_moved, 0);
	for (unsigned int i = 0; i < pool->nr_classes; i++) {
		struct zs_class *class = &pool->classes[i];

		*class = (struct zs_class){.geometry = geometry[i], .index = i};
		lock_init(&class->lock);
		for (unsigned int group = 0; group <= ZS_FULL; group++)
			class->list[group] = ARENA_NIL;
	}
	pool->home_at = pool->nr_classes - 2;
	*result = pool;
	return 0;
}

static void zs_destroy(struct pool *pool)
{
	for (unsigned int i = 0; i < pool->nr_classes; i++)
		pthread_mutex_destroy(&pool->classes[i].lock);
	pthread_mutex_destroy(&pool->compact_lock);
	free(pool);
}

/* An object of a zspage that is there already. -ENOSPC if all are full. */
static int alloc_existing(struct pool *pool, struct zs_class *class,
			  struct zs_class *wanted, uint32_t owner,
			  uint64_t *handle)
{
	uint32_t page;

	pthread_mutex_lock(&class->lock);
	page = zs_fullest(pool, class, ARENA_NIL);
	if (page != ARENA_NIL) {
		*handle = zs_handle(page, zs_take(pool, class, page, owner));
		zs_count_stray(class, wanted, 1);
	}
	pthread_mutex_unlock(&class->lock);
	return page != ARENA_NIL ? 0 : -ENOSPC;
}

/*
 * An object of a new zspage. Another thread may have added one, or freed an
 * object, while the lock was not held: then ours is not needed.
 */
static int alloc_new(struct pool *pool, struct zs_class *class, uint32_t owner,
		     unsigned int flags, uint64_t *handle)
{
	uint32_t new, page;
	int err;

	err = zs_zspage_create(pool, class, flags, &new);
	if (err)
		return err;
	pthread_mutex_lock(&class->lock);
	page = zs_fullest(pool, class, ARENA_NIL);
	if (page == ARENA_NIL)
		page = new;
	*handle = zs_handle(page, zs_take(pool, class, page, owner));
	pthread_mutex_unlock(&class->lock);
	if (page != new)
		zs_zspage_destroy(pool, class, new);
	return 0;
}

/* At the limit a slot that is too large is better than none. */
static int alloc_larger(struct pool *pool, struct zs_class *wanted,
			uint32_t owner, uint64_t *handle)
{
	for (unsigned int i = wanted->index + 1; i < pool->nr_classes - 1; i++)
		if (alloc_existing(pool, &pool->classes[i], wanted, owner,
				   handle) == 0)
			return 0;
	return -ENOSPC;
}

static int alloc_huge(struct pool *pool, uint32_t owner, unsigned int flags,
		      uint64_t *handle)
{
	struct zs_class *class = zs_huge_class(pool);
	struct arena_frame *frame;
	uint32_t page;
	int err;

	err = zs_zspage_create(pool, class, flags, &page);
	if (err)
		return err;
	frame = arena_frame(pool->arena, ARENA_POOL, page);
	frame->owner = owner;
	frame->inuse = 1;
	pthread_mutex_lock(&class->lock);
	class->zspages[ZS_FULL]++;
	class->used++;
	pthread_mutex_unlock(&class->lock);
	*handle = zs_handle(page, 0);
	return 0;
}

/*
 * At the limit, what may use the arena's reserve gets a slot that is too large,
 * then a zspage from half of the reserve, which others can fill; and in the end
 * a single page to itself, so that there is something for each page given back.
 */
static int zs_alloc(struct pool *pool, size_t size, uint32_t owner,
		    unsigned int flags, uint64_t *handle)
{
	struct zs_class *class;
	int err;

	if (size == 0 || size > PAGE_SIZE)
		return -EINVAL;
	class = zs_class_for(pool, size);
	flags &= ARENA_RESERVE;
	if (zs_is_huge(class))
		return alloc_huge(pool, owner, flags, handle);
	err = alloc_existing(pool, class, class, owner, handle);
	if (err)
		err = alloc_new(pool, class, owner, 0, handle);
	if (err)
		err = alloc_larger(pool, class, owner, handle);
	if (err && flags)
		err = alloc_new(pool, class, owner, ARENA_RESERVE_SOME, handle);
	if (err && flags)
		err = alloc_huge(pool, owner, flags, handle);
	return err;
}

static void zs_free(struct pool *pool, uint64_t handle, size_t size)
{
	uint32_t page = zs_handle_page(handle);
	struct zs_class *class = zs_zspage_class(pool, page);
	bool empty = true;

	assert(class && size <= zs_payload(class));
	pthread_mutex_lock(&class->lock);
	if (zs_is_huge(class)) {
		class->zspages[ZS_FULL]--;
		class->used--;
	} else {
		zs_count_stray(class, zs_class_for(pool, size), -1);
		empty = zs_put(pool, class, page, zs_handle_object(handle));
	}
	pthread_mutex_unlock(&class->lock);
	if (empty)
		zs_zspage_destroy(pool, class, page);
}

static void *zs_map(const struct pool *pool, uint64_t handle, size_t size)
{
	uint32_t page = zs_handle_page(handle);
	const struct zs_class *class = zs_zspage_class(pool, page);

	assert(class && size <= zs_payload(class));
	return zs_object(pool, class, page, zs_handle_object(handle));
}

static void zs_stats(const struct pool *const_pool, struct pool_stats *stats)
{
	struct pool *pool = (struct pool *)const_pool;

	*stats = (struct pool_stats){
		.pages_compacted = atomic_load_explicit(&pool->pages_compacted,
							memory_order_relaxed),
		.objects_moved = atomic_load_explicit(&pool->objects_moved,
						      memory_order_relaxed),
	};
	for (unsigned int i = 0; i < pool->nr_classes; i++) {
		struct zs_class *class = &pool->classes[i];

		pthread_mutex_lock(&class->lock);
		stats->objects += class->used;
		stats->object_bytes += class->used * class->geometry.size;
		stats->pages += zs_count_zspages(class) * class->geometry.pages;
		pthread_mutex_unlock(&class->lock);
	}
}

/* Caller holds the lock. */
static void class_stats(const struct zs_class *class,
			struct pool_class_stats *stats)
{
	const struct zs_geometry *geometry = &class->geometry;
	uint64_t zspages = zs_count_zspages(class);

	*stats = (struct pool_class_stats){
		.size = geometry->size,
		.pages_per_zspage = geometry->pages,
		.objects_per_zspage = geometry->objects,
		.objects_allocated = zspages * geometry->objects,
		.objects_used = class->used,
		.pages_used = zspages * geometry->pages,
		.pages_freeable =
			zs_room(class) / geometry->objects * geometry->pages,
	};
	/* Empty zspages are given back at once, so that there are none. */
	for (unsigned int group = 0; group < ZS_GROUPS; group++) {
		unsigned int column = group < ZS_GROUPS / 2	  ? 1
				      : group < ZS_GROUPS * 3 / 4 ? 2
								  : 3;

		stats->zspages[column] += class->zspages[group];
	}
	stats->zspages[4] = class->zspages[ZS_FULL];
}

static unsigned int zs_class_stats(const struct pool *const_pool,
				   struct pool_class_stats *stats)
{
	struct pool *pool = (struct pool *)const_pool;

	for (unsigned int i = 0; i < pool->nr_classes; i++) {
		struct zs_class *class = &pool->classes[i];

		pthread_mutex_lock(&class->lock);
		class_stats(class, &stats[i]);
		pthread_mutex_unlock(&class->lock);
	}
	return pool->nr_classes;
}

const struct pool_ops pool_zsmalloc = {
	.name = "zsmalloc",
	.largest = zs_largest,
	.create = zs_create,
	.destroy = zs_destroy,
	.alloc = zs_alloc,
	.free = zs_free,
	.map = zs_map,
	.compact = zs_compact,
	.stats = zs_stats,
	.class_stats = zs_class_stats,
	.map_create = zs_map_create,
	.map_claim = zs_map_claim,
	.map_finish = zs_map_finish,
	.map_compare = zs_map_compare,
	.map_settle = zs_map_settle,
	.map_destroy = zs_map_destroy,
};
