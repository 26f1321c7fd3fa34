/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fill.h - bytes to write: chance by seed, and contents of several kinds
 *
 * All is determined by seeds, so that a reader can make what a writer wrote.
 */
#ifndef ZRAMFS_TESTS_FILL_H
#define ZRAMFS_TESTS_FILL_H

#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t state;
};

void rng_seed(struct rng *rng, uint64_t seed);
uint64_t rng_next(struct rng *rng);
/* 0 <= result < bound; bound > 0. */
uint64_t rng_below(struct rng *rng, uint64_t bound);

enum fill_kind {
	FILL_ZERO,
	FILL_WORD,	/* one 8-byte word, repeated */
	FILL_TEXT,	/* compresses to a third or so */
	FILL_RANDOM,	/* does not compress */
	FILL_DUPLICATE, /* one of FILL_DUPLICATES pages */
	FILL_KINDS
};
#define FILL_DUPLICATES 16

/*
 * Fill with content of a kind. offset is the place in the file: words and
 * duplicate pages are aligned to it, so that whole pages come out equal.
 */
void fill(void *buffer, size_t length, uint64_t offset, enum fill_kind kind,
	  uint64_t seed);

/* The first place where two buffers differ, or length. */
size_t first_difference(const void *a, const void *b, size_t length);

#endif
