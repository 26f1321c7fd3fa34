/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_store.c - what store.h promises
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "store/object.h"
#include "store/store.h"
#include "store/store_private.h"

#define MIB (UINT64_C(1) << 20)

/* Which pool stores have from now on. */
static const struct pool_ops *store_pool_ops = &pool_zsmalloc;
/* And how many pages they compress together. */
static unsigned int store_cluster_pages = 1;

struct world {
	struct arena *arena;
	struct store *store;
};

static struct store_config config_of(uint64_t hot, bool dedup)
{
	return (struct store_config){
		.codec = {&codec_lz4, 1},
		.pool = store_pool_ops,
		.hot = hot,
		.dedup = dedup,
		.compressors = 1,
		.cluster_pages = store_cluster_pages,
	};
}

static void world_make(struct world *world, uint64_t hot, uint64_t limit,
		       bool dedup)
{
	struct arena_config arena = {.capacity = 256 * MIB, .limit = limit};
	struct store_config config = config_of(hot, dedup);

	assert_int_equal(arena_create(&world->arena, &arena), 0);
	assert_int_equal(store_create(&world->store, world->arena, &config), 0);
	assert_int_equal(store_attach_thread(world->store), 0);
}

static void world_end(struct world *world)
{
	store_detach_thread(world->store);
	store_destroy(world->store);
	arena_destroy(world->arena);
}

/* A page that compresses to about half, different for each seed. */
static void make_page(unsigned char *page, uint64_t seed)
{
	uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	unsigned int i;

	for (i = 0; i < PAGE_SIZE; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		page[i] = i % 2 || i < 8 ? (unsigned char)state : 'z';
	}
	memset(page + PAGE_SIZE / 2, 'x', PAGE_SIZE / 4);
}

static void make_noise(unsigned char *page, uint64_t seed)
{
	uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 77;
	unsigned int i;

	for (i = 0; i < PAGE_SIZE; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		page[i] = (unsigned char)(state >> 11);
	}
}

static void expect_page(struct world *world, store_ref ref,
			const unsigned char *page)
{
	unsigned char got[PAGE_SIZE];
	store_cell cell = ref;

	assert_int_equal(store_read(world->store, &cell, got, 0, PAGE_SIZE), 0);
	assert_memory_equal(got, page, PAGE_SIZE);
}

/* Claims the given references and expects the live state to agree. */
static uint64_t check_claims(struct world *world, const store_ref *refs,
			     size_t count)
{
	struct store_map *map;
	struct arena_map *arena_map;
	uint64_t errors = 0, differences = 0;
	size_t i;

	store_pause(world->store);
	assert_int_equal(store_map_create(&map, world->store), 0);
	assert_int_equal(arena_map_create(&arena_map, world->arena), 0);
	for (i = 0; i < count; i++)
		assert_int_equal(store_claim(map, refs[i]), 0);
	assert_int_equal(store_map_finish(map, arena_map, &errors), 0);
	store_map_compare(map, &differences, NULL, NULL);
	differences += arena_map_compare(arena_map, world->arena);
	arena_map_destroy(arena_map);
	store_map_destroy(map);
	store_resume(world->store);
	return errors + differences;
}

static void hole_reads_as_zeros(void **state)
{
	unsigned char zero[PAGE_SIZE] = {0};
	struct world world;

	world_make(&world, MIB, 0, true);
	expect_page(&world, STORE_HOLE, zero);
	store_drop(world.store, STORE_HOLE);
	world_end(&world);
}

static void same_filled_page_of_any_word_costs_no_page(void **state)
{
	static const uint64_t words[] = {
		0,
		1,
		UINT64_MAX,
		UINT64_C(0xabababababababab),
		UINT64_C(0xc0dec0dec0dec0de),
		UINT64_C(0xdeadbeefdeadbeef),
		UINT64_C(0x0123456789abcdef),
		UINT64_C(0x0000000100000001),
		UINT64_C(0xf0000000f0000000),
		UINT64_C(0xefffffffefffffff),
		(UINT64_C(1) << 28) - 1,
		UINT64_C(1) << 28,
		-(UINT64_C(1) << 28),
		-(UINT64_C(1) << 28) - 1,
		UINT64_C(1) << 31,
		UINT64_C(1) << 32,
		UINT64_C(1) << 63,
		UINT64_C(0xc000000000000000),
		UINT64_C(0x7fffffffffffffff),
	};
	enum {
		WORDS = sizeof(words) / sizeof(*words)
	};
	uint64_t page[PAGE_SIZE / 8];
	struct store_stats stats;
	struct world world;
	unsigned char part[11];
	store_ref ref[WORDS];
	unsigned int i, k;

	world_make(&world, MIB, 0, true);
	for (i = 0; i < WORDS; i++) {
		for (k = 0; k < PAGE_SIZE / 8; k++)
			page[k] = words[i];
		assert_int_equal(store_put(world.store, page, 0, &ref[i]), 0);
		assert_int_not_equal(ref[i], STORE_HOLE);
		expect_page(&world, ref[i], (unsigned char *)page);
		store_cell cell = ref[i];

		assert_int_equal(store_read(world.store, &cell, part, 1003, 11),
				 0);
		assert_memory_equal(part, (unsigned char *)page + 1003, 11);
	}
	store_stats(world.store, &stats);
	assert_int_equal(stats.same_pages, WORDS);
	assert_int_equal(stats.stored_pages, 0);
	assert_int_equal(stats.hot_pages, 0);
	assert_int_equal(check_claims(&world, ref, WORDS), 0);
	for (i = 0; i < WORDS; i++)
		store_drop(world.store, ref[i]);
	store_stats(world.store, &stats);
	assert_int_equal(stats.references, 0);
	assert_int_equal(check_claims(&world, NULL, 0), 0);
	world_end(&world);
}

