/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * compress.c - from the hot tier into the pool
 *
 * Owns the way of a page from a hot frame, or a writer's buffer, into the
 * pool. Compression runs without any lock; what it reads cannot change,
 * because the object is pinned. Only the switch of the location excludes
 * readers of that one page, for the time of one store.
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

	length = codec_compress(&thread->streams, page, thread->compressed,
				store->largest);
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

/* The caller's pin is gone on success. */
static bool switch_location(struct object *object, uint64_t location)
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

/*
 * 0 when the page has left the hot tier, -EBUSY when it is being read, -ENOSPC.
 * Takes the caller's pin away.
 */
static int compress_frame(struct store *store, struct store_thread *thread,
			  uint32_t frame, uint32_t slot)
{
	struct object *object = store_object(store, slot);
	uint64_t location;
	int ret;

	ret = compress_page(store, thread, hot_page(&store->hot, frame), slot,
			    ARENA_RESERVE, &location);
	if (!ret) {
		if (switch_location(object, location)) {
			hot_give_frame(&store->hot, frame);
			store_count(store,
				    thread->background
					    ? COUNT_BACKGROUND_COMPRESSIONS
					    : COUNT_WRITER_COMPRESSIONS,
				    1);
			return 0;
		}
		compress_undo(store, location);
		ret = -EBUSY;
	}
	/*
	 * No memory: it stays the oldest. Much read just now: the youngest.
	 * Before the unpin, for whoever frees the object looks in the queue.
	 */
	hot_enqueue(&store->hot, frame, slot, store_clock(), ret == -ENOSPC);
	if (object_unpin(object))
		store_free_object(store, slot, object);
	return ret;
}

unsigned int compress_hot(struct store *store, struct store_thread *thread,
			  unsigned int max, int64_t age, unsigned int *refused)
{
	int64_t now = store_clock();
	unsigned int done = 0, failed = 0, no_memory = 0;
	uint32_t frame, slot;
	int ret;

	while (done + failed < max &&
	       hot_oldest(&store->hot, now, age, pin_slot, store, &frame,
			  &slot)) {
		ret = compress_frame(store, thread, frame, slot);
		done += !ret;
		failed += ret != 0;
		no_memory += ret == -ENOSPC;
		if (failed > 8)
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

	if (compress_hot(store, thread, 32, 0, NULL))
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
	struct location at = location_unpack(
		atomic_load_explicit(&object->location, memory_order_relaxed));

	object_moved(object,
		     location_pack(OBJECT_POOL, at.codec, at.length, handle));
}

const struct pool_owner_ops compress_owner_ops = {
	.move_begin = move_begin,
	.move_end = move_end,
};
