/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_cluster.c - pages compressed together: what they save, what becomes of
 * them when some die, and that nothing is lost when the program does
 *
 * What a store promises with clusters as without is in test_store.c. The last
 * part is for builds with FAULTS=1.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fault.h"
#include "store/store_private.h"

#define MIB   (UINT64_C(1) << 20)
#define PAGES 256

struct world {
	struct arena *arena;
	struct store *store;
	/* What a file's table is to the filesystem; survives a fork. */
	store_cell *cell;
};

static unsigned int pages_together = 16;
static const struct codec_ops *codec = &codec_zstd;

static struct store_config config(void)
{
	return (struct store_config){
		.codec = {codec, codec->level_default},
		.pool = &pool_zsmalloc,
		.hot = 8 * MIB,
		.dedup = true,
		.compressors = 1,
		.cluster_pages = pages_together,
	};
}

static void world_make(struct world *world, uint64_t limit)
{
	struct arena_config arena = {.capacity = 256 * MIB, .limit = limit};
	struct store_config store = config();

	assert_int_equal(arena_create(&world->arena, &arena), 0);
	assert_int_equal(store_create(&world->store, world->arena, &store), 0);
	assert_int_equal(store_attach_thread(world->store), 0);
	world->cell =
		mmap(NULL, PAGES * sizeof(store_cell), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(world->cell, MAP_FAILED);
}

static void leave(struct world *world)
{
	store_detach_thread(world->store);
	store_destroy(world->store);
	arena_destroy(world->arena);
}

/* A source line differs from the one before it in a few places. */
static void make_page(char *page, unsigned int seed)
{
	static const char *const words[] = {
		"struct", "object", "page",	"return", "store",
		"static", "frame",  "location", "handle", "cluster",
	};
	unsigned int state = seed * 2654435761u + 1, at = 0, i;

	memset(page, 0, PAGE_SIZE);
	for (i = 0; at < PAGE_SIZE - 64; i++) {
		state = state * 1103515245u + 12345;
		at += (unsigned int)snprintf(
			page + at, 64, "\t%s_%x(%s, %u);\n",
			words[state >> 16 & 7], state >> 20,
			words[(state >> 24) % 10], seed + i);
	}
}

static void make_noise(char *page, unsigned int seed)
{
	unsigned int i;

	for (i = 0; i < PAGE_SIZE; i++)
		page[i] = (char)rand_r(&seed);
}

static void put(struct world *world, unsigned int i, const char *page)
{
	store_ref ref;

	assert_int_equal(store_put(world->store, page, 0, &ref), 0);
	world->cell[i] = ref;
}

/* As the filesystem does it: the cell first. */
static void drop(struct world *world, unsigned int i)
{
	store_drop(world->store, atomic_exchange(&world->cell[i], STORE_HOLE));
}

static void fill(struct world *world)
{
	char page[PAGE_SIZE];
	unsigned int i;

	for (i = 0; i < PAGES; i++) {
		make_page(page, i);
		put(world, i, page);
	}
}

/* A world whose pages are all compressed. */
static void make_cold(struct world *world)
{
	world_make(world, 0);
	fill(world);
	assert_int_equal(store_drain(world->store), 0);
}

/* All cells that are not empty have the page that fill() put there. */
static void expect_pages(struct world *world)
{
	char page[PAGE_SIZE], got[PAGE_SIZE];
	unsigned int i;

	for (i = 0; i < PAGES; i++) {
		if (world->cell[i] == STORE_HOLE)
			continue;
		make_page(page, i);
		assert_int_equal(store_read(world->store, &world->cell[i], got,
					    0, PAGE_SIZE),
				 0);
		assert_memory_equal(got, page, PAGE_SIZE);
	}
}

static void print_line(void *context, const char *line)
{
	print_message("# %s\n", line);
}

static void claim(struct world *world, struct store_map *map,
		  struct arena_map *arena_map)
{
	uint64_t errors = 0;
	unsigned int i;

	for (i = 0; i < PAGES; i++)
		assert_int_equal(store_claim(map, world->cell[i]), 0);
	assert_int_equal(store_map_finish(map, arena_map, &errors), 0);
	assert_int_equal(errors, 0);
}

/* What is wrong with the claimed objects. */
static uint64_t errors_in(struct world *world)
{
	struct arena_map *arena_map;
	struct store_map *map;
	uint64_t errors = 0;
	unsigned int i;

	store_pause(world->store);
	assert_int_equal(store_map_create(&map, world->store), 0);
	assert_int_equal(arena_map_create(&arena_map, world->arena), 0);
	for (i = 0; i < PAGES; i++)
		assert_int_equal(store_claim(map, world->cell[i]), 0);
	assert_int_equal(store_map_finish(map, arena_map, &errors), 0);
	arena_map_destroy(arena_map);
	store_map_destroy(map);
	store_resume(world->store);
	return errors;
}

static void expect_clean(struct world *world)
{
	struct arena_map *arena_map;
	struct store_map *map;
	uint64_t differences = 0;

	store_pause(world->store);
	assert_int_equal(store_map_create(&map, world->store), 0);
	assert_int_equal(arena_map_create(&arena_map, world->arena), 0);
	claim(world, map, arena_map);
	store_map_compare(map, &differences, print_line, NULL);
	differences += arena_map_compare(arena_map, world->arena);
	assert_int_equal(differences, 0);
	arena_map_destroy(arena_map);
	store_map_destroy(map);
	store_resume(world->store);
}

static void world_end(struct world *world)
{
	unsigned int i;

	for (i = 0; i < PAGES; i++)
		drop(world, i);
	expect_clean(world);
	munmap(world->cell, PAGES * sizeof(store_cell));
	leave(world);
}

static struct store_stats stats_of(struct world *world)
{
	struct store_stats stats;

	store_stats(world->store, &stats);
	return stats;
}

/* --- what it is for ------------------------------------------------------ */

static void together_pages_take_less(void **state)
{
	uint64_t alone = 0;

	for (pages_together = 1; pages_together <= 16; pages_together *= 2) {
		struct store_stats stats;
		struct world world;

		make_cold(&world);
		stats = stats_of(&world);
		assert_int_equal(stats.hot_pages, 0);
		assert_int_equal(stats.compressed_pages, PAGES);
		assert_int_equal(stats.clusters,
				 pages_together > 1 ? PAGES / pages_together
						    : 0);
		if (pages_together == 1)
			alone = stats.compr_data_size;
		else
			assert_in_range(stats.compr_data_size, 1, alone - 1);
		alone = stats.compr_data_size;
		expect_pages(&world);
		expect_clean(&world);
		world_end(&world);
	}
	pages_together = 16;
}

static void each_codec_takes_pages_together(void **state)
{
	for (unsigned int id = CODEC_NONE + 1; id < CODEC_COUNT; id++) {
		struct world world;

		codec = codec_by_id(id);
		make_cold(&world);
		assert_int_equal(stats_of(&world).clusters, PAGES / 16);
		expect_pages(&world);
		world_end(&world);
	}
	codec = &codec_zstd;
}

static void a_full_tier_makes_the_writer_compress_together(void **state)
{
	struct store_stats stats;
	struct world world;

	world_make(&world, 0);
	assert_int_equal(store_set_hot(world.store, 64 * PAGE_SIZE), 0);
	fill(&world);
	stats = stats_of(&world);
	assert_int_equal(stats.compressed_pages, PAGES - stats.hot_pages);
	assert_int_equal(stats.clusters * 16, stats.compressed_pages);
	assert_in_range(stats.clusters, (PAGES - 64) / 16, PAGES / 16);
	expect_pages(&world);
	world_end(&world);
}

static void what_does_not_compress_is_kept_page_by_page(void **state)
{
	struct store_stats stats;
	char page[PAGE_SIZE];
	struct world world;
	unsigned int i;

	world_make(&world, 0);
	for (i = 0; i < PAGES; i++) {
		make_noise(page, i);
		put(&world, i, page);
	}
	assert_int_equal(store_drain(world.store), 0);
	stats = stats_of(&world);
	assert_int_equal(stats.clusters, 0);
	assert_int_equal(stats.huge_pages, PAGES);
	expect_clean(&world);
	world_end(&world);
}

/* Whatever came of what it did there: it lies idle. */
static void a_thread_that_rests_gives_its_room_back(void **state)
{
	unsigned char resident[2 * 16];
	struct cluster_room *room;
	char page[PAGE_SIZE];
	struct world world;
	unsigned int i;

	world_make(&world, 0);
	for (i = 0; i < PAGES; i++) {
		make_noise(page, i);
		put(&world, i, page);
	}
	room = &store_thread(world.store)->room;
	assert_int_equal(compress_hot(world.store, store_thread(world.store), 1,
				      INT32_MIN, NULL),
			 16);
	store_rest_thread(world.store);
	assert_int_equal(mincore(room->pages, room->bytes, resident), 0);
	for (i = 0; i < room->bytes / PAGE_SIZE; i++)
		assert_int_equal(resident[i] & 1, 0);
	world_end(&world);
}

static void du_divides_a_cluster_among_its_pages(void **state)
{
	struct store_page_info info;
	struct store_stats stats;
	uint64_t sum = 0;
	struct world world;
	unsigned int i;

	make_cold(&world);
	for (i = 0; i < PAGES; i++) {
		store_page_info(world.store, &world.cell[i], &info);
		assert_int_equal(info.kind, STORE_KIND_COMPRESSED);
		assert_int_equal(info.codec, CODEC_ZSTD);
		assert_int_equal(info.references, 1);
		sum += info.length;
	}
	stats = stats_of(&world);
	assert_in_range(sum, stats.compr_data_size - PAGES,
			stats.compr_data_size);
	world_end(&world);
}

static void an_equal_page_is_found_in_a_cluster(void **state)
{
	char page[PAGE_SIZE];
	struct world world;
	store_ref ref;

	make_cold(&world);
	make_page(page, 100);
	assert_int_equal(store_put(world.store, page, 0, &ref), 0);
	assert_int_equal(ref, world.cell[100]);
	drop(&world, 100);
	world.cell[100] = ref;
	expect_pages(&world);
	world_end(&world);
}

/* --- when members die ---------------------------------------------------- */

static void the_last_member_frees_its_cluster(void **state)
{
	struct store_stats stats;
	struct world world;
	unsigned int i;

	make_cold(&world);
	for (i = 0; i < PAGES; i++)
		drop(&world, i);
	stats = stats_of(&world);
	assert_int_equal(stats.clusters, 0);
	assert_int_equal(stats.compressed_pages, 0);
	assert_int_equal(stats.compr_data_size, 0);
	assert_int_equal(stats.pool.objects, 0);
	world_end(&world);
}

static void a_sparse_cluster_is_repacked(void **state)
{
	struct store_stats before, after;
	struct world world;
	unsigned int i;

	make_cold(&world);
	before = stats_of(&world);
	for (i = 0; i < PAGES; i++)
		if (i % 4)
			drop(&world, i);
	/* A third of them were enough to be listed, and none was freed. */
	assert_int_equal(stats_of(&world).clusters, before.clusters);
	assert_int_equal(repack_sparse(world.store, store_thread(world.store),
				       UINT32_MAX),
			 before.clusters);
	after = stats_of(&world);
	assert_int_equal(after.clusters, 0);
	assert_int_equal(after.compr_data_size, 0);
	assert_int_equal(after.hot_pages, PAGES / 4);
	expect_clean(&world);
	expect_pages(&world);
	assert_int_equal(store_drain(world.store), 0);
	after = stats_of(&world);
	assert_int_equal(after.clusters, before.clusters / 4);
	assert_in_range(after.compr_data_size, 1, before.compr_data_size / 3);
	expect_pages(&world);
	world_end(&world);
}

static void one_that_has_lost_less_is_left_alone(void **state)
{
	struct world world;
	unsigned int i;

	make_cold(&world);
	for (i = 0; i < PAGES; i++)
		if (i % 16 < 5)
			drop(&world, i);
	assert_int_equal(repack_sparse(world.store, store_thread(world.store),
				       UINT32_MAX),
			 0);
	expect_pages(&world);
	expect_clean(&world);
	world_end(&world);
}

static void without_a_hot_tier_it_is_repacked_page_by_page(void **state)
{
	struct store_stats stats;
	struct world world;
	unsigned int i;

	make_cold(&world);
	assert_int_equal(store_set_hot(world.store, 0), 0);
	for (i = 0; i < PAGES; i++)
		if (i % 3)
			drop(&world, i);
	repack_sparse(world.store, store_thread(world.store), UINT32_MAX);
	stats = stats_of(&world);
	assert_int_equal(stats.clusters, 0);
	assert_int_equal(stats.hot_pages, 0);
	assert_int_equal(stats.compressed_pages, (PAGES + 2) / 3);
	expect_pages(&world);
	expect_clean(&world);
	world_end(&world);
}

static void the_background_repacks(void **state)
{
	struct world world;
	unsigned int i;

	make_cold(&world);
	assert_int_equal(store_start(world.store), 0);
	for (i = 0; i < PAGES; i++)
		if (i % 16)
			drop(&world, i);
	for (i = 0; i < 200 && stats_of(&world).clusters > 1; i++)
		usleep(100000);
	assert_in_range(stats_of(&world).clusters, 0, 1);
	expect_pages(&world);
	world_end(&world);
}

static void chunks_are_moved_by_compaction(void **state)
{
	struct store_stats stats;
	struct world world;
	uint64_t freed;
	unsigned int i;

	/* Small clusters: so that chunks are of many sizes. */
	pages_together = 2;
	make_cold(&world);
	for (i = 0; i < PAGES; i += 2)
		if (i % 16) {
			drop(&world, i);
			drop(&world, i + 1);
		}
	assert_int_equal(stats_of(&world).clusters, PAGES / 16);
	assert_int_equal(store_compact(world.store, &freed), 0);
	stats = stats_of(&world);
	assert_true(freed > 0);
	assert_true(stats.pool.objects_moved > 0);
	expect_pages(&world);
	expect_clean(&world);
	world_end(&world);
	pages_together = 16;
}

/* --- when memory is short ------------------------------------------------ */

static void at_the_limit_pages_are_kept_and_read(void **state)
{
	struct arena_usage usage;
	struct world world;
	char page[PAGE_SIZE];
	unsigned int i, kept = 0;
	store_ref ref;

	world_make(&world, 0);
	arena_usage(world.arena, &usage);
	arena_set_limit(world.arena, usage.total + 40 * PAGE_SIZE);
	for (i = 0; i < PAGES; i++) {
		make_page(page, i);
		if (store_put(world.store, page, 0, &ref))
			break;
		world.cell[i] = ref;
		kept++;
	}
	assert_in_range(kept, 80, PAGES);
	expect_pages(&world);
	expect_clean(&world);
	world_end(&world);
}

/* And when there is memory again, they are. */
static void what_could_not_be_repacked_stays_listed(void **state)
{
	uint32_t taken[PAGES];
	unsigned int i, nr = 0;
	struct world world;

	make_cold(&world);
	for (i = 0; i < PAGES; i++)
		if (i % 16 < 6)
			drop(&world, i);
	arena_set_limit(world.arena, PAGE_SIZE);
	while (nr < PAGES && !arena_alloc(world.arena, ARENA_POOL, 1,
					  ARENA_RESERVE, &taken[nr]))
		nr++;
	for (i = 0; i < PAGES; i++)
		repack_sparse(world.store, store_thread(world.store), 1);
	assert_int_not_equal(stats_of(&world).clusters, 0);
	expect_pages(&world);
	while (nr)
		arena_free(world.arena, ARENA_POOL, taken[--nr], 1);
	expect_clean(&world);
	arena_set_limit(world.arena, 128 * MIB);
	repack_sparse(world.store, store_thread(world.store), UINT32_MAX);
	assert_int_equal(stats_of(&world).clusters, 0);
	expect_pages(&world);
	world_end(&world);
}

/* --- damage -------------------------------------------------------------- */

/* One bit of the compressed bytes: its pages are right, or an error. */
static void expect_damage_is_told(struct world *world, struct cluster *cluster)
{
	struct location at = location_unpack(cluster->chunk[0]);
	unsigned char *bytes = world->store->pool_ops->map(
		world->store->pool, at.handle, at.length);
	char page[PAGE_SIZE], got[PAGE_SIZE];
	unsigned int i, errors = 0;

	bytes[at.length / 2] ^= 0x10;
	store_thread(world->store)->room.serial = 0;
	for (i = 0; i < 16; i++) {
		make_page(page, i);
		if (store_read(world->store, &world->cell[i], got, 0,
			       PAGE_SIZE))
			errors++;
		else
			assert_memory_equal(got, page, PAGE_SIZE);
	}
	assert_in_range(errors, 1, 16);
	bytes[at.length / 2] ^= 0x10;
	store_thread(world->store)->room.serial = 0;
}

static void a_damaged_cluster_is_an_error(void **state)
{
	struct world world;
	char got[PAGE_SIZE];
	struct object *object;
	uint64_t word;
	uint32_t block;

	make_cold(&world);
	object = store_object(world.store, world.cell[3] >> 1);
	word = object->location;
	block = (uint32_t)location_unpack(word).handle;
	const uint64_t wrong[] = {
		location_pack(OBJECT_MEMBER, CODEC_ZSTD, 3, 0),
		location_pack(OBJECT_MEMBER, CODEC_ZSTD, 3, block + 1),
		location_pack(OBJECT_MEMBER, CODEC_ZSTD, 16, block),
		location_pack(OBJECT_MEMBER, CODEC_ZSTD, 4, block),
		location_pack(OBJECT_MEMBER, CODEC_ZSTD, 3, UINT32_MAX),
		location_pack(OBJECT_MEMBER, CODEC_ZSTD, 3, UINT64_C(1) << 40),
		location_pack(OBJECT_CLUSTER, CODEC_ZSTD, 3, block),
	};
	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		object->location = wrong[i];
		assert_int_equal(store_read(world.store, &world.cell[3], got, 0,
					    PAGE_SIZE),
				 -EIO);
	}
	object->location = word;
	expect_pages(&world);
	expect_damage_is_told(&world, cluster_at(world.store, block));
	expect_pages(&world);
	world_end(&world);
}

