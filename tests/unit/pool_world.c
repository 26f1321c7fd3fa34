/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pool_world.c - a pool with owners, for the tests of pools
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/pool_world.h"

const struct pool_ops *world_pool = &pool_zsmalloc;

uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* Bytes that differ for each owner, and at each place in the object. */
static unsigned char pattern(uint32_t owner, unsigned char seed, size_t i)
{
	return (owner * 31 + seed * 7 + i * 13 + (i >> 8)) & 0xff;
}

static void fill(struct world *world, uint32_t number)
{
	struct owner *owner = &world->owner[number];
	unsigned char *bytes =
		world->ops->map(world->pool, owner->handle, owner->size);

	for (size_t i = 0; i < owner->size; i++)
		bytes[i] = pattern(number, owner->seed, i);
}

bool intact(struct world *world, uint32_t number)
{
	struct owner *owner = &world->owner[number];
	unsigned char *bytes =
		world->ops->map(world->pool, owner->handle, owner->size);

	for (size_t i = 0; i < owner->size; i++)
		if (bytes[i] != pattern(number, owner->seed, i))
			return false;
	return true;
}

static size_t move_begin(void *context, uint32_t number, uint64_t handle)
{
	struct world *world = context;
	struct owner *owner = &world->owner[number];

	if (pthread_mutex_trylock(&owner->lock) != 0)
		return 0;
	if (owner->refuses || owner->handle != handle) {
		pthread_mutex_unlock(&owner->lock);
		return 0;
	}
	world->held++; /* compaction is one thread at a time */
	return owner->size;
}

static void move_end(void *context, uint32_t number, uint64_t handle)
{
	struct world *world = context;
	struct owner *owner = &world->owner[number];

	owner->handle = handle;
	world->held--;
	pthread_mutex_unlock(&owner->lock);
}

const struct pool_owner_ops owner_ops = {move_begin, move_end};

int world_setup_limited(void **state, uint64_t limit)
{
	struct arena_config config = {.capacity = 1 << 30, .limit = limit};
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	assert_int_equal(arena_create(&world->arena, &config), 0);
	world->ops = world_pool;
	assert_int_equal(world->ops->create(&world->pool, world->arena,
					    &owner_ops, world),
			 0);
	for (size_t i = 0; i < OWNERS; i++)
		pthread_mutex_init(&world->owner[i].lock, NULL);
	*state = world;
	return 0;
}

int world_setup(void **state)
{
	return world_setup_limited(state, 0);
}

int world_teardown(void **state)
{
	struct world *world = *state;

	world->ops->destroy(world->pool);
	arena_destroy(world->arena);
	for (size_t i = 0; i < OWNERS; i++)
		pthread_mutex_destroy(&world->owner[i].lock);
	free(world);
	return 0;
}

int put_flags(struct world *world, uint32_t number, size_t size,
	      unsigned int flags)
{
	struct owner *owner = &world->owner[number];
	int err;

	err = world->ops->alloc(world->pool, size, number, flags,
				&owner->handle);
	if (err) {
		owner->handle = 0;
		return err;
	}
	owner->size = size;
	owner->seed++;
	fill(world, number);
	return 0;
}

int put(struct world *world, uint32_t number, size_t size)
{
	return put_flags(world, number, size, 0);
}

void drop(struct world *world, uint32_t number)
{
	struct owner *owner = &world->owner[number];

	world->ops->free(world->pool, owner->handle, owner->size);
	owner->handle = 0;
}

void check_all(struct world *world)
{
	for (uint32_t i = 0; i < OWNERS; i++)
		if (world->owner[i].handle)
			assert_true(intact(world, i));
}

void drop_all(struct world *world)
{
	for (uint32_t i = 0; i < OWNERS; i++)
		if (world->owner[i].handle)
			drop(world, i);
}

uint64_t arena_pages(struct world *world)
{
	struct arena_usage usage;

	arena_usage(world->arena, &usage);
	return (usage.resident[ARENA_POOL] - usage.dirty) / PAGE_SIZE;
}

uint64_t bytes_stored(struct world *world)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < OWNERS; i++)
		if (world->owner[i].handle)
			sum += world->owner[i].size;
	return sum;
}

uint64_t pages_used(struct world *world)
{
	struct pool_stats stats;

	world->ops->stats(world->pool, &stats);
	return stats.pages;
}

size_t likely_size(uint32_t *random)
{
	unsigned int kind = next_random(random) % 16;

	if (kind == 0)
		return PAGE_SIZE;
	if (kind < 4)
		return 40 + next_random(random) % 600;
	return 700 + next_random(random) % 1200 + next_random(random) % 1200;
}

void claim(struct world *world, void *map, uint32_t number, int expect)
{
	struct owner *owner = &world->owner[number];

	assert_int_equal(world->ops->map_claim(world->pool, map, owner->handle,
					       owner->size, number),
			 expect);
}

void claim_all(struct world *world, void *map)
{
	for (uint32_t i = 0; i < OWNERS; i++)
		if (world->owner[i].handle)
			claim(world, map, i, 0);
}
