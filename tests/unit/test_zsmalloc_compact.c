/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_zsmalloc_compact.c - moving objects out of sparse zspages
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

static void compaction_empties_sparse_zspages(void **state)
{
	struct world *world = *state;
	const struct zs_geometry *geometry =
		&zs_class_for(world->pool, 1500)->geometry;
	uint32_t total = geometry->objects * 10;

	for (uint32_t i = 0; i < total; i++)
		assert_int_equal(put(world, i, 1500), 0);
	/* Leave one in five, spread over all zspages. */
	for (uint32_t i = 0; i < total; i++)
		if (i % 5)
			drop(world, i);
	assert_int_equal(pages_used(world), 10 * geometry->pages);
	assert_int_equal(ops->compact(world->pool, UINT64_MAX),
			 8 * geometry->pages);
	assert_int_equal(pages_used(world), 2 * geometry->pages);
	assert_int_equal(arena_pages(world), 2 * geometry->pages);
	assert_int_equal(world->held, 0);
	check_all(world);
	assert_int_equal(ops->compact(world->pool, UINT64_MAX), 0);
}

static void compaction_leaves_what_owners_hold_on_to(void **state)
{
	struct world *world = *state;
	const struct zs_geometry *geometry =
		&zs_class_for(world->pool, 1500)->geometry;
	uint32_t objects = geometry->objects, total = objects * 10;
	struct pool_stats stats;
	uint64_t held;

	for (uint32_t i = 0; i < total; i++)
		assert_int_equal(put(world, i, 1500), 0);
	for (uint32_t i = 0; i < total; i++)
		if (i % objects)
			drop(world, i);
	for (uint32_t i = 0; i < total; i++)
		world->owner[i].refuses = true;
	assert_int_equal(ops->compact(world->pool, UINT64_MAX), 0);
	ops->stats(world->pool, &stats);
	assert_int_equal(stats.objects_moved, 0);

	/* All but one let go: the others are gathered beside that one. */
	held = world->owner[0].handle;
	for (uint32_t i = 1; i < total; i++)
		world->owner[i].refuses = false;
	assert_int_equal(ops->compact(world->pool, UINT64_MAX),
			 9 * geometry->pages);
	assert_int_equal(world->owner[0].handle, held);
	check_all(world);
}

static void a_small_pool_is_packed_tightly(void **state)
{
	struct world *world = *state;
	uint32_t random = 4;
	uint64_t bytes, pages;

	for (uint32_t i = 0; i < 14000; i++)
		assert_int_equal(put(world, i, likely_size(&random)), 0);
	bytes = bytes_stored(world);
	pages = pages_used(world);
	assert_true(pages - ops->compact(world->pool, UINT64_MAX) ==
		    pages_used(world));
	check_all(world);
	/* Header, rounding, tails and unfilled zspages together. */
	assert_true(pages_used(world) * PAGE_SIZE < bytes * 103 / 100);
}

/* However often objects are moved, they stay near the class they need. */
static void objects_do_not_wander(void **state)
{
	struct world *world = *state;
	uint32_t random = 5;

	for (uint32_t i = 0; i < 4000; i++)
		assert_int_equal(put(world, i, likely_size(&random)), 0);
	for (unsigned int round = 0; round < 40; round++) {
		for (unsigned int i = 0; i < 200; i++) {
			uint32_t n = next_random(&random) % 4000;

			drop(world, n);
			assert_int_equal(put(world, n, likely_size(&random)),
					 0);
		}
		ops->compact(world->pool, UINT64_MAX);
	}
	check_all(world);
	for (uint32_t i = 0; i < 4000; i++) {
		struct owner *owner = &world->owner[i];
		struct zs_class *needed =
			zs_class_for(world->pool, owner->size);
		struct zs_class *class = zs_zspage_class(
			world->pool, zs_handle_page(owner->handle));

		assert_true(class->geometry.size <=
			    needed->geometry.size + 512);
	}
}

#define test(name) \
	cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(compaction_empties_sparse_zspages),
		test(compaction_leaves_what_owners_hold_on_to),
		test(a_small_pool_is_packed_tightly),
		test(objects_do_not_wander),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
