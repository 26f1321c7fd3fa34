/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zsmalloc_home.c - bring strays back to their classes
 *
 * Compaction puts the objects of a class's last zspage into free slots of
 * larger classes, and an allocation at the limit does so too. That is right as
 * long as they would fill no zspage of their own. When the pool changes, more
 * and more objects come to lie in slots that are too large for them: after a
 * build of redis, with a compaction every two seconds, 3.3 % of the pool was
 * lost so (zstd:3), which this step takes down to what a fresh pool has.
 *
 * Where the strays of a class would fill at least one zspage, it is made for
 * them, and one walk over the classes that have strays moves them in. The
 * zspages they leave are then gather()'s to empty. Memory is taken before any
 * is given back, but never beyond the arena's limit.
 *
 * Locks: the class that is walked, and then, by trylock since it comes before
 * it in order, the class an object asks for. One zspage for each lock hold.
 */
#include "pool/zsmalloc.h"

/* Worth the walk when more than this part of the pool's bytes is lost. */
#define HOME_SHIFT 7

struct homes {
	struct pool *pool;
	uint32_t page[POOL_CLASSES_MAX]; /* a zspage without objects, or NIL */
	uint64_t taken;			 /* pages */
};

static uint64_t whole_zspages(const struct zs_class *class)
{
	return atomic_load_explicit(&class->astray, memory_order_relaxed) /
	       class->geometry.objects;
}

/* Bytes by which strays' slots are larger than those they ask for. */
static bool is_worth_it(struct pool *pool)
{
	struct pool_stats stats;
	uint64_t there = 0, wanted = 0;

	for (unsigned int i = 0; i < pool->nr_classes; i++) {
		struct zs_class *class = &pool->classes[i];

		pthread_mutex_lock(&class->lock);
		there += class->strays * class->geometry.size;
		pthread_mutex_unlock(&class->lock);
		wanted += atomic_load_explicit(&class->astray,
					       memory_order_relaxed) *
			  class->geometry.size;
	}
	pool_zsmalloc.stats(pool, &stats);
	return there > wanted &&
	       there - wanted > stats.object_bytes >> HOME_SHIFT;
}

/* A zspage for each class whose strays would fill it. Wants no lock. */
static void make_homes(struct homes *homes)
{
	struct pool *pool = homes->pool;

	for (unsigned int i = 0; i < pool->nr_classes; i++) {
		struct zs_class *class = &pool->classes[i];

		if (homes->page[i] != ARENA_NIL || whole_zspages(class) == 0)
			continue;
		if (zs_zspage_create(pool, class, 0, &homes->page[i]) == 0)
			homes->taken += class->geometry.pages;
		else
			homes->page[i] = ARENA_NIL;
	}
}

/* Where an object of a class whose lock is held may go; ARENA_NIL: nowhere. */
static uint32_t place_at_home(struct homes *homes, struct zs_class *class)
{
	uint32_t page = zs_fullest(homes->pool, class, ARENA_NIL);

	if (page == ARENA_NIL) {
		page = homes->page[class->index];
		homes->page[class->index] = ARENA_NIL;
	}
	return page;
}

/* True if that was the zspage's last object. */
static bool bring_one(struct homes *homes, struct zs_class *from, uint32_t page,
		      unsigned int object)
{
	struct pool *pool = homes->pool;
	uint32_t owner = zs_owners(pool, page)[object];
	uint64_t handle = zs_handle(page, object);
	size_t size = pool->owner_ops->move_begin(pool->context, owner, handle);
	struct zs_class *to;
	uint32_t to_page = ARENA_NIL;
	bool empty = false;

	if (size == 0)
		return false;
	to = zs_class_for(pool, size);
	if (to != from && pthread_mutex_trylock(&to->lock) == 0) {
		to_page = place_at_home(homes, to);
		if (to_page != ARENA_NIL)
			empty = zs_move_object(pool, from, page, object, size,
					       to, to_page);
		pthread_mutex_unlock(&to->lock);
	}
	if (to_page == ARENA_NIL)
		pool->owner_ops->move_end(pool->context, owner, handle);
	return empty;
}

/* The zspage that the group's list has had longest. False: there is none. */
static bool walk_zspage(struct homes *homes, struct zs_class *class,
			unsigned int group, uint64_t *freed)
{
	struct pool *pool = homes->pool;
	struct zs_bitmap live;
	bool empty = false;
	uint32_t page;

	pthread_mutex_lock(&class->lock);
	page = class->strays ? zs_oldest(pool, class, group) : ARENA_NIL;
	if (page != ARENA_NIL) {
		zs_renew(pool, class, page);
		if (zs_live(pool, class, page, &live) == 0)
			for (unsigned int i = 0; i < class->geometry.objects;
			     i++)
				if (zs_test_bit(&live, i))
					empty = bring_one(homes, class, page,
							  i);
	}
	pthread_mutex_unlock(&class->lock);
	if (empty)
		*freed += zs_release(pool, class, page);
	return page != ARENA_NIL;
}

/*
 * From the fullest group down, as zspages that lose objects sink to groups
 * that come later: those are looked at twice, but never without end.
 */
static uint64_t walk_class(struct homes *homes, struct zs_class *class)
{
	uint64_t freed = 0;

	for (unsigned int group = ZS_FULL + 1; group-- > 0;) {
		uint64_t tries;

		pthread_mutex_lock(&class->lock);
		tries = class->strays ? class->zspages[group] : 0;
		pthread_mutex_unlock(&class->lock);
		while (tries-- > 0 && walk_zspage(homes, class, group, &freed))
			make_homes(homes);
	}
	return freed;
}

uint64_t zs_bring_home(struct pool *pool, uint64_t *taken)
{
	struct homes homes = {.pool = pool};
	uint64_t freed = 0;

	*taken = 0;
	if (!is_worth_it(pool))
		return 0;
	for (unsigned int i = 0; i < pool->nr_classes; i++)
		homes.page[i] = ARENA_NIL;
	make_homes(&homes);
	for (unsigned int i = pool->nr_classes - 1; i-- > 0;)
		freed += walk_class(&homes, &pool->classes[i]);
	for (unsigned int i = 0; i < pool->nr_classes; i++) {
		if (homes.page[i] == ARENA_NIL)
			continue;
		zs_zspage_destroy(pool, &pool->classes[i], homes.page[i]);
		homes.taken -= pool->classes[i].geometry.pages;
	}
	*taken = homes.taken;
	return freed;
}
