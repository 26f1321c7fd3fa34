/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * statistics.c - what the store counts
 *
 * Counters lie in several sets, each on cache lines of its own; a thread adds
 * to the set that its turn gave it, and a total is the sum of all. Relaxed
 * throughout: a total read while others count is right for some moment near.
 */
#include "store/store_private.h"

static _Atomic unsigned int next_set;
static __thread unsigned int own_set; /* plus one; 0: not chosen yet */

void store_count(struct store *store, enum store_counter counter,
		 int64_t amount)
{
	if (!own_set)
		own_set = 1 + atomic_fetch_add_explicit(&next_set, 1,
							memory_order_relaxed) %
				      STORE_COUNTER_SETS;
	atomic_fetch_add_explicit(&store->counters[own_set - 1].value[counter],
				  amount, memory_order_relaxed);
}

int64_t store_counted(const struct store *store, enum store_counter counter)
{
	int64_t total = 0;
	unsigned int i;

	for (i = 0; i < STORE_COUNTER_SETS; i++)
		total +=
			atomic_load_explicit(&store->counters[i].value[counter],
					     memory_order_relaxed);
	return total;
}

void store_set_count(struct store *store, enum store_counter counter,
		     int64_t value)
{
	store_count(store, counter, value - store_counted(store, counter));
}

/* A total may be caught between two counts that belong together. */
static uint64_t counted(const struct store *store, enum store_counter counter)
{
	int64_t total = store_counted(store, counter);

	return total < 0 ? 0 : (uint64_t)total;
}

void store_stats(struct store *store, struct store_stats *stats)
{
	uint64_t references = counted(store, COUNT_OBJECT_REFERENCES);
	struct slab_usage table;

	slab_usage(store->objects, &table);
	*stats = (struct store_stats){
		.stored_pages = counted(store, COUNT_OBJECTS),
		.hot_pages = hot_frames(&store->hot),
		.compressed_pages = counted(store, COUNT_COMPRESSED),
		.huge_pages = counted(store, COUNT_HUGE),
		.huge_pages_since = counted(store, COUNT_HUGE_SINCE),
		.compr_data_size = counted(store, COUNT_COMPRESSED_BYTES),
		.same_pages = counted(store, COUNT_FILL_REFERENCES),
		.compr_failed = counted(store, COUNT_COMPRESS_FAILED),
		.checksum_errors = counted(store, COUNT_CHECKSUM_ERRORS),
		.puts = counted(store, COUNT_PUTS),
		.writer_compressions =
			counted(store, COUNT_WRITER_COMPRESSIONS),
		.background_compressions =
			counted(store, COUNT_BACKGROUND_COMPRESSIONS),
		.index_bytes = store->index ? index_bytes(store->index) : 0,
		.table_bytes = table.pages << PAGE_SHIFT,
	};
	stats->references = references + stats->same_pages;
	if (references > stats->stored_pages)
		stats->dedup_pages = references - stats->stored_pages;
	store->pool_ops->stats(store->pool, &stats->pool);
}
