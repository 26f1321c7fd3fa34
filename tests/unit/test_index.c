/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_index.c - every record is found, whatever the number of buckets
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "arena/index.h"

#define MIB	(1ull << 20)
#define RECORDS 20000u

static uint32_t links[RECORDS + 1];
static uint32_t hashes[RECORDS + 1];

static uint32_t *link_of(void *context, uint32_t record)
{
	assert_true(record >= 1 && record <= RECORDS);
	return &links[record];
}

static uint32_t hash_of(void *context, uint32_t record)
{
	return hashes[record];
}

static const struct index_ops ops = {link_of, hash_of};

struct fixture {
	struct arena *arena;
	struct index *index;
};

static int setup(void **state)
{
	struct arena_config config = {.capacity = 16 * MIB};
	struct fixture *f = malloc(sizeof(*f));

	assert_non_null(f);
	assert_int_equal(arena_create(&f->arena, &config), 0);
	assert_int_equal(
		index_create(&f->index, f->arena, ARENA_BUCKETS, &ops, NULL),
		0);
	srand(1);
	for (unsigned int i = 1; i <= RECORDS; i++)
		hashes[i] = (uint32_t)rand() << 16 ^ (uint32_t)rand();
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	struct arena_usage usage;

	index_destroy(f->index);
	arena_usage(f->arena, &usage);
	assert_int_equal(usage.resident[ARENA_BUCKETS], usage.dirty);
	arena_destroy(f->arena);
	free(f);
	return 0;
}

static void adjust(struct index *index)
{
	int stripe = index_adjust_stripe(index);

	if (stripe >= 0)
		index_adjust(index, stripe);
}

/* The place in its chain, from 1 on; 0: it is not there. */
static unsigned int place(const struct index *index, uint32_t record)
{
	uint32_t at = index_first(index, hashes[record]);
	unsigned int n = 1;

	for (; at && at != record; at = links[at])
		n++;
	return at ? n : 0;
}

static void test_empty(void **state)
{
	struct fixture *f = *state;

	for (uint32_t hash = 0; hash < 1000; hash++)
		assert_int_equal(index_first(f->index, hash << 22 | hash), 0);
	assert_int_equal(index_count(f->index), 0);
	assert_int_equal(index_bytes(f->index), PAGE_SIZE);
	assert_int_equal(index_adjust_stripe(f->index), -1);
	assert_false(index_remove(f->index, hashes[1], 1));
}

static void test_grow_and_shrink(void **state)
{
	struct fixture *f = *state;
	uint64_t places = 0;

	for (uint32_t i = 1; i <= RECORDS; i++) {
		index_insert(f->index, hashes[i], i);
		assert_int_equal(index_first(f->index, hashes[i]), i);
		adjust(f->index);
		if (i % 1000 == 0)
			for (uint32_t k = 1; k <= i; k++)
				assert_int_not_equal(place(f->index, k), 0);
	}
	assert_int_equal(index_count(f->index), RECORDS);
	assert_int_equal(index_adjust_stripe(f->index), -1);
	/* About a bucket for each record, so chains are short. */
	assert_int_equal(index_bytes(f->index),
			 (RECORDS + 1023) / 1024 * PAGE_SIZE);
	for (uint32_t i = 1; i <= RECORDS; i++)
		places += place(f->index, i);
	assert_true(places < 2 * RECORDS);

	for (uint32_t i = 1; i <= RECORDS; i++) {
		assert_true(index_remove(f->index, hashes[i], i));
		assert_false(index_remove(f->index, hashes[i], i));
		adjust(f->index);
		if (i % 1000 == 0)
			for (uint32_t k = 1; k <= RECORDS; k++)
				assert_int_equal(place(f->index, k) != 0,
						 k > i);
	}
	assert_int_equal(index_count(f->index), 0);
	while (index_adjust_stripe(f->index) >= 0)
		adjust(f->index);
	assert_int_equal(index_bytes(f->index), PAGE_SIZE);
}

/* All in one chain: slow, and right. */
static void test_equal_hashes(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 1; i <= 300; i++) {
		hashes[i] = 0xffffffff;
		index_insert(f->index, hashes[i], i);
		adjust(f->index);
	}
	for (uint32_t i = 300; i >= 1; i -= 3)
		assert_true(index_remove(f->index, hashes[i], i));
	for (uint32_t i = 1; i <= 300; i++)
		assert_int_equal(place(f->index, i) != 0, i % 3 != 0);
}

/* A bucket is split or merged under its own stripe's lock only. */
static void test_stripe_is_checked(void **state)
{
	struct fixture *f = *state;
	int stripe;

	for (uint32_t i = 1; i <= 65; i++)
		index_insert(f->index, hashes[i], i);
	stripe = index_adjust_stripe(f->index);
	assert_int_equal(stripe, 0);
	index_adjust(f->index, 1);
	assert_int_equal(index_adjust_stripe(f->index), stripe);
	index_adjust(f->index, 0);
	assert_int_equal(index_adjust_stripe(f->index), -1);
}

