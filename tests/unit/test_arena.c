/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_arena.c - pages are given out once, counted truly, and given back
 *
 * What the arena says it costs is held against what the system says: the
 * blocks of the memfd.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arena/arena.h"

#define MIB (1ull << 20)

/* Instead of the C library's: the system call, or what it could fail with. */
static int fallocate_error;

int fallocate(int fd, int mode, off_t offset, off_t length)
{
	if (fallocate_error) {
		errno = fallocate_error;
		return -1;
	}
	return syscall(SYS_fallocate, fd, mode, offset, length);
}

static int madvise_error;

int madvise(void *memory, size_t length, int advice)
{
	if (madvise_error) {
		errno = madvise_error;
		return -1;
	}
	return syscall(SYS_madvise, memory, length, advice);
}

static struct arena *new_arena(uint64_t capacity, uint64_t limit)
{
	struct arena_config config = {.capacity = capacity, .limit = limit};
	struct arena *arena;

	assert_int_equal(arena_create(&arena, &config), 0);
	return arena;
}

static uint64_t total(const struct arena *arena)
{
	struct arena_usage usage;

	arena_usage(arena, &usage);
	return usage.total;
}

static uint64_t dirty(const struct arena *arena)
{
	struct arena_usage usage;

	arena_usage(arena, &usage);
	return usage.dirty;
}

/* What the system says that the arena holds. */
static uint64_t backed(const struct arena *arena)
{
	struct stat st;

	assert_int_equal(fstat(arena_fd(arena), &st), 0);
	return st.st_blocks * 512ull;
}

static uint32_t take(struct arena *arena, enum arena_region region,
		     unsigned int nr)
{
	uint32_t page;

	assert_int_equal(arena_alloc(arena, region, nr, 0, &page), 0);
	return page;
}

static void touch(struct arena *arena, enum arena_region region, uint32_t page,
		  unsigned int nr, int byte)
{
	memset(arena_page(arena, region, page), byte, (size_t)nr * PAGE_SIZE);
}

/* The arena holds no more than it says; the roots may be untouched. */
static void assert_counted(const struct arena *arena)
{
	assert_true(backed(arena) <= total(arena));
	assert_true(backed(arena) + ARENA_ROOTS * PAGE_SIZE >= total(arena));
}

static void test_fresh_arena_costs_next_to_nothing(void **state)
{
	struct arena *arena = new_arena(0, 0);
	struct arena_usage usage;

	arena_usage(arena, &usage);
	assert_int_equal(usage.total, usage.fixed);
	assert_true(usage.total <= 16 * PAGE_SIZE);
	assert_int_equal(usage.dirty, 0);
	for (int r = 0; r < ARENA_REGIONS; r++) {
		assert_int_equal(usage.resident[r], 0);
		assert_int_equal(arena_extent(arena, r), 0);
		assert_true(arena_capacity(arena, r) >= 4096);
	}
	/* As slab.h numbers blocks. */
	for (int r = ARENA_INODES; r <= ARENA_CLUSTERS; r++)
		assert_true(arena_capacity(arena, r) <= 1u << 23);
	assert_counted(arena);
	arena_destroy(arena);
}

static void test_lowest_page_first(void **state)
{
	struct arena *arena = new_arena(4 * MIB, 0);

	for (uint32_t i = 0; i < 200; i++)
		assert_int_equal(take(arena, ARENA_BUCKETS, 1), i);
	assert_int_equal(arena_extent(arena, ARENA_BUCKETS), 200);
	arena_free(arena, ARENA_BUCKETS, 130, 1);
	arena_free(arena, ARENA_BUCKETS, 7, 1);
	assert_int_equal(take(arena, ARENA_BUCKETS, 1), 7);
	assert_int_equal(take(arena, ARENA_BUCKETS, 1), 130);
	assert_int_equal(take(arena, ARENA_BUCKETS, 1), 200);
	arena_destroy(arena);
}

static void test_runs_of_all_lengths(void **state)
{
	struct arena *arena = new_arena(64 * MIB, 0);

	for (unsigned int nr = 1; nr <= ARENA_RUN_MAX; nr++) {
		uint32_t first = take(arena, ARENA_POOL, nr);
		uint32_t second = take(arena, ARENA_POOL, nr);

		assert_int_equal(first, 0);
		assert_true(second >= nr);
		assert_true(second % 64 + nr <= 64);
		arena_free(arena, ARENA_POOL, first, nr);
		arena_free(arena, ARENA_POOL, second, nr);
	}
	arena_destroy(arena);
}

