/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_pool.c - what pool.h promises, of each pool
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/pool_world.h"

static void the_pool_is_found_by_its_name(void **state)
{
	assert_ptr_equal(pool_by_name(world_pool->name), world_pool);
	assert_null(pool_by_name("zsmallo"));
	assert_null(pool_by_name("zbuddy"));
	assert_null(pool_by_name(""));
}

static void the_largest_object_leaves_room_for_another(void **state)
{
	struct world *world = *state;
	size_t largest = world->ops->largest(world->pool);
	uint32_t n = 0;

	assert_in_range(largest, PAGE_SIZE * 3 / 4, PAGE_SIZE - 1);
	while (n < 64)
		assert_int_equal(put(world, n++, largest), 0);
	while (n < 128)
		assert_int_equal(put(world, n++, 20), 0);
	assert_true(pages_used(world) <= 64);
	check_all(world);

	/* Above it a page is taken, whatever the size. */
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
	assert_int_equal(world->ops->alloc(world->pool, 0, 1, 0, &handle),
			 -EINVAL);
	assert_int_equal(
		world->ops->alloc(world->pool, PAGE_SIZE + 1, 1, 0, &handle),
		-EINVAL);
}

static void objects_of_every_size_keep_their_bytes(void **state)
{
	struct world *world = *state;

	for (uint32_t size = 1; size <= PAGE_SIZE; size++)
		assert_int_equal(put(world, size, size), 0);
	check_all(world);
	world->ops->compact(world->pool, UINT64_MAX);
	check_all(world);
	drop_all(world);
	assert_int_equal(arena_pages(world), 0);
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

/* What is in the rows, as far as it does not depend on the pool. */
static struct pool_class_stats sum_of_rows(struct world *world, uint64_t *bytes)
{
	struct pool_class_stats rows[POOL_CLASSES_MAX], sum = {0};
	unsigned int nr = world->ops->class_stats(world->pool, rows);

	*bytes = 0;
	assert_in_range(nr, 1, POOL_CLASSES_MAX);
	for (unsigned int i = 0; i < nr; i++) {
		struct pool_class_stats *row = &rows[i];
		uint64_t zspages = 0;

		for (unsigned int group = 0; group < 5; group++)
			zspages += row->zspages[group];
		assert_int_equal(row->zspages[0], 0);
		assert_int_equal(row->pages_used,
				 zspages * row->pages_per_zspage);
		assert_int_equal(row->objects_allocated,
				 zspages * row->objects_per_zspage);
		assert_true(row->objects_used <= row->objects_allocated);
		assert_true(row->pages_freeable <= row->pages_used);
		sum.objects_used += row->objects_used;
		sum.pages_used += row->pages_used;
		sum.pages_freeable += row->pages_freeable;
		*bytes += row->objects_used * row->size;
	}
	return sum;
}

static void statistics_are_exact(void **state)
{
	struct world *world = *state;
	struct pool_class_stats rows;
	struct pool_stats stats;
	uint32_t random = 2;
	uint64_t bytes;

	for (uint32_t i = 0; i < 3000; i++)
		assert_int_equal(put(world, i, likely_size(&random)), 0);
	for (uint32_t i = 0; i < 3000; i += 3)
		drop(world, i);
	world->ops->stats(world->pool, &stats);
	rows = sum_of_rows(world, &bytes);
	assert_int_equal(stats.objects, 2000);
	assert_int_equal(stats.pages, arena_pages(world));
	assert_int_equal(rows.objects_used, stats.objects);
	assert_int_equal(rows.pages_used, stats.pages);
	assert_true(stats.object_bytes >= bytes_stored(world));
	assert_true(stats.object_bytes <= bytes);
	assert_true(bytes <= stats.pages * PAGE_SIZE);
	assert_true(rows.pages_freeable > 0);

	/* Compaction gives back at least what was promised. */
	assert_true(world->ops->compact(world->pool, UINT64_MAX) >=
		    rows.pages_freeable);
	world->ops->stats(world->pool, &stats);
	assert_int_equal(stats.objects, 2000);
	assert_true(stats.objects_moved >= rows.pages_freeable);
	assert_true(stats.pages_compacted >= rows.pages_freeable);
	assert_int_equal(stats.pages, rows.pages_used - stats.pages_compacted);
	assert_int_equal(stats.pages, arena_pages(world));
	rows = sum_of_rows(world, &bytes);
	assert_int_equal(rows.objects_used, stats.objects);
	assert_int_equal(rows.pages_used, stats.pages);
	check_all(world);
}

static void memory_returns_when_all_is_freed(void **state)
{
	struct world *world = *state;
	struct pool_stats stats;
	uint32_t random = 3;

	for (uint32_t i = 0; i < 5000; i++)
		assert_int_equal(put(world, i, likely_size(&random)), 0);
	assert_true(arena_pages(world) > 1000);
	for (uint32_t step = 0; step < 7; step++)
		for (uint32_t i = step; i < 5000; i += 7)
			drop(world, i);
	world->ops->stats(world->pool, &stats);
	assert_int_equal(stats.pages, 0);
	assert_int_equal(stats.objects, 0);
	assert_int_equal(stats.object_bytes, 0);
	assert_int_equal(arena_pages(world), 0);
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
		assert_int_equal(put(world, n, PAGE_SIZE), -ENOSPC);
		assert_int_equal(pages_used(world), full);
	}

	/* The reserve helps those who have to allocate in order to free. */
	assert_int_equal(put_flags(world, n, 3000, ARENA_RESERVE), 0);
	n++;
	world->ops->compact(world->pool, UINT64_MAX);
	check_all(world);
	for (uint32_t i = 0; i < n; i += 2)
		drop(world, i);
	world->ops->compact(world->pool, UINT64_MAX);
	for (uint32_t i = 0; i < n; i += 2)
		assert_int_equal(put(world, i, 500), 0);
	check_all(world);
	drop_all(world);
	assert_int_equal(arena_pages(world), 0);
}