/* This word is in no reference, but one slot serves all that come together. */
static void pages_of_a_long_word_share_a_slot(void **state)
{
	const uint64_t words[] = {UINT64_C(0x0123456789abcdef),
				  UINT64_C(0x123456789abcdef0)};
	store_ref ref[64];
	struct world world;
	unsigned int i;

	world_make(&world, MIB, 0, true);
	for (i = 0; i < 64; i++)
		assert_int_equal(
			store_fill(world.store, words[i / 32], &ref[i]), 0);
	assert_int_equal(ref[0], ref[31]);
	assert_int_not_equal(ref[31], ref[32]);
	assert_int_equal(ref[32], ref[63]);
	assert_int_equal(check_claims(&world, ref, 64), 0);
	for (i = 0; i < 64; i++)
		store_drop(world.store, ref[i]);
	/* It is gone, and may be another word's by now. */
	assert_int_equal(store_fill(world.store, words[0], &ref[0]), 0);
	assert_int_equal(store_fill(world.store, words[1], &ref[1]), 0);
	assert_int_not_equal(ref[0], ref[1]);
	assert_int_equal(check_claims(&world, ref, 2), 0);
	store_drop(world.store, ref[0]);
	store_drop(world.store, ref[1]);
	world_end(&world);
}

static void equal_pages_are_stored_once_hot_or_compressed(void **state)
{
	unsigned char page[PAGE_SIZE];
	struct store_stats stats;
	struct world world;
	store_ref ref[3];

	world_make(&world, MIB, 0, true);
	make_page(page, 1);
	assert_int_equal(store_put(world.store, page, 0, &ref[0]), 0);
	assert_int_equal(store_put(world.store, page, 0, &ref[1]), 0);
	assert_int_equal(store_drain(world.store), 0);
	assert_int_equal(store_put(world.store, page, 0, &ref[2]), 0);
	assert_int_equal(ref[0], ref[1]);
	assert_int_equal(ref[0], ref[2]);
	store_stats(world.store, &stats);
	assert_int_equal(stats.stored_pages, 1);
	assert_int_equal(stats.dedup_pages, 2);
	assert_int_equal(stats.hot_pages, 0);
	assert_int_equal(stats.compressed_pages, 1);
	assert_int_equal(check_claims(&world, ref, 3), 0);
	store_drop(world.store, ref[0]);
	store_drop(world.store, ref[1]);
	expect_page(&world, ref[2], page);
	store_drop(world.store, ref[2]);
	assert_int_equal(check_claims(&world, NULL, 0), 0);
	world_end(&world);
}

static void without_dedup_each_page_is_stored(void **state)
{
	unsigned char page[PAGE_SIZE];
	struct store_stats stats;
	struct world world;
	store_ref ref[2];

	world_make(&world, MIB, 0, false);
	make_page(page, 1);
	assert_int_equal(store_put(world.store, page, 0, &ref[0]), 0);
	assert_int_equal(store_put(world.store, page, 0, &ref[1]), 0);
	assert_int_not_equal(ref[0], ref[1]);
	store_stats(world.store, &stats);
	assert_int_equal(stats.stored_pages, 2);
	assert_int_equal(check_claims(&world, ref, 2), 0);
	store_drop(world.store, ref[0]);
	store_drop(world.store, ref[1]);
	world_end(&world);
}

static void incompressible_page_is_kept_as_it_is(void **state)
{
	unsigned char page[PAGE_SIZE];
	struct store_page_info info;
	struct store_stats stats;
	struct world world;
	store_cell cell;
	store_ref ref;

	world_make(&world, 0, 0, true);
	make_noise(page, 3);
	assert_int_equal(store_put(world.store, page, 0, &ref), 0);
	store_stats(world.store, &stats);
	assert_int_equal(stats.huge_pages, 1);
	assert_int_equal(stats.compr_failed, 1);
	assert_int_equal(stats.compr_data_size, PAGE_SIZE);
	cell = ref;
	store_page_info(world.store, &cell, &info);
	assert_int_equal(info.kind, STORE_KIND_HUGE);
	expect_page(&world, ref, page);
	store_drop(world.store, ref);
	store_stats(world.store, &stats);
	assert_int_equal(stats.huge_pages, 0);
	assert_int_equal(stats.huge_pages_since, 1);
	world_end(&world);
}