/* Zeros, whether the page had memory behind it or not. */
static void test_zero(void **state)
{
	static const char zeros[8 * PAGE_SIZE];
	struct arena *arena = new_arena(4 * MIB, 0);
	uint32_t page;

	page = take(arena, ARENA_POOL, 5);
	touch(arena, ARENA_POOL, page, 5, 0xaa);
	arena_free(arena, ARENA_POOL, page, 5);
	assert_int_equal(arena_alloc(arena, ARENA_POOL, 8, ARENA_ZERO, &page),
			 0);
	assert_int_equal(page, 0);
	assert_memory_equal(arena_page(arena, ARENA_POOL, page), zeros,
			    sizeof(zeros));
	touch(arena, ARENA_POOL, page, 8, 0xaa);
	arena_free(arena, ARENA_POOL, page, 8);
	assert_int_equal(arena_trim(arena, UINT64_MAX), 8);
	assert_int_equal(take(arena, ARENA_POOL, 8), 0);
	assert_memory_equal(arena_page(arena, ARENA_POOL, 0), zeros,
			    sizeof(zeros));
	arena_destroy(arena);
}

static void test_frames_are_zero_while_free(void **state)
{
	static const struct arena_frame zero;
	struct arena *arena = new_arena(4 * MIB, 0);
	uint32_t page = take(arena, ARENA_POOL, 2);
	struct arena_frame *frame = arena_frame(arena, ARENA_POOL, page + 1);

	assert_memory_equal(frame, &zero, sizeof(zero));
	*frame = (struct arena_frame){.kind = 7, .inuse = 9, .next = 5};
	arena_free(arena, ARENA_POOL, page, 2);
	assert_memory_equal(frame, &zero, sizeof(zero));
	arena_destroy(arena);
}

static void test_region_full(void **state)
{
	struct arena *arena = new_arena(1 * MIB, 0);
	uint32_t pages = arena_capacity(arena, ARENA_HOT);
	uint32_t page;

	assert_int_equal(pages, 256);
	for (uint32_t i = 0; i < pages; i += 64)
		assert_int_equal(take(arena, ARENA_HOT, 64), i);
	assert_int_equal(arena_alloc(arena, ARENA_HOT, 1, 0, &page), -ENOSPC);
	assert_int_equal(arena_alloc(arena, ARENA_HOT, 64, 0, &page), -ENOSPC);
	/* Other regions are not. */
	take(arena, ARENA_POOL, 1);
	arena_free(arena, ARENA_HOT, 99, 3);
	assert_int_equal(arena_alloc(arena, ARENA_HOT, 4, 0, &page), -ENOSPC);
	assert_int_equal(take(arena, ARENA_HOT, 2), 99);
	assert_int_equal(take(arena, ARENA_HOT, 1), 101);
	arena_destroy(arena);
}

/* Each page belongs to one run at a time; the model is an array. */
static void test_random_runs_against_model(void **state)
{
	enum {
		RUNS = 600,
		PAGES = 16384
	};
	struct arena *arena = new_arena((uint64_t)PAGES * PAGE_SIZE, 0);
	static uint16_t owner[PAGES];
	static struct {
		uint32_t page;
		unsigned int nr;
	} runs[RUNS];
	uint64_t used = 0;
	struct arena_usage usage;

	srand(1);
	for (int i = 0; i < 60000; i++) {
		int n = rand() % RUNS;

		if (i % 1000 == 999)
			arena_trim(arena, rand() % 5000);
		if (runs[n].nr) {
			for (unsigned int k = 0; k < runs[n].nr; k++) {
				assert_int_equal(owner[runs[n].page + k],
						 n + 1);
				owner[runs[n].page + k] = 0;
			}
			arena_free(arena, ARENA_POOL, runs[n].page, runs[n].nr);
			used -= runs[n].nr;
			runs[n].nr = 0;
			continue;
		}
		runs[n].nr = rand() % 4 ? 1 + rand() % 8
					: 1 + rand() % ARENA_RUN_MAX;
		runs[n].page = take(arena, ARENA_POOL, runs[n].nr);
		used += runs[n].nr;
		assert_true(runs[n].page % 64 + runs[n].nr <= 64);
		/* It is the lowest: nothing below is free for as long. */
		for (uint32_t page = 0, free = 0; page < runs[n].page; page++) {
			free = page % 64 ? free : 0;
			free = owner[page] ? 0 : free + 1;
			assert_true(free < runs[n].nr);
		}
		for (unsigned int k = 0; k < runs[n].nr; k++) {
			assert_int_equal(owner[runs[n].page + k], 0);
			owner[runs[n].page + k] = n + 1;
		}
		arena_usage(arena, &usage);
		assert_int_equal(usage.resident[ARENA_POOL] - usage.dirty,
				 used * PAGE_SIZE);
	}
	arena_destroy(arena);
}

