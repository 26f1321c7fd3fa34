/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * arena.c - giving out pages, taking them back, and counting them
 *
 * A page costs memory from when it is first given out until it is trimmed;
 * so does a page of frames, for as long as a page that it describes does.
 */
#include "arena/arena.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "arena/arena_internal.h"
#include "fault.h"

int arena_fd(const struct arena *arena)
{
	return arena->fd;
}

static uint64_t limit_pages(const struct arena *arena)
{
	uint64_t limit = counter_read(&arena->super->limit);

	return limit ? limit / PAGE_SIZE : UINT64_MAX / 2;
}

/*
 * What excess pages come on top of: the limit, or when it was set below what
 * is used, the least that has been used since. Relaxed: only ever lowered, so
 * who sees an older value is allowed what was allowed a moment ago.
 */
static uint64_t excess_base(struct arena *arena)
{
	uint64_t total = counter_read(&arena->total);
	uint64_t limit = limit_pages(arena);
	uint64_t base = total > limit ? total : limit;
	uint64_t least = counter_read(&arena->least_over);

	while (base < least &&
	       !atomic_compare_exchange_weak_explicit(
		       &arena->least_over, &least, base, memory_order_relaxed,
		       memory_order_relaxed))
		;
	return base < least ? base : least;
}

bool arena_charge(struct arena *arena, uint64_t pages, uint64_t excess)
{
	uint64_t bound =
		excess ? excess_base(arena) + excess : limit_pages(arena);
	uint64_t total = counter_read(&arena->total);
	uint64_t peak;

	do {
		/* Also for no pages: above the limit, nothing is given. */
		if (total + pages > bound)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&arena->total, &total, total + pages, memory_order_relaxed,
		memory_order_relaxed));

	peak = counter_read(&arena->super->peak);
	while (total + pages > peak &&
	       !atomic_compare_exchange_weak_explicit(
		       &arena->super->peak, &peak, total + pages,
		       memory_order_relaxed, memory_order_relaxed))
		;
	return true;
}

struct run {
	uint32_t page;
	uint64_t dirty;	    /* which of its pages are, in the word */
	unsigned int clean; /* how many are */
};

static unsigned int excess_pages(unsigned int flags)
{
	if (flags & ARENA_RESERVE)
		return ARENA_RESERVE_PAGES;
	return flags & ARENA_RESERVE_SOME ? ARENA_RESERVE_PAGES / 2 : 0;
}

/*
 * The lowest run, counted in and marked. -ENOSPC: there is none; -EDQUOT: the
 * limit; -EAGAIN: pages are held, so that the answer might be another without
 * them. Region lock held.
 */
static int take_run(struct arena *arena, enum arena_region nr_region,
		    unsigned int nr, unsigned int flags, struct run *run)
{
	struct region *region = &arena->region[nr_region];
	unsigned int cost, frames = 0;
	struct pageword *word;
	uint64_t mask;
	bool array;

	/* These must grow at their end, also while that page is held. */
	array = nr_region == ARENA_BUCKETS || nr_region == ARENA_NAMES;
	if (region->nr_held && array)
		return -EAGAIN;
	if (!pagemap_find(&region->map, nr, &run->page))
		return region->nr_held ? -EAGAIN : -ENOSPC;

	word = &region->map.words[run->page >> WORD_SHIFT];
	mask = pagemap_mask(run->page, nr);
	run->dirty = word->dirty & mask;
	run->clean = nr - __builtin_popcountll(run->dirty);
	if (region->frames)
		frames = !region->frames_touched[run->page >> GROUP_SHIFT];
	cost = run->clean + frames;
	if (!arena_charge(arena, cost, excess_pages(flags)))
		return -EDQUOT;

	word->used |= mask;
	word->dirty &= ~mask;
	if (frames) {
		region->frames_touched[run->page >> GROUP_SHIFT] = 1;
		counter_add(&arena->fixed, 1);
	}
	if (run->clean)
		counter_add(&region->resident, run->clean);
	if (run->clean < nr)
		counter_sub(&region->dirty, nr - run->clean);
	/* Release: who sees the extent may look at frames below it. */
	if (run->page + nr > counter_read(region->extent))
		atomic_store_explicit(region->extent, run->page + nr,
				      memory_order_release);
	return 0;
}

/* How far an allocation of nr pages is from fitting under the limit. */
static uint64_t pages_over(const struct arena *arena, unsigned int nr)
{
	uint64_t need = counter_read(&arena->total) + nr + 1;
	uint64_t limit = limit_pages(arena);

	return need > limit ? need - limit : 0;
}

/*
 * With the trim lock nothing is held, and dirty pages can be given back until
 * the allocation fits. Others may take what was given back: a few rounds only.
 */
static int take_run_slowly(struct arena *arena, enum arena_region nr_region,
			   unsigned int nr, unsigned int flags, struct run *run)
{
	struct region *region = &arena->region[nr_region];
	unsigned int rounds = 8;
	int err;

	pthread_mutex_lock(&arena->trim_lock);
	do {
		pthread_mutex_lock(&region->lock);
		err = take_run(arena, nr_region, nr, flags, run);
		pthread_mutex_unlock(&region->lock);
	} while (err == -EDQUOT && rounds-- &&
		 arena_reclaim(arena, pages_over(arena, nr)));
	pthread_mutex_unlock(&arena->trim_lock);
	return err ? -ENOSPC : 0;
}