static void full_hot_tier_makes_the_writer_compress(void **state)
{
	unsigned char page[PAGE_SIZE];
	struct store_stats stats;
	struct world world;
	store_ref ref[64];
	unsigned int i;

	world_make(&world, 16 * PAGE_SIZE, 0, true);
	for (i = 0; i < 64; i++) {
		make_page(page, i);
		assert_int_equal(store_put(world.store, page, 0, &ref[i]), 0);
		store_stats(world.store, &stats);
		assert_in_range(stats.hot_pages, 0, 16);
	}
	assert_int_equal(stats.hot_pages, 16);
	assert_int_equal(stats.writer_compressions, 48);
	assert_int_equal(check_claims(&world, ref, 64), 0);
	assert_int_equal(store_set_hot(world.store, 0), 0);
	store_stats(world.store, &stats);
	assert_int_equal(stats.hot_pages, 0);
	for (i = 0; i < 64; i++) {
		make_page(page, i);
		expect_page(&world, ref[i], page);
		store_drop(world.store, ref[i]);
	}
	assert_int_equal(check_claims(&world, NULL, 0), 0);
	world_end(&world);
}

static void background_compresses_pages_that_grow_old(void **state)
{
	unsigned char page[PAGE_SIZE];
	struct store_stats stats;
	struct world world;
	store_ref ref[16];
	unsigned int i;

	world_make(&world, MIB, 0, true);
	assert_int_equal(store_start(world.store), 0);
	for (i = 0; i < 16; i++) {
		make_page(page, i);
		assert_int_equal(store_put(world.store, page, 0, &ref[i]), 0);
	}
	for (i = 0; i < 50; i++) {
		store_stats(world.store, &stats);
		if (!stats.hot_pages)
			break;
		usleep(100000);
	}
	assert_int_equal(stats.hot_pages, 0);
	assert_int_equal(stats.background_compressions, 16);
	store_stop(world.store);
	assert_int_equal(check_claims(&world, ref, 16), 0);
	for (i = 0; i < 16; i++)
		store_drop(world.store, ref[i]);
	world_end(&world);
}

static void compact_leaves_alone_what_is_being_read(void **state)
{
	unsigned char page[PAGE_SIZE];
	struct store_stats stats;
	struct object *object;
	struct world world;
	store_ref ref[2];
	uint64_t slot, pages;
	unsigned int i;

	world_make(&world, MIB, 0, true);
	for (i = 0; i < 2; i++) {
		make_page(page, i);
		assert_int_equal(store_put(world.store, page, 0, &ref[i]), 0);
	}
	/* A page that is being read does not move. */
	assert_int_equal(reference_decode(ref[0], &slot), REFERENCE_OBJECT);
	object = store_object(world.store, slot);
	assert_true(object_pin(object));
	assert_int_equal(store_compact(world.store, &pages), 0);
	assert_int_equal(pages, 0);
	store_stats(world.store, &stats);
	assert_int_equal(stats.hot_pages, 1);
	assert_false(object_unpin(object));
	assert_int_equal(store_compact(world.store, &pages), 0);
	store_stats(world.store, &stats);
	assert_int_equal(stats.hot_pages, 0);
	for (i = 0; i < 2; i++)
		store_drop(world.store, ref[i]);
	world_end(&world);
}

static void compact_says_when_there_is_no_memory_to_compress(void **state)
{
	uint32_t taken[4 * ARENA_RESERVE_PAGES];
	unsigned char page[PAGE_SIZE];
	struct store_stats stats;
	struct world world;
	unsigned int i = 0;
	store_ref ref;

	world_make(&world, MIB, 0, true);
	make_page(page, 0);
	assert_int_equal(store_put(world.store, page, 0, &ref), 0);
	/* Nothing is left, not even what is kept for this. */
	arena_set_limit(world.arena, PAGE_SIZE);
	while (!arena_alloc(world.arena, ARENA_HOT, 1, ARENA_RESERVE,
			    &taken[i]))
		assert_in_range(++i, 0, 4 * ARENA_RESERVE_PAGES - 1);
	assert_int_equal(store_compact(world.store, NULL), -ENOSPC);
	/* The bound is as it was. */
	assert_int_equal(store_set_hot(world.store, 0), -ENOSPC);
	assert_int_equal(store_hot_limit(world.store), MIB);
	while (i)
		arena_free(world.arena, ARENA_HOT, taken[--i], 1);
	assert_int_equal(store_compact(world.store, NULL), 0);
	store_stats(world.store, &stats);
	assert_int_equal(stats.hot_pages, 0);
	store_drop(world.store, ref);
	assert_int_equal(check_claims(&world, NULL, 0), 0);
	world_end(&world);
}

struct overwriter {
	struct store *store;
	_Atomic bool stop;
};

