/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block_decide.h - when to trim, and how much room there is for new data
 *
 * Decided from looks at the mounted filesystem's counters, the store's, and
 * the clock; does nothing itself. Two things tell of what was freed: more
 * blocks are free than were at some time since the last trim; or more pages
 * are stored, by more than then, than the filesystem says it uses. The first
 * sees a single block, but not what was freed and used again elsewhere between
 * two looks; the second sees that.
 */
#ifndef ZRAMFS_BLOCK_DECIDE_H
#define ZRAMFS_BLOCK_DECIDE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes, at one look. */
struct block_look {
	uint64_t used;
	uint64_t free;
	uint64_t stored;
	unsigned int block_size;
	uint64_t limit; /* of memory; 0: none */
	uint64_t left;
};

/* What is remembered between them. All zero: there was none yet. */
struct block_memory {
	bool known;  /* last is the look before */
	bool warned; /* of memory that is nearly full */
	bool wanted; /* trim whatever the signs say */
	bool anew;   /* the next trim is to miss nothing */
	struct block_look last;
	uint64_t lowest;  /* of free, since the last trim */
	int64_t baseline; /* stored - used, after the last trim */
	int64_t since;	  /* ms: when there was something first; 0: nothing */
};

/*
 * Whether to trim now. now: ms, of any clock that does not go back, and not 0.
 * When not, this look is the last one from now on.
 */
bool block_decide_trim(struct block_memory *memory,
		       const struct block_look *look, int64_t now);

/* Nothing is left to trim, as of this look. */
void block_decide_trimmed(struct block_memory *memory,
			  const struct block_look *look);

/*
 * What is freed while a trim is under way may have been missed by it: then
 * there is something left, however little it seems. After the above.
 */
void block_decide_missed(struct block_memory *memory,
			 const struct block_look *before,
			 const struct block_look *after);

/* Bytes that the filesystem may take beyond what it has. */
uint64_t block_decide_room(const struct block_look *look);

/*
 * Whether to warn that memory is full but for a reserve: once, until a good
 * part of it is free again.
 */
bool block_decide_warning(struct block_memory *memory,
			  const struct block_look *look);

#endif
