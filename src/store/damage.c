/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * damage.c - see damage.h
 */
#include "store/damage.h"

#ifdef ZRAMFS_FAULTS

#include <errno.h>

#include "store/store_private.h"

/* The first chunk of a member's cluster is as good as any of its own. */
static struct location chunk_of(struct store *store, const struct location *at)
{
	return location_unpack(atomic_load_explicit(
		&cluster_at(store, (uint32_t)at->handle)->chunk[0],
		memory_order_acquire));
}

static unsigned char *stored_bytes(struct store *store,
				   const struct location *at)
{
	if (at->type == OBJECT_HOT)
		return hot_page(&store->hot, (uint32_t)at->handle);
	if (at->type == OBJECT_POOL)
		return store->pool_ops->map(store->pool, at->handle,
					    at->length);
	return NULL;
}

int store_damage(struct store *store, const store_cell *cell)
{
	struct object *object;
	unsigned char *bytes;
	struct location at;
	uint64_t slot;
	store_ref ref;

	ref = atomic_load_explicit(cell, memory_order_acquire);
	if (reference_decode(ref, &slot) != REFERENCE_OBJECT)
		return -ENOENT;
	object = store_object(store, slot);
	if (!object || !object_pin(object))
		return -ENOENT;
	/* Pinned, it is not moved. */
	at = location_unpack(
		atomic_load_explicit(&object->location, memory_order_acquire));
	if (at.type == OBJECT_MEMBER)
		at = chunk_of(store, &at);
	bytes = stored_bytes(store, &at);
	if (bytes)
		bytes[at.type == OBJECT_HOT ? PAGE_SIZE / 2 : at.length / 2] ^=
			4;
	if (object_unpin(object))
		store_free_object(store, (uint32_t)slot, object);
	return bytes ? 0 : -ENOENT;
}

#endif