static void *overwrite(void *argument)
{
	struct overwriter *writer = argument;
	unsigned char page[PAGE_SIZE];
	store_ref ref[64] = {STORE_HOLE};
	unsigned int i;

	assert_int_equal(store_attach_thread(writer->store), 0);
	for (i = 0; !atomic_load(&writer->stop); i++) {
		make_page(page, 1000 + i);
		store_drop(writer->store, ref[i % 64]);
		assert_int_equal(
			store_put(writer->store, page, 0, &ref[i % 64]), 0);
	}
	for (i = 0; i < 64; i++)
		store_drop(writer->store, ref[i]);
	store_detach_thread(writer->store);
	return NULL;
}

/* What comes while it runs is neither a failure, nor waited for. */
static void drain_succeeds_while_others_write(void **state)
{
	struct overwriter writer = {0};
	struct store_page_info info;
	unsigned char page[PAGE_SIZE];
	struct world world;
	pthread_t thread;
	store_cell cell;
	store_ref ref;
	unsigned int i;

	world_make(&world, MIB, 0, true);
	assert_int_equal(store_start(world.store), 0);
	writer.store = world.store;
	assert_int_equal(pthread_create(&thread, NULL, overwrite, &writer), 0);
	for (i = 0; i < 200; i++) {
		make_page(page, i);
		assert_int_equal(store_put(world.store, page, 0, &ref), 0);
		assert_int_equal(i % 2 ? store_drain(world.store)
				       : store_compact(world.store, NULL),
				 0);
		cell = ref;
		store_page_info(world.store, &cell, &info);
		/* What was compressed with it dies: it may be hot again. */
		if (store_cluster_pages == 1)
			assert_int_equal(info.kind, STORE_KIND_COMPRESSED);
		store_drop(world.store, ref);
		assert_int_equal(
			store_set_hot(world.store, i % 4 ? MIB : MIB / 8), 0);
	}
	atomic_store(&writer.stop, true);
	pthread_join(thread, NULL);
	store_stop(world.store);
	assert_int_equal(check_claims(&world, NULL, 0), 0);
	world_end(&world);
}

/* Three pages of four go, and the housekeeper closes the gaps. */
static void what_many_pages_took_is_given_back(void **state)
{
	enum {
		PAGES = 8192
	};
	unsigned char page[PAGE_SIZE];
	store_ref *ref = calloc(PAGES, sizeof(*ref));
	struct arena_usage usage;
	struct store_stats stats;
	struct world world;
	uint64_t full;
	unsigned int i;

	world_make(&world, 0, 0, true);
	assert_int_equal(store_start(world.store), 0);
	for (i = 0; i < PAGES; i++) {
		make_page(page, i);
		assert_int_equal(store_put(world.store, page, 0, &ref[i]), 0);
	}
	arena_usage(world.arena, &usage);
	full = usage.total;
	for (i = 0; i < PAGES; i++)
		if (i % 4)
			store_drop(world.store, ref[i]);
	for (i = 0; i < 100; i++) {
		store_stats(world.store, &stats);
		arena_usage(world.arena, &usage);
		if (usage.total < full * 3 / 10)
			break;
		usleep(100000);
	}
	assert_in_range(usage.total, stats.compr_data_size, full * 3 / 10);
	assert_true(stats.pool.pages_compacted > 0);
	for (i = 0; i < PAGES; i += 4) {
		make_page(page, i);
		expect_page(&world, ref[i], page);
		store_drop(world.store, ref[i]);
	}
	world_end(&world);
	free(ref);
}

static void damaged_page_is_an_error_and_counted(void **state)
{
	unsigned char page[PAGE_SIZE], got[PAGE_SIZE];
	struct store_stats stats;
	struct world world;
	store_ref ref[2];
	unsigned int i;

	world_make(&world, MIB, 0, true);
	for (i = 0; i < 2; i++) {
		make_page(page, 10 + i);
		assert_int_equal(store_put(world.store, page, 0, &ref[i]), 0);
	}
	for (i = 0; i < 2; i++) {
		/* Hot the first time, compressed the second. */
		struct object *object;
		store_cell cell = ref[0], other = ref[1];

		object =
			(struct object *)((char *)arena_page(world.arena,
							     ARENA_OBJECTS, 0) +
					  (ref[0] >> 1) * 8);
		object->checksum ^= 1;
		assert_int_equal(store_read(world.store, &cell, got, 0, 4096),
				 -EIO);
		assert_int_equal(store_read(world.store, &cell, got, 7, 9),
				 -EIO);
		object->checksum ^= 1;
		assert_int_equal(store_read(world.store, &cell, got, 0, 4096),
				 0);
		assert_int_equal(store_read(world.store, &other, got, 0, 4096),
				 0);
		store_stats(world.store, &stats);
		assert_int_equal(stats.checksum_errors, 2 * (i + 1));
		assert_int_equal(store_drain(world.store), 0);
	}
	store_drop(world.store, ref[0]);
	store_drop(world.store, ref[1]);
	world_end(&world);
}

