/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_process_memory.c - what the process costs: private memory, no shared
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "process_memory.h"

#define SIZE (32u << 20)

/* Long enough for a kept answer to be thrown away. */
static uint64_t fresh(void)
{
	usleep(500 * 1000);
	return process_memory_bytes();
}

static void *map(int flags)
{
	void *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			    MAP_ANONYMOUS | flags, -1, 0);

	assert_true(memory != MAP_FAILED);
	memset(memory, 1, SIZE);
	return memory;
}

/* ThreadSanitizer's shadow is several times what is measured. */
static void need_memory_alone(void)
{
#ifdef __SANITIZE_THREAD__
	skip();
#endif
}

static void test_counts_private_memory(void **state)
{
	uint64_t before, with;
	void *memory;

	need_memory_alone();
	before = fresh();
	memory = map(MAP_PRIVATE);
	with = fresh();

	assert_true(before > 0);
	assert_in_range(with - before, SIZE - (1 << 20), SIZE + (1 << 20));
	munmap(memory, SIZE);
	assert_in_range(fresh(), 1, with - SIZE / 2);
}

/* What has run stays mapped else, and much beside it. */
static void test_lets_code_go(void **state)
{
	uint64_t before, after;

	need_memory_alone();
	before = fresh();
	process_memory_let_code_go();
	after = fresh();
	assert_in_range(after, 1, before - 1);
	process_memory_let_code_go();
}

static void test_leaves_shared_memory_out(void **state)
{
	uint64_t before;
	void *memory;

	need_memory_alone();
	before = fresh();
	memory = map(MAP_SHARED);

	assert_in_range(fresh(), before / 2, before + (1 << 20));
	munmap(memory, SIZE);
}

static void test_the_most_begins_anew(void **state)
{
	uint64_t with;
	void *memory;

	need_memory_alone();
	memory = map(MAP_PRIVATE);
	with = fresh();
	munmap(memory, SIZE);
	assert_in_range(fresh(), 1, with - SIZE / 2);
	assert_in_range(process_memory_most(), with, UINT64_MAX);
	process_memory_reset_most();
	assert_in_range(process_memory_most(), 1, with - SIZE / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts_private_memory),
		cmocka_unit_test(test_lets_code_go),
		cmocka_unit_test(test_leaves_shared_memory_out),
		cmocka_unit_test(test_the_most_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
