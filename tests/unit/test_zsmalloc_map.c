/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_zsmalloc_map.c - claims: checking a pool, and taking one over
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/pool_world.h"
#include "pool/zsmalloc.h"

static const struct pool_ops *const ops = &pool_zsmalloc;

static void populate(struct world *world, uint32_t *random)
{
	for (uint32_t i = 0; i < 4000; i++)
		assert_int_equal(put(world, i, likely_size(random)), 0);
	for (uint32_t i = 0; i < 4000; i += 4)
		drop(world, i);
}

static void false_claims_are_refused(void **state)
{
	struct world *world = *state;
	struct pool *pool = world->pool;
	uint32_t random = 7;
	uint64_t handle;
	void *map;

	populate(world, &random);
	assert_int_equal(put(world, 9999, PAGE_SIZE), 0);
	assert_int_equal(ops->map_create(pool, &map), 0);
	claim(world, map, 1, 0);
	claim(world, map, 1, -EEXIST);
	claim(world, map, 9999, 0);
	claim(world, map, 9999, -EEXIST);
	handle = world->owner[2].handle;
	assert_int_equal(ops->map_claim(pool, map, handle, 10, 3), -EINVAL);
	assert_int_equal(ops->map_claim(pool, map, handle, 4097, 2), -ERANGE);
	assert_int_equal(ops->map_claim(pool, map, handle, 0, 2), -ERANGE);
	assert_int_equal(ops->map_claim(pool, map, 0, 10, 2), -ERANGE);
	assert_int_equal(ops->map_claim(pool, map, handle | 0xfff, 10, 2),
			 -ERANGE);
	assert_int_equal(ops->map_claim(pool, map,
					(UINT64_C(1) << POOL_HANDLE_BITS) - 1,
					10, 2),
			 -ERANGE);
	/* The page behind a zspage's first is the beginning of none. */
	assert_int_equal(put(world, 5000, 1500), 0);
	handle = zs_handle(zs_handle_page(world->owner[5000].handle) + 1, 0);
	assert_int_equal(ops->map_claim(pool, map, handle, 1500, 5000),
			 -ERANGE);
	ops->map_destroy(pool, map);
}

static void comparing_counts_the_objects_that_differ(void **state)
{
	struct world *world = *state;
	uint32_t random = 8;
	void *map;

	populate(world, &random);
	assert_int_equal(put(world, 9999, PAGE_SIZE), 0);
	assert_int_equal(ops->map_create(world->pool, &map), 0);
	claim_all(world, map);
	assert_int_equal(ops->map_compare(world->pool, map), 0);
	/* Claimed, and gone. */
	for (uint32_t i = 1; i <= 5; i++)
		drop(world, 4 * i + 1);
	assert_int_equal(ops->map_compare(world->pool, map), 5);
	ops->map_destroy(world->pool, map);

	assert_int_equal(ops->map_create(world->pool, &map), 0);
	claim_all(world, map);
	/* There, and not claimed. */
	assert_int_equal(put(world, 15000, PAGE_SIZE), 0);
	assert_int_equal(put(world, 15001, 30), 0);
	assert_int_equal(ops->map_compare(world->pool, map), 2);
	ops->map_destroy(world->pool, map);
}

/* As a new worker does with what one that died has left behind. */
static void take_over(struct world *world)
{
	struct arena *old_arena = world->arena;
	struct pool *old_pool = world->pool;
	struct arena_map *arena_map;
	void *map;

	assert_int_equal(arena_attach(&world->arena, arena_fd(old_arena)), 0);
	assert_int_equal(
		ops->create(&world->pool, world->arena, &owner_ops, world), 0);
	assert_int_equal(arena_map_create(&arena_map, world->arena), 0);
	assert_int_equal(ops->map_create(world->pool, &map), 0);
	claim_all(world, map);
	assert_int_equal(ops->map_finish(world->pool, map, arena_map), 0);
	assert_int_equal(arena_settle(world->arena, arena_map), 0);
	assert_int_equal(ops->map_settle(world->pool, map), 0);
	assert_int_equal(ops->map_compare(world->pool, map), 0);
	assert_int_equal(arena_map_compare(arena_map, world->arena), 0);
	ops->map_destroy(world->pool, map);
	arena_map_destroy(arena_map);
	ops->destroy(old_pool);
	arena_destroy(old_arena);
}

static void a_pool_is_rebuilt_from_claims(void **state)
{
	struct world *world = *state;
	struct pool_stats before, after;
	uint32_t random = 9;

	populate(world, &random);
	assert_int_equal(put(world, 9999, PAGE_SIZE), 0);
	ops->stats(world->pool, &before);
	take_over(world);
	ops->stats(world->pool, &after);
	assert_int_equal(after.objects, before.objects);
	assert_int_equal(after.object_bytes, before.object_bytes);
	assert_int_equal(after.pages, before.pages);
	assert_int_equal(arena_pages(world), before.pages);
	check_all(world);

	/* Life goes on. */
	for (uint32_t i = 0; i < 4000; i += 4)
		assert_int_equal(put(world, i, likely_size(&random)), 0);
	for (uint32_t i = 1; i < 4000; i += 4)
		drop(world, i);
	ops->compact(world->pool);
	check_all(world);
	drop_all(world);
	assert_int_equal(arena_pages(world), 0);
}

static void what_nobody_claims_is_given_back(void **state)
{
	struct world *world = *state;
	uint32_t random = 10;
	struct pool_stats stats;

	populate(world, &random);
	/* These were allocated, but their owners never got to say so. */
	for (uint32_t i = 100; i < 4000; i++)
		world->owner[i].handle = 0;
	take_over(world);
	ops->stats(world->pool, &stats);
	assert_int_equal(stats.objects, 75);
	assert_int_equal(stats.pages, arena_pages(world));
	check_all(world);
	drop_all(world);
	assert_int_equal(pages_used(world), 0);
	assert_int_equal(arena_pages(world), 0);
}

#define test(name) \
	cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(false_claims_are_refused),
		test(comparing_counts_the_objects_that_differ),
		test(a_pool_is_rebuilt_from_claims),
		test(what_nobody_claims_is_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