static void reference_to_nothing_is_an_error(void **state)
{
	unsigned char got[PAGE_SIZE];
	const store_ref bad[] = {8,
				 5,
				 1,
				 UINT32_MAX,
				 reference_to_object(3 * 512),
				 reference_to_object(7)};
	struct world world;
	unsigned int i;

	world_make(&world, MIB, 0, true);
	for (i = 1; i < sizeof(bad) / sizeof(bad[0]); i++) {
		store_cell cell = bad[i];

		assert_int_equal(store_read(world.store, &cell, got, 0, 4096),
				 -EIO);
		store_drop(world.store, bad[i]);
	}
	world_end(&world);
}

static void shared_reference_lives_until_the_last_drop(void **state)
{
	unsigned char page[PAGE_SIZE];
	struct world world;
	store_ref ref[2];
	store_cell cell;

	world_make(&world, MIB, 0, true);
	make_page(page, 5);
	assert_int_equal(store_put(world.store, page, 0, &ref[0]), 0);
	cell = ref[0];
	assert_int_equal(store_share(world.store, &cell, &ref[1]), 0);
	assert_int_equal(check_claims(&world, ref, 2), 0);
	store_drop(world.store, ref[0]);
	expect_page(&world, ref[1], page);
	store_drop(world.store, ref[1]);
	assert_int_equal(check_claims(&world, NULL, 0), 0);
	world_end(&world);
}

/* As many as the count holds, which no test can put one by one. */
static void page_with_all_references_is_stored_again(void **state)
{
	unsigned char page[PAGE_SIZE];
	struct store_stats stats;
	struct object *object;
	struct world world;
	store_cell cell;
	store_ref ref[3], more;
	uint64_t slot;

	world_make(&world, MIB, 0, true);
	make_page(page, 1);
	assert_int_equal(store_put(world.store, page, 0, &ref[0]), 0);
	assert_int_equal(reference_decode(ref[0], &slot), REFERENCE_OBJECT);
	object = store_object(world.store, slot);
	atomic_store(&object->count, UINT32_MAX * OBJECT_REFERENCE);

	cell = ref[0];
	assert_int_equal(store_share(world.store, &cell, &more), -EOVERFLOW);
	assert_int_equal(store_put(world.store, page, 0, &ref[1]), 0);
	assert_int_not_equal(ref[1], ref[0]);
	/* From then on the second is what equal pages are found to be. */
	assert_int_equal(store_put(world.store, page, 0, &ref[2]), 0);
	assert_int_equal(ref[2], ref[1]);
	store_stats(world.store, &stats);
	assert_int_equal(stats.stored_pages, 2);
	expect_page(&world, ref[0], page);
	expect_page(&world, ref[1], page);

	atomic_store(&object->count, OBJECT_REFERENCE);
	assert_int_equal(check_claims(&world, ref, 3), 0);
	for (slot = 0; slot < 3; slot++)
		store_drop(world.store, ref[slot]);
	assert_int_equal(check_claims(&world, NULL, 0), 0);
	world_end(&world);
}

static void at_the_limit_put_fails_and_recovers(void **state)
{
	unsigned char page[PAGE_SIZE];
	struct world world;
	store_ref *ref = calloc(8192, sizeof(*ref));
	unsigned int count = 0, i;
	struct arena_usage usage;

	world_make(&world, 4 * MIB, 8 * MIB, true);
	for (;;) {
		int ret;

		make_noise(page, 1000 + count);
		ret = store_put(world.store, page, 0, &ref[count]);
		if (ret) {
			assert_int_equal(ret, -ENOSPC);
			break;
		}
		assert_true(++count < 8192);
	}
	arena_usage(world.arena, &usage);
	assert_in_range(usage.total, 7 * MIB,
			8 * MIB + ARENA_RESERVE_PAGES * PAGE_SIZE);
	assert_in_range(count, 1600, 2048);
	assert_int_equal(check_claims(&world, ref, count), 0);
	for (i = 0; i < count; i++) {
		make_noise(page, 1000 + i);
		expect_page(&world, ref[i], page);
	}
	for (i = 0; i < 100; i++)
		store_drop(world.store, ref[--count]);
	make_noise(page, 9);
	assert_int_equal(store_put(world.store, page, 0, &ref[count]), 0);
	count++;
	for (i = 0; i < count; i++)
		store_drop(world.store, ref[i]);
	assert_int_equal(check_claims(&world, NULL, 0), 0);
	assert_int_equal(store_compact(world.store, NULL), 0);
	arena_usage(world.arena, &usage);
	assert_in_range(usage.total, 0, MIB / 2);
	free(ref);
	world_end(&world);
}

/* Of every kind, in no order, more than are looked at together. */
static void make_mixture(unsigned char *pages, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		unsigned char *page = pages + (size_t)i * PAGE_SIZE;

		if (i % 5 == 1)
			memset(page, (int)i, PAGE_SIZE);
		else if (i % 7 == 3)
			make_page(page, 2);
		else
			make_page(page, i);
	}
}

