/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zsmalloc_map.c - the set of objects as their owners tell it
 *
 * Owns the map: private memory with a bit for each object that could be in
 * the pool, most of it never touched. Believes page frames and owners' tables
 * only after it has looked; touches no object's bytes. Not thread-safe: the
 * pool stands still meanwhile.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "pool/zsmalloc.h"

#define WORDS_PER_PAGE (ZS_OBJECTS_PER_PAGE / 64)

/*
 * A zspage of n pages has at most n * ZS_OBJECTS_PER_PAGE objects, and zspages
 * do not overlap: so an object's bit is found from its page and number alone.
 */
struct zs_map {
	uint64_t *claimed;
	size_t bytes;
	uint32_t end;  /* one past the last zspage that has a claim */
	uint64_t used; /* claims */
	uint64_t strays[POOL_CLASSES_MAX]; /* as in struct zs_class */
	uint64_t astray[POOL_CLASSES_MAX];
};

int zs_map_create(struct pool *pool, void **result)
{
	struct zs_map *map = calloc(1, sizeof(*map));

	if (!map)
		return -ENOMEM;
	map->end = 0;
	map->used = 0;
	/* One page more, so that there is something to map in any case. */
	map->bytes =
		((size_t)arena_extent(pool->arena, ARENA_POOL) + ZS_PAGES_MAX) *
		WORDS_PER_PAGE * sizeof(uint64_t);
	map->claimed = mmap(NULL, map->bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map->claimed == MAP_FAILED) {
		free(map);
		return -ENOMEM;
	}
	*result = map;
	return 0;
}

void zs_map_destroy(struct pool *pool, void *opaque)
{
	struct zs_map *map = opaque;

	munmap(map->claimed, map->bytes);
	free(map);
}

static uint32_t owner_of(const struct pool *pool, const struct zs_class *class,
			 uint32_t page, unsigned int object)
{
	if (zs_is_huge(class))
		return arena_frame(pool->arena, ARENA_POOL, page)->owner;
	return zs_owners(pool, page)[object];
}

int zs_map_claim(struct pool *pool, void *opaque, uint64_t handle, size_t size,
		 uint32_t owner)
{
	struct zs_map *map = opaque;
	uint64_t page = zs_handle_page(handle);
	unsigned int object = zs_handle_object(handle);
	struct zs_class *class;
	uint64_t *word, bit;

	if (handle == 0)
		return -ERANGE;
	class = zs_zspage_check(pool, page);
	if (!class || object >= class->geometry.objects || size == 0 ||
	    size > zs_payload(class))
		return -ERANGE;
	word = &map->claimed[page * WORDS_PER_PAGE + object / 64];
	bit = UINT64_C(1) << (object % 64);
	if (*word & bit)
		return -EEXIST;
	if (owner_of(pool, class, page, object) != owner)
		return -EINVAL;
	*word |= bit;
	map->used++;
	if (class != zs_class_for(pool, size) && !zs_is_huge(class)) {
		map->strays[class->index]++;
		map->astray[zs_class_for(pool, size)->index]++;
	}
	if (map->end < page + class->geometry.pages)
		map->end = page + class->geometry.pages;
	return 0;
}

/* The claimed objects of a zspage. Returns their number. */
static unsigned int claims_of(const struct zs_map *map,
			      const struct zs_class *class, uint32_t page,
			      struct zs_bitmap *claimed)
{
	unsigned int words = (class->geometry.objects + 63) / 64;
	unsigned int nr = 0;

	memset(claimed, 0, sizeof(*claimed));
	for (unsigned int i = 0; i < words; i++) {
		claimed->word[i] =
			map->claimed[(size_t)page * WORDS_PER_PAGE + i];
		nr += __builtin_popcountll(claimed->word[i]);
	}
	return nr;
}

/*
 * Call visit for each zspage below `end`, whole ones only: stale frames that
 * look like the beginning of one are no zspages.
 */
