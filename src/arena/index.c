/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * index.c - linear hashing
 *
 * With n buckets, a hash belongs to bucket (hash mod 2^k), 2^k the smallest
 * power of two that is not below n, or if there is no such bucket yet, to
 * (hash mod 2^(k-1)). So n is all the state there is: the bucket to split next
 * is n - 2^(k-1), and it goes to n.
 *
 * n is one atomic word, which every stripe reads and one at a time changes.
 * A change from n to n + 1 or back moves only hashes of bucket n's stripe, so
 * whoever holds the lock of another stripe finds its buckets by the old value
 * as by the new one; and whoever holds this stripe's lock later has seen the
 * new one, by that lock. Relaxed order is therefore enough.
 *
 * adjust_lock: guards changing n and the array's pages. Taken within a stripe
 * lock, outside the arena's, and never waited for: an index that somebody else
 * is adjusting need not be adjusted twice.
 */
#include "arena/lock.h"
#include "arena/index.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "arena/slab.h"

/*
 * How many splits before its turn a second record is fetched; the first, which
 * leads to it, as many before that. With 2, and no second, a page's way through
 * the index took 150 ns more of some 400.
 */
#define SPLIT_AHEAD 4

#define PAGE_BUCKETS (PAGE_SIZE / sizeof(uint32_t))

struct index {
	struct arena *arena;
	enum arena_region region;
	const struct index_ops *ops;
	void *context;
	uint32_t *buckets;
	pthread_mutex_t adjust_lock;
	_Atomic uint64_t nr_buckets;
	_Atomic uint64_t count;
};

