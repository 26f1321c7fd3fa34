/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fill.c - bytes to write
 *
 * The generator is splitmix64 (Steele, Lea, Flood: Fast Splittable
 * Pseudorandom Number Generators, 2014): any seed will do, 0 too.
 */
#include "fill.h"

#include <string.h>

#define PAGE 4096

void rng_seed(struct rng *rng, uint64_t seed)
{
	rng->state = seed;
}

uint64_t rng_next(struct rng *rng)
{
	uint64_t z = (rng->state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t rng_below(struct rng *rng, uint64_t bound)
{
	return rng_next(rng) % bound;
}

static void fill_random(uint8_t *to, size_t length, uint64_t seed)
{
	struct rng rng;

	rng_seed(&rng, seed);
	while (length > 0) {
		uint64_t word = rng_next(&rng);
		size_t n = length < sizeof(word) ? length : sizeof(word);

		memcpy(to, &word, n);
		to += n;
		length -= n;
	}
}

static void fill_text(uint8_t *to, size_t length, uint64_t seed)
{
	static const char *const words[] = {
		"page ",    "struct ", "return ", "size_t ",
		"static ",  "const ",  "int ",	  "if (x) ",
		"\n\t",	    "offset ", "= 0;\n",  "while ",
		"handle->", "lock ",   "zspage ", "(void)",
	};
	struct rng rng;

	rng_seed(&rng, seed);
	while (length > 0) {
		uint64_t chance = rng_next(&rng);
		const char *word = words[chance & 15];
		size_t n = strlen(word);

		if ((chance & 0x70) == 0) { /* a letter nobody expects */
			*to++ = (uint8_t)(chance >> 8);
			length--;
			continue;
		}
		if (n > length)
			n = length;
		memcpy(to, word, n);
		to += n;
		length -= n;
	}
}

/* Repeat period bytes of pattern, aligned to the file's offset. */
static void fill_pattern(uint8_t *to, size_t length, uint64_t offset,
			 const void *pattern, size_t period)
{
	size_t phase = offset % period;

	while (length > 0) {
		size_t n = period - phase;

		if (n > length)
			n = length;
		memcpy(to, (const uint8_t *)pattern + phase, n);
		to += n;
		length -= n;
		phase = 0;
	}
}

void fill(void *buffer, size_t length, uint64_t offset, enum fill_kind kind,
	  uint64_t seed)
{
	uint8_t page[PAGE];

	switch (kind) {
	case FILL_WORD:
		fill_pattern(buffer, length, offset, &seed, sizeof(seed));
		break;
	case FILL_TEXT:
		fill_text(buffer, length, seed);
		break;
	case FILL_RANDOM:
		fill_random(buffer, length, seed);
		break;
	case FILL_DUPLICATE:
		fill_text(page, sizeof(page), seed % FILL_DUPLICATES);
		fill_pattern(buffer, length, offset, page, sizeof(page));
		break;
	default:
		memset(buffer, 0, length);
	}
}

size_t first_difference(const void *a, const void *b, size_t length)
{
	const uint8_t *x = a, *y = b;
	size_t i = 0;

	if (memcmp(a, b, length) == 0)
		return length;
	while (x[i] == y[i])
		i++;
	return i;
}
