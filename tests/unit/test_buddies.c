/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_buddies.c - where zbud and z3fold put objects in pages, and move them
 *
 * What they have in common with other pools is in test_pool.c.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/pool_world.h"
#include "pool/buddies.h"

/* Sizes are given in chunks: the largest object that takes so many. */
static size_t of_chunks(unsigned int chunks)
{
	return chunks * CHUNK_SIZE - BUDDY_OWNER;
}

static void put_chunks(struct world *world, uint32_t number,
		       unsigned int chunks)
{
	assert_int_equal(buddy_chunks(of_chunks(chunks)), chunks);
	assert_int_equal(put(world, number, of_chunks(chunks)), 0);
}

static uint64_t page_of(struct world *world, uint32_t number)
{
	return buddy_handle_page(world->owner[number].handle);
}

static unsigned int start_of(struct world *world, uint32_t number)
{
	return buddy_handle_start(world->owner[number].handle);
}

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
	assert_int_equal(world->ops->compact(world->pool), CHUNKS / 2 - 1);
	assert_int_equal(pages_used(world), CHUNKS / 2);
	check_all(world);
	assert_int_equal(world->ops->compact(world->pool), 0);
}

static void three_share_a_page(void **state)
{
	struct world *world = *state;

	put_chunks(world, 1, 22);
	put_chunks(world, 2, 20);
	put_chunks(world, 3, 21);
	assert_int_equal(pages_used(world), 1);
	assert_int_equal(start_of(world, 1), 0);
	assert_int_equal(start_of(world, 2), 44);
	/* Beside the smaller neighbour. */
	assert_int_equal(start_of(world, 3), 23);
	/* There is a chunk left, but no fourth object. */
	put_chunks(world, 4, 1);
	assert_int_equal(pages_used(world), 2);
	check_all(world);
}

/* first, middle and last; then only the middle one. */
static void leave_the_middle(struct world *world, unsigned int chunks)
{
	put_chunks(world, 1, 16);
	put_chunks(world, 2, 32);
	put_chunks(world, 3, chunks);
	assert_int_equal(start_of(world, 3), 16);
	drop(world, 1);
	drop(world, 2);
	assert_int_equal(pages_used(world), 1);
}

static void the_middle_one_makes_room(void **state)
{
	struct world *world = *state;

	leave_the_middle(world, 16);
	put_chunks(world, 4, 16);
	assert_int_equal(start_of(world, 3), 16);
	drop(world, 4);
	put_chunks(world, 4, 48);
	assert_int_equal(pages_used(world), 1);
	assert_int_equal(start_of(world, 3), 0);
	assert_int_equal(start_of(world, 4), 16);
	assert_int_equal(world->held, 0);
	check_all(world);
}

static void the_middle_one_moves_to_the_other_end(void **state)
{
	struct world *world = *state;

	put_chunks(world, 1, 10);
	put_chunks(world, 2, 20);
	put_chunks(world, 3, 12);
	assert_int_equal(start_of(world, 3), 10);
	drop(world, 2);
	/* 42 behind the middle one, and none before it. */
	put_chunks(world, 4, 42);
	assert_int_equal(start_of(world, 3), 10);
	drop(world, 1);
	/* Now it is between 10 and 42, and cannot go but onto itself. */
	put_chunks(world, 5, 11);
	assert_int_equal(pages_used(world), 2);
	put_chunks(world, 6, 10);
	assert_int_equal(page_of(world, 6), page_of(world, 3));
	drop(world, 4);
	drop(world, 6);
	drop(world, 5);
	/* 10 before, 42 behind: it goes to the end. */
	put_chunks(world, 7, 52);
	assert_int_equal(pages_used(world), 1);
	assert_int_equal(start_of(world, 3), 52);
	assert_int_equal(start_of(world, 7), 0);
	check_all(world);
}

