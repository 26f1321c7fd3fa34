/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_slab.c - blocks are given out once, zero, and their pages given back
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena/slab.h"

#define MIB (1ull << 20)

static const uint16_t sizes[] = {8, 16, 24, 32, 64, 128, 512, 1360, 2048, 4096};
#define NR_SIZES (sizeof(sizes) / sizeof(sizes[0]))

struct fixture {
	struct arena *arena;
	struct slab *slab;
};

static int setup(void **state)
{
	struct arena_config config = {.capacity = 16 * MIB};
	struct fixture *f = malloc(sizeof(*f));

	assert_non_null(f);
	assert_int_equal(arena_create(&f->arena, &config), 0);
	assert_int_equal(
		slab_create(&f->slab, f->arena, ARENA_BLOCKS, sizes, NR_SIZES),
		0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	slab_destroy(f->slab);
	arena_destroy(f->arena);
	free(f);
	return 0;
}

static uint32_t take(struct slab *slab, size_t size)
{
	uint32_t block;

	assert_int_equal(slab_alloc(slab, size, 0, &block), 0);
	return block;
}

static uint64_t blocks(const struct slab *slab)
{
	struct slab_usage usage;

	slab_usage(slab, &usage);
	return usage.blocks;
}

static uint64_t pages(const struct slab *slab)
{
	struct slab_usage usage;

	slab_usage(slab, &usage);
	return usage.pages;
}

static bool is_zero(const void *address, size_t size)
{
	const char *byte = address;

	while (size && !*byte) {
		byte++;
		size--;
	}
	return !size;
}

static void test_sizes(void **state)
{
	struct fixture *f = *state;
	uint32_t block;

	assert_int_equal(slab_size_for(f->slab, 0), 8);
	assert_int_equal(slab_size_for(f->slab, 1), 8);
	assert_int_equal(slab_size_for(f->slab, 24), 24);
	assert_int_equal(slab_size_for(f->slab, 25), 32);
	assert_int_equal(slab_size_for(f->slab, 129), 512);
	assert_int_equal(slab_size_for(f->slab, 4096), 4096);
	assert_int_equal(slab_size_for(f->slab, 4097), 0);
	assert_int_equal(slab_alloc(f->slab, 4097, 0, &block), -EINVAL);
	for (size_t size = 1; size <= 4096; size += 111) {
		block = take(f->slab, size);
		assert_int_equal(slab_size(f->slab, block),
				 slab_size_for(f->slab, size));
	}
}

static void test_bad_sizes(void **state)
{
	static const uint16_t bad[][2] = {
		{0, 8}, {4, 8}, {16, 8}, {8, 8}, {8, 4104}, {8, 20},
	};
	struct fixture *f = *state;
	struct slab *slab;

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(
			slab_create(&slab, f->arena, ARENA_OBJECTS, bad[i], 2),
			-EINVAL);
	assert_int_equal(slab_create(&slab, f->arena, ARENA_OBJECTS, sizes, 0),
			 -EINVAL);
}

/* Of each size, first of all: that is the one that could get number 0. */
static void test_zero_is_no_block(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 0; i < NR_SIZES; i++) {
		uint32_t a = take(f->slab, sizes[i]);
		uint32_t b = take(f->slab, sizes[i]);

		assert_int_not_equal(a, SLAB_NONE);
		assert_int_not_equal(b, SLAB_NONE);
		assert_int_not_equal(a, b);
		slab_free(f->slab, a);
		slab_free(f->slab, b);
	}
	slab_free(f->slab, SLAB_NONE);
	assert_int_equal(pages(f->slab), 0);
}

static void test_random_blocks_against_model(void **state)
{
	enum {
		BLOCKS = 3000
	};
	struct fixture *f = *state;
	static struct {
		uint32_t block;
		uint16_t size;
	} held[BLOCKS];
	uint64_t live = 0;
	struct arena_usage usage;

	memset(held, 0, sizeof(held));
	srand(2);
	for (int i = 0; i < 100000; i++) {
		int n = rand() % BLOCKS;
		unsigned char *address;

		if (held[n].block) {
			address = slab_address(f->slab, held[n].block);
			for (unsigned int k = 0; k < held[n].size; k++)
				assert_int_equal(address[k], n % 255 + 1);
			slab_free(f->slab, held[n].block);
			held[n].block = 0;
			live--;
			continue;
		}
		held[n].size = rand() % 8 ? rand() % 64 : rand() % 4097;
		held[n].block = take(f->slab, held[n].size);
		held[n].size = slab_size_for(f->slab, held[n].size);
		address = slab_address(f->slab, held[n].block);
		assert_true(is_zero(address, held[n].size));
		memset(address, n % 255 + 1, held[n].size);
		live++;
	}
	assert_int_equal(blocks(f->slab), live);
	for (int n = 0; n < BLOCKS; n++)
		slab_free(f->slab, held[n].block);
	assert_int_equal(blocks(f->slab), 0);
	assert_int_equal(pages(f->slab), 0);
	arena_usage(f->arena, &usage);
	assert_int_equal(usage.resident[ARENA_BLOCKS], usage.dirty);
	arena_trim(f->arena, UINT64_MAX);
	arena_usage(f->arena, &usage);
	assert_int_equal(usage.total, (1 + ARENA_ROOTS) * PAGE_SIZE);
}

