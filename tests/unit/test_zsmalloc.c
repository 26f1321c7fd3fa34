/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_zsmalloc.c - size classes, and in which zspages objects are put
 *
 * What zsmalloc has in common with other pools is in test_pool.c.
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

static void every_size_has_the_smallest_class_that_holds_it(void **state)
{
	struct zs_geometry geometry[POOL_CLASSES_MAX];
	uint8_t class_of[PAGE_SIZE / ZS_STEP + 1];
	unsigned int nr = zs_geometry_build(geometry, class_of);

	assert_true(nr > 100 && nr <= POOL_CLASSES_MAX);
	for (unsigned int size = 1; size <= PAGE_SIZE; size++) {
		unsigned int class = class_of[(size + ZS_STEP - 1) / ZS_STEP];

		assert_true(class < nr);
		assert_true(geometry[class].size >= size);
		if (class > 0)
			assert_true(geometry[class - 1].size < size);
	}
}

static void classes_waste_little_and_differ(void **state)
{
	struct zs_geometry geometry[POOL_CLASSES_MAX];
	uint8_t class_of[PAGE_SIZE / ZS_STEP + 1];
	unsigned int nr = zs_geometry_build(geometry, class_of);

	for (unsigned int i = 0; i < nr; i++) {
		const struct zs_geometry *g = &geometry[i];
		unsigned int bytes = g->pages * PAGE_SIZE;
		unsigned int tail = bytes - g->objects * g->size;

		assert_in_range(g->pages, 1, ZS_PAGES_MAX);
		assert_true(g->objects * g->size <= bytes);
		assert_true(g->objects <= ZS_OBJECTS_MAX);
		assert_true(tail * 1000 <= bytes * 15);
		if (i + 1 == nr)
			continue;
		assert_true(g->size < geometry[i + 1].size);
		assert_true(g->pages != geometry[i + 1].pages ||
			    g->objects != geometry[i + 1].objects);
		/* Otherwise a whole page would do. */
		assert_true(g->objects > g->pages);
	}
	assert_int_equal(geometry[nr - 1].size, PAGE_SIZE);
	assert_int_equal(geometry[nr - 1].objects, 1);
}

static void the_fullest_zspage_is_filled_first(void **state)
{
	struct world *world = *state;
	unsigned int objects =
		zs_class_for(world->pool, 1000)->geometry.objects;
	uint64_t page;

	for (uint32_t i = 0; i < objects * 3; i++)
		assert_int_equal(put(world, i, 1000), 0);
	/* One object is left in the first, all but two in the second. */
	for (uint32_t i = 1; i < objects; i++)
		drop(world, i);
	drop(world, objects);
	drop(world, objects + 1);
	page = zs_handle_page(world->owner[objects + 2].handle);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(put(world, OWNERS - 1 - i, 1000), 0);
		assert_int_equal(
			zs_handle_page(world->owner[OWNERS - 1 - i].handle),
			page);
	}
}

static void at_the_limit_larger_slots_serve_too(void **state)
{
	struct world *world = *state;
	uint32_t n = 0;

	/* Three quarters of a zspage's slots for 1500 bytes are left over. */
	assert_int_equal(put(world, n++, 1500), 0);
	arena_set_limit(world->arena, 1);
	assert_int_equal(put(world, n++, 1000), 0);
	assert_int_equal(pages_used(world),
			 zs_class_for(world->pool, 1500)->geometry.pages);
	assert_int_equal(put(world, n, 1600), -ENOSPC);
	check_all(world);
	drop_all(world);
	assert_int_equal(pages_used(world), 0);
}

static void statistics_are_by_class(void **state)
{
	struct world *world = *state;
	struct pool_class_stats classes[POOL_CLASSES_MAX];
	struct pool_stats stats;
	uint64_t bytes = 0, freeable = 0;
	uint32_t random = 2;
	unsigned int nr;

	for (uint32_t i = 0; i < 3000; i++)
		assert_int_equal(put(world, i, likely_size(&random)), 0);
	for (uint32_t i = 0; i < 3000; i += 3)
		drop(world, i);
	nr = ops->class_stats(world->pool, classes);
	for (unsigned int i = 0; i < nr; i++) {
		struct pool_class_stats *c = &classes[i];

		assert_int_equal(c->pages_freeable,
				 (c->objects_allocated - c->objects_used) /
					 c->objects_per_zspage *
					 c->pages_per_zspage);
		bytes += c->objects_used * c->size;
		freeable += c->pages_freeable;
	}
	ops->stats(world->pool, &stats);
	assert_int_equal(bytes, stats.object_bytes);
	assert_true(freeable > 0);
}

/* The page behind a zspage's first is the beginning of none. */
static void only_objects_of_a_zspage_can_be_claimed(void **state)
{
	struct world *world = *state;
	uint64_t handle;
	void *map;

	assert_int_equal(put(world, 1, 1500), 0);
	handle = world->owner[1].handle;
	assert_int_equal(ops->map_create(world->pool, &map), 0);
	assert_int_equal(
		ops->map_claim(world->pool, map, handle | 0xfff, 1500, 1),
		-ERANGE);
	handle = zs_handle(zs_handle_page(handle) + 1, 0);
	assert_int_equal(ops->map_claim(world->pool, map, handle, 1500, 1),
			 -ERANGE);
	claim(world, map, 1, 0);
	ops->map_destroy(world->pool, map);
}

#define test(name) \
	cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			every_size_has_the_smallest_class_that_holds_it),
		cmocka_unit_test(classes_waste_little_and_differ),
		test(the_fullest_zspage_is_filled_first),
		test(at_the_limit_larger_slots_serve_too),
		test(statistics_are_by_class),
		test(only_objects_of_a_zspage_can_be_claimed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