static uint64_t read_relaxed(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void write_relaxed(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
}

/* The next page of the array, which begins in the region's first page. */
static int add_page(struct index *index, uint64_t expected)
{
	uint32_t page;
	int err = arena_alloc(index->arena, index->region, 1, 0, &page);

	if (err || page == expected)
		return err;
	arena_free(index->arena, index->region, page, 1);
	return -ENOSPC;
}

int index_create(struct index **result, struct arena *arena,
		 enum arena_region region, const struct index_ops *ops,
		 void *context)
{
	struct index *index = calloc(1, sizeof(*index));
	int err;

	if (!index)
		return -ENOMEM;
	index->arena = arena;
	index->region = region;
	index->ops = ops;
	index->context = context;
	index->buckets = arena_page(arena, region, 0);
	atomic_init(&index->nr_buckets, INDEX_STRIPES);
	err = -lock_init(&index->adjust_lock);
	if (err)
		goto free;
	err = add_page(index, 0);
	if (err)
		goto destroy;
	for (unsigned int i = 0; i < INDEX_STRIPES; i++)
		index->buckets[i] = SLAB_NONE;
	*result = index;
	return 0;

destroy:
	pthread_mutex_destroy(&index->adjust_lock);
free:
	free(index);
	return err;
}

static uint64_t nr_pages(const struct index *index)
{
	return (read_relaxed(&index->nr_buckets) + PAGE_BUCKETS - 1) /
	       PAGE_BUCKETS;
}

void index_destroy(struct index *index)
{
	if (!index)
		return;
	for (uint64_t page = nr_pages(index); page--;)
		arena_free(index->arena, index->region, page, 1);
	pthread_mutex_destroy(&index->adjust_lock);
	free(index);
}

/* The smallest power of two that is not below n, for n above 1. */
static uint64_t power_above(uint64_t n)
{
	return 1ull << (64 - __builtin_clzll(n - 1));
}

static uint32_t *bucket_of(const struct index *index, uint32_t hash)
{
	uint64_t n = read_relaxed(&index->nr_buckets);
	uint64_t power = power_above(n);
	uint64_t bucket = hash & (power - 1);

	if (bucket >= n)
		bucket = hash & (power / 2 - 1);
	return &index->buckets[bucket];
}

static uint32_t *link_of(const struct index *index, uint32_t record)
{
	return index->ops->link(index->context, record);
}

/* Relaxed: prefetch_split() may look, and for all others there is the lock. */
static void set_link(uint32_t *link, uint32_t record)
{
	__atomic_store_n(link, record, __ATOMIC_RELAXED);
}

uint32_t index_first(const struct index *index, uint32_t hash)
{
	return *bucket_of(index, hash);
}

void index_prefetch(const struct index *index, uint32_t hash)
{
	__builtin_prefetch(bucket_of(index, hash));
}

static void prefetch_record(const struct index *index, uint32_t record)
{
	if (record != SLAB_NONE)
		__builtin_prefetch(link_of(index, record));
}

/* Relaxed: whatever record it was, fetching it is harmless. */
void index_prefetch_first(const struct index *index, uint32_t hash)
{
	prefetch_record(index, __atomic_load_n(bucket_of(index, hash),
					       __ATOMIC_RELAXED));
}

void index_insert(struct index *index, uint32_t hash, uint32_t record)
{
	uint32_t *bucket = bucket_of(index, hash);

	*link_of(index, record) = *bucket;
	set_link(bucket, record);
	atomic_fetch_add_explicit(&index->count, 1, memory_order_relaxed);
}

bool index_remove(struct index *index, uint32_t hash, uint32_t record)
{
	uint32_t *link = bucket_of(index, hash);

	while (*link != record) {
		if (*link == SLAB_NONE)
			return false;
		link = link_of(index, *link);
	}
	set_link(link, *link_of(index, record));
	atomic_fetch_sub_explicit(&index->count, 1, memory_order_relaxed);
	return true;
}

/* Is there a bucket n to be had, as far as one can tell without asking? */
static bool can_grow(const struct index *index, uint64_t n)
{
	if (n % PAGE_BUCKETS)
		return true;
	return n < 1ull << 32 &&
	       n / PAGE_BUCKETS < arena_capacity(index->arena, index->region) &&
	       !arena_is_full(index->arena, 1);
}

void index_expect(struct index *index, uint64_t records)
{
	uint64_t n = read_relaxed(&index->nr_buckets);

	while (n < records && can_grow(index, n)) {
		uint64_t end = (n / PAGE_BUCKETS + 1) * PAGE_BUCKETS;

		if (n % PAGE_BUCKETS == 0 && add_page(index, n / PAGE_BUCKETS))
			break;
		if (end > records)
			end = records;
		for (; n < end; n++)
			index->buckets[n] = SLAB_NONE;
	}
	write_relaxed(&index->nr_buckets, n);
}

/*
 * What is wanted with n buckets: 1 split, -1 merge, 0 nothing. Between half a
 * record and one for each bucket nothing is, so that it does not go to and fro.
 */
static int wanted(const struct index *index, uint64_t n)
{
	uint64_t count = read_relaxed(&index->count);

	if (count > n)
		return can_grow(index, n);
	return count < n / 2 && n > INDEX_STRIPES ? -1 : 0;
}

int index_adjust_stripe(const struct index *index)
{
	uint64_t n = read_relaxed(&index->nr_buckets);

	switch (wanted(index, n)) {
	case 1:
		return n % INDEX_STRIPES;
	case -1:
		return (n - 1) % INDEX_STRIPES;
	default:
		return -1;
	}
}

/* Make bucket n of the records in its lower twin that belong there. */
static void split(struct index *index, uint64_t n)
{
	uint64_t power = power_above(n + 1);
	uint32_t *low = &index->buckets[n - power / 2];
	uint32_t *high = &index->buckets[n];
	uint32_t record = *low;

	while (record != SLAB_NONE) {
		uint32_t *link = link_of(index, record);
		uint32_t hash = index->ops->hash(index->context, record);

		if ((hash & (power - 1)) == n) {
			set_link(high, record);
			high = link;
		} else {
			set_link(low, record);
			low = link;
		}
		record = *link;
	}
	set_link(low, SLAB_NONE);
	set_link(high, SLAB_NONE);
}

/* Put bucket n's records, the last bucket's, behind those of its lower twin. */
static void merge(struct index *index, uint64_t n)
{
	uint32_t *end = &index->buckets[n - power_above(n + 1) / 2];

	while (*end != SLAB_NONE)
		end = link_of(index, *end);
	set_link(end, index->buckets[n]);
}

/* The first record of what will be split for bucket n. Needs no lock. */
static uint32_t first_to_split(const struct index *index, uint64_t n)
{
	return __atomic_load_n(&index->buckets[n - power_above(n + 1) / 2],
			       __ATOMIC_RELAXED);
}

/*
 * What will be split a few splits from now: a first record, and the second of
 * what comes before that. A record may be freed at the same time, and its link
 * be anything: fetching what it names is harmless.
 */
__attribute__((no_sanitize_thread)) static void prefetch_split(
	const struct index *index, uint64_t n)
{
	uint32_t first = first_to_split(index, n + SPLIT_AHEAD);

	prefetch_record(index, first_to_split(index, n + 2 * SPLIT_AHEAD));
	if (first != SLAB_NONE)
		prefetch_record(index, __atomic_load_n(link_of(index, first),
						       __ATOMIC_RELAXED));
}

static void grow(struct index *index, uint64_t n)
{
	/* Without a page chains get longer; nothing fails. */
	if (n % PAGE_BUCKETS == 0 && add_page(index, n / PAGE_BUCKETS) != 0)
		return;
	split(index, n);
	write_relaxed(&index->nr_buckets, n + 1);
	prefetch_split(index, n);
}

static void shrink(struct index *index, uint64_t n)
{
	merge(index, n - 1);
	write_relaxed(&index->nr_buckets, n - 1);
	if ((n - 1) % PAGE_BUCKETS == 0)
		arena_free(index->arena, index->region, (n - 1) / PAGE_BUCKETS,
			   1);
}

void index_adjust(struct index *index, unsigned int stripe)
{
	uint64_t n;

	if (pthread_mutex_trylock(&index->adjust_lock) != 0)
		return;
	/* Changed only with adjust_lock held: it stays what it is now. */
	n = read_relaxed(&index->nr_buckets);
	switch (wanted(index, n)) {
	case 1:
		if (n % INDEX_STRIPES == stripe)
			grow(index, n);
		break;
	case -1:
		if ((n - 1) % INDEX_STRIPES == stripe)
			shrink(index, n);
		break;
	}
	pthread_mutex_unlock(&index->adjust_lock);
}

uint64_t index_count(const struct index *index)
{
	return read_relaxed(&index->count);
}

uint64_t index_bytes(const struct index *index)
{
	return nr_pages(index) * PAGE_SIZE;
}

int index_claim(const struct index *index, struct arena_map *map)
{
	for (uint64_t page = nr_pages(index); page--;) {
		int err = arena_claim(map, index->region, page, 1);

		if (err)
			return err;
	}
	return 0;
}