static void who_refuses_is_left_where_it_is(void **state)
{
	struct world *world = *state;

	leave_the_middle(world, 16);
	world->owner[3].refuses = true;
	put_chunks(world, 4, 48);
	assert_int_equal(pages_used(world), 2);
	assert_int_equal(start_of(world, 3), 16);
	/* What needs no move is put there. */
	put_chunks(world, 5, 32);
	assert_int_equal(page_of(world, 5), page_of(world, 3));
	check_all(world);
}

static void at_the_limit_every_page_is_asked(void **state)
{
	struct world *world = *state;
	uint32_t n = 0;

	/* Ten pages, each with an object in the middle and one at the end. */
	for (unsigned int i = 0; i < 10; i++, n += 3) {
		put_chunks(world, n, 20);
		put_chunks(world, n + 1, 24);
		put_chunks(world, n + 2, 20);
		assert_int_equal(start_of(world, n + 2), 20);
	}
	assert_int_equal(pages_used(world), 10);
	arena_set_limit(world->arena, 1);
	for (uint32_t i = 0; i < n; i += 3) {
		drop(world, i);
		drop(world, i + 1);
		world->owner[i + 2].refuses = i != 12;
	}
	/* All have room for 44, if their object moves: but one agrees. */
	assert_int_equal(put(world, n, of_chunks(45)), -ENOSPC);
	assert_int_equal(put(world, n, of_chunks(44)), 0);
	assert_int_equal(page_of(world, n), page_of(world, 14));
	assert_int_equal(put(world, n + 1, of_chunks(44)), -ENOSPC);
	assert_int_equal(put(world, n + 1, of_chunks(24)), 0);
	assert_int_equal(pages_used(world), 10);
	check_all(world);
}

static void pages_of_two_are_emptied_too(void **state)
{
	struct world *world = *state;

	/* Three pages with two objects each, and room for a third. */
	for (uint32_t i = 0; i < 9; i += 3) {
		put_chunks(world, i, 21);
		put_chunks(world, i + 1, 21);
		put_chunks(world, i + 2, 22);
	}
	assert_int_equal(pages_used(world), 3);
	drop(world, 2);
	drop(world, 5);
	drop(world, 8);
	assert_int_equal(world->ops->compact(world->pool), 1);
	assert_int_equal(pages_used(world), 2);
	assert_int_equal(arena_pages(world), 2);
	check_all(world);
	/* Objects are not moved to and fro where nothing is gained. */
	drop(world, 0);
	drop(world, 1);
	put_chunks(world, 0, 40);
	put_chunks(world, 1, 10);
	world->ops->compact(world->pool);
	for (unsigned int i = 0; i < 3; i++) {
		struct pool_stats before, after;

		world->ops->stats(world->pool, &before);
		assert_int_equal(world->ops->compact(world->pool), 0);
		world->ops->stats(world->pool, &after);
		assert_int_equal(after.objects_moved, before.objects_moved);
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

#define test(name) \
	cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

static const struct CMUnitTest zbud[] = {
	test(two_share_a_page_to_the_last_chunk),
	test(zbud_has_no_third),
	test(the_best_fit_is_taken),
	test(compaction_finds_every_pair),
	test(claims_that_overlap_are_refused),
};

static const struct CMUnitTest z3fold[] = {
	test(two_share_a_page_to_the_last_chunk),
	test(the_best_fit_is_taken),
	test(three_share_a_page),
	test(the_middle_one_makes_room),
	test(the_middle_one_moves_to_the_other_end),
	test(who_refuses_is_left_where_it_is),
	test(at_the_limit_every_page_is_asked),
	test(pages_of_two_are_emptied_too),
	test(claims_that_overlap_are_refused),
};

int main(void)
{
	int failed;

	world_pool = &pool_zbud;
	failed = cmocka_run_group_tests(zbud, NULL, NULL);
	world_pool = &pool_z3fold;
	return failed + cmocka_run_group_tests(z3fold, NULL, NULL);
}