/* It has no length to tell, and no other page goes with it. */
static void a_member_of_no_cluster_can_be_asked_for_and_dropped(void **state)
{
	struct store_page_info info;
	struct object *object;
	struct world world;
	struct cluster *cluster;
	uint64_t block;

	make_cold(&world);
	object = store_object(world.store, world.cell[0] >> 1);
	block = location_unpack(object->location).handle;
	cluster = cluster_at(world.store, (uint32_t)block);
	/* The last one's lower half is a cluster's number. */
	const uint64_t wrong[] = {0, UINT32_MAX, UINT64_C(1) << 32 | block};

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		object = store_object(world.store, world.cell[i] >> 1);
		object->location =
			location_pack(OBJECT_MEMBER, CODEC_ZSTD, i, wrong[i]);
		store_page_info(world.store, &world.cell[i], &info);
		assert_int_equal(info.length, 0);
		drop(&world, i);
	}
	assert_int_equal(object_references(cluster->object.count), 16);
	expect_pages(&world);
	munmap(world.cell, PAGES * sizeof(store_cell));
	leave(&world);
}

static void the_check_finds_a_damaged_record(void **state)
{
	struct cluster *cluster;
	struct world world;
	uint64_t word;

	make_cold(&world);
	assert_int_equal(errors_in(&world), 0);
	word = store_object(world.store, world.cell[0] >> 1)->location;
	cluster =
		cluster_at(world.store, (uint32_t)location_unpack(word).handle);
	cluster->length += PAGE_SIZE;
	assert_in_range(errors_in(&world), 1, PAGES);
	cluster->length -= PAGE_SIZE;
	cluster_members(cluster)[7]++;
	assert_int_equal(errors_in(&world), 1);
	cluster_members(cluster)[7]--;
	word = cluster->chunk[0];
	cluster->chunk[0] = location_pack(OBJECT_HOT, 0, PAGE_SIZE, 1);
	assert_in_range(errors_in(&world), 1, PAGES);
	cluster->chunk[0] = word;
	assert_int_equal(errors_in(&world), 0);
	world_end(&world);
}