/* Sparse pages are filled last, so that they can become empty. */
static void test_sparse_pages_empty_first(void **state)
{
	enum {
		PAGES = 20,
		EACH = PAGE_SIZE / 128
	};
	struct fixture *f = *state;
	static uint32_t block[PAGES * EACH];

	/* Page 0 holds one less; let it be full. */
	for (int i = 0; i < EACH - 1; i++)
		take(f->slab, 128);
	for (int i = 0; i < PAGES * EACH; i++)
		block[i] = take(f->slab, 128);
	/* Odd pages keep one block, even pages all but one. */
	for (int i = 0; i < PAGES * EACH; i++)
		if (i / EACH % 2 ? i % EACH : !(i % EACH))
			slab_free(f->slab, block[i]);
	/* What is needed now fits into the even ones. */
	for (int i = 0; i < PAGES / 2; i++)
		take(f->slab, 128);
	for (int i = EACH; i < PAGES * EACH; i += 2 * EACH)
		slab_free(f->slab, block[i]);
	assert_int_equal(pages(f->slab), 1 + PAGES / 2);
}

/* A stale number may be looked at: freeing leaves all but four bytes. */
static void test_freed_block_keeps_its_head(void **state)
{
	struct fixture *f = *state;
	uint32_t a = take(f->slab, 24), b = take(f->slab, 24);
	unsigned char *address = slab_address(f->slab, b);

	take(f->slab, 24);
	memset(address, 0x5a, 24);
	slab_free(f->slab, a);
	slab_free(f->slab, b);
	for (int i = 0; i < 20; i++)
		assert_int_equal(address[i], 0x5a);
	assert_int_equal(take(f->slab, 24), b);
	assert_true(is_zero(address, 24));
}

static void test_limit(void **state)
{
	struct fixture *f = *state;
	uint32_t block, last = 0, count = 0;

	arena_set_limit(f->arena, MIB);
	while (slab_alloc(f->slab, 2048, 0, &block) == 0) {
		last = block;
		count++;
	}
	assert_int_equal(slab_alloc(f->slab, 2048, 0, &block), -ENOSPC);
	assert_int_equal(blocks(f->slab), count);
	assert_true(count >= 500);
	assert_int_equal(slab_alloc(f->slab, 8, ARENA_RESERVE, &block), 0);
	slab_free(f->slab, block);
	arena_trim(f->arena, UINT64_MAX);
	slab_free(f->slab, last);
	assert_int_equal(take(f->slab, 2048), last);
}

struct seen {
	const struct slab *slab;
	uint32_t last;
	unsigned int live, all;
};

static int see(void *context, uint32_t block, void *address)
{
	struct seen *seen = context;

	assert_true(block > seen->last);
	assert_ptr_equal(address, slab_address(seen->slab, block));
	seen->last = block;
	seen->all++;
	seen->live += *(char *)address == 'x';
	return seen->all == 1500 ? 77 : 0;
}

static void test_scan(void **state)
{
	struct fixture *f = *state;
	struct seen seen = {.slab = f->slab};
	uint32_t block[1000];

	for (int i = 0; i < 1000; i++) {
		block[i] = take(f->slab, sizes[i % NR_SIZES]);
		*(char *)slab_address(f->slab, block[i]) = 'x';
	}
	for (int i = 0; i < 1000; i += 5) {
		*(char *)slab_address(f->slab, block[i]) = 0;
		slab_free(f->slab, block[i]);
	}
	assert_int_equal(slab_scan(f->slab, see, &seen), 0);
	assert_int_equal(seen.live, 800);
	for (int i = 0; i < 1000; i++)
		take(f->slab, 8);
	seen = (struct seen){.slab = f->slab};
	assert_int_equal(slab_scan(f->slab, see, &seen), 77);
}

static struct slab_map *new_map(const struct slab *slab)
{
	struct slab_map *map;

