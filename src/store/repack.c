/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * repack.c - what is left of sparse clusters
 *
 * A cluster is freed when its last member has died; until then it takes what
 * all of them took. When a third have, those that are left become hot pages
 * again, and are compressed together with others soon; where the tier has no
 * room, each is compressed by itself. So clusters take at most half as much
 * again as what is in them, and for each page that dies two are moved.
 *
 * With half for a third, a file of 256 MiB that was written over at random, 4
 * KiB at a time, took 1.31 times what it had before.
 *
 * May not free anything but by giving up pins and references.
 */
#include <errno.h>
#include <string.h>

#include "fault.h"
#include "store/store_private.h"

/* The new home of a page. -ENOSPC. */
static int find_place(struct store *store, struct store_thread *thread,
		      const void *page, uint32_t slot, uint64_t *location)
{
	uint32_t frame;

	if (hot_take_frame(&store->hot, 0, &frame))
		return compress_page(store, thread, page, slot, ARENA_RESERVE,
				     location);
	memcpy(hot_page(&store->hot, frame), page, PAGE_SIZE);
	*location = location_pack(OBJECT_HOT, 0, PAGE_SIZE, frame);
	return 0;
}

static void give_up_place(struct store *store, uint64_t location)
{
	struct location at = location_unpack(location);

	if (at.type == OBJECT_HOT)
		hot_give_frame(&store->hot, (uint32_t)at.handle);
	else
		compress_undo(store, location);
}

static void unpin(struct store *store, uint32_t slot, struct object *object)
{
	if (object_unpin(object))
		store_free_object(store, slot, object);
}

static void drop(struct store *store, uint32_t slot, struct object *object)
{
	if (object_release(object))
		store_free_object(store, slot, object);
}

/*
 * Move an object out of its cluster. The caller has pinned it, so that it is
 * there still; the pin is given up. And has a reference: it must not be freed
 * before it is in the hot queue.
 */
static int move_out(struct store *store, struct store_thread *thread,
		    const void *page, uint32_t slot, struct object *object,
		    uint32_t block)
{
	uint64_t location;
	int ret = find_place(store, thread, page, slot, &location);

	if (!ret && !compress_switch(object, location)) {
		give_up_place(store, location);
		/* Much read just now. */
		ret = -EBUSY;
	}
	if (ret) {
		unpin(store, slot, object);
		return ret == -EBUSY ? 0 : ret;
	}
	fault_point("member repacked");
	store_count(store, COUNT_COMPRESSED, -1);
	cluster_leave(store, block);
	if (location_unpack(location).type == OBJECT_HOT)
		hot_enqueue(&store->hot,
			    (uint32_t)location_unpack(location).handle, slot,
			    store_clock(), false);
	return 0;
}

/* True when the object, which the caller has pinned, is that member. */
static bool is_member(const struct object *object, uint32_t block,
		      unsigned int index)
{
	struct location at = location_unpack(
		atomic_load_explicit(&object->location, memory_order_acquire));

	return at.type == OBJECT_MEMBER && at.handle == block &&
	       at.length == index;
}

/* A pin and a reference. False: neither. */
static bool hold(struct store *store, uint32_t slot, struct object *object)
{
	if (!object || !object_pin(object))
		return false;
	if (object_pin_to_reference(object)) {
		if (object_pin(object))
			return true;
		drop(store, slot, object);
	} else {
		unpin(store, slot, object);
	}
	return false;
}

static int repack_member(struct store *store, struct store_thread *thread,
			 uint32_t block, unsigned int index)
{
	uint32_t slot = cluster_members(cluster_at(store, block))[index];
	struct object *object = store_object(store, slot);
	int ret = 0;

	if (!hold(store, slot, object))
		return 0;
	if (is_member(object, block, index))
		ret = move_out(store, thread,
			       thread->room.pages + (size_t)index * PAGE_SIZE,
			       slot, object, block);
	else
		unpin(store, slot, object);
	drop(store, slot, object);
	return ret;
}

unsigned int repack_sparse(struct store *store, struct store_thread *thread,
			   unsigned int max)
{
	unsigned int done, i, pages;
	uint32_t block;
	int ret;

	for (done = 0; done < max; done++) {
		block = cluster_take_sparse(store);
		if (!block)
			break;
		pages = cluster_pages(cluster_at(store, block));
		ret = cluster_unpack(store, thread, block, 0);
		for (i = 0; !ret && i < pages; i++)
			ret = repack_member(store, thread, block, i);
		/* Else it would keep all of its memory until one more dies. */
		cluster_put_back(store, block, ret == -ENOSPC);
		if (ret == -ENOSPC)
			break;
	}
	return done;
}
