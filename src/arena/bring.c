/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bring.c - memory for free pages, before somebody needs them
 *
 * The reverse of trim.c, and done like it: under the region's lock, choose
 * clean pages and hold them; without the lock, have the system put memory
 * behind them; under the lock again, make them dirty pages like those that were
 * used before. Meanwhile others are given other pages.
 *
 * It saves nothing: a page costs 2.1 to 2.8 us so, and 2.5 to 3.2 us when it is
 * touched. But who does it need not be who waits; and two threads that get
 * memory at the same time take 1.4 us for each page of both.
 */
#include <sys/mman.h>

#include "arena/arena_internal.h"

/* What is chosen lies in words that follow each other. */
#define BATCH_WORDS 4

struct brought {
	uint32_t word; /* the first */
	unsigned int pages;
	uint64_t take[BATCH_WORDS];
};

/* Which of the word's pages are clean, and can be had; past the end, none. */
static uint64_t clean_pages(const struct pagemap *map, uint32_t number)
{
	const struct pageword *word = &map->words[number];

	return number < map->nr_words ? ~(word->used | word->dirty | word->held)
				      : 0;
}

/* The lowest pages that are clean, up to max. Region lock held. */
static void choose(const struct region *region, unsigned int max,
		   struct brought *brought)
{
	const struct pagemap *map = &region->map;
	uint32_t word = map->hint[1];

	brought->pages = 0;
	while (word < map->nr_words && !clean_pages(map, word))
		word++;
	brought->word = word;
	for (unsigned int i = 0; i < BATCH_WORDS; i++) {
		uint64_t take = clean_pages(map, word + i);

		while (brought->pages + __builtin_popcountll(take) > max)
			take &= ~(1ull << (63 - __builtin_clzll(take)));
		brought->take[i] = take;
		brought->pages += __builtin_popcountll(take);
	}
}

static void hold(struct region *region, const struct brought *brought)
{
	for (unsigned int i = 0; i < BATCH_WORDS; i++)
		if (brought->take[i])
			region->map.words[brought->word + i].held |=
				brought->take[i];
	region->nr_held++;
}

static bool populate_run(const struct region *region, const struct pagerun *run)
{
	return !run->nr || !madvise(region->base + run->first * PAGE_SIZE,
				    run->nr * PAGE_SIZE, MADV_POPULATE_WRITE);
}

/* All that were chosen, neighbours together. */
static bool populate(const struct region *region, const struct brought *brought)
{
	struct pagerun run = {0, 0}; /* of pages without memory yet */

	for (unsigned int i = 0; i < BATCH_WORDS; i++) {
		uint64_t base = (uint64_t)(brought->word + i) * WORD_PAGES;
		unsigned int page = 0, length;

		for (; (length = pagemap_run(brought->take[i], &page));
		     page += length) {
			if (pagerun_extend(&run, base + page, length))
				continue;
			if (!populate_run(region, &run))
				return false;
			run = (struct pagerun){base + page, length};
		}
	}
	return populate_run(region, &run);
}

/*
 * Where memory could not be had for all, it is there for some, and they are
 * dirty, too: that counts too much rather than too little, and trimming puts it
 * right.
 */
static void release(struct region *region, const struct brought *brought)
{
	for (unsigned int i = 0; i < BATCH_WORDS; i++) {
		uint32_t number = brought->word + i;
		unsigned int page = 0, length;

		if (!brought->take[i])
			continue;
		region->map.words[number].held &= ~brought->take[i];
		region->map.words[number].dirty |= brought->take[i];
		if (region->dirty_low > number)
			region->dirty_low = number;
		for (; (length = pagemap_run(brought->take[i], &page));
		     page += length)
			pagemap_opened(&region->map, number * WORD_PAGES + page,
				       length);
		/* Trimming looks no further than this. */
		if (number * WORD_PAGES + page > counter_read(region->extent))
			atomic_store_explicit(region->extent,
					      number * WORD_PAGES + page,
					      memory_order_release);
	}
	region->nr_held--;
	counter_add(&region->resident, brought->pages);
	counter_add(&region->dirty, brought->pages);
}

/* Trim lock held. How many; 0 also when some could not be had. */
static unsigned int bring(struct arena *arena, struct region *region,
			  unsigned int max)
{
	struct brought brought;
	bool chosen, done;

	pthread_mutex_lock(&region->lock);
	choose(region, max, &brought);
	chosen = brought.pages && arena_charge(arena, brought.pages, 0);
	if (chosen)
		hold(region, &brought);
	pthread_mutex_unlock(&region->lock);
	if (!chosen)
		return 0;
	done = populate(region, &brought);
	pthread_mutex_lock(&region->lock);
	release(region, &brought);
	pthread_mutex_unlock(&region->lock);
	return done ? brought.pages : 0;
}

uint64_t arena_bring(struct arena *arena, enum arena_region nr_region,
		     unsigned int max)
{
	struct region *region = &arena->region[nr_region];
	unsigned int pages;

	/* Who trims has no need of more, and whoever waits for that no time. */
	if (region->frames || pthread_mutex_trylock(&arena->trim_lock))
		return 0;
	pages = bring(arena, region, max);
	pthread_mutex_unlock(&arena->trim_lock);
	return pages;
}

uint64_t arena_ready(const struct arena *arena, enum arena_region region)
{
	return counter_read(&arena->region[region].dirty);
}
