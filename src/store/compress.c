/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * compress.c - from the hot tier into the pool
 *
 * Owns the way of a page from a hot frame, or a writer's buffer, into the
 * pool. Compression runs without any lock; what it reads cannot change,
 * because the object is pinned. Only the switch of the location excludes
 * readers of that one page, for the time of one store.
 *
 * Pages that leave together are compressed together where cluster= says so;
 * what does not fit so, each by itself.
 *
 * Memory for the compressed page comes from the reserve when the arena is at
 * its limit: each page that leaves the hot tier gives back more than it takes.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "fault.h"
#include "store/store_private.h"

/* How often to ask for an object that readers keep pinned. */
#define MOVE_ATTEMPTS 200

/* How long to wait for what is being deleted, and how much room to wait for. */
#define NAPS_MOST 50
#define ROOM	  64

int compress_page(struct store *store, struct store_thread *thread,
		  const void *page, uint32_t slot, unsigned int flags,
		  uint64_t *location)
{
	unsigned int codec = store->codec.ops->id;
	const void *bytes = thread->compressed;
	uint64_t handle;
	int length, ret;

	length = codec_compress(&thread->streams, page, PAGE_SIZE,
				thread->compressed, store->largest);
	/* It does not fit; or memory is short, and then this has to do. */
	if (length < 0) {
		store_count(store, COUNT_COMPRESS_FAILED, 1);
		codec = CODEC_NONE;
		bytes = page;
		length = PAGE_SIZE;
	}
	ret = store->pool_ops->alloc(store->pool, (size_t)length, slot, flags,
				     &handle);
	if (ret)
		return ret;
	memcpy(store->pool_ops->map(store->pool, handle, (size_t)length), bytes,
	       (size_t)length);
	fault_point("page compressed");
	*location =
		location_pack(OBJECT_POOL, codec, (unsigned int)length, handle);
	if (length == PAGE_SIZE) {
		store_count(store, COUNT_HUGE, 1);
		store_count(store, COUNT_HUGE_SINCE, 1);
	} else {
		store_count(store, COUNT_COMPRESSED, 1);
	}
	store_count(store, COUNT_COMPRESSED_BYTES, length);
	return 0;
}

void compress_undo(struct store *store, uint64_t location)
{
	struct location at = location_unpack(location);

	store->pool_ops->free(store->pool, at.handle, at.length);
	store_count(store,
		    at.length == PAGE_SIZE ? COUNT_HUGE : COUNT_COMPRESSED, -1);
	store_count(store, COUNT_COMPRESSED_BYTES, -(int64_t)at.length);
}

static bool pin_slot(void *context, uint32_t slot)
{
	return object_pin(store_object(context, slot));
}

bool compress_switch(struct object *object, uint64_t location)
{
	unsigned int attempt;

	for (attempt = 0; attempt < MOVE_ATTEMPTS; attempt++) {
		if (object_move(object, 1)) {
			object_moved(object, location);
			return true;
		}
	}
	return false;
}

/* Pages that left the queue together, each pinned. */
struct batch {
	unsigned int nr;
	uint32_t frame[CLUSTER_PAGES_MAX];
	uint32_t slot[CLUSTER_PAGES_MAX];
};

static void take_oldest(struct store *store, int64_t now, int64_t age,
			struct batch *batch)
{
	for (batch->nr = 0; batch->nr < store->cluster_pages; batch->nr++)
		if (!hot_oldest(&store->hot, now, age, pin_slot, store,
				&batch->frame[batch->nr],
				&batch->slot[batch->nr]))
			break;
}

/* The page of a frame is in the pool now. */
static void has_left(struct store *store, struct store_thread *thread,
		     uint32_t frame)
{
	hot_give_frame(&store->hot, frame);
	store_count(store,
		    thread->background ? COUNT_BACKGROUND_COMPRESSIONS
				       : COUNT_WRITER_COMPRESSIONS,
		    1);
}

/*
 * It does not leave the tier; the caller's pin is given up. No memory: it stays
 * the oldest. Much read just now: the youngest. Before the unpin, for whoever
 * frees the object looks in the queue.
 */
static void stays(struct store *store, uint32_t frame, uint32_t slot,
		  bool no_memory)
{
	struct object *object = store_object(store, slot);

	hot_enqueue(&store->hot, frame, slot, store_clock(), no_memory);
	if (object_unpin(object))
		store_free_object(store, slot, object);
}

/*
 * 0 when the page has left the hot tier, -EBUSY when it is being read, -ENOSPC.
 * Takes the caller's pin away.
 */
static int compress_frame(struct store *store, struct store_thread *thread,
			  uint32_t frame, uint32_t slot)
{
	uint64_t location;
	int ret;

	ret = compress_page(store, thread, hot_page(&store->hot, frame), slot,
			    ARENA_RESERVE, &location);
	if (!ret) {
		if (compress_switch(store_object(store, slot), location)) {
			has_left(store, thread, frame);
			return 0;
		}
		compress_undo(store, location);
		ret = -EBUSY;
	}
	stays(store, frame, slot, ret == -ENOSPC);
	return ret;
}