static void test_trim_returns_memory(void **state)
{
	struct arena *arena = new_arena(64 * MIB, 0);
	uint64_t fresh = total(arena);

	for (uint32_t i = 0; i < 4096; i += 64)
		touch(arena, ARENA_POOL, take(arena, ARENA_POOL, 64), 64, 1);
	assert_true(backed(arena) >= 16 * MIB);
	for (uint32_t i = 0; i < 4096; i += 2)
		arena_free(arena, ARENA_POOL, i, 1);
	assert_int_equal(dirty(arena), 8 * MIB);
	assert_true(backed(arena) >= 16 * MIB);

	assert_int_equal(arena_trim(arena, UINT64_MAX), 2048);
	assert_int_equal(dirty(arena), 0);
	assert_counted(arena);

	for (uint32_t i = 1; i < 4096; i += 2)
		arena_free(arena, ARENA_POOL, i, 1);
	/* No more than asked for. */
	assert_int_equal(arena_trim(arena, 100), 100);
	assert_int_equal(arena_trim(arena, UINT64_MAX), 2048 - 100);
	assert_int_equal(total(arena), fresh);
	assert_counted(arena);

	/* All over again: a page, and one that has its frame. */
	take(arena, ARENA_POOL, 1);
	assert_int_equal(total(arena), fresh + 2 * PAGE_SIZE);
	arena_destroy(arena);
}

/* What cannot be given back stays counted, and can be used. */
static void test_trim_fails(void **state)
{
	struct arena *arena = new_arena(16 * MIB, MIB);
	uint64_t full;
	uint32_t page;

	while (arena_alloc(arena, ARENA_POOL, 1, 0, &page) == 0)
		touch(arena, ARENA_POOL, page, 1, 1);
	full = total(arena);
	arena_free(arena, ARENA_POOL, 0, 64);

	fallocate_error = ENOMEM;
	assert_int_equal(arena_trim(arena, UINT64_MAX), 0);
	assert_int_equal(total(arena), full);
	assert_int_equal(dirty(arena), 64 * PAGE_SIZE);
	assert_int_equal(arena_alloc(arena, ARENA_HOT, 1, 0, &page), -ENOSPC);
	assert_int_equal(take(arena, ARENA_POOL, 32), 0);
	fallocate_error = 0;
	assert_int_equal(arena_trim(arena, UINT64_MAX), 32);
	assert_int_equal(total(arena), full - 32 * PAGE_SIZE);
	take(arena, ARENA_HOT, 32);
	arena_destroy(arena);
}

static void test_limit(void **state)
{
	struct arena *arena = new_arena(64 * MIB, 1 * MIB);
	uint32_t page = 0, last = 0;

	assert_false(arena_is_full(arena, 1));
	while (arena_alloc(arena, ARENA_POOL, 1, 0, &page) == 0) {
		touch(arena, ARENA_POOL, page, 1, 1);
		last = page;
	}
	assert_true(total(arena) == 1 * MIB);
	assert_true(arena_is_full(arena, 1));
	assert_int_equal(arena_alloc(arena, ARENA_HOT, 1, 0, &page), -ENOSPC);

	/* A freed page can be had again, in this region and in others. */
	arena_free(arena, ARENA_POOL, last, 1);
	assert_false(arena_is_full(arena, 1));
	assert_int_equal(take(arena, ARENA_POOL, 1), last);
	arena_free(arena, ARENA_POOL, last - 15, 16);
	take(arena, ARENA_HOT, 16);
	assert_int_equal(arena_alloc(arena, ARENA_HOT, 1, 0, &page), -ENOSPC);
	assert_true(total(arena) <= 1 * MIB);
	assert_true(backed(arena) <= 1 * MIB);

	/* Lower than what is used: nothing more, and freed pages go. */
	arena_set_limit(arena, MIB / 2);
	arena_free(arena, ARENA_POOL, 0, 64);
	assert_int_equal(arena_alloc(arena, ARENA_HOT, 1, 0, &page), -ENOSPC);
	arena_set_limit(arena, 0);
	for (int i = 0; i < 1000; i++)
		take(arena, ARENA_HOT, 1);
	arena_destroy(arena);
}