/* --- threads ------------------------------------------------------------- */

#define ROUNDS 3000

struct churn {
	struct world *world;
	unsigned int number;
	_Atomic bool *stop;
	_Atomic int *failures;
};

/* Each cell is one thread's to write, and everybody's to read. */
static void *churn(void *argument)
{
	struct churn *churn = argument;
	struct store *store = churn->world->store;
	unsigned int seed = churn->number + 1, round;
	char page[PAGE_SIZE], got[PAGE_SIZE];

	if (store_attach_thread(store))
		++*churn->failures;
	for (round = 0; round < ROUNDS; round++) {
		unsigned int i = (unsigned int)rand_r(&seed) % (PAGES / 4) * 4 +
				 churn->number;
		store_cell *cell = &churn->world->cell[i];
		store_ref ref = STORE_HOLE;

		make_page(page, i);
		if (rand_r(&seed) % 3 && store_put(store, page, 0, &ref))
			++*churn->failures;
		store_drop(store, atomic_exchange(cell, ref));
		i = (unsigned int)rand_r(&seed) % PAGES;
		make_page(page, i);
		if (store_read(store, &churn->world->cell[i], got, 0,
			       PAGE_SIZE) ||
		    (got[0] && memcmp(got, page, PAGE_SIZE)))
			++*churn->failures;
	}
	store_detach_thread(store);
	return NULL;
}

