/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slab.h - blocks smaller than a page, named by 32-bit numbers
 *
 * A slab cuts the pages of one arena region into blocks. Each page holds
 * blocks of one size; the size is in the page's arena_frame (kind), free
 * blocks are chained through the frame and through themselves, pages with
 * room are listed for each size, and a page whose last block is freed goes
 * back to the arena.
 *
 * A block's number is page << SLAB_SHIFT | (offset in page / SLAB_UNIT): its
 * address is found by arithmetic alone. Number 0 is never given out.
 * SLAB_UNIT is 8 bytes, so a region has at most 2^23 pages (32 GiB).
 *
 * Freeing leaves a block's contents but for its last 4 bytes, and slab_alloc()
 * clears by atomic stores of 8 bytes: a reader without locks, whose number has
 * become stale, may read a block by atomic loads and find out afterwards. What
 * slab_scan() is to find dead has to look dead before it is freed.
 *
 * Truth: the sizes in the frames, and the blocks as their owners reach them.
 * Derived: which blocks are free. Locks: one mutex for each size, a leaf but
 * for the arena's. Blocks never move. Thread-safe unless said otherwise.
 */
#ifndef ZRAMFS_SLAB_H
#define ZRAMFS_SLAB_H

#include "arena/arena.h"

#define SLAB_UNIT_SHIFT 3
#define SLAB_SHIFT	(PAGE_SHIFT - SLAB_UNIT_SHIFT)
#define SLAB_NONE	0u

struct slab;

/*
 * Sizes: ascending multiples of 8 from 8 to 4096; a request gets the smallest
 * that fits. The list is copied. -ENOMEM, -EINVAL.
 */
int slab_create(struct slab **slab, struct arena *arena,
		enum arena_region region, const uint16_t *sizes,
		unsigned int nr_sizes);
void slab_destroy(struct slab *slab);

/*
 * Get a block of at least size bytes, all zero. flags: ARENA_RESERVE or 0.
 * -ENOSPC as arena_alloc(); -EINVAL when size is above the largest.
 */
int slab_alloc(struct slab *slab, size_t size, unsigned int flags,
	       uint32_t *block);

/* Never allocates, cannot fail. block must be live; SLAB_NONE is ignored. */
void slab_free(struct slab *slab, uint32_t block);

/* Address of a block; also of one that is free (memory stays mapped). */
void *slab_address(const struct slab *slab, uint32_t block);

/* Size that slab_alloc() gave this live block. */
size_t slab_size(const struct slab *slab, uint32_t block);

/* Size that a request of this many bytes would get, 0 if none. */
size_t slab_size_for(const struct slab *slab, size_t size);

struct slab_usage {
	uint64_t blocks; /* in use */
	uint64_t bytes;	 /* in use, at their slab sizes */
	uint64_t pages;	 /* given by the arena */
};
void slab_usage(const struct slab *slab, struct slab_usage *usage);

/*
 * Call visit for every block of every page in use that was ever given out, live
 * or free since, in ascending order; stops at and returns the first non-zero result. For tables
 * whose records say by themselves whether they are live. Not thread-safe.
 */
int slab_scan(struct slab *slab,
	      int (*visit)(void *context, uint32_t block, void *address),
	      void *context);

/*
 * Claims, as arena.h's: the blocks in use as their owners tell it.
 * slab_claim(): -EEXIST if claimed twice, -ERANGE if no block can start there.
 * slab_map_finish(): claims in the arena map each page that has a claimed block.
 * slab_map_compare(): number of blocks on which the live free lists disagree.
 * slab_settle(): after an attach, rebuild the free lists from the claims; runs
 * after arena_settle(). None of these is thread-safe.
 */
struct slab_map;
int slab_map_create(struct slab_map **map, const struct slab *slab);
void slab_map_destroy(struct slab_map *map);
int slab_claim(struct slab_map *map, uint32_t block);
int slab_map_finish(struct slab_map *map, struct arena_map *arena_map);
uint64_t slab_map_compare(const struct slab_map *map, const struct slab *slab);
int slab_settle(struct slab *slab, const struct slab_map *map);

#endif
