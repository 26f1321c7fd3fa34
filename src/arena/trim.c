/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trim.c - giving the memory of free pages back to the system
 *
 * Works in batches: under the region's lock, choose dirty pages and set their
 * `held` bits, so that nobody is given them; without the lock, punch holes,
 * neighbours together; under the lock again, make them clean. The trim lock
 * is held for a batch, so that an allocation which finds the arena full waits
 * for one batch and not for the whole trimming.
 *
 * Whoever needs a page gets memory for that one only: MADV_POPULATE_WRITE of 4
 * to 256 at a time was measured to cost as much for each (2.4 to 3.1 us) as
 * touching them one by one (2.5 to 3.3 us), and makes one caller pay for all;
 * bring.c is for threads that have time. Nor does memory come in huge pages (a
 * file of a detached tmpfs, huge=advise): 0.14 us for each page where the guest
 * has them, but 5 to 10 us where the host took free blocks of that size back
 * meanwhile, as free page reporting does; writing 32 MiB into a fresh mount
 * then took twice as long.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "arena/arena_internal.h"

#define BATCH_GROUPS 8u	  /* at most 8 MiB in a batch: some 2 ms */
#define SCAN_GROUPS  1024 /* looked at in one holding of the lock */
#define RECLAIM_MIN  32	  /* pages, as a punch costs as much as ten pages */

struct chosen {
	uint32_t group;
	bool frames; /* the group will be empty: its frames go too */
	uint64_t take[GROUP_WORDS];
};

struct batch {
	unsigned int nr;
	unsigned int pages;
	struct chosen group[BATCH_GROUPS];
};

