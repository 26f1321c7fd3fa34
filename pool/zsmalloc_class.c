/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zsmalloc_class.c - which object sizes there are, and how long their zspages
 *
 * Pure arithmetic; owns nothing. The result is part of the arena's layout:
 * page frames name classes by number.
 *
 * Three constants decide it; they were chosen by filling pools with objects of
 * the compressed sizes of real 4 KiB pages, each distinct page once: 46402 of
 * a redis build tree (70 MB by zstd:3, 101 MB by lz4), 12000 of /usr/lib (22
 * MB by zstd:3), and 268318 of the same (602 MB by lz4). What the pool's pages
 * are more than the sum of the sizes, in percent, as filled -> after
 * compaction, which also empties the last zspage of most classes
 * (zsmalloc_compact.c):
 *
 *    pages  waste  redis, zstd  redis, lz4   lib, zstd   lib, lz4
 *      4     1 %   5.4 -> 5.0   5.9 -> 5.7   7.6 -> 5.7  6.6 -> 6.6
 *      8     1 %   3.5 -> 2.2   2.9 -> 1.9   8.1 -> 3.0  2.3 -> 2.1
 *      8     2 %   3.5 -> 2.3   2.8 -> 1.9   7.3 -> 2.8
 *     12     1 %   4.3 -> 1.6   3.4 -> 1.4  12.4 -> 2.4  1.7 -> 1.4
 *     12     2 %   4.0 -> 2.0   3.0 -> 1.6  10.0 -> 2.6
 *     16     1 %   5.3 -> 1.5   3.8 -> 1.3  16.8 -> 2.5  1.6 -> 1.2
 *     16     2 %   4.5 -> 2.0   3.1 -> 1.6  11.4 -> 2.3
 *     24     1 %   7.2 -> 1.5   4.7 -> 1.1  23.6 -> 3.1  1.6 -> 1.1
 *
 * Steps of 32 bytes instead of 16 cost half a percent more once compacted.
 */
#include <assert.h>
#include <string.h>

#include "pool/zsmalloc.h"

/*
 * The shortest zspage whose tail is small enough, or that with the smallest
 * tail: each class has on average half a zspage of free objects, so that
 * length for its own sake costs more than it saves.
 */
static unsigned int choose_pages(unsigned int size)
{
	unsigned int best = 1, best_waste = 1000;

	for (unsigned int pages = 1; pages <= ZS_PAGES_MAX; pages++) {
		unsigned int bytes = pages * PAGE_SIZE;
		unsigned int waste = bytes % size * 1000 / bytes;

		if (waste < ZS_WASTE_PER_MILLE)
			return pages;
		if (waste < best_waste) {
			best = pages;
			best_waste = waste;
		}
	}
	return best;
}

/*
 * From large to small, so that of the sizes with the same geometry the
 * largest, which wastes least, is met first and stands for all.
 */
unsigned int zs_geometry_build(struct zs_geometry *geometry,
			       uint8_t class_of[PAGE_SIZE / ZS_STEP + 1])
{
	struct zs_geometry found[POOL_CLASSES_MAX];
	unsigned int nr = 1;

	found[0] = (struct zs_geometry){PAGE_SIZE, 1, 1};
	for (unsigned int size = PAGE_SIZE - ZS_STEP; size >= ZS_SIZE_MIN;
	     size -= ZS_STEP) {
		unsigned int pages = choose_pages(size);
		unsigned int objects = pages * PAGE_SIZE / size;

		/* No better than whole pages. */
		if (objects <= pages)
			continue;
		if (found[nr - 1].pages == pages &&
		    found[nr - 1].objects == objects)
			continue;
		assert(nr < POOL_CLASSES_MAX);
		found[nr++] = (struct zs_geometry){size, pages, objects};
	}
	for (unsigned int i = 0; i < nr; i++)
		geometry[i] = found[nr - 1 - i];
	for (unsigned int step = 0, i = 0; step <= PAGE_SIZE / ZS_STEP;
	     step++) {
		while (geometry[i].size < step * ZS_STEP)
			i++;
		class_of[step] = i;
	}
	return nr;
}
