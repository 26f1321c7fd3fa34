/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pagemap.h - which pages of one region are free, and where a run of them is
 *
 * Three bits for each page, in private memory that is backed only where it was
 * touched:
 *
 *   used   given out
 *   dirty  free, but with memory behind it
 *   held   free, but not to be given out: it is being punched
 *
 * A run never crosses one aligned group of 64 pages (a word), so that finding
 * one takes a few shifts. Two summaries keep the search short: `hint` has for
 * each length the lowest word that may have such a run, and `below` has for
 * each 64 words a length that none of them has. Both may be too hopeful, never
 * too gloomy: searching makes them tighter, pagemap_opened() looser.
 *
 * Takes no lock and counts nothing: the owner's lock guards all of it.
 */
#ifndef ZRAMFS_PAGEMAP_H
#define ZRAMFS_PAGEMAP_H

#include <stdbool.h>
#include <stdint.h>

#define WORD_SHIFT	   6
#define WORD_PAGES	   (1u << WORD_SHIFT)
#define PAGEMAP_NEST_SHIFT 6 /* words in one entry of below[] */

struct pageword {
	uint64_t used;
	uint64_t dirty;
	uint64_t held;
};

struct pagemap {
	struct pageword *words;
	uint8_t *below; /* no run this long in these words; 0: not known */
	uint32_t nr_words;
	uint32_t hint[WORD_PAGES + 1]; /* ascending */
	uint64_t mapped;	       /* bytes of words and below together */
};

/* Every page free and clean; pages is a multiple of WORD_PAGES. -ENOMEM. */
int pagemap_init(struct pagemap *map, uint32_t pages);
void pagemap_exit(struct pagemap *map);

/* The lowest free run of nr pages, 1 <= nr <= WORD_PAGES. */
bool pagemap_find(struct pagemap *map, unsigned int nr, uint32_t *page);

/*
 * To be called when pages (all in one word) have become free to give out,
 * after their bits have been changed.
 */
void pagemap_opened(struct pagemap *map, uint32_t page, unsigned int nr);

/*
 * The next run of set bits in a word, at or after *page, which is then its
 * first: its length, 0 when there is none.
 */
static inline unsigned int pagemap_run(uint64_t bits, unsigned int *page)
{
	uint64_t rest = *page < WORD_PAGES ? bits >> *page : 0;

	if (!rest)
		return 0;
	*page += __builtin_ctzll(rest);
	rest = ~(bits >> *page);
	return rest ? (unsigned int)__builtin_ctzll(rest) : WORD_PAGES;
}

/* Pages that follow each other, also across words. None: nr is 0. */
struct pagerun {
	uint64_t first;
	uint64_t nr;
};

/* True when the pages follow the run, and are its last from now on. */
static inline bool pagerun_extend(struct pagerun *run, uint64_t page,
				  unsigned int nr)
{
	if (page != run->first + run->nr)
		return false;
	run->nr += nr;
	return true;
}

/* The bits of nr pages from page on in their word. */
static inline uint64_t pagemap_mask(uint32_t page, unsigned int nr)
{
	return (~0ull >> (WORD_PAGES - nr)) << (page % WORD_PAGES);
}

#endif