static int for_each_zspage(struct pool *pool, uint32_t end,
			   int (*visit)(struct pool *pool,
					struct zs_class *class, uint32_t page,
					void *context),
			   void *context)
{
	uint32_t page = 0;

	while (page < end) {
		struct zs_class *class = zs_zspage_check(pool, page);

		if (class) {
			int err = visit(pool, class, page, context);

			if (err)
				return err;
		}
		page += class ? class->geometry.pages : 1;
	}
	return 0;
}

struct finish {
	const struct zs_map *map;
	struct arena_map *arena_map;
};

static int finish_zspage(struct pool *pool, struct zs_class *class,
			 uint32_t page, void *context)
{
	struct finish *finish = context;
	struct zs_bitmap claimed;

	if (claims_of(finish->map, class, page, &claimed) == 0)
		return 0;
	return arena_claim(finish->arena_map, ARENA_POOL, page,
			   class->geometry.pages);
}

int zs_map_finish(struct pool *pool, void *opaque, struct arena_map *arena_map)
{
	struct finish finish = {.map = opaque, .arena_map = arena_map};

	return for_each_zspage(pool, finish.map->end, finish_zspage, &finish);
}

struct compare {
	const struct zs_map *map;
	uint64_t differences;
	uint64_t used[POOL_CLASSES_MAX]; /* by claims */
};

static int compare_zspage(struct pool *pool, struct zs_class *class,
			  uint32_t page, void *context)
{
	struct compare *compare = context;
	struct zs_bitmap claimed, live;
	unsigned int nr = claims_of(compare->map, class, page, &claimed);

	compare->used[class->index] += nr;
	compare->differences -= nr;
	compare->differences += zs_live(pool, class, page, &live);
	for (size_t i = 0; i < sizeof(live.word) / sizeof(live.word[0]); i++)
		compare->differences +=
			__builtin_popcountll(claimed.word[i] ^ live.word[i]);
	return 0;
}

/*
 * Objects one by one; then those claimed in zspages that are no more; and when
 * all objects agree, whether the classes have counted them right.
 */
uint64_t zs_map_compare(struct pool *pool, void *opaque)
{
	const struct zs_map *map = opaque;
	struct compare compare = {.map = map, .differences = map->used};

	for_each_zspage(pool, arena_extent(pool->arena, ARENA_POOL),
			compare_zspage, &compare);
	if (compare.differences != 0)
		return compare.differences;
	for (unsigned int i = 0; i < pool->nr_classes; i++) {
		struct zs_class *class = &pool->classes[i];
		uint64_t used = compare.used[i];

		pthread_mutex_lock(&class->lock);
		compare.differences += used > class->used ? used - class->used
							  : class->used - used;
		compare.differences += class->strays != map->strays[i] ||
				       class->astray != map->astray[i];
		pthread_mutex_unlock(&class->lock);
	}
	return compare.differences;
}

static int settle_zspage(struct pool *pool, struct zs_class *class,
			 uint32_t page, void *context)
{
	struct zs_bitmap claimed;
	unsigned int nr = claims_of(context, class, page, &claimed);

	if (nr == 0)
		return 0;
	pthread_mutex_lock(&class->lock);
	if (zs_is_huge(class)) {
		arena_frame(pool->arena, ARENA_POOL, page)->inuse = 1;
		class->zspages[ZS_FULL]++;
		class->used++;
	} else {
		zs_restore(pool, class, page, &claimed);
	}
	pthread_mutex_unlock(&class->lock);
	return 0;
}

/* Live state starts out empty, as zs_create() left it. */
int zs_map_settle(struct pool *pool, void *opaque)
{
	struct zs_map *map = opaque;

	for (unsigned int i = 0; i < pool->nr_classes; i++) {
		pool->classes[i].strays = map->strays[i];
		atomic_store_explicit(&pool->classes[i].astray, map->astray[i],
				      memory_order_relaxed);
	}
	return for_each_zspage(pool, map->end, settle_zspage, map);
}
