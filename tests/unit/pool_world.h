/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pool_world.h - a pool with owners, for the tests of pools
 *
 * A table of owners plays the store: it knows each object's handle, size and
 * contents, and agrees to moves or refuses them. One world for each test.
 */
#ifndef ZRAMFS_TESTS_POOL_WORLD_H
#define ZRAMFS_TESTS_POOL_WORLD_H

#include <pthread.h>

#include "pool/pool.h"

#define OWNERS 20000

struct owner {
	pthread_mutex_t lock; /* guards the others */
	uint64_t handle;      /* 0: has no object */
	size_t size;
	unsigned char seed;
	bool refuses;
};

struct world {
	const struct pool_ops *ops;
	struct arena *arena;
	struct pool *pool;
	struct owner owner[OWNERS];
	unsigned int held; /* objects between move_begin and move_end */
};

extern const struct pool_owner_ops owner_ops;

/* Which pool worlds have from now on; at first zsmalloc. */
extern const struct pool_ops *world_pool;

/* cmocka fixtures. The limit is that of the arena, in bytes; 0 for none. */
int world_setup_limited(void **state, uint64_t limit);
int world_setup(void **state);
int world_teardown(void **state);

/* 24 bits, the same sequence each time. */
uint32_t next_random(uint32_t *state);

/* Sizes as pages compress to: two humps, and some that do not. */
size_t likely_size(uint32_t *random);

/* Give an owner an object and fill it; as pool->alloc(). */
int put(struct world *world, uint32_t number, size_t size);
int put_flags(struct world *world, uint32_t number, size_t size,
	      unsigned int flags);
void drop(struct world *world, uint32_t number);
void drop_all(struct world *world);

/* Does an owner's object have its bytes? Do all? */
bool intact(struct world *world, uint32_t number);
void check_all(struct world *world);

/* Pages as the arena, and as the pool counts them; sum of objects' sizes. */
uint64_t arena_pages(struct world *world);
uint64_t pages_used(struct world *world);
uint64_t bytes_stored(struct world *world);

/* Claim an owner's object, expecting an answer; claim all, expecting 0. */
void claim(struct world *world, void *map, uint32_t number, int expect);
void claim_all(struct world *world, void *map);

#endif
