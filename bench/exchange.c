/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exchange.c - what memory costs that two processors write and read in turn
 *
 *	exchange
 *
 * One thread writes a megabyte, a thread on another processor reads it, and so
 * on, as a client and a FUSE daemon do with every request. Prints one JSON
 * object: nanoseconds for each cache line that is written again after the other
 * has read it, the median of many turns.
 *
 * On processors that share a cache that is some 5 ns. The host of a virtual
 * machine may at any time run its processors where they share none: then it is
 * 20 to 40 ns, and whatever passes data from one processor to the other is as
 * much slower, while a filesystem in the kernel, which runs where its caller
 * does, is not.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SIZE  (1u << 20)
#define LINE  64u
#define TURNS 99

struct passed {
	/* Whose turn it is. Release and acquire: the memory comes with it. */
	_Atomic bool readable;
	uint64_t words[SIZE / sizeof(uint64_t)];
	uint64_t copy[SIZE / sizeof(uint64_t)];
};

static struct passed passed;

static void fail(const char *what, int err)
{
	fprintf(stderr, "exchange: %s: %s\n", what, strerror(err));
	exit(1);
}

static double nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

static void wait_until(bool readable)
{
	while (atomic_load_explicit(&passed.readable, memory_order_acquire) !=
	       readable)
		;
}

static void pass(bool readable)
{
	atomic_store_explicit(&passed.readable, readable, memory_order_release);
}

/* Stay on the nth of the processors that may be used. */
static void stay(int nth)
{
	cpu_set_t all, one;
	int cpu = 0;

	if (sched_getaffinity(0, sizeof(all), &all))
		fail("sched_getaffinity", errno);
	while (cpu < CPU_SETSIZE && (!CPU_ISSET(cpu, &all) || nth--))
		cpu++;
	if (cpu == CPU_SETSIZE) {
		fprintf(stderr, "exchange: needs two processors\n");
		exit(1);
	}
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		fail("sched_setaffinity", errno);
}

static void *read_in_turn(void *unused)
{
	stay(1);
	for (int turn = 0; turn < TURNS; turn++) {
		wait_until(true);
		memcpy(passed.copy, passed.words, SIZE);
		pass(false);
	}
	return unused;
}

/* Volatile: the compiler would call memset, which may write without reading. */
static double write_all(uint64_t value)
{
	volatile uint64_t *word = passed.words;
	double start = nanoseconds();

	for (size_t i = 0; i < SIZE / sizeof(*word); i++)
		word[i] = value;
	return nanoseconds() - start;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int main(void)
{
	double took[TURNS];
	pthread_t reader;
	int err = pthread_create(&reader, NULL, read_in_turn, NULL);

	if (err)
		fail("pthread_create", err);
	stay(0);
	for (int turn = 0; turn < TURNS; turn++) {
		wait_until(false);
		took[turn] = write_all(turn);
		pass(true);
	}
	pthread_join(reader, NULL);
	qsort(took, TURNS, sizeof(*took), compare);
	printf("{\"line_ns\": %.1f}\n", took[TURNS / 2] / (SIZE / LINE));
	return 0;
}