/* How many have left the tier, as one cluster; -ENOSPC: nothing was done. */
static int compress_together(struct store *store, struct store_thread *thread,
			     const struct batch *batch)
{
	const void *page[CLUSTER_PAGES_MAX];
	uint32_t block;
	unsigned int i;
	int ret, done = 0;

	for (i = 0; i < batch->nr; i++)
		page[i] = hot_page(&store->hot, batch->frame[i]);
	ret = cluster_make(store, thread, page, batch->slot, batch->nr,
			   ARENA_RESERVE, &block);
	if (ret)
		return ret;
	for (i = 0; i < batch->nr; i++) {
		if (compress_switch(store_object(store, batch->slot[i]),
				    cluster_join(store, block, i))) {
			store_count(store, COUNT_COMPRESSED, 1);
			has_left(store, thread, batch->frame[i]);
			done++;
		} else {
			cluster_leave(store, block);
			stays(store, batch->frame[i], batch->slot[i], false);
		}
	}
	cluster_leave(store, block);
	return done;
}

/*
 * How many have left the hot tier; *no_memory counts those for which there was
 * none. Takes the caller's pins away.
 */
static unsigned int compress_batch(struct store *store,
				   struct store_thread *thread,
				   const struct batch *batch,
				   unsigned int *no_memory)
{
	unsigned int i, done = 0;
	int ret = -ENOSPC;

	if (batch->nr > 1)
		ret = compress_together(store, thread, batch);
	if (ret >= 0)
		return (unsigned int)ret;
	for (i = 0; i < batch->nr; i++) {
		ret = compress_frame(store, thread, batch->frame[i],
				     batch->slot[i]);
		done += !ret;
		*no_memory += ret == -ENOSPC;
	}
	return done;
}

unsigned int compress_hot(struct store *store, struct store_thread *thread,
			  unsigned int max, int64_t age, unsigned int *refused)
{
	int64_t now = store_clock();
	unsigned int done = 0, failed = 0, no_memory = 0, left;
	struct batch batch;

	while (done + failed < max) {
		take_oldest(store, now, age, &batch);
		left = compress_batch(store, thread, &batch, &no_memory);
		done += left;
		failed += batch.nr - left;
		if (!batch.nr || failed > 8)
			break;
	}
	if (refused)
		*refused = no_memory;
	return done;
}

bool store_wait_for_room(struct store *store)
{
	const struct timespec nap = {.tv_nsec = 2000000};
	int64_t before, after = store_counted(store, COUNT_OBJECTS);
	unsigned int naps = 0;

	if (!housekeeping_is_freeing(store))
		return false;
	do {
		before = after;
		nanosleep(&nap, NULL);
		after = store_counted(store, COUNT_OBJECTS);
	} while (after < before && ++naps < NAPS_MOST &&
		 arena_is_full(store->arena, ROOM));
	return naps || after < before;
}

bool compress_relieve(struct store *store, struct store_thread *thread)
{
	int64_t now, last;

	if (compress_hot(store, thread, 32, 0, NULL) ||
	    repack_sparse(store, thread, 1))
		return true;
	if (store_wait_for_room(store))
		return true;
	/*
	 * Nothing hot is left; the pool may have holes. Looking is not free,
	 * and one who fills the filesystem gets here with each write.
	 */
	now = store_clock();
	last = atomic_load_explicit(&store->last_squeeze, memory_order_relaxed);
	if (now - last < 500 ||
	    !atomic_compare_exchange_strong_explicit(
		    &store->last_squeeze, &last, now, memory_order_relaxed,
		    memory_order_relaxed))
		return false;
	return store->pool_ops->compact(store->pool, UINT64_MAX) > 0;
}

/* The object's size, for the pool to copy; 0: it cannot move now. */
static size_t move_begin(void *context, uint32_t owner, uint64_t handle)
{
	struct store *store = context;
	struct object *object = store_object(store, owner);
	struct location at;
	uint64_t word;

	if (owner & CLUSTER_OWNER)
		return cluster_move_begin(store, owner & ~CLUSTER_OWNER,
					  handle);
	if (!object || !object_move(object, 0))
		return 0;
	word = atomic_load_explicit(&object->location, memory_order_acquire);
	at = location_unpack(word);
	if (at.type == OBJECT_POOL && at.handle == handle)
		return at.length;
	/* Not published yet, or another page's by now. */
	object_moved(object, word);
	return 0;
}

static void move_end(void *context, uint32_t owner, uint64_t handle)
{
	struct object *object = store_object(context, owner);
	struct location at;

	if (owner & CLUSTER_OWNER) {
		cluster_move_end(context, owner & ~CLUSTER_OWNER, handle);
		return;
	}
	at = location_unpack(
		atomic_load_explicit(&object->location, memory_order_relaxed));
	object_moved(object,
		     location_pack(OBJECT_POOL, at.codec, at.length, handle));
}

const struct pool_owner_ops compress_owner_ops = {
	.move_begin = move_begin,
	.move_end = move_end,
};
