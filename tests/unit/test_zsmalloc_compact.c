/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_zsmalloc_compact.c - moving objects, alone and among other threads
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
	assert_int_equal(ops->compact(world->pool), 8 * geometry->pages);
	assert_int_equal(pages_used(world), 2 * geometry->pages);
	assert_int_equal(arena_pages(world), 2 * geometry->pages);
	assert_int_equal(world->held, 0);
	check_all(world);
	assert_int_equal(ops->compact(world->pool), 0);
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
	assert_int_equal(ops->compact(world->pool), 0);
	ops->stats(world->pool, &stats);
	assert_int_equal(stats.objects_moved, 0);

	/* All but one let go: the others are gathered beside that one. */
	held = world->owner[0].handle;
	for (uint32_t i = 1; i < total; i++)
		world->owner[i].refuses = false;
	assert_int_equal(ops->compact(world->pool), 9 * geometry->pages);
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
	assert_true(pages - ops->compact(world->pool) == pages_used(world));
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
		ops->compact(world->pool);
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

	for (unsigned int round = 0; round < 40000; round++) {
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
		ops->compact(world->pool);
		ops->class_stats(world->pool, stats);
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
	ops->stats(world->pool, &stats);
	assert_true(stats.objects_moved > 0);
	assert_int_equal(stats.pages, arena_pages(world));
	assert_int_equal(ops->map_create(world->pool, &map), 0);
	claim_all(world, map);
	assert_int_equal(ops->map_compare(world->pool, map), 0);
	ops->map_destroy(world->pool, map);
	check_all(world);
	drop_all(world);
	assert_int_equal(arena_pages(world), 0);
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
		test(threads_allocate_free_and_compact_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