/* How many pages can be had by reserve. */
static unsigned int take_reserve(struct arena *arena)
{
	unsigned int got = 0;
	uint32_t page;

	while (arena_alloc(arena, ARENA_HOT, 1, ARENA_RESERVE, &page) == 0)
		got++;
	return got;
}

static void test_reserve_with_a_limit_below_what_is_used(void **state)
{
	struct arena *arena = new_arena(64 * MIB, 0);
	uint32_t page;

	for (int i = 0; i < 1000; i++)
		assert_int_equal(take(arena, ARENA_POOL, 1), i);
	arena_set_limit(arena, 1 * MIB);
	assert_int_equal(arena_alloc(arena, ARENA_HOT, 1, 0, &page), -ENOSPC);
	/* Enough to work with, so that less is used in the end ... */
	assert_in_range(take_reserve(arena), ARENA_RESERVE_PAGES - 1,
			ARENA_RESERVE_PAGES);
	/* ... and then that is what the reserve is on top of. */
	for (int i = 0; i < 300; i++)
		arena_free(arena, ARENA_POOL, i, 1);
	assert_int_equal(arena_trim(arena, UINT64_MAX), 300);
	assert_in_range(take_reserve(arena), ARENA_RESERVE_PAGES - 1,
			ARENA_RESERVE_PAGES);
	assert_int_equal(arena_alloc(arena, ARENA_HOT, 1, 0, &page), -ENOSPC);
	for (int i = 300; i < 1000; i++)
		arena_free(arena, ARENA_POOL, i, 1);
	assert_int_equal(arena_trim(arena, UINT64_MAX), 700);
	/* Below it, the limit is what it is on top of. */
	take_reserve(arena);
	assert_in_range(total(arena), 1 * MIB + 60 * PAGE_SIZE,
			1 * MIB + ARENA_RESERVE_PAGES * PAGE_SIZE);
	arena_destroy(arena);
}

static void test_reserve(void **state)
{
	struct arena *arena = new_arena(64 * MIB, 1 * MIB);
	unsigned int got = 0;
	uint32_t page;

	while (arena_alloc(arena, ARENA_HOT, 1, 0, &page) == 0)
		;
	while (arena_alloc(arena, ARENA_HOT, 1, ARENA_RESERVE, &page) == 0)
		got++;
	assert_int_equal(got, ARENA_RESERVE_PAGES);
	/* The reserve is paid back before others get anything. */
	arena_free(arena, ARENA_HOT, page, 1);
	assert_int_equal(arena_alloc(arena, ARENA_HOT, 1, 0, &page), -ENOSPC);
	assert_int_equal(arena_alloc(arena, ARENA_HOT, 1, ARENA_RESERVE, &page),
			 0);
	arena_destroy(arena);
}

static void test_peak(void **state)
{
	struct arena *arena = new_arena(64 * MIB, 0);
	struct arena_usage usage;

	take(arena, ARENA_HOT, 64);
	arena_free(arena, ARENA_HOT, 0, 64);
	arena_trim(arena, UINT64_MAX);
	arena_usage(arena, &usage);
	assert_int_equal(usage.peak, usage.total + 64 * PAGE_SIZE);
	arena_reset_peak(arena);
	arena_usage(arena, &usage);
	assert_int_equal(usage.peak, usage.total);
	arena_destroy(arena);
}