/* 4000 objects, of which every fourth is gone. */
static void populate(struct world *world, uint32_t *random)
{
	for (uint32_t i = 0; i < 4000; i++)
		assert_int_equal(put(world, i, likely_size(random)), 0);
	for (uint32_t i = 0; i < 4000; i += 4)
		drop(world, i);
}

static void compaction_moves_only_what_owners_let_go(void **state)
{
	struct world *world = *state;
	struct pool_stats stats;
	uint32_t random = 4;
	uint64_t before, freed;

	populate(world, &random);
	before = pages_used(world);
	for (uint32_t i = 0; i < 4000; i++)
		world->owner[i].refuses = true;
	assert_int_equal(world->ops->compact(world->pool, UINT64_MAX), 0);
	world->ops->stats(world->pool, &stats);
	assert_int_equal(stats.pages_compacted, 0);
	assert_int_equal(pages_used(world), before);

	for (uint32_t i = 0; i < 4000; i++)
		world->owner[i].refuses = i % 2;
	freed = world->ops->compact(world->pool, UINT64_MAX);
	for (uint32_t i = 0; i < 4000; i++)
		world->owner[i].refuses = false;
	freed += world->ops->compact(world->pool, UINT64_MAX);
	assert_true(freed > 0);
	assert_int_equal(pages_used(world), before - freed);
	assert_int_equal(arena_pages(world), before - freed);
	assert_int_equal(world->held, 0);
	check_all(world);
}

/* A zspage more than enough, or one of each class on the way. */
#define LITTLE_MORE 64

static void compaction_stops_when_it_is_enough(void **state)
{
	struct world *world = *state;
	uint32_t random = 4;
	uint64_t before, freed, some = 0;

	populate(world, &random);
	before = pages_used(world);
	for (unsigned int i = 0; i < 5; i++) {
		freed = world->ops->compact(world->pool, 8);
		assert_in_range(freed, 8, 8 + LITTLE_MORE);
		some += freed;
	}
	assert_int_equal(pages_used(world), before - some);
	freed = world->ops->compact(world->pool, UINT64_MAX);
	assert_true(freed > 8);
	assert_int_equal(pages_used(world), before - some - freed);
	check_all(world);
}

#define CHURNERS     2
#define CHURN_OWNERS 1000