static void *compact(void *argument)
{
	struct churn *churn = argument;
	struct store *store = churn->world->store;

	if (store_attach_thread(store))
		++*churn->failures;
	while (!*churn->stop) {
		repack_sparse(store, store_thread(store), 4);
		compress_hot(store, store_thread(store), 64, INT32_MIN, NULL);
		store->pool_ops->compact(store->pool, UINT64_MAX);
	}
	store_detach_thread(store);
	return NULL;
}

static void threads_meet_in_clusters(void **state)
{
	_Atomic bool stop = false;
	_Atomic int failures = 0;
	struct churn churns[5];
	pthread_t thread[5];
	struct world world;
	unsigned int i;

	world_make(&world, 0);
	assert_int_equal(store_set_hot(world.store, 64 * PAGE_SIZE), 0);
	fill(&world);
	assert_int_equal(store_start(world.store), 0);
	for (i = 0; i < 5; i++) {
		churns[i] = (struct churn){&world, i, &stop, &failures};
		assert_int_equal(pthread_create(&thread[i], NULL,
						i < 4 ? churn : compact,
						&churns[i]),
				 0);
	}
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	stop = true;
	pthread_join(thread[4], NULL);
	assert_int_equal(failures, 0);
	expect_pages(&world);
	expect_clean(&world);
	world_end(&world);
}