static void test_claims(void **state)
{
	struct arena *arena = new_arena(4 * MIB, 0);
	struct arena_map *map;

	take(arena, ARENA_POOL, 10);
	take(arena, ARENA_HOT, 1);
	assert_int_equal(arena_map_create(&map, arena), 0);
	assert_int_equal(arena_map_compare(map, arena), 11);
	assert_int_equal(arena_claim(map, ARENA_POOL, 0, 10), 0);
	assert_int_equal(arena_claim(map, ARENA_POOL, 9, 2), -EEXIST);
	assert_int_equal(arena_claim(map, ARENA_HOT, 1, 1), 0);
	assert_int_equal(arena_claim(map, ARENA_HOT, 1024, 1), -ERANGE);
	assert_int_equal(arena_claim(map, ARENA_HOT, UINT32_MAX, 2), -ERANGE);
	/* HOT: 0 is used and not claimed, 1 is claimed and not used. */
	assert_int_equal(arena_map_compare(map, arena), 2);
	arena_map_destroy(map);
	arena_destroy(arena);
}

/* A second mapping, as after a crash: contents stay, the rest goes. */
static void test_attach_and_settle(void **state)
{
	struct arena *first = new_arena(64 * MIB, 8 * MIB), *second;
	struct arena_map *map;
	struct arena_usage usage;
	uint32_t page;

	for (int i = 0; i < 8; i++)
		touch(first, ARENA_POOL, take(first, ARENA_POOL, 64), 64, i);
	for (uint32_t i = 0; i < 512; i++)
		arena_frame(first, ARENA_POOL, i)->kind = 1;
	touch(first, ARENA_HOT, take(first, ARENA_HOT, 64), 64, 99);
	strcpy(arena_root(first, ARENA_ROOT_FS), "root");
	arena_free(first, ARENA_POOL, 500, 12);

	assert_int_equal(arena_attach(&second, arena_fd(first)), 0);
	arena_destroy(first);
	assert_string_equal(arena_root(second, ARENA_ROOT_FS), "root");
	assert_int_equal(arena_extent(second, ARENA_POOL), 512);
	assert_int_equal(arena_frame(second, ARENA_POOL, 70)->kind, 1);

	/* All of the pool's pages above 256 are lost, and of HOT all but 3. */
	assert_int_equal(arena_map_create(&map, second), 0);
	assert_int_equal(arena_claim(map, ARENA_POOL, 64, 64), 0);
	assert_int_equal(arena_claim(map, ARENA_POOL, 200, 1), 0);
	assert_int_equal(arena_claim(map, ARENA_HOT, 3, 1), 0);
	assert_int_equal(arena_settle(second, map), 0);
	assert_int_equal(arena_map_compare(map, second), 0);
	arena_map_destroy(map);

	arena_usage(second, &usage);
	assert_int_equal(usage.resident[ARENA_POOL], 65 * PAGE_SIZE);
	assert_int_equal(usage.resident[ARENA_HOT], PAGE_SIZE);
	assert_int_equal(usage.dirty, 0);
	assert_int_equal(usage.limit, 8 * MIB);
	assert_true(usage.peak >= 576 * PAGE_SIZE);
	assert_counted(second);
	assert_int_equal(arena_extent(second, ARENA_POOL), 201);
	assert_int_equal(*(char *)arena_page(second, ARENA_POOL, 64), 1);
	assert_int_equal(*(char *)arena_page(second, ARENA_POOL, 200), 3);
	assert_int_equal(*(char *)arena_page(second, ARENA_HOT, 3), 99);
	assert_int_equal(arena_frame(second, ARENA_POOL, 200)->kind, 1);
	assert_int_equal(arena_frame(second, ARENA_POOL, 201)->kind, 0);

	assert_int_equal(take(second, ARENA_HOT, 1), 0);
	assert_int_equal(arena_alloc(second, ARENA_POOL, 64, ARENA_ZERO, &page),
			 0);
	assert_int_equal(page, 0);
	assert_int_equal(*(char *)arena_page(second, ARENA_POOL, 63), 0);
	arena_destroy(second);
}