	assert_int_equal(slab_map_create(&map, slab), 0);
	return map;
}

static void test_claims(void **state)
{
	struct fixture *f = *state;
	uint32_t a = take(f->slab, 24), b = take(f->slab, 24);
	uint32_t c = take(f->slab, 4096);
	struct slab_map *map = new_map(f->slab);
	struct arena_map *arena_map;

	assert_int_equal(slab_map_compare(map, f->slab), 3);
	assert_int_equal(slab_claim(map, SLAB_NONE), -ERANGE);
	assert_int_equal(slab_claim(map, a + 1), -ERANGE);
	assert_int_equal(slab_claim(map, b + 3), -ERANGE);
	assert_int_equal(slab_claim(map, 100u << SLAB_SHIFT), -ERANGE);
	assert_int_equal(slab_claim(map, UINT32_MAX), -ERANGE);
	assert_int_equal(slab_claim(map, a), 0);
	assert_int_equal(slab_claim(map, a), -EEXIST);
	assert_int_equal(slab_claim(map, b), 0);
	assert_int_equal(slab_map_compare(map, f->slab), 1);
	assert_int_equal(slab_claim(map, c), 0);
	assert_int_equal(slab_map_compare(map, f->slab), 0);

	assert_int_equal(arena_map_create(&arena_map, f->arena), 0);
	assert_int_equal(slab_map_finish(map, arena_map), 0);
	assert_int_equal(arena_map_compare(arena_map, f->arena), 0);
	assert_int_equal(slab_map_finish(map, arena_map), -EEXIST);
	arena_map_destroy(arena_map);

	/* Claimed, and free. */
	slab_free(f->slab, a);
	assert_int_equal(slab_map_compare(map, f->slab), 1);
	slab_map_destroy(map);
}

/* As after a crash: a second slab on a second mapping, from claims alone. */
static void test_attach_and_settle(void **state)
{
	enum {
		BLOCKS = 4000
	};
	struct fixture *f = *state;
	static uint32_t block[BLOCKS];
	static uint16_t size[BLOCKS];
	struct arena_map *arena_map;
	struct slab_map *map;
	struct arena *arena;
	struct slab *slab;
	uint64_t kept = 0;

	srand(3);
	for (int i = 0; i < BLOCKS; i++) {
		size[i] = sizes[rand() % (NR_SIZES - 1)];
		block[i] = take(f->slab, size[i]);
		memset(slab_address(f->slab, block[i]), i % 255 + 1, size[i]);
	}
	for (int i = 0; i < BLOCKS; i++) {
		if (rand() % 3)
			continue;
		slab_free(f->slab, block[i]);
		block[i] = SLAB_NONE;
	}
	assert_int_equal(arena_attach(&arena, arena_fd(f->arena)), 0);
	assert_int_equal(
		slab_create(&slab, arena, ARENA_BLOCKS, sizes, NR_SIZES), 0);
	map = new_map(slab);
	/* Some are lost, and with them whole pages. */
	for (int i = 0; i < BLOCKS; i++) {
		if (i % 4 == 0 || size[i] >= 1360)
			block[i] = SLAB_NONE;
		if (block[i] == SLAB_NONE)
			continue;
		assert_int_equal(slab_claim(map, block[i]), 0);
		kept++;
	}
	assert_int_equal(arena_map_create(&arena_map, arena), 0);
	assert_int_equal(slab_map_finish(map, arena_map), 0);
	assert_int_equal(arena_settle(arena, arena_map), 0);
	arena_map_destroy(arena_map);
	assert_int_equal(slab_settle(slab, map), 0);
	assert_int_equal(slab_map_compare(map, slab), 0);
	slab_map_destroy(map);
	assert_int_equal(blocks(slab), kept);

	/* It works on: new blocks are zero, and are not what is kept. */
	for (int i = 0; i < BLOCKS; i++) {
		if (block[i] != SLAB_NONE)
			continue;
		size[i] = sizes[i % (NR_SIZES - 1)];
		block[i] = take(slab, size[i]);
		assert_true(is_zero(slab_address(slab, block[i]), size[i]));
		memset(slab_address(slab, block[i]), i % 255 + 1, size[i]);
	}
	for (int i = 0; i < BLOCKS; i++) {
		unsigned char *address = slab_address(slab, block[i]);

		for (int k = 0; k < size[i]; k++)
			assert_int_equal(address[k], i % 255 + 1);
		slab_free(slab, block[i]);
	}
	assert_int_equal(pages(slab), 0);
	slab_destroy(slab);
	arena_destroy(arena);
}

