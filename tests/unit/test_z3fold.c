/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_z3fold.c - three objects to a page, of which the middle one may move
 *
 * What z3fold has in common with zbud is in test_buddies.c.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/buddies_world.h"

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

static void the_middle_one_never_moves_onto_itself(void **state)
{
	struct world *world = *state;

	put_chunks(world, 1, 30);
	put_chunks(world, 2, 10);
	put_chunks(world, 3, 20);
	assert_int_equal(start_of(world, 3), 34);
	drop(world, 2);
	/* 14 are free, but 10 of them on one side. */
	put_chunks(world, 4, 11);
	assert_int_equal(pages_used(world), 2);
	put_chunks(world, 5, 10);
	assert_int_equal(page_of(world, 5), page_of(world, 3));
	assert_int_equal(start_of(world, 3), 34);
	check_all(world);
}

static void beside_the_middle_one_the_smaller_place_is_taken(void **state)
{
	struct world *world = *state;

	leave_the_middle(world, 16);
	put_chunks(world, 4, 10);
	assert_int_equal(start_of(world, 4), 0);
	drop_all(world);

	put_chunks(world, 1, 32);
	put_chunks(world, 2, 16);
	put_chunks(world, 3, 16);
	drop(world, 1);
	drop(world, 2);
	put_chunks(world, 4, 10);
	assert_int_equal(start_of(world, 4), CHUNKS - 10);
	assert_int_equal(start_of(world, 3), 32);
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

static void three_are_gathered_in_one_page(void **state)
{
	struct world *world = *state;

	leave_three(world);
	assert_int_equal(pages_freeable(world), 2);
	assert_int_equal(world->ops->compact(world->pool, UINT64_MAX), 2);
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
	assert_int_equal(world->ops->compact(world->pool, UINT64_MAX), 1);
	assert_int_equal(pages_used(world), 2);
	assert_int_equal(arena_pages(world), 2);
	check_all(world);
	/* Objects are not moved to and fro where nothing is gained. */
	drop(world, 0);
	drop(world, 1);
	put_chunks(world, 0, 40);
	put_chunks(world, 1, 10);
	world->ops->compact(world->pool, UINT64_MAX);
	for (unsigned int i = 0; i < 3; i++) {
		struct pool_stats before, after;

		world->ops->stats(world->pool, &before);
		assert_int_equal(world->ops->compact(world->pool, UINT64_MAX),
				 0);
		world->ops->stats(world->pool, &after);
		assert_int_equal(after.objects_moved, before.objects_moved);
	}
}

static void a_page_has_one_middle_object(void **state)
{
	struct world *world = *state;
	void *map;

	three_share_a_page(state);
	assert_int_equal(world->ops->map_create(world->pool, &map), 0);
	claim(world, map, 3, 0);
	assert_int_equal(world->ops->map_claim(world->pool, map,
					       world->owner[1].handle + 1,
					       of_chunks(2), 1),
			 -EEXIST);
	claim(world, map, 1, 0);
	claim(world, map, 2, 0);
	world->ops->map_destroy(world->pool, map);
}

#define test(name) \
	cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(three_share_a_page),
		test(the_middle_one_makes_room),
		test(the_middle_one_moves_to_the_other_end),
		test(the_middle_one_never_moves_onto_itself),
		test(beside_the_middle_one_the_smaller_place_is_taken),
		test(who_refuses_is_left_where_it_is),
		test(at_the_limit_every_page_is_asked),
		test(three_are_gathered_in_one_page),
		test(pages_of_two_are_emptied_too),
		test(a_page_has_one_middle_object),
	};

	world_pool = &pool_z3fold;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
