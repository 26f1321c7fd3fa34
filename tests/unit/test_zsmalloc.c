/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_zsmalloc.c - size classes, and what allocating and freeing promises
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

static void largest_object_is_cheaper_than_a_page(void **state)
{
	struct world *world = *state;
	size_t largest = ops->largest(world->pool);
	uint32_t n = 0;

	assert_in_range(largest, PAGE_SIZE * 3 / 4, PAGE_SIZE - 1);
	for (; n < 64; n++)
		assert_int_equal(put(world, n, largest), 0);
	assert_true(pages_used(world) < 64);
	assert_int_equal(put(world, n, largest + 1), 0);
	assert_int_equal(put(world, n + 1, PAGE_SIZE), 0);
	check_all(world);
	drop_all(world);
	assert_int_equal(pages_used(world), 0);
}

static void handles_are_small_distinct_and_never_zero(void **state)
{
	struct world *world = *state;
	uint64_t handle;

	for (uint32_t i = 0; i < 300; i++) {
		assert_int_equal(put(world, i, 1 + i * 13), 0);
		handle = world->owner[i].handle;
		assert_true(handle != 0);
		assert_true(handle >> POOL_HANDLE_BITS == 0);
		for (uint32_t j = 0; j < i; j++)
			assert_true(world->owner[j].handle != handle);
	}
	assert_int_equal(ops->alloc(world->pool, 0, 1, 0, &handle), -EINVAL);
	assert_int_equal(ops->alloc(world->pool, PAGE_SIZE + 1, 1, 0, &handle),
			 -EINVAL);
}

static void objects_keep_their_bytes_while_others_come_and_go(void **state)
{
	struct world *world = *state;
	uint32_t random = 1;

	for (unsigned int round = 0; round < 60000; round++) {
		uint32_t n = next_random(&random) % 3000;

		if (world->owner[n].handle) {
			assert_true(intact(world, n));
			drop(world, n);
		} else {
			assert_int_equal(put(world, n, likely_size(&random)),
					 0);
		}
	}
	check_all(world);
}

static void statistics_are_exact(void **state)
{
	struct world *world = *state;
	struct pool_class_stats classes[POOL_CLASSES_MAX];
	struct pool_stats stats;
	uint64_t objects = 0, pages = 0, bytes = 0, freeable = 0;
	uint32_t random = 2;
	unsigned int nr;

	for (uint32_t i = 0; i < 3000; i++)
		assert_int_equal(put(world, i, likely_size(&random)), 0);
	for (uint32_t i = 0; i < 3000; i += 3)
		drop(world, i);
	ops->stats(world->pool, &stats);
	assert_int_equal(stats.objects, 2000);
	assert_int_equal(stats.pages, arena_pages(world));
	nr = ops->class_stats(world->pool, classes);
	for (unsigned int i = 0; i < nr; i++) {
		struct pool_class_stats *c = &classes[i];
		uint64_t zspages = 0;

		for (unsigned int group = 0; group < 5; group++)
			zspages += c->zspages[group];
		assert_int_equal(c->zspages[0], 0);
		assert_int_equal(c->pages_used, zspages * c->pages_per_zspage);
		assert_int_equal(c->objects_allocated,
				 zspages * c->objects_per_zspage);
		assert_true(c->objects_used <= c->objects_allocated);
		assert_int_equal(c->pages_freeable,
				 (c->objects_allocated - c->objects_used) /
					 c->objects_per_zspage *
					 c->pages_per_zspage);
		objects += c->objects_used;
		pages += c->pages_used;
		bytes += c->objects_used * c->size;
		freeable += c->pages_freeable;
	}
	assert_int_equal(objects, stats.objects);
	assert_int_equal(pages, stats.pages);
	assert_int_equal(bytes, stats.object_bytes);
	assert_true(freeable > 0);
	/* Compaction gives back at least what was promised. */
	assert_true(ops->compact(world->pool) >= freeable);
	ops->stats(world->pool, &stats);
	assert_int_equal(stats.objects, 2000);
	assert_true(stats.pages_compacted >= freeable);
	assert_int_equal(stats.pages, pages - stats.pages_compacted);
	assert_int_equal(stats.pages, arena_pages(world));
	check_all(world);
}

static void memory_returns_when_all_is_freed(void **state)
{
	struct world *world = *state;
	uint32_t random = 3;

	for (uint32_t i = 0; i < 5000; i++)
		assert_int_equal(put(world, i, likely_size(&random)), 0);
	assert_true(arena_pages(world) > 1000);
	for (uint32_t step = 0; step < 7; step++)
		for (uint32_t i = step; i < 5000; i += 7)
			drop(world, i);
	assert_int_equal(pages_used(world), 0);
	assert_int_equal(arena_pages(world), 0);
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

static int setup_small(void **state)
{
	return world_setup_limited(state, 16 << 20);
}

static void a_full_arena_is_an_answer_and_no_fault(void **state)
{
	struct world *world = *state;
	uint32_t random = 6, n = 0;
	size_t size;
	uint64_t full;
	int err;

	while ((err = put(world, n, size = likely_size(&random))) == 0)
		assert_true(++n < OWNERS);
	assert_int_equal(err, -ENOSPC);
	check_all(world);
	full = pages_used(world);

	/* A refusal changes nothing. */
	for (unsigned int i = 0; i < 64; i++) {
		assert_int_equal(put(world, n, size), -ENOSPC);
		assert_int_equal(pages_used(world), full);
	}

	/* The reserve helps those who have to allocate in order to free. */
	assert_int_equal(put_flags(world, n, 3000, ARENA_RESERVE), 0);
	n++;
	ops->compact(world->pool);
	check_all(world);
	for (uint32_t i = 0; i < n; i += 2)
		drop(world, i);
	ops->compact(world->pool);
	for (uint32_t i = 0; i < n; i += 2)
		assert_int_equal(put(world, i, 500), 0);
	check_all(world);
	drop_all(world);
	assert_int_equal(arena_pages(world), 0);
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

static void the_pool_is_found_by_its_name(void **state)
{
	assert_ptr_equal(pool_by_name("zsmalloc"), &pool_zsmalloc);
	assert_null(pool_by_name("zsmallo"));
	assert_null(pool_by_name(""));
}

#define test(name) \
	cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_pool_is_found_by_its_name),
		cmocka_unit_test(
			every_size_has_the_smallest_class_that_holds_it),
		cmocka_unit_test(classes_waste_little_and_differ),
		test(largest_object_is_cheaper_than_a_page),
		test(handles_are_small_distinct_and_never_zero),
		test(objects_keep_their_bytes_while_others_come_and_go),
		test(statistics_are_exact),
		test(memory_returns_when_all_is_freed),
		test(the_fullest_zspage_is_filled_first),
		cmocka_unit_test_setup_teardown(
			a_full_arena_is_an_answer_and_no_fault, setup_small,
			world_teardown),
		test(at_the_limit_larger_slots_serve_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