struct churner {
	struct world *world;
	pthread_t thread;
	uint32_t first;
	unsigned int broken;
};

static _Atomic bool churning;

static void *churn(void *context)
{
	struct churner *churner = context;
	struct world *world = churner->world;
	uint32_t random = churner->first;

	for (unsigned int round = 0; round < 20000; round++) {
		uint32_t n =
			churner->first + next_random(&random) % CHURN_OWNERS;
		struct owner *owner = &world->owner[n];

		pthread_mutex_lock(&owner->lock);
		if (!owner->handle) {
			if (put(world, n, likely_size(&random)) != 0)
				churner->broken++;
		} else {
			if (!intact(world, n))
				churner->broken++;
			if (next_random(&random) % 2)
				drop(world, n);
		}
		pthread_mutex_unlock(&owner->lock);
	}
	return NULL;
}

static void *compact_on_and_on(void *context)
{
	struct world *world = context;
	struct pool_class_stats stats[POOL_CLASSES_MAX];

	while (atomic_load_explicit(&churning, memory_order_relaxed)) {
		world->ops->compact(world->pool, UINT64_MAX);
		world->ops->class_stats(world->pool, stats);
	}
	return NULL;
}

static void threads_allocate_free_and_compact_together(void **state)
{
	struct world *world = *state;
	struct churner churner[CHURNERS];
	struct pool_stats stats;
	pthread_t compactor;
	void *map;

	atomic_store_explicit(&churning, true, memory_order_relaxed);
	assert_int_equal(
		pthread_create(&compactor, NULL, compact_on_and_on, world), 0);
	for (unsigned int i = 0; i < CHURNERS; i++) {
		churner[i] = (struct churner){.world = world,
					      .first = i * CHURN_OWNERS};
		assert_int_equal(pthread_create(&churner[i].thread, NULL, churn,
						&churner[i]),
				 0);
	}
	for (unsigned int i = 0; i < CHURNERS; i++)
		pthread_join(churner[i].thread, NULL);
	atomic_store_explicit(&churning, false, memory_order_relaxed);
	pthread_join(compactor, NULL);
	for (unsigned int i = 0; i < CHURNERS; i++)
		assert_int_equal(churner[i].broken, 0);
	world->ops->stats(world->pool, &stats);
	assert_true(stats.objects_moved > 0);
	assert_int_equal(stats.pages, arena_pages(world));
	assert_int_equal(world->ops->map_create(world->pool, &map), 0);
	claim_all(world, map);
	assert_int_equal(world->ops->map_compare(world->pool, map), 0);
	world->ops->map_destroy(world->pool, map);
	check_all(world);
	drop_all(world);
	assert_int_equal(arena_pages(world), 0);
}

static void false_claims_are_refused(void **state)
{
	struct world *world = *state;
	const struct pool_ops *ops = world->ops;
	struct pool *pool = world->pool;
	struct owner *owner = &world->owner[2];
	uint32_t random = 7;
	void *map;

	populate(world, &random);
	assert_int_equal(put(world, 9999, PAGE_SIZE), 0);
	assert_int_equal(ops->map_create(pool, &map), 0);
	claim(world, map, 1, 0);
	claim(world, map, 1, -EEXIST);
	claim(world, map, 9999, 0);
	claim(world, map, 9999, -EEXIST);
	assert_int_equal(
		ops->map_claim(pool, map, owner->handle, owner->size, 3),
		-EINVAL);
	assert_int_equal(ops->map_claim(pool, map, owner->handle, 4097, 2),
			 -ERANGE);
	assert_int_equal(ops->map_claim(pool, map, owner->handle, 0, 2),
			 -ERANGE);
	assert_int_equal(ops->map_claim(pool, map, 0, 10, 2), -ERANGE);
	assert_int_equal(ops->map_claim(pool, map,
					(UINT64_C(1) << POOL_HANDLE_BITS) - 1,
					10, 2),
			 -ERANGE);
	/* Refused claims leave no trace. */
	claim(world, map, 2, 0);
	ops->map_destroy(pool, map);
}