static void test_attach_refuses_what_is_not_an_arena(void **state)
{
	struct arena *arena = new_arena(1 * MIB, 0), *other;
	char name[] = "/tmp/test_arena.XXXXXX";
	struct stat st;
	int fd;

	assert_int_equal(arena_attach(&other, -1), -EBADF);
	fd = mkstemp(name);
	assert_true(fd >= 0);
	unlink(name);
	assert_int_equal(arena_attach(&other, fd), -EPROTO);
	assert_int_equal(ftruncate(fd, 1 * MIB), 0);
	assert_int_equal(arena_attach(&other, fd), -EPROTO);
	close(fd);

	assert_int_equal(fstat(arena_fd(arena), &st), 0);
	assert_int_equal(ftruncate(arena_fd(arena), st.st_size + PAGE_SIZE), 0);
	assert_int_equal(arena_attach(&other, arena_fd(arena)), -EPROTO);
	assert_int_equal(ftruncate(arena_fd(arena), st.st_size), 0);
	assert_int_equal(arena_attach(&other, arena_fd(arena)), 0);
	arena_destroy(other);
	arena_destroy(arena);
}

#define THREADS 3

struct churn {
	struct arena *arena;
	unsigned int seed;
	_Atomic bool *stop;
};

/* Pages must not change while they are ours. */
static void *churn(void *argument)
{
	struct churn *c = argument;
	struct {
		enum arena_region region;
		uint32_t page;
		unsigned int nr;
	} runs[64] = {0};

	for (int i = 0; i < 20000; i++) {
		int n = rand_r(&c->seed) % 64;
		uint64_t *word;

		if (runs[n].nr) {
			word = arena_page(c->arena, runs[n].region,
					  runs[n].page + runs[n].nr - 1);
			if (*word != (uint64_t)(uintptr_t)c)
				return "page is somebody else's";
			arena_free(c->arena, runs[n].region, runs[n].page,
				   runs[n].nr);
			runs[n].nr = 0;
			continue;
		}
		runs[n].region = rand_r(&c->seed) % ARENA_REGIONS;
		runs[n].nr = 1 + rand_r(&c->seed) % 8;
		if (arena_alloc(c->arena, runs[n].region, runs[n].nr, 0,
				&runs[n].page) != 0) {
			runs[n].nr = 0;
			continue;
		}
		word = arena_page(c->arena, runs[n].region,
				  runs[n].page + runs[n].nr - 1);
		*word = (uintptr_t)c;
	}
	for (int n = 0; n < 64; n++)
		if (runs[n].nr)
			arena_free(c->arena, runs[n].region, runs[n].page,
				   runs[n].nr);
	return NULL;
}

static void *trimmer(void *argument)
{
	struct churn *c = argument;

	while (!*c->stop) {
		arena_trim(c->arena, 300);
		arena_bring(c->arena, ARENA_HOT, 1 + rand_r(&c->seed) % 64);
		usleep(rand_r(&c->seed) % 200);
	}
	return NULL;
}

/* The limit is low enough that it is met often. */
static void test_threads(void **state)
{
	struct arena *arena = new_arena(4 * MIB, 2 * MIB);
	uint64_t fresh = total(arena);
	struct churn c[THREADS + 1];
	pthread_t thread[THREADS + 1];
	_Atomic bool stop = false;
	struct arena_usage usage;

	for (unsigned int i = 0; i <= THREADS; i++) {
		c[i] = (struct churn){arena, i + 1, &stop};
		assert_int_equal(pthread_create(&thread[i], NULL,
						i ? churn : trimmer, &c[i]),
				 0);
	}
	for (unsigned int i = 1; i <= THREADS; i++) {
		void *complaint;

		pthread_join(thread[i], &complaint);
		assert_null(complaint);
	}
	stop = true;
	pthread_join(thread[0], NULL);

	arena_usage(arena, &usage);
	assert_true(usage.peak <= 2 * MIB);
	assert_true(usage.peak > MIB);
	arena_trim(arena, UINT64_MAX);
	arena_usage(arena, &usage);
	assert_int_equal(usage.dirty, 0);
	for (int r = 0; r < ARENA_REGIONS; r++)
		assert_int_equal(usage.resident[r], 0);
	assert_int_equal(usage.total, fresh);
	assert_counted(arena);
	arena_destroy(arena);
}

/* Growing at the end must hold also while the last pages are being trimmed. */
static void test_arrays_stay_contiguous_while_trimming(void **state)
{
	struct arena *arena = new_arena(4 * MIB, 0);
	_Atomic bool stop = false;
	struct churn c = {arena, 1, &stop};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, trimmer, &c), 0);
	for (int round = 0; round < 100; round++) {
		for (uint32_t i = 0; i < 100; i++)
			assert_int_equal(take(arena, ARENA_BUCKETS, 1), i);
		for (uint32_t i = 100; i--;)
			arena_free(arena, ARENA_BUCKETS, i, 1);
		usleep(100);
	}
	stop = true;
	pthread_join(thread, NULL);
	arena_destroy(arena);
}