static void pages_put_at_once_are_as_if_put_one_by_one(void **state)
{
	enum {
		NR = 45
	};
	unsigned char *pages = malloc((size_t)NR * PAGE_SIZE);
	store_ref ref[NR + 1], alone[NR];
	struct store_stats stats;
	struct world world;
	unsigned int nr, i;

	make_mixture(pages, NR);
	for (nr = 0; nr <= NR; nr++) {
		memset(ref, 0, sizeof(ref));
		world_make(&world, 20 * PAGE_SIZE, 0, true);
		assert_int_equal(store_put_all(world.store, pages, nr, 0, ref),
				 0);
		assert_int_equal(ref[nr], STORE_HOLE);
		store_stats(world.store, &stats);
		assert_int_equal(stats.puts, nr);
		for (i = 0; i < nr; i++) {
			const unsigned char *page =
				pages + (size_t)i * PAGE_SIZE;

			expect_page(&world, ref[i], page);
			assert_int_equal(
				store_put(world.store, page, 0, &alone[i]), 0);
			assert_int_equal(alone[i], ref[i]);
			store_drop(world.store, alone[i]);
		}
		assert_int_equal(check_claims(&world, ref, nr), 0);
		store_drop_all(world.store, ref, nr);
		assert_int_equal(check_claims(&world, NULL, 0), 0);
		world_end(&world);
	}
	free(pages);
}

static void at_the_limit_put_at_once_keeps_those_before(void **state)
{
	enum {
		NR = 4096
	};
	unsigned char *pages = malloc((size_t)NR * PAGE_SIZE);
	store_ref *ref = calloc(NR, sizeof(*ref));
	struct world world;
	unsigned int i, put = 0;

	for (i = 0; i < NR; i++)
		make_noise(pages + (size_t)i * PAGE_SIZE, i);
	world_make(&world, 4 * MIB, 8 * MIB, true);
	assert_int_equal(store_put_all(world.store, pages, NR, 0, ref),
			 -ENOSPC);
	while (put < NR && ref[put] != STORE_HOLE)
		put++;
	assert_in_range(put, 1024, NR - 1);
	for (i = 0; i < put; i++)
		expect_page(&world, ref[i], pages + (size_t)i * PAGE_SIZE);
	for (i = put; i < NR; i++)
		assert_int_equal(ref[i], STORE_HOLE);
	assert_int_equal(check_claims(&world, ref, put), 0);
	store_drop_all(world.store, ref, put);
	world_end(&world);
	free(pages);
	free(ref);
}

static void attach_rebuilds_what_was_derived(void **state)
{
	struct store_config config = config_of(MIB, true);
	unsigned char page[PAGE_SIZE];
	struct store_stats before, after;
	struct arena_map *arena_map;
	struct store_map *map;
	struct world old, new;
	uint64_t errors = 0;
	store_ref ref[100], lost;
	unsigned int i;

	world_make(&old, MIB, 0, true);
	for (i = 0; i < 100; i++) {
		make_page(page, i % 90);
		if (i == 95)
			memset(page, 7, PAGE_SIZE);
		assert_int_equal(store_put(old.store, page, 0, &ref[i]), 0);
		if (i == 50)
			assert_int_equal(store_drain(old.store), 0);
	}
	store_stats(old.store, &before);
	/* One that no cell names: as left by a crash. */
	make_page(page, 5000);
	assert_int_equal(store_put(old.store, page, 0, &lost), 0);

	assert_int_equal(arena_attach(&new.arena, arena_fd(old.arena)), 0);
	assert_int_equal(store_attach(&new.store, new.arena, &config), 0);
	assert_int_equal(store_map_create(&map, new.store), 0);
	assert_int_equal(arena_map_create(&arena_map, new.arena), 0);
	for (i = 0; i < 100; i++)
		assert_int_equal(store_claim(map, ref[i]), 0);
	assert_int_equal(store_map_finish(map, arena_map, &errors), 0);
	assert_int_equal(errors, 0);
	assert_int_equal(arena_settle(new.arena, arena_map), 0);
	assert_int_equal(store_map_settle(map), 0);
	store_map_destroy(map);
	arena_map_destroy(arena_map);

	assert_int_equal(store_attach_thread(new.store), 0);
	store_stats(new.store, &after);
	assert_int_equal(after.stored_pages, before.stored_pages);
	assert_int_equal(after.dedup_pages, before.dedup_pages);
	assert_int_equal(after.hot_pages, before.hot_pages);
	assert_int_equal(after.same_pages, before.same_pages);
	assert_int_equal(after.compr_data_size, before.compr_data_size);
	assert_int_equal(check_claims(&new, ref, 100), 0);
	for (i = 0; i < 100; i++) {
		make_page(page, i % 90);
		if (i == 95)
			memset(page, 7, PAGE_SIZE);
		expect_page(&new, ref[i], page);
		store_drop(new.store, ref[i]);
	}
	assert_int_equal(check_claims(&new, NULL, 0), 0);
	world_end(&new);
	world_end(&old);
}

