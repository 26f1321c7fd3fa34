/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pagemap.c - finding the lowest free run
 *
 * The common search looks at one word. Where memory is fragmented, the hints
 * make searches for one length start where the last one ended, and below[]
 * lets them step over 4096 pages at a time.
 */
#include "arena/pagemap.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

int pagemap_init(struct pagemap *map, uint32_t pages)
{
	uint64_t words = ((uint64_t)pages + WORD_PAGES - 1) >> WORD_SHIFT;
	/* Whoever looks at words four at a time may pass the end by three. */
	uint64_t bytes = (words + 3) * sizeof(struct pageword);
	uint64_t nests = (words >> PAGEMAP_NEST_SHIFT) + 1;
	void *memory;

	/* From mmap, not malloc: what is never touched must cost nothing. */
	memory = mmap(NULL, bytes + nests, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return -ENOMEM;
	*map = (struct pagemap){
		.words = memory,
		.below = (uint8_t *)memory + bytes,
		.nr_words = words,
		.mapped = bytes + nests,
	};
	return 0;
}

void pagemap_exit(struct pagemap *map)
{
	if (map->words)
		munmap(map->words, map->mapped);
	map->words = NULL;
}

/* The bits at which nr set bits in a row begin. */
static uint64_t run_starts(uint64_t bits, unsigned int nr)
{
	unsigned int have = 1;

	while (have < nr && bits) {
		unsigned int step = nr - have < have ? nr - have : have;

		bits &= bits >> step;
		have += step;
	}
	return bits;
}

/* A word without a run of nr has no longer one: keep the hints ascending. */
static void raise_hints(struct pagemap *map, unsigned int nr, uint32_t word)
{
	for (; nr <= WORD_PAGES && map->hint[nr] < word; nr++)
		map->hint[nr] = word;
}

bool pagemap_find(struct pagemap *map, unsigned int nr, uint32_t *page)
{
	uint32_t word = map->hint[nr];

	while (word < map->nr_words) {
		uint32_t nest = word >> PAGEMAP_NEST_SHIFT;
		uint32_t end = (nest + 1) << PAGEMAP_NEST_SHIFT;

		if (end > map->nr_words)
			end = map->nr_words;
		if (map->below[nest] && nr >= map->below[nest]) {
			word = end;
			continue;
		}
		for (; word < end; word++) {
			const struct pageword *w = &map->words[word];
			uint64_t starts = run_starts(~(w->used | w->held), nr);

			if (starts) {
				raise_hints(map, nr, word);
				*page = word * WORD_PAGES +
					__builtin_ctzll(starts);
				return true;
			}
		}
		/* Words before the hint have none either: so none in the nest.
		 */
		map->below[nest] = nr;
	}
	raise_hints(map, nr, map->nr_words);
	return false;
}

void pagemap_opened(struct pagemap *map, uint32_t page, unsigned int nr)
{
	uint32_t word = page >> WORD_SHIFT;
	uint32_t nest = word >> PAGEMAP_NEST_SHIFT;
	const struct pageword *w = &map->words[word];
	uint64_t taken = w->used | w->held;
	unsigned int first = page % WORD_PAGES;
	unsigned int end = first + nr;
	uint64_t lower = first ? taken << (WORD_PAGES - first) : 0;
	uint64_t upper = end < WORD_PAGES ? taken >> end : 0;
	unsigned int run;

	/* Only the run around these pages can be longer than it was. */
	run = nr;
	run += lower ? (unsigned int)__builtin_clzll(lower) : first;
	run += upper ? (unsigned int)__builtin_ctzll(upper) : WORD_PAGES - end;

	if (map->below[nest] && run >= map->below[nest])
		map->below[nest] = run + 1;
	for (; run && map->hint[run] > word; run--)
		map->hint[run] = word;
}
