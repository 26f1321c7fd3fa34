/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_buddies.c - where zbud and z3fold put objects, and what zbud alone does
 *
 * What they have in common with other pools is in test_pool.c; what z3fold
 * does with three objects in a page is in test_z3fold.c.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/buddies_world.h"

static void two_share_a_page_to_the_last_chunk(void **state)
{
	struct world *world = *state;

	put_chunks(world, 1, 20);
	put_chunks(world, 2, 44);
	assert_int_equal(pages_used(world), 1);
	assert_int_equal(start_of(world, 1), 0);
	assert_int_equal(start_of(world, 2), 20);
	put_chunks(world, 3, 20);
	put_chunks(world, 4, 45);
	assert_int_equal(pages_used(world), 3);
	check_all(world);
}

static void zbud_has_no_third(void **state)
{
	struct world *world = *state;
	struct pool_class_stats rows[POOL_CLASSES_MAX];

	put_chunks(world, 1, 2);
	put_chunks(world, 2, 2);
	put_chunks(world, 3, 2);
	assert_int_equal(page_of(world, 1), page_of(world, 2));
	assert_int_equal(pages_used(world), 2);
	assert_int_equal(put(world, 4, PAGE_SIZE), 0);
	assert_int_equal(world->ops->class_stats(world->pool, rows), 3);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(rows[i].pages_used, 1);
	assert_int_equal(rows[0].objects_used, 2);
	assert_int_equal(rows[1].objects_used, 1);
	assert_int_equal(rows[2].size, PAGE_SIZE);
}

static void the_best_fit_is_taken(void **state)
{
	struct world *world = *state;

	put_chunks(world, 1, 33);
	put_chunks(world, 2, 60);
	put_chunks(world, 3, 50);
	put_chunks(world, 4, 45);
	assert_int_equal(pages_used(world), 4);
	put_chunks(world, 5, 13);
	assert_int_equal(page_of(world, 5), page_of(world, 3));
	put_chunks(world, 6, 31);
	assert_int_equal(page_of(world, 6), page_of(world, 1));
	put_chunks(world, 7, 4);
	assert_int_equal(page_of(world, 7), page_of(world, 2));
	check_all(world);
}

/* Objects of 1 to 63 chunks, each alone: n goes with 64 - n. */
static void compaction_finds_every_pair(void **state)
{
	struct world *world = *state;
	struct pool_class_stats rows[POOL_CLASSES_MAX];

	for (uint32_t i = 1; i < CHUNKS; i++) {
		put_chunks(world, 2 * i, i);
		put_chunks(world, 2 * i + 1, CHUNKS - i);
	}
	assert_int_equal(pages_used(world), CHUNKS - 1);
	for (uint32_t i = 1; i < CHUNKS; i++)
		drop(world, 2 * i + 1);
	assert_int_equal(pages_used(world), CHUNKS - 1);
	world->ops->class_stats(world->pool, rows);
	assert_int_equal(rows[1].pages_freeable, CHUNKS / 2 - 1);
	assert_int_equal(world->ops->compact(world->pool, UINT64_MAX),
			 CHUNKS / 2 - 1);
	assert_int_equal(pages_used(world), CHUNKS / 2);
	check_all(world);
	assert_int_equal(world->ops->compact(world->pool, UINT64_MAX), 0);
}

static void what_zbud_can_free_is_known(void **state)
{
	struct world *world = *state;
	uint32_t random = 1;

	for (unsigned int round = 0; round < 20; round++) {
		uint64_t freeable;

		for (uint32_t i = 0; i < 2000; i++)
			put_chunks(world, i, 1 + next_random(&random) % 63);
		for (uint32_t i = 0; i < 2000; i++)
			if (next_random(&random) % 4)
				drop(world, i);
		freeable = pages_freeable(world);
		assert_true(freeable > 0);
		assert_int_equal(world->ops->compact(world->pool, UINT64_MAX),
				 freeable);
		assert_int_equal(pages_freeable(world), 0);
		drop_all(world);
	}
}

static void one_that_refuses_does_not_keep_others_apart(void **state)
{
	for (uint32_t refuses = 0; refuses < 6; refuses += 2) {
		struct world *world = *state;

		leave_three(world);
		world->owner[refuses].refuses = true;
		/* It can still be joined by another. */
		assert_true(world->ops->compact(world->pool, UINT64_MAX) >= 1);
		assert_true(pages_used(world) <= 2);
		world->owner[refuses].refuses = false;
		check_all(world);
		drop_all(world);
	}
}

static void claims_that_overlap_are_refused(void **state)
{
	struct world *world = *state;
	struct pool *pool = world->pool;
	uint64_t first;
	void *map;

	put_chunks(world, 1, 20);
	put_chunks(world, 2, 20);
	assert_int_equal(world->ops->map_create(pool, &map), 0);
	claim(world, map, 2, 0);
	first = world->owner[1].handle;
	assert_int_equal(
		world->ops->map_claim(pool, map, first, of_chunks(45), 1),
		-EEXIST);
	assert_int_equal(
		world->ops->map_claim(pool, map, first + 46, of_chunks(18), 1),
		-EEXIST);
	/* Beyond the page's end; and a whole page, which this is not. */
	assert_int_equal(
		world->ops->map_claim(pool, map, first + 46, of_chunks(19), 1),
		-ERANGE);
	assert_int_equal(world->ops->map_claim(pool, map, first, PAGE_SIZE, 1),
			 -ERANGE);
	claim(world, map, 1, 0);
	world->ops->map_destroy(pool, map);
}

static void a_wrong_count_shows(void **state)
{
	struct world *world = *state;
	void *map;

	put_chunks(world, 1, 20);
	assert_int_equal(put(world, 2, PAGE_SIZE), 0);
	assert_int_equal(world->ops->map_create(world->pool, &map), 0);
	claim_all(world, map);
	world->pool->whole++;
	assert_int_equal(world->ops->map_compare(world->pool, map), 1);
	world->pool->whole--;
	world->pool->pages[1]--;
	assert_int_equal(world->ops->map_compare(world->pool, map), 1);
	world->pool->pages[1]++;
	assert_int_equal(world->ops->map_compare(world->pool, map), 0);
	world->ops->map_destroy(world->pool, map);
}

#define test(name) \
	cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

static const struct CMUnitTest zbud[] = {
	test(two_share_a_page_to_the_last_chunk),
	test(zbud_has_no_third),
	test(the_best_fit_is_taken),
	test(compaction_finds_every_pair),
	test(what_zbud_can_free_is_known),
	test(one_that_refuses_does_not_keep_others_apart),
	test(claims_that_overlap_are_refused),
	test(a_wrong_count_shows),
};

static const struct CMUnitTest z3fold[] = {
	test(two_share_a_page_to_the_last_chunk),
	test(the_best_fit_is_taken),
	test(one_that_refuses_does_not_keep_others_apart),
	test(claims_that_overlap_are_refused),
	test(a_wrong_count_shows),
};

int main(void)
{
	int failed;

	world_pool = &pool_zbud;
	failed = cmocka_run_group_tests(zbud, NULL, NULL);
	world_pool = &pool_z3fold;
	return failed + cmocka_run_group_tests(z3fold, NULL, NULL);
}