/* What the broken caller does, in a process of its own. */
static bool aborts(struct slab *slab, void (*act)(struct slab *slab))
{
	const struct rlimit no_core = {0, 0};
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		act(slab);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void free_twice(struct slab *slab)
{
	uint32_t block = take(slab, 64);

	take(slab, 64);
	slab_free(slab, block);
	slab_free(slab, block);
}

static void free_inner(struct slab *slab)
{
	slab_free(slab, take(slab, 64) + 1);
}

static void free_unknown(struct slab *slab)
{
	slab_free(slab, take(slab, 64) + (1u << SLAB_SHIFT));
}

/* The last four bytes are the owner's: whatever they are, it is no error. */
static void free_what_looks_free(struct slab *slab)
{
	uint32_t a = take(slab, 64), b = take(slab, 64), c = take(slab, 64);

	slab_free(slab, a);
	memcpy(slab_address(slab, b), slab_address(slab, a), 64);
	slab_free(slab, b);
	slab_free(slab, c);
}

static void test_misuse_is_caught(void **state)
{
	struct fixture *f = *state;

	assert_true(aborts(f->slab, free_twice));
	assert_true(aborts(f->slab, free_inner));
	assert_true(aborts(f->slab, free_unknown));
	free_what_looks_free(f->slab);
}

#define THREADS 3

/* Where threads leave numbers for readers that take no lock. */
static _Atomic uint32_t shown[THREADS];

struct churn {
	struct slab *slab;
	unsigned int seed;
	unsigned int number;
	_Atomic bool *stop;
};

static void *churn(void *argument)
{
	struct churn *c = argument;
	uint32_t held[200] = {0};
	void *complaint = NULL;

	for (int i = 0; i < 50000; i++) {
		int n = rand_r(&c->seed) % 200;
		_Atomic uint64_t *word;

		if (held[n]) {
			word = slab_address(c->slab, held[n]);
			if (atomic_load_explicit(word, memory_order_relaxed) !=
			    ((uint64_t)held[n] << 32 | c->number))
				complaint = "block is somebody else's";
			slab_free(c->slab, held[n]);
			held[n] = 0;
			continue;
		}
		if (slab_alloc(c->slab, 1 + rand_r(&c->seed) % 60, 0,
			       &held[n]) != 0)
			return "no block";
		word = slab_address(c->slab, held[n]);
		atomic_store_explicit(word,
				      ((uint64_t)held[n] << 32 | c->number),
				      memory_order_relaxed);
		atomic_store_explicit(&shown[c->number], held[n],
				      memory_order_release);
	}
	for (int n = 0; n < 200; n++)
		slab_free(c->slab, held[n]);
	return complaint;
}

/* Reads blocks that may be gone, as the object table's readers do. */
static void *peek(void *argument)
{
	struct churn *c = argument;
	uint64_t sum = 0;

	while (!*c->stop) {
		unsigned int n = rand_r(&c->seed) % THREADS;
		uint32_t block =
			atomic_load_explicit(&shown[n], memory_order_acquire);
		_Atomic uint64_t *word = slab_address(c->slab, block);

		sum += atomic_load_explicit(word, memory_order_relaxed);
	}
	return sum == 1 ? "unlikely" : NULL;
}

static void test_threads(void **state)
{
	static const uint16_t records[] = {24, 40, 64};
	struct fixture *f = *state;
	struct churn c[THREADS + 1];
	pthread_t thread[THREADS + 1];
	_Atomic bool stop = false;
	struct slab *slab;
	void *complaint;

	assert_int_equal(
		slab_create(&slab, f->arena, ARENA_OBJECTS, records, 3), 0);
	for (unsigned int i = 0; i <= THREADS; i++) {
		c[i] = (struct churn){slab, i + 1, i, &stop};
		assert_int_equal(pthread_create(&thread[i], NULL,
						i < THREADS ? churn : peek,
						&c[i]),
				 0);
	}
	for (unsigned int i = 0; i <= THREADS; i++) {
		stop = i == THREADS;
		pthread_join(thread[i], &complaint);
		assert_null(complaint);
	}
	assert_int_equal(blocks(slab), 0);
	assert_int_equal(pages(slab), 0);
	slab_destroy(slab);
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_sizes),
		test(test_bad_sizes),
		test(test_zero_is_no_block),
		test(test_random_blocks_against_model),
		test(test_sparse_pages_empty_first),
		test(test_freed_block_keeps_its_head),
		test(test_limit),
		test(test_scan),
		test(test_claims),
		test(test_attach_and_settle),
		test(test_misuse_is_caught),
		test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