static void comparing_counts_the_objects_that_differ(void **state)
{
	struct world *world = *state;
	uint32_t random = 8;
	void *map;

	populate(world, &random);
	assert_int_equal(put(world, 9999, PAGE_SIZE), 0);
	assert_int_equal(world->ops->map_create(world->pool, &map), 0);
	claim_all(world, map);
	assert_int_equal(world->ops->map_compare(world->pool, map), 0);
	/* Claimed, and gone. */
	for (uint32_t i = 1; i <= 5; i++)
		drop(world, 4 * i + 1);
	assert_int_equal(world->ops->map_compare(world->pool, map), 5);
	world->ops->map_destroy(world->pool, map);

	assert_int_equal(world->ops->map_create(world->pool, &map), 0);
	claim_all(world, map);
	/* There, and not claimed. */
	assert_int_equal(put(world, 15000, PAGE_SIZE), 0);
	assert_int_equal(put(world, 15001, 30), 0);
	assert_int_equal(world->ops->map_compare(world->pool, map), 2);
	world->ops->map_destroy(world->pool, map);
}

/* As a new worker does with what one that died has left behind. */
static void take_over(struct world *world)
{
	struct arena *old_arena = world->arena;
	struct pool *old_pool = world->pool;
	struct arena_map *arena_map;
	void *map;

	assert_int_equal(arena_attach(&world->arena, arena_fd(old_arena)), 0);
	assert_int_equal(world->ops->create(&world->pool, world->arena,
					    &owner_ops, world),
			 0);
	assert_int_equal(arena_map_create(&arena_map, world->arena), 0);
	assert_int_equal(world->ops->map_create(world->pool, &map), 0);
	claim_all(world, map);
	assert_int_equal(world->ops->map_finish(world->pool, map, arena_map),
			 0);
	assert_int_equal(arena_settle(world->arena, arena_map), 0);
	assert_int_equal(world->ops->map_settle(world->pool, map), 0);
	assert_int_equal(world->ops->map_compare(world->pool, map), 0);
	assert_int_equal(arena_map_compare(arena_map, world->arena), 0);
	world->ops->map_destroy(world->pool, map);
	arena_map_destroy(arena_map);
	world->ops->destroy(old_pool);
	arena_destroy(old_arena);
}

static void a_pool_is_rebuilt_from_claims(void **state)
{
	struct world *world = *state;
	struct pool_stats before, after;
	uint32_t random = 9;

	populate(world, &random);
	assert_int_equal(put(world, 9999, PAGE_SIZE), 0);
	world->ops->stats(world->pool, &before);
	take_over(world);
	world->ops->stats(world->pool, &after);
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
	world->ops->compact(world->pool, UINT64_MAX);
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
	world->ops->stats(world->pool, &stats);
	assert_int_equal(stats.objects, 75);
	assert_int_equal(stats.pages, arena_pages(world));
	check_all(world);
	drop_all(world);
	assert_int_equal(pages_used(world), 0);
	assert_int_equal(arena_pages(world), 0);
}

#define test(name) \
	cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(the_pool_is_found_by_its_name),
	test(the_largest_object_leaves_room_for_another),
	test(handles_are_small_distinct_and_never_zero),
	test(objects_of_every_size_keep_their_bytes),
	test(objects_keep_their_bytes_while_others_come_and_go),
	test(statistics_are_exact),
	test(memory_returns_when_all_is_freed),
	cmocka_unit_test_setup_teardown(a_full_arena_is_an_answer_and_no_fault,
					setup_small, world_teardown),
	test(compaction_moves_only_what_owners_let_go),
	test(compaction_stops_when_it_is_enough),
	test(threads_allocate_free_and_compact_together),
	test(false_claims_are_refused),
	test(comparing_counts_the_objects_that_differ),
	test(a_pool_is_rebuilt_from_claims),
	test(what_nobody_claims_is_given_back),
};

int main(void)
{
	static const struct pool_ops *const pools[] = {
		&pool_zsmalloc, &pool_z3fold, &pool_zbud};
	int failed = 0;

	for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++) {
		world_pool = pools[i];
		failed += cmocka_run_group_tests_name(world_pool->name, tests,
						      NULL, NULL);
	}
	return failed;
}