int arena_alloc(struct arena *arena, enum arena_region nr_region,
		unsigned int nr, unsigned int flags, uint32_t *page)
{
	struct region *region = &arena->region[nr_region];
	struct run run;
	int err;

	assert(nr >= 1 && nr <= ARENA_RUN_MAX);
	assert(arena->settled);
	if (fault_alloc())
		return -ENOSPC;
	pthread_mutex_lock(&region->lock);
	err = take_run(arena, nr_region, nr, flags, &run);
	pthread_mutex_unlock(&region->lock);
	if (err == -EDQUOT || err == -EAGAIN)
		err = take_run_slowly(arena, nr_region, nr, flags, &run);
	if (err)
		return err;

	fault_point("page taken");
	if (flags & ARENA_ZERO)
		for (uint64_t left = run.dirty; left; left &= left - 1)
			memset(region->base +
				       (uint64_t)((run.page &
						   ~(WORD_PAGES - 1)) +
						  __builtin_ctzll(left)) *
					       PAGE_SIZE,
			       0, PAGE_SIZE);
	*page = run.page;
	return 0;
}

void arena_free(struct arena *arena, enum arena_region nr_region, uint32_t page,
		unsigned int nr)
{
	struct region *region = &arena->region[nr_region];
	uint32_t number = page >> WORD_SHIFT;
	struct pageword *word;
	uint64_t mask;

	assert(nr >= 1 && page % WORD_PAGES + nr <= WORD_PAGES);
	assert(page < region->pages);
	/*
	 * Atomically, as a reader whose number has become stale may look at a
	 * frame meanwhile; it finds out afterwards.
	 */
	if (region->frames) {
		uint64_t *frame = (uint64_t *)&region->frames[page];

		for (unsigned int i = 0; i < 2 * nr; i++)
			__atomic_store_n(&frame[i], 0, __ATOMIC_RELAXED);
	}

	fault_point("page to be given back");
	mask = pagemap_mask(page, nr);
	word = &region->map.words[number];
	pthread_mutex_lock(&region->lock);
	assert((word->used & mask) == mask && "page freed that is not in use");
	word->used &= ~mask;
	word->dirty |= mask;
	counter_add(&region->dirty, nr);
	if (region->dirty_low > number)
		region->dirty_low = number;
	pagemap_opened(&region->map, page, nr);
	pthread_mutex_unlock(&region->lock);
}

void *arena_page(const struct arena *arena, enum arena_region region,
		 uint32_t page)
{
	return arena->region[region].base + (uint64_t)page * PAGE_SIZE;
}

struct arena_frame *arena_frame(const struct arena *arena,
				enum arena_region region, uint32_t page)
{
	return &arena->region[region].frames[page];
}

bool arena_frame_touched(const struct arena *arena, enum arena_region region,
			 uint32_t page)
{
	return !arena->settled ||
	       arena->region[region].frames_touched[page >> GROUP_SHIFT];
}

void *arena_root(const struct arena *arena, enum arena_root root)
{
	return arena->base + (uint64_t)(1 + root) * PAGE_SIZE;
}

uint32_t arena_extent(const struct arena *arena, enum arena_region region)
{
	return atomic_load_explicit(arena->region[region].extent,
				    memory_order_acquire);
}

uint32_t arena_capacity(const struct arena *arena, enum arena_region region)
{
	return arena->region[region].pages;
}

void arena_set_limit(struct arena *arena, uint64_t limit)
{
	atomic_store_explicit(&arena->super->limit, limit,
			      memory_order_relaxed);
	atomic_store_explicit(&arena->least_over, UINT64_MAX / 2,
			      memory_order_relaxed);
}

/* At least: of the pages set aside some may be in use, and not be dirty. */
static uint64_t trimmable_pages(const struct region *region)
{
	uint64_t dirty = counter_read(&region->dirty);

	return dirty > region->aside ? dirty - region->aside : 0;
}

bool arena_is_full(const struct arena *arena, unsigned int nr)
{
	uint64_t need = counter_read(&arena->total) + nr;
	uint64_t limit = limit_pages(arena);

	/* Dirty pages would be given back first. */
	for (unsigned int r = 0; r < ARENA_REGIONS && need > limit; r++) {
		uint64_t dirty = trimmable_pages(&arena->region[r]);

		need -= dirty < need ? dirty : need;
	}
	return need > limit;
}

void arena_usage(const struct arena *arena, struct arena_usage *usage)
{
	uint64_t dirty = 0, trimmable = 0;

	for (unsigned int r = 0; r < ARENA_REGIONS; r++) {
		const struct region *region = &arena->region[r];

		usage->resident[r] =
			counter_read(&region->resident) * PAGE_SIZE;
		dirty += counter_read(&region->dirty);
		trimmable += trimmable_pages(region);
	}
	usage->dirty = dirty * PAGE_SIZE;
	usage->trimmable = trimmable * PAGE_SIZE;
	usage->fixed = counter_read(&arena->fixed) * PAGE_SIZE;
	usage->total = counter_read(&arena->total) * PAGE_SIZE;
	usage->peak = counter_read(&arena->super->peak) * PAGE_SIZE;
	usage->limit = counter_read(&arena->super->limit);
}

void arena_reset_peak(struct arena *arena)
{
	atomic_store_explicit(&arena->super->peak, counter_read(&arena->total),
			      memory_order_relaxed);
}