/* Of all kinds, and of one page several. */
static void many_references_are_dropped_at_once(void **state)
{
	enum {
		COUNT = 1001
	};
	unsigned char page[PAGE_SIZE];
	static store_ref refs[COUNT];
	struct store_stats stats;
	struct world world;
	unsigned int i;

	world_make(&world, MIB, 0, true);
	for (i = 0; i < COUNT; i++) {
		refs[i] = STORE_HOLE;
		if (i % 5 == 1)
			assert_int_equal(store_fill(world.store,
						    i * UINT64_C(0x123456789ab),
						    &refs[i]),
					 0);
		if (i % 5 < 2)
			continue;
		make_page(page, i % 5 == 2 ? 2 : i);
		assert_int_equal(store_put(world.store, page, 0, &refs[i]), 0);
	}
	assert_int_equal(check_claims(&world, refs, COUNT), 0);
	store_drop_all(world.store, refs, 100);
	assert_int_equal(check_claims(&world, refs + 100, COUNT - 100), 0);
	make_page(page, 2);
	expect_page(&world, refs[COUNT - 4], page);
	store_drop_all(world.store, refs + 100, COUNT - 100);
	store_drop_all(world.store, refs, 0);
	store_stats(world.store, &stats);
	assert_int_equal(stats.references, 0);
	assert_int_equal(stats.stored_pages, 0);
	assert_int_equal(stats.hot_pages, 0);
	assert_int_equal(check_claims(&world, NULL, 0), 0);
	world_end(&world);
}

/* --- threads ----------------------------------------------------------- */

struct counting {
	struct store *store;
	pthread_barrier_t *all_attached;
	store_ref refs[100];
	uint64_t seed;
};

static void *put_some(void *argument)
{
	struct counting *counting = argument;
	unsigned char page[PAGE_SIZE];
	unsigned int i;

	assert_int_equal(store_attach_thread(counting->store), 0);
	pthread_barrier_wait(counting->all_attached);
	for (i = 0; i < 100; i++) {
		make_page(page, counting->seed + i);
		assert_int_equal(
			store_put(counting->store, page, 0, &counting->refs[i]),
			0);
	}
	store_drop_all(counting->store, counting->refs, 50);
	store_detach_thread(counting->store);
	return NULL;
}

/* Those that find no set of counters of their own, and those after others. */
static void more_threads_than_counters_count_truly(void **state)
{
	enum {
		MANY = STORE_COUNTER_SETS + 8
	};
	static struct counting counting[MANY];
	pthread_barrier_t all_attached;
	pthread_t thread[MANY];
	struct store_stats stats;
	struct world world;
	unsigned int i, round;

	world_make(&world, 64 * MIB, 0, true);
	pthread_barrier_init(&all_attached, NULL, MANY);
	for (round = 1; round <= 2; round++) {
		for (i = 0; i < MANY; i++) {
			counting[i].store = world.store;
			counting[i].all_attached = &all_attached;
			counting[i].seed = (round * MANY + i) * 1000;
			assert_int_equal(pthread_create(&thread[i], NULL,
							put_some, &counting[i]),
					 0);
		}
		for (i = 0; i < MANY; i++)
			pthread_join(thread[i], NULL);
		store_stats(world.store, &stats);
		assert_int_equal(stats.puts, round * MANY * 100);
		assert_int_equal(stats.stored_pages, MANY * 50);
		assert_int_equal(stats.references, MANY * 50);
		for (i = 0; i < MANY; i++)
			store_drop_all(world.store, counting[i].refs + 50, 50);
	}
	store_stats(world.store, &stats);
	assert_int_equal(stats.references, 0);
	assert_int_equal(check_claims(&world, NULL, 0), 0);
	pthread_barrier_destroy(&all_attached);
	world_end(&world);
}

#define CELLS	512
#define THREADS 4

struct shared {
	struct world world;
	store_cell cell[CELLS];
	_Atomic int failures;
	unsigned int rounds;
};

struct member {
	struct shared *shared;
	unsigned int number;
};

/* A page says which it is, so that a reader can tell whether it is whole. */
static void numbered_page(unsigned char *page, uint32_t number)
{
	switch (number % 8) {
	case 0:
		make_noise(page, number);
		break;
	case 1:
		memset(page, (int)(number >> 3 & 255), PAGE_SIZE);
		return;
	default:
		make_page(page, number);
	}
	memcpy(page, &number, sizeof(number));
}

static bool is_numbered_page(const unsigned char *page)
{
	unsigned char expected[PAGE_SIZE];
	uint32_t number;

	if (page[0] == page[1] && page[0] == page[2] && page[0] == page[4095] &&
	    !memcmp(page, page + 1, PAGE_SIZE - 1))
		return true;
	memcpy(&number, page, sizeof(number));
	numbered_page(expected, number);
	return !memcmp(page, expected, PAGE_SIZE);
}