int arena_punch(const struct arena *arena, uint64_t offset, uint64_t length)
{
	while (fallocate(arena->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			 offset, length) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* Which of the word's pages were set aside. */
static uint64_t aside_mask(const struct region *region, uint64_t number)
{
	uint64_t first = number * WORD_PAGES;

	if (region->aside <= first)
		return 0;
	return region->aside - first >= WORD_PAGES
		       ? ~0ull
		       : pagemap_mask(first, region->aside - first);
}

static void set_aside_words(struct region *region, uint32_t nr)
{
	uint64_t added = 0;

	region->aside = nr;
	for (uint32_t i = 0; i * WORD_PAGES < nr; i++) {
		struct pageword *word = &region->map.words[i];
		uint64_t fresh =
			aside_mask(region, i) & ~word->used & ~word->dirty;

		word->dirty |= fresh;
		added += __builtin_popcountll(fresh);
	}
	region->dirty_low = 0;
	counter_add(&region->resident, added);
	counter_add(&region->dirty, added);
}

/* How many of the first nr pages are neither used nor dirty. */
static uint64_t count_clean(const struct region *region, uint32_t nr)
{
	uint64_t clean = 0;

	for (uint32_t page = 0; page < nr; page++) {
		const struct pageword *word =
			&region->map.words[page >> WORD_SHIFT];

		clean += !((word->used | word->dirty) & pagemap_mask(page, 1));
	}
	return clean;
}

int arena_set_aside(struct arena *arena, enum arena_region nr_region,
		    uint32_t nr)
{
	struct region *region = &arena->region[nr_region];
	int err = 0;

	assert(!region->frames && nr <= region->pages);
	/* Not only a hint: what cannot be had now cannot be relied on. */
	if (nr && madvise(region->base, (size_t)nr * PAGE_SIZE,
			  MADV_POPULATE_WRITE) < 0)
		return -errno;
	pthread_mutex_lock(&region->lock);
	if (arena_charge(arena, count_clean(region, nr), 0))
		set_aside_words(region, nr);
	else
		err = -ENOSPC;
	pthread_mutex_unlock(&region->lock);
	return err;
}

/* Choose up to max of the group's pages. Returns how many. */
static unsigned int choose_pages(struct region *region, struct chosen *chosen,
				 uint64_t max)
{
	struct pageword *word = &region->map.words[chosen->group * GROUP_WORDS];
	unsigned int pages = 0;
	bool dirty = false;

	chosen->frames =
		region->frames && region->frames_touched[chosen->group];
	for (unsigned int i = 0; i < GROUP_WORDS; i++, word++) {
		uint64_t number = chosen->group * GROUP_WORDS + i;
		uint64_t take = word->dirty & ~aside_mask(region, number);

		while (pages + __builtin_popcountll(take) > max)
			take &= take - 1;
		chosen->take[i] = take;
		pages += __builtin_popcountll(take);
		dirty |= word->dirty != 0;
		if (word->used || word->dirty != take)
			chosen->frames = false;
	}
	if (!dirty && region->dirty_low >> 2 == chosen->group)
		region->dirty_low = (chosen->group + 1) * GROUP_WORDS;
	return pages;
}

static void hold(struct region *region, const struct chosen *chosen)
{
	struct pageword *word = &region->map.words[chosen->group * GROUP_WORDS];

	for (unsigned int i = 0; i < GROUP_WORDS; i++)
		word[i].held = chosen->frames ? ~0ull : chosen->take[i];
	region->nr_held++;
}

/* Fill a batch from *group on, and move *group on. */
static void fill_batch(struct region *region, struct batch *batch,
		       uint32_t *group, uint64_t max)
{
	uint32_t end, stop;

	batch->nr = 0;
	batch->pages = 0;
	pthread_mutex_lock(&region->lock);
	if (*group < region->dirty_low / GROUP_WORDS)
		*group = region->dirty_low / GROUP_WORDS;
	end = (counter_read(region->extent) + GROUP_PAGES - 1) >> GROUP_SHIFT;
	stop = end - *group > SCAN_GROUPS && *group < end ? *group + SCAN_GROUPS
							  : end;
	for (; *group < stop && batch->nr < BATCH_GROUPS; ++*group) {
		struct chosen *chosen = &batch->group[batch->nr];
		unsigned int pages;

		chosen->group = *group;
		pages = choose_pages(region, chosen, max - batch->pages);
		if (!pages)
			continue;
		hold(region, chosen);
		batch->pages += pages;
		batch->nr++;
	}
	pthread_mutex_unlock(&region->lock);
}

static int punch_run(const struct arena *arena, const struct region *region,
		     const struct pagerun *run)
{
	return run->nr ? arena_punch(arena,
				     region->offset + run->first * PAGE_SIZE,
				     run->nr * PAGE_SIZE)
		       : 0;
}

/* Punch all pages of the batch, neighbours together, then empty frames. */
static int punch_batch(struct arena *arena, struct region *region,
		       const struct batch *batch)
{
	struct pagerun run = {0, 0}; /* of pages not yet punched */
	int err = 0;

	for (unsigned int i = 0; i < batch->nr * GROUP_WORDS && !err; i++) {
		const struct chosen *chosen = &batch->group[i / GROUP_WORDS];
		uint64_t take = chosen->take[i % GROUP_WORDS];
		uint64_t base = (uint64_t)chosen->group * GROUP_PAGES +
				i % GROUP_WORDS * WORD_PAGES;
		unsigned int page = 0, length;

		for (; !err && (length = pagemap_run(take, &page));
		     page += length) {
			if (pagerun_extend(&run, base + page, length))
				continue;
			err = punch_run(arena, region, &run);
			run = (struct pagerun){base + page, length};
		}
	}
	if (!err)
		err = punch_run(arena, region, &run);
	for (unsigned int i = 0; i < batch->nr && !err; i++)
		if (batch->group[i].frames)
			err = arena_punch(
				arena,
				region->frames_offset +
					(uint64_t)batch->group[i].group *
						PAGE_SIZE,
				PAGE_SIZE);
	return err;
}

static void release_group(struct region *region, const struct chosen *chosen,
			  bool clean)
{
	uint32_t number = chosen->group * GROUP_WORDS;

	for (unsigned int i = 0; i < GROUP_WORDS; i++, number++) {
		struct pageword *word = &region->map.words[number];
		unsigned int page = 0, length;

		word->held = 0;
		if (clean)
			word->dirty &= ~chosen->take[i];
		/* The whole word: frames may have held more than was taken. */
		if (number >= region->map.nr_words)
			continue;
		for (; (length = pagemap_run(~word->used, &page));
		     page += length)
			pagemap_opened(&region->map, number * WORD_PAGES + page,
				       length);
	}
	if (clean && chosen->frames)
		region->frames_touched[chosen->group] = 0;
	region->nr_held--;
}

/*
 * After a failed punch all of the batch stays dirty, though some may be clean:
 * that counts too much rather than too little, and comes right when it is
 * tried again.
 */
static void release_batch(struct arena *arena, struct region *region,
			  const struct batch *batch, bool clean)
{
	unsigned int frames = 0;

	pthread_mutex_lock(&region->lock);
	for (unsigned int i = 0; i < batch->nr; i++) {
		frames += batch->group[i].frames;
		release_group(region, &batch->group[i], clean);
	}
	if (clean) {
		counter_sub(&region->resident, batch->pages);
		counter_sub(&region->dirty, batch->pages);
		counter_sub(&arena->fixed, frames);
		counter_sub(&arena->total, batch->pages + frames);
	}
	pthread_mutex_unlock(&region->lock);
}

/* One batch from *group on. Trim lock held. Pages given back, or -errno. */
static int64_t trim_batch(struct arena *arena, struct region *region,
			  uint32_t *group, uint64_t max)
{
	struct batch batch;
	int err;

	fill_batch(region, &batch, group, max);
	if (!batch.nr)
		return 0;
	err = punch_batch(arena, region, &batch);
	release_batch(arena, region, &batch, !err);
	return err ? err : (int64_t)batch.pages;
}

static bool at_end(const struct region *region, uint32_t group)
{
	return (uint64_t)group * GROUP_PAGES >= counter_read(region->extent);
}

uint64_t arena_trim(struct arena *arena, uint64_t max_pages)
{
	uint64_t done = 0;

	for (unsigned int r = 0; r < ARENA_REGIONS; r++) {
		struct region *region = &arena->region[r];
		uint32_t group = 0;

		while (counter_read(&region->dirty) && done < max_pages &&
		       !at_end(region, group)) {
			int64_t got;

			pthread_mutex_lock(&arena->trim_lock);
			got = trim_batch(arena, region, &group,
					 max_pages - done);
			pthread_mutex_unlock(&arena->trim_lock);
			if (got < 0)
				return done;
			done += got;
		}
	}
	return done;
}

uint64_t arena_reclaim(struct arena *arena, uint64_t want)
{
	uint64_t done = 0;

	if (want < RECLAIM_MIN)
		want = RECLAIM_MIN;
	for (unsigned int r = ARENA_REGIONS; r-- && done < want;) {
		struct region *region = &arena->region[r];
		uint32_t group = 0;

		while (counter_read(&region->dirty) && done < want &&
		       !at_end(region, group)) {
			int64_t got =
				trim_batch(arena, region, &group, want - done);

			if (got < 0)
				return done;
			done += got;
		}
	}
	return done;
}
