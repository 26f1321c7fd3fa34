/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * arena_internal.h - what the arena's own files share
 *
 * arena.c gives pages out and takes them back, trim.c gives memory back to the
 * system, bring.c gets it ahead of need, arena_map.c compares and restores.
 *
 * Locks, from outside in:
 *   arena.trim_lock  who holds it may set `held` bits: so whoever has it knows
 *                    that no free page is withheld. Never waited for by the
 *                    common allocation or by freeing.
 *   region.lock      the region's pagemap, frames_touched, dirty_low, nr_held.
 *                    Never held across a system call.
 *
 * Counters are atomic so that reading them takes no lock; all are changed and
 * read relaxed, as nothing else is published through them.
 */
#ifndef ZRAMFS_ARENA_INTERNAL_H
#define ZRAMFS_ARENA_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "arena/arena.h"
#include "arena/pagemap.h"

/* Pages whose frames share one page, and the words of the pagemap for them. */
#define GROUP_SHIFT 8
#define GROUP_PAGES (1u << GROUP_SHIFT)
#define GROUP_WORDS (GROUP_PAGES / WORD_PAGES)

_Static_assert(GROUP_PAGES * sizeof(struct arena_frame) == PAGE_SIZE,
	       "a page has the frames of one group");

/* First page of the memfd. */
struct arena_super {
	uint64_t magic;
	uint32_t version;
	uint32_t regions;
	uint64_t size;
	_Atomic uint64_t limit; /* bytes, 0: none */
	_Atomic uint64_t peak;	/* pages */
	struct {
		uint64_t offset;
		uint64_t frames; /* offset, 0: region has no frames */
		uint32_t pages;
		_Atomic uint32_t extent;
	} region[ARENA_REGIONS];
};

_Static_assert(sizeof(struct arena_super) <= PAGE_SIZE, "super is one page");

struct region {
	_Alignas(64) pthread_mutex_t lock;
	struct pagemap map;
	uint8_t *frames_touched; /* for each group: its frames have memory */
	uint32_t dirty_low;	 /* no word below it has a dirty page */
	uint32_t nr_held;
	uint32_t aside;	 /* the first pages, that are not trimmed */

	/* constant */
	char *base;
	struct arena_frame *frames; /* NULL: region has none */
	uint64_t offset;
	uint64_t frames_offset;
	uint32_t pages;
	_Atomic uint32_t *extent; /* in the super block */

	_Atomic uint64_t resident; /* pages */
	_Atomic uint64_t dirty;	   /* pages, among them those held */
};

struct arena {
	int fd;
	char *base;
	uint64_t size;
	struct arena_super *super;
	bool settled; /* false: attached, and live state not yet known */
	pthread_mutex_t trim_lock;
	_Alignas(64) _Atomic uint64_t total; /* pages */
	_Atomic uint64_t fixed;		     /* pages */
	_Atomic uint64_t least_over;	     /* pages; see excess_base() */
	struct region region[ARENA_REGIONS];
};

#define counter_add(counter, n) \
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed)
#define counter_sub(counter, n) \
	atomic_fetch_sub_explicit(counter, n, memory_order_relaxed)
#define counter_read(counter) \
	atomic_load_explicit(counter, memory_order_relaxed)

/*
 * Count pages in, unless the total would then be above the limit plus excess
 * pages. Exact: threads cannot pass the limit together.
 */
bool arena_charge(struct arena *arena, uint64_t pages, uint64_t excess);

/* trim.c, trim_lock held: give about `want` dirty pages back, of any age. */
uint64_t arena_reclaim(struct arena *arena, uint64_t want);

/* trim.c: 0 or negative errno. */
int arena_punch(const struct arena *arena, uint64_t offset, uint64_t length);

/*
 * False when the frame of this page is known to be zero; then it should not be
 * looked at, which would give it memory that nobody counts.
 */
bool arena_frame_touched(const struct arena *arena, enum arena_region region,
			 uint32_t page);

#endif