/* --- when the program dies ----------------------------------------------- */

/* What another program finds, and how it goes on. */
static void recover(struct world *world)
{
	struct store_config store = config();
	struct arena_map *arena_map;
	struct store_map *map;
	int fd = dup(arena_fd(world->arena));

	leave(world);
	assert_int_equal(arena_attach(&world->arena, fd), 0);
	close(fd);
	assert_int_equal(store_attach(&world->store, world->arena, &store), 0);
	assert_int_equal(store_map_create(&map, world->store), 0);
	assert_int_equal(arena_map_create(&arena_map, world->arena), 0);
	claim(world, map, arena_map);
	assert_int_equal(arena_settle(world->arena, arena_map), 0);
	assert_int_equal(store_map_settle(map), 0);
	store_map_destroy(map);
	arena_map_destroy(arena_map);
	assert_int_equal(store_attach_thread(world->store), 0);
}

static void clusters_are_found_again(void **state)
{
	struct store_stats before, after;
	struct store_config store = config();
	struct store *other;
	struct world world;
	unsigned int i;

	make_cold(&world);
	for (i = 0; i < PAGES; i++)
		if (i % 32 < 12)
			drop(&world, i);
	before = stats_of(&world);
	store.cluster_pages = 8;
	assert_int_equal(store_attach(&other, world.arena, &store), -EPROTO);
	recover(&world);
	after = stats_of(&world);
	assert_int_equal(after.clusters, before.clusters);
	assert_int_equal(after.compressed_pages, before.compressed_pages);
	assert_int_equal(after.compr_data_size, before.compr_data_size);
	expect_clean(&world);
	expect_pages(&world);
	/* Those that are sparse are known to be, without another death. */
	assert_int_equal(repack_sparse(world.store, store_thread(world.store),
				       UINT32_MAX),
			 before.clusters / 2);
	expect_pages(&world);
	world_end(&world);
}