/* Pages that are being trimmed are free: whoever needs them gets them. */
static void test_full_region_while_trimming(void **state)
{
	struct arena *arena = new_arena(1 * MIB, 0);
	_Atomic bool stop = false;
	struct churn c = {arena, 1, &stop};
	pthread_t thread;

	for (int i = 0; i < 4; i++)
		take(arena, ARENA_POOL, 64);
	assert_int_equal(pthread_create(&thread, NULL, trimmer, &c), 0);
	for (int round = 0; round < 3000; round++) {
		arena_free(arena, ARENA_POOL, 128, 64);
		if (round % 8 == 0)
			usleep(50);
		assert_int_equal(take(arena, ARENA_POOL, 64), 128);
		touch(arena, ARENA_POOL, 128, 64, 1);
	}
	stop = true;
	pthread_join(thread, NULL);
	arena_destroy(arena);
}

/* What is set aside is there before it is asked for, and after trimming. */
static void test_set_aside(void **state)
{
	struct arena *arena = new_arena(4 * MIB, 0);
	uint64_t before = total(arena), backed_before = backed(arena), with;
	struct arena_usage usage;
	uint32_t page[3], i;

	assert_int_equal(arena_set_aside(arena, ARENA_HOT, 100), 0);
	with = total(arena);
	assert_int_equal(with, before + 100 * PAGE_SIZE);
	assert_int_equal(dirty(arena), 100 * PAGE_SIZE);
	assert_int_equal(backed(arena), backed_before + 100 * PAGE_SIZE);
	arena_trim(arena, UINT64_MAX);
	assert_int_equal(total(arena), with);
	assert_int_equal(backed(arena), backed_before + 100 * PAGE_SIZE);

	arena_usage(arena, &usage);
	assert_int_equal(usage.trimmable, 0);

	/* These are given out first, and cost nothing more. */
	for (i = 0; i < 3; i++) {
		page[i] = take(arena, ARENA_HOT, 1);
		assert_int_equal(page[i], i);
	}
	assert_int_equal(total(arena), with);
	for (i = 0; i < 3; i++)
		arena_free(arena, ARENA_HOT, page[i], 1);
	/* Beyond them, all is trimmed. */
	for (i = 0; i < 164; i++)
		take(arena, ARENA_HOT, 1);
	assert_int_equal(total(arena), with + 64 * PAGE_SIZE);
	for (i = 0; i < 164; i++)
		arena_free(arena, ARENA_HOT, i, 1);
	arena_usage(arena, &usage);
	assert_int_equal(usage.trimmable, 64 * PAGE_SIZE);
	arena_trim(arena, UINT64_MAX);
	assert_int_equal(total(arena), with);
	assert_int_equal(backed(arena), backed_before + 100 * PAGE_SIZE);
	arena_destroy(arena);
}

static void test_set_aside_keeps_to_the_limit(void **state)
{
	struct arena *arena = new_arena(4 * MIB, 0);
	uint64_t before = total(arena);

	arena_set_limit(arena, before + 99 * PAGE_SIZE);
	assert_int_equal(arena_set_aside(arena, ARENA_HOT, 100), -ENOSPC);
	assert_int_equal(total(arena), before);
	assert_int_equal(arena_set_aside(arena, ARENA_HOT, 99), 0);
	/* Nobody else gets them. */
	assert_true(arena_is_full(arena, 1));
	arena_destroy(arena);
}

