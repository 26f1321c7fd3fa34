/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stress.h - what the parts of the stress program share
 *
 * own.c      files of one thread, each held against a model in memory
 * shared.c   files that all threads write at once, in blocks that say what
 *            they are
 * names.c    directory entries that all threads make, move and remove at once
 *
 * The first thing that is wrong ends the whole program.
 */
#ifndef ZRAMFS_TESTS_STRESS_H
#define ZRAMFS_TESTS_STRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fill.h"

#define STRESS_PAGE    4096
#define STRESS_IO_MAX  (1u << 20)
#define STRESS_PATH    512
#define STRESS_THREADS 256

struct stress {
	const char *directory;
	unsigned int threads;
	uint64_t seed;
	bool strict_direct; /* O_DIRECT wants 512-byte alignment here */
	bool direct;	    /* the filesystem has O_DIRECT */
	bool mapped;	    /* ... and shared writable mappings */
};
extern struct stress stress;

struct stress_thread {
	unsigned int number;
	uint64_t operations;
	uint64_t bytes;
	struct rng rng;
	uint8_t *buffer; /* STRESS_IO_MAX bytes, page-aligned */
	uint8_t *other;	 /* the same */
	struct own *own;
	struct shared_view *shared;
};

/* Say what is wrong and end the program with status 1. */
void stress_fail(const struct stress_thread *thread, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

/* Read or write all of it, or say what went wrong and end the program. */
void stress_write(struct stress_thread *thread, int fd, const char *path,
		  const void *buffer, size_t length, uint64_t offset);
size_t stress_read(struct stress_thread *thread, int fd, const char *path,
		   void *buffer, size_t length, uint64_t offset);

/* Lengths from a byte to 1 MiB, short and page-sized ones most often. */
size_t stress_length(struct rng *rng, size_t most);

void own_start(struct stress_thread *thread);
void own_step(struct stress_thread *thread);
void own_finish(struct stress_thread *thread);

void shared_create(void);
void shared_start(struct stress_thread *thread);
void shared_step(struct stress_thread *thread);
void shared_finish(struct stress_thread *thread);

void names_create(void);
void names_step(struct stress_thread *thread);

#endif
