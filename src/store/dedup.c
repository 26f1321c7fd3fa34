/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dedup.c - finding the object that equals a page
 *
 * Owns the chains of the dedup index, a lock for each stripe of it. The hash
 * is the page's checksum: 32 bits of XXH3 with a seed that is random for each
 * mount, so that whoever writes cannot aim at a chain. It finds candidates;
 * bytes prove them.
 *
 * Candidates are pinned under the stripe lock and compared without it, so that
 * a decompression never holds up the stripe. More than a few pages with one
 * 32-bit hash are not a coincidence to expect, so only a few are tried: then
 * the page is stored again, which costs memory and nothing else.
 */
#include <string.h>

#include "store/store_private.h"

#define CANDIDATES 4
/* A bound on one look-up's walk; chains are one or two long on average. */
#define CHAIN_MAX 64

static uint32_t *object_link(void *context, uint32_t slot)
{
	struct store *store = context;

	return &store_object(store, slot)->link;
}

static uint32_t object_hash(void *context, uint32_t slot)
{
	struct store *store = context;

	return store_object(store, slot)->checksum;
}

const struct index_ops dedup_index_ops = {
	.link = object_link,
	.hash = object_hash,
};

static pthread_mutex_t *stripe_lock(struct store *store, uint32_t checksum)
{
	return &store->stripes[checksum & (INDEX_STRIPES - 1)].lock;
}

static unsigned int pin_candidates(struct store *store, uint32_t checksum,
				   uint32_t *candidate, uint32_t *head)
{
	unsigned int found = 0, steps = 0;
	uint32_t slot;

	pthread_mutex_lock(stripe_lock(store, checksum));
	*head = slot = index_first(store->index, checksum);
	while (slot != SLAB_NONE && found < CANDIDATES && steps++ < CHAIN_MAX) {
		struct object *object = store_object(store, slot);

		if (object->checksum == checksum && object_pin(object))
			candidate[found++] = slot;
		slot = object->link;
	}
	pthread_mutex_unlock(stripe_lock(store, checksum));
	return found;
}

/* Compare without a copy where the page lies in memory as it is. */
static bool equals(struct store *store, struct store_thread *thread,
		   struct object *object, const void *page)
{
	struct location at = location_unpack(
		atomic_load_explicit(&object->location, memory_order_acquire));

	if (at.type == OBJECT_HOT)
		return !memcmp(hot_page(&store->hot, (uint32_t)at.handle), page,
			       PAGE_SIZE);
	return !store_read_object(store, thread, object, thread->page) &&
	       !memcmp(thread->page, page, PAGE_SIZE);
}

bool dedup_find(struct store *store, struct store_thread *thread,
		const void *page, uint32_t checksum, uint32_t *slot,
		uint32_t *head)
{
	uint32_t candidate[CANDIDATES];
	unsigned int count = pin_candidates(store, checksum, candidate, head);
	bool found = false;
	unsigned int i;

	for (i = 0; i < count; i++) {
		struct object *object = store_object(store, candidate[i]);

		if (!found && equals(store, thread, object, page) &&
		    object_pin_to_reference(object)) {
			*slot = candidate[i];
			found = true;
		} else if (object_unpin(object)) {
			store_free_object(store, candidate[i], object);
		}
	}
	return found;
}

uint32_t dedup_head(struct store *store, uint32_t checksum)
{
	uint32_t head;

	pthread_mutex_lock(stripe_lock(store, checksum));
	head = index_first(store->index, checksum);
	pthread_mutex_unlock(stripe_lock(store, checksum));
	return head;
}

static void adjust(struct store *store)
{
	int stripe = index_adjust_stripe(store->index);

	if (stripe < 0)
		return;
	pthread_mutex_lock(&store->stripes[stripe].lock);
	index_adjust(store->index, (unsigned int)stripe);
	pthread_mutex_unlock(&store->stripes[stripe].lock);
}

bool dedup_insert(struct store *store, uint32_t slot, uint32_t checksum,
		  uint32_t head)
{
	bool same;

	pthread_mutex_lock(stripe_lock(store, checksum));
	same = index_first(store->index, checksum) == head;
	if (same)
		index_insert(store->index, checksum, slot);
	pthread_mutex_unlock(stripe_lock(store, checksum));
	if (same)
		adjust(store);
	return same;
}

void dedup_remove(struct store *store, uint32_t slot, uint32_t checksum)
{
	pthread_mutex_lock(stripe_lock(store, checksum));
	index_remove(store->index, checksum, slot);
	pthread_mutex_unlock(stripe_lock(store, checksum));
	adjust(store);
}
