/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * driver.h - what the fuzzers share: random numbers, guarded buffers, time
 *
 * Each fuzzer is LLVMFuzzerTestOneInput(), which ends the program when a
 * promise is broken, and a main() that feeds it damaged valid input for some
 * seconds. Built with -DLIBFUZZER it has no main(), and libFuzzer feeds it:
 *
 *	clang -g -fsanitize=fuzzer,address -DLIBFUZZER -D_GNU_SOURCE -Isrc -I. \
 *		tests/fuzz/fuzz_codec.c codec/[a-z]*.c -lzstd -llz4 -llzo2 \
 *		-ldeflate
 */
#ifndef ZRAMFS_FUZZ_DRIVER_H
#define ZRAMFS_FUZZ_DRIVER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Says what was broken, as TAP does, and ends the program for a core dump. */
#define PROMISE(what)                                   \
	do {                                            \
		if (!(what)) {                          \
			printf("not ok - %s\n", #what); \
			fflush(stdout);                 \
			abort();                        \
		}                                       \
	} while (0)

/* size bytes that end where nothing may be touched. */
static inline uint8_t *driver_guarded(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t room = (size + page - 1) / page * page;
	uint8_t *area = mmap(NULL, room + 2 * page, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED ||
	    mprotect(area + page, room, PROT_READ | PROT_WRITE)) {
		perror("driver_guarded");
		exit(1);
	}
	return area + page + room - size;
}

#ifndef LIBFUZZER
static uint64_t driver_state = 1;

/* splitmix64 (Steele, Lea, Flood 2014): any seed is a good one. */
static inline uint64_t driver_random(void)
{
	uint64_t z = (driver_state += 0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* 0 to below - 1. */
static inline size_t driver_below(size_t below)
{
	return driver_random() % below;
}

static inline double driver_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* FUZZER [SECONDS [SEED]]; the seed is said, to run it again. */
static inline double driver_start(int argc, char **argv, double seconds)
{
	driver_state = (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid();
	if (argc > 1)
		seconds = atof(argv[1]);
	if (argc > 2)
		driver_state = strtoull(argv[2], NULL, 0);
	printf("# seed %llu\n", (unsigned long long)driver_state);
	fflush(stdout);
	return seconds;
}

/*
 * Damage in place, within capacity, most of it small: what is all wrong is
 * refused at its first byte and teaches nothing. Returns the new size.
 */
static inline size_t driver_damage(uint8_t *data, size_t size, size_t capacity)
{
	for (size_t times = driver_below(4) + 1; times && size; times--) {
		size_t at = driver_below(size);
		size_t len = driver_below(size - at) % 32 + 1;

		switch (driver_below(7)) {
		case 0:
			data[at] ^= (uint8_t)(1u << driver_below(8));
			break;
		case 1:
			data[at] = (uint8_t)driver_random();
			break;
		case 2:
			data[at] = driver_below(2) ? 0xff : 0;
			break;
		case 3: /* lose the end */
			size = at;
			break;
		case 4: /* lose some */
			for (size_t i = at; i + len < size; i++)
				data[i] = data[i + len];
			size -= len;
			break;
		case 5: /* repeat some */
			for (size_t i = at; i + len < size; i++)
				data[i + len] = data[i];
			break;
		case 6: /* more at the end */
			for (; len && size < capacity; len--)
				data[size++] = (uint8_t)driver_random();
			break;
		}
	}
	return size;
}
#endif

#endif