static void *churn(void *argument)
{
	struct member *member = argument;
	struct shared *shared = member->shared;
	struct store *store = shared->world.store;
	unsigned int seed = member->number + 1, i;
	unsigned char page[PAGE_SIZE];

	if (store_attach_thread(store)) {
		shared->failures++;
		return NULL;
	}
	for (i = 0; i < shared->rounds; i++) {
		store_cell *cell = &shared->cell[rand_r(&seed) % CELLS];
		store_ref ref;

		switch (rand_r(&seed) % 8) {
		case 0:
		case 1:
		case 2: /* overwrite; few numbers, so that many are equal */
			numbered_page(page, rand_r(&seed) % 3000);
			if (store_put(store, page, 0, &ref)) {
				shared->failures++;
				break;
			}
			store_drop(store, atomic_exchange(cell, ref));
			break;
		case 3: /* copy */
			if (store_share(store, cell, &ref))
				shared->failures++;
			else
				store_drop(store,
					   atomic_exchange(
						   &shared->cell[rand_r(&seed) %
								 CELLS],
						   ref));
			break;
		case 4:
			if (!(rand_r(&seed) % 16))
				store_drop(store, atomic_exchange(cell, 0));
			break;
		default:
			if (store_read(store, cell, page, 0, PAGE_SIZE) ||
			    !is_numbered_page(page))
				shared->failures++;
		}
		if (member->number == 0 && i % 2000 == 1999)
			store_compact(store, NULL);
	}
	store_detach_thread(store);
	return NULL;
}

static void threads_put_read_share_and_drop(void **state)
{
	struct shared shared = {.rounds = 15000};
	struct member member[THREADS];
	pthread_t thread[THREADS];
	unsigned int i;

	world_make(&shared.world, 100 * PAGE_SIZE, 0, true);
	assert_int_equal(store_start(shared.world.store), 0);
	for (i = 0; i < THREADS; i++) {
		member[i] = (struct member){&shared, i};
		assert_int_equal(
			pthread_create(&thread[i], NULL, churn, &member[i]), 0);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(shared.failures, 0);
	assert_int_equal(check_claims(&shared.world,
				      (const store_ref *)shared.cell, CELLS),
			 0);
	for (i = 0; i < CELLS; i++)
		store_drop(shared.world.store, shared.cell[i]);
	assert_int_equal(check_claims(&shared.world, NULL, 0), 0);
	world_end(&shared.world);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(hole_reads_as_zeros),
	cmocka_unit_test(same_filled_page_of_any_word_costs_no_page),
	cmocka_unit_test(pages_of_a_long_word_share_a_slot),
	cmocka_unit_test(equal_pages_are_stored_once_hot_or_compressed),
	cmocka_unit_test(without_dedup_each_page_is_stored),
	cmocka_unit_test(incompressible_page_is_kept_as_it_is),
	cmocka_unit_test(full_hot_tier_makes_the_writer_compress),
	cmocka_unit_test(background_compresses_pages_that_grow_old),
	cmocka_unit_test(compact_leaves_alone_what_is_being_read),
	cmocka_unit_test(compact_says_when_there_is_no_memory_to_compress),
	cmocka_unit_test(drain_succeeds_while_others_write),
	cmocka_unit_test(what_many_pages_took_is_given_back),
	cmocka_unit_test(damaged_page_is_an_error_and_counted),
	cmocka_unit_test(reference_to_nothing_is_an_error),
	cmocka_unit_test(shared_reference_lives_until_the_last_drop),
	cmocka_unit_test(page_with_all_references_is_stored_again),
	cmocka_unit_test(pages_put_at_once_are_as_if_put_one_by_one),
	cmocka_unit_test(at_the_limit_put_fails_and_recovers),
	cmocka_unit_test(at_the_limit_put_at_once_keeps_those_before),
	cmocka_unit_test(attach_rebuilds_what_was_derived),
	cmocka_unit_test(many_references_are_dropped_at_once),
	cmocka_unit_test(more_threads_than_counters_count_truly),
	cmocka_unit_test(threads_put_read_share_and_drop),
};

/* What a store promises with any pool: that in which its pool has a part. */
static const struct CMUnitTest pool_tests[] = {
	cmocka_unit_test(equal_pages_are_stored_once_hot_or_compressed),
	cmocka_unit_test(incompressible_page_is_kept_as_it_is),
	cmocka_unit_test(full_hot_tier_makes_the_writer_compress),
	cmocka_unit_test(pages_put_at_once_are_as_if_put_one_by_one),
	cmocka_unit_test(at_the_limit_put_fails_and_recovers),
	cmocka_unit_test(at_the_limit_put_at_once_keeps_those_before),
	cmocka_unit_test(attach_rebuilds_what_was_derived),
	cmocka_unit_test(threads_put_read_share_and_drop),
};

static int run_with_pool(const struct pool_ops *ops, unsigned int cluster_pages)
{
	store_pool_ops = ops;
	store_cluster_pages = cluster_pages;
	return cmocka_run_group_tests_name(ops->name, pool_tests, NULL, NULL);
}

int main(void)
{
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	failed += run_with_pool(&pool_z3fold, 1);
	failed += run_with_pool(&pool_zbud, 1);
	failed += run_with_pool(&pool_z3fold, 8);
	failed += run_with_pool(&pool_zbud, 32);
	store_pool_ops = &pool_zsmalloc;
	store_cluster_pages = 16;
	failed += cmocka_run_group_tests_name("clusters", tests, NULL, NULL);
	return failed;
}
