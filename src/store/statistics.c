/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * statistics.c - what the store counts
 *
 * Counters lie in several sets, each on cache lines of its own, and a total is
 * the sum of all. An attached thread has a set to itself, as long as there are
 * enough: then counting is no atomic read-modify-write, of which each would
 * wait for the page that was written before it. The first set is everybody
 * else's. Relaxed throughout: a total read while others count is right for
 * some moment near.
 */
#include "store/store_private.h"

void store_claim_counters(struct store_thread *thread)
{
	struct store *store = thread->store;
	uint32_t taken =
		atomic_load_explicit(&store->sets_taken, memory_order_relaxed);
	unsigned int set;

	thread->counters = NULL;
	do {
		if (taken == UINT32_MAX)
			return;
		set = (unsigned int)__builtin_ctz(~taken);
		/* Acquire: what the one before counted is seen. */
	} while (!atomic_compare_exchange_weak_explicit(
		&store->sets_taken, &taken, taken | UINT32_C(1) << set,
		memory_order_acquire, memory_order_relaxed));
	thread->counters = &store->counters[1 + set];
}

void store_release_counters(struct store_thread *thread)
{
	struct store *store = thread->store;
	unsigned int set;

	if (!thread->counters)
		return;
	set = (unsigned int)(thread->counters - store->counters) - 1;
	atomic_fetch_and_explicit(&store->sets_taken, ~(UINT32_C(1) << set),
				  memory_order_release);
}

void store_count(struct store *store, enum store_counter counter,
		 int64_t amount)
{
	struct store_thread *thread = store_thread(store);
	_Atomic int64_t *value;

	if (!thread || !thread->counters) {
		atomic_fetch_add_explicit(&store->counters[0].value[counter],
					  amount, memory_order_relaxed);
		return;
	}
	value = &thread->counters->value[counter];
	atomic_store_explicit(
		value,
		atomic_load_explicit(value, memory_order_relaxed) + amount,
		memory_order_relaxed);
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
	struct slab_usage table, clusters;

	slab_usage(store->objects, &table);
	slab_usage(store->clusters, &clusters);
	*stats = (struct store_stats){
		.stored_pages = counted(store, COUNT_OBJECTS),
		.hot_pages = hot_frames(&store->hot),
		.compressed_pages = counted(store, COUNT_COMPRESSED),
		.huge_pages = counted(store, COUNT_HUGE),
		.huge_pages_since = counted(store, COUNT_HUGE_SINCE),
		.compr_data_size = counted(store, COUNT_COMPRESSED_BYTES),
		.clusters = counted(store, COUNT_CLUSTERS),
		.same_pages = counted(store, COUNT_FILL_REFERENCES),
		.compr_failed = counted(store, COUNT_COMPRESS_FAILED),
		.checksum_errors = counted(store, COUNT_CHECKSUM_ERRORS),
		.puts = counted(store, COUNT_PUTS),
		.writer_compressions =
			counted(store, COUNT_WRITER_COMPRESSIONS),
		.background_compressions =
			counted(store, COUNT_BACKGROUND_COMPRESSIONS),
		.index_bytes = store->index ? index_bytes(store->index) : 0,
		.table_bytes = (table.pages + clusters.pages) << PAGE_SHIFT,
	};
	stats->references = references + stats->same_pages;
	if (references > stats->stored_pages)
		stats->dedup_pages = references - stats->stored_pages;
	store->pool_ops->stats(store->pool, &stats->pool);
}
