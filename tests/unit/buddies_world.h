/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buddies_world.h - what the tests of zbud and z3fold share
 *
 * Sizes are given in chunks: the largest object that takes so many.
 */
#ifndef ZRAMFS_TESTS_BUDDIES_WORLD_H
#define ZRAMFS_TESTS_BUDDIES_WORLD_H

#include "pool/buddies.h"
#include "tests/unit/pool_world.h"

static inline size_t of_chunks(unsigned int chunks)
{
	return chunks * CHUNK_SIZE - BUDDY_OWNER;
}

static inline void put_chunks(struct world *world, uint32_t number,
			      unsigned int chunks)
{
	assert_int_equal(buddy_chunks(of_chunks(chunks)), chunks);
	assert_int_equal(put(world, number, of_chunks(chunks)), 0);
}

static inline uint64_t page_of(struct world *world, uint32_t number)
{
	return buddy_handle_page(world->owner[number].handle);
}

static inline unsigned int start_of(struct world *world, uint32_t number)
{
	return buddy_handle_start(world->owner[number].handle);
}

static inline uint64_t pages_freeable(struct world *world)
{
	struct pool_class_stats rows[POOL_CLASSES_MAX];
	unsigned int nr = world->ops->class_stats(world->pool, rows);
	uint64_t sum = 0;

	for (unsigned int i = 0; i < nr; i++)
		sum += rows[i].pages_freeable;
	return sum;
}

/* Three pages, each with one object of 10 chunks: of 0, 2 and 4. */
static inline void leave_three(struct world *world)
{
	for (uint32_t i = 0; i < 6; i += 2) {
		put_chunks(world, i, 10);
		put_chunks(world, i + 1, 54);
	}
	for (uint32_t i = 0; i < 6; i += 2)
		drop(world, i + 1);
	assert_int_equal(pages_used(world), 3);
}

#endif