/* Without memory for buckets chains get longer, and nothing is lost. */
static void test_no_memory(void **state)
{
	struct fixture *f = *state;

	arena_set_limit(f->arena, PAGE_SIZE);
	for (uint32_t i = 1; i <= RECORDS; i++) {
		index_insert(f->index, hashes[i], i);
		adjust(f->index);
	}
	assert_int_equal(index_bytes(f->index), PAGE_SIZE);
	for (uint32_t i = 1; i <= RECORDS; i++)
		assert_int_not_equal(place(f->index, i), 0);
	/* It catches up when there is some. */
	arena_set_limit(f->arena, 0);
	for (uint32_t i = 1; i <= RECORDS; i++) {
		assert_true(index_remove(f->index, hashes[i], i));
		index_insert(f->index, hashes[i], i);
		adjust(f->index);
	}
	for (int i = 0; i < 2000; i++)
		adjust(f->index);
	assert_true(index_bytes(f->index) > PAGE_SIZE);
	for (uint32_t i = 1; i <= RECORDS; i++)
		assert_int_not_equal(place(f->index, i), 0);
}

static void test_no_memory_to_begin_with(void **state)
{
	struct fixture *f = *state;
	struct index *other;

	arena_set_limit(f->arena, PAGE_SIZE);
	assert_int_not_equal(
		index_create(&other, f->arena, ARENA_NAMES, &ops, NULL), 0);
}

static void test_claim(void **state)
{
	struct fixture *f = *state;
	struct arena_map *map;

	for (uint32_t i = 1; i <= RECORDS; i++) {
		index_insert(f->index, hashes[i], i);
		adjust(f->index);
	}
	assert_int_equal(arena_map_create(&map, f->arena), 0);
	assert_int_equal(index_claim(f->index, map), 0);
	assert_int_equal(arena_map_compare(map, f->arena), 0);
	assert_true(index_claim(f->index, map) < 0);
	arena_map_destroy(map);
}

#define THREADS 4u

static pthread_mutex_t stripes[INDEX_STRIPES];

struct churn {
	struct index *index;
	uint32_t first; /* of the records that are this thread's */
	unsigned int seed;
};

static void with_stripe(struct index *index)
{
	int stripe = index_adjust_stripe(index);

	if (stripe < 0)
		return;
	pthread_mutex_lock(&stripes[stripe]);
	index_adjust(index, stripe);
	pthread_mutex_unlock(&stripes[stripe]);
}

/* Fills and empties, so that the index grows and shrinks meanwhile. */
static void *churn(void *argument)
{
	static bool present[RECORDS + 1];
	struct churn *c = argument;
	void *complaint = NULL;

	for (int i = 0; i < 60000; i++) {
		bool filling = i / 10000 % 2 == 0;
		uint32_t record =
			c->first + rand_r(&c->seed) % (RECORDS / THREADS);
		uint32_t hash = hashes[record];
		pthread_mutex_t *lock = &stripes[hash % INDEX_STRIPES];

		pthread_mutex_lock(lock);
		if ((place(c->index, record) != 0) != present[record])
			complaint = "record lost";
		if (!present[record] && filling)
			index_insert(c->index, hash, record);
		else if (present[record] && !filling)
			index_remove(c->index, hash, record);
		present[record] = filling;
		pthread_mutex_unlock(lock);
		with_stripe(c->index);
	}
	for (uint32_t i = 0; i < RECORDS / THREADS; i++) {
		uint32_t record = c->first + i;
		pthread_mutex_t *lock =
			&stripes[hashes[record] % INDEX_STRIPES];

		pthread_mutex_lock(lock);
		if (index_remove(c->index, hashes[record], record) !=
		    present[record])
			complaint = "record lost at the end";
		pthread_mutex_unlock(lock);
		with_stripe(c->index);
	}
	return complaint;
}

static void test_threads(void **state)
{
	struct fixture *f = *state;
	pthread_t thread[THREADS];
	struct churn c[THREADS];
	void *complaint;

	for (unsigned int i = 0; i < INDEX_STRIPES; i++)
		pthread_mutex_init(&stripes[i], NULL);
	for (unsigned int i = 0; i < THREADS; i++) {
		c[i] = (struct churn){f->index, 1 + i * (RECORDS / THREADS), i};
		assert_int_equal(pthread_create(&thread[i], NULL, churn, &c[i]),
				 0);
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &complaint);
		assert_null(complaint);
	}
	assert_int_equal(index_count(f->index), 0);
	while (index_adjust_stripe(f->index) >= 0)
		adjust(f->index);
	assert_int_equal(index_bytes(f->index), PAGE_SIZE);
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_empty),	 test(test_grow_and_shrink),
		test(test_equal_hashes), test(test_stripe_is_checked),
		test(test_no_memory),	 test(test_no_memory_to_begin_with),
		test(test_claim),	 test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