#ifdef ZRAMFS_FAULTS

static void drain(struct world *world)
{
	store_drain(world->store);
}

static void drop_and_repack(struct world *world)
{
	unsigned int i;

	for (i = 0; i < PAGES; i++)
		if (i % 3)
			drop(world, i);
	repack_sparse(world->store, store_thread(world->store), UINT32_MAX);
}

static void drop_and_compact(struct world *world)
{
	unsigned int i;

	for (i = 0; i < PAGES; i++)
		if (i % 64 > 20)
			drop(world, i);
	store_compact(world->store, NULL);
}

static bool die(struct world *world, void (*run)(struct world *world),
		unsigned long point)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		fault_arm(point, 0);
		run(world);
		_exit(0);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status);
}

static void killed_at_each_point(void **state)
{
	static const struct {
		bool drained; /* before */
		void (*run)(struct world *world);
	} work[] = {{false, drain},
		    {true, drop_and_repack},
		    {true, drop_and_compact}};
	unsigned long all = 0;

	for (unsigned int i = 0; i < sizeof(work) / sizeof(*work); i++) {
		bool died = true;

		for (unsigned long point = 1; died; point += 7) {
			struct world world;

			world_make(&world, 0);
			fill(&world);
			if (work[i].drained)
				assert_int_equal(store_drain(world.store), 0);
			died = die(&world, work[i].run, point);
			all += died;
			recover(&world);
			expect_clean(&world);
			expect_pages(&world);
			world_end(&world);
		}
	}
	assert_true(all > 50);
	print_message("# killed at %lu points\n", all);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(together_pages_take_less),
		cmocka_unit_test(each_codec_takes_pages_together),
		cmocka_unit_test(
			a_full_tier_makes_the_writer_compress_together),
		cmocka_unit_test(what_does_not_compress_is_kept_page_by_page),
		cmocka_unit_test(a_thread_that_rests_gives_its_room_back),
		cmocka_unit_test(du_divides_a_cluster_among_its_pages),
		cmocka_unit_test(an_equal_page_is_found_in_a_cluster),
		cmocka_unit_test(the_last_member_frees_its_cluster),
		cmocka_unit_test(a_sparse_cluster_is_repacked),
		cmocka_unit_test(one_that_has_lost_less_is_left_alone),
		cmocka_unit_test(
			without_a_hot_tier_it_is_repacked_page_by_page),
		cmocka_unit_test(the_background_repacks),
		cmocka_unit_test(chunks_are_moved_by_compaction),
		cmocka_unit_test(at_the_limit_pages_are_kept_and_read),
		cmocka_unit_test(what_could_not_be_repacked_stays_listed),
		cmocka_unit_test(a_damaged_cluster_is_an_error),
		cmocka_unit_test(
			a_member_of_no_cluster_can_be_asked_for_and_dropped),
		cmocka_unit_test(the_check_finds_a_damaged_record),
		cmocka_unit_test(threads_meet_in_clusters),
		cmocka_unit_test(clusters_are_found_again),
#ifdef ZRAMFS_FAULTS
		cmocka_unit_test(killed_at_each_point),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