/* What is brought is there before it is asked for, and goes when trimmed. */
static void test_bring(void **state)
{
	struct arena *arena = new_arena(4 * MIB, 0);
	uint64_t before = total(arena), backed_before = backed(arena);
	uint32_t i;

	/* Around a page that is in use, and one that is dirty. */
	for (i = 0; i < 3; i++)
		assert_int_equal(take(arena, ARENA_HOT, 1), i);
	arena_free(arena, ARENA_HOT, 0, 1);
	arena_free(arena, ARENA_HOT, 2, 1);
	*(char *)arena_page(arena, ARENA_HOT, 1) = 1;
	assert_int_equal(arena_bring(arena, ARENA_HOT, 100), 100);
	assert_int_equal(arena_ready(arena, ARENA_HOT), 102);
	assert_int_equal(total(arena), before + 103 * PAGE_SIZE);
	/* Those that were never touched have none, whatever is counted. */
	assert_int_equal(backed(arena), backed_before + 101 * PAGE_SIZE);

	/* The lowest first, as always, and for nothing more. */
	assert_int_equal(take(arena, ARENA_HOT, 1), 0);
	for (i = 2; i < 103; i++)
		assert_int_equal(take(arena, ARENA_HOT, 1), i);
	assert_int_equal(total(arena), before + 103 * PAGE_SIZE);
	assert_int_equal(arena_ready(arena, ARENA_HOT), 0);
	for (i = 0; i < 103; i++)
		arena_free(arena, ARENA_HOT, i, 1);

	/* As many as a batch has, and no page twice. */
	assert_int_equal(arena_bring(arena, ARENA_HOT, 1000), 256 - 103 % 64);
	arena_trim(arena, UINT64_MAX);
	assert_int_equal(total(arena), before);
	assert_int_equal(backed(arena), backed_before);
	arena_destroy(arena);
}

static void test_bring_keeps_to_the_limit(void **state)
{
	struct arena *arena = new_arena(4 * MIB, 0);
	uint64_t before = total(arena);

	arena_set_limit(arena, before + 99 * PAGE_SIZE);
	assert_int_equal(arena_bring(arena, ARENA_HOT, 100), 0);
	assert_int_equal(total(arena), before);
	assert_int_equal(arena_bring(arena, ARENA_HOT, 99), 99);
	/* Others get them all the same. */
	assert_false(arena_is_full(arena, 1));
	take(arena, ARENA_BLOCKS, 50);
	arena_destroy(arena);
}

/* It counts too much then, until the next trimming. */
static void test_bring_fails(void **state)
{
	struct arena *arena = new_arena(4 * MIB, 0);
	uint64_t before = total(arena);

	madvise_error = ENOMEM;
	assert_int_equal(arena_bring(arena, ARENA_HOT, 10), 0);
	madvise_error = 0;
	assert_int_equal(total(arena), before + 10 * PAGE_SIZE);
	arena_trim(arena, UINT64_MAX);
	assert_int_equal(total(arena), before);
	assert_int_equal(take(arena, ARENA_HOT, 1), 0);
	arena_destroy(arena);
}

static void test_bring_up_to_the_end(void **state)
{
	struct arena *arena = new_arena(4 * MIB, 0);
	uint32_t left = arena_capacity(arena, ARENA_HOT);

	while (left) {
		uint32_t most = left < 256 ? left : 256;

		assert_int_equal(arena_bring(arena, ARENA_HOT, 256), most);
		left -= most;
	}
	assert_int_equal(arena_bring(arena, ARENA_HOT, 256), 0);
	/* Frames of pages would be needed, too. */
	assert_int_equal(arena_bring(arena, ARENA_POOL, 1), 0);
	arena_destroy(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fresh_arena_costs_next_to_nothing),
		cmocka_unit_test(test_lowest_page_first),
		cmocka_unit_test(test_runs_of_all_lengths),
		cmocka_unit_test(test_zero),
		cmocka_unit_test(test_frames_are_zero_while_free),
		cmocka_unit_test(test_region_full),
		cmocka_unit_test(test_random_runs_against_model),
		cmocka_unit_test(test_trim_returns_memory),
		cmocka_unit_test(test_trim_fails),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_reserve_with_a_limit_below_what_is_used),
		cmocka_unit_test(test_reserve),
		cmocka_unit_test(test_peak),
		cmocka_unit_test(test_claims),
		cmocka_unit_test(test_attach_and_settle),
		cmocka_unit_test(test_attach_refuses_what_is_not_an_arena),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_set_aside),
		cmocka_unit_test(test_set_aside_keeps_to_the_limit),
		cmocka_unit_test(test_bring),
		cmocka_unit_test(test_bring_keeps_to_the_limit),
		cmocka_unit_test(test_bring_fails),
		cmocka_unit_test(test_bring_up_to_the_end),
		cmocka_unit_test(test_arrays_stay_contiguous_while_trimming),
		cmocka_unit_test(test_full_region_while_trimming),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
