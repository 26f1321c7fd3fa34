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
 * them, and a walk over the classes that have strays moves them in, from large
 * classes to small. What a class has left is gathered before the next one's
 * turn: when all was walked first, a walk that moved 20,000 strays made holes
 * of 15 % of the pool for as long as it took, 40 to 100 ms. Memory is taken
 * before any is given back, but never beyond the arena's limit.
 *
 * Locks: the class that is walked, and then, by trylock since it comes before
 * it in order, the class an object asks for. One zspage for each lock hold.
 */
#include "pool/zsmalloc.h"

/* Worth the walk when more than this part of the pool's bytes is lost. */
#define HOME_SHIFT 8

/* At most so many zspages are ready for strays; see STRETCH_MAX. */
#define HOMES_MOST 32

struct homes {
	struct zs_goal *goal;
	struct pool *pool;
	uint32_t page[POOL_CLASSES_MAX]; /* a zspage without objects, or NIL */
	unsigned int nr;		 /* of them, those that there are */
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

/* One that is not needed. Wants no lock. */
static void leave_home(struct homes *homes, unsigned int index)
{
	const struct zs_class *class = &homes->pool->classes[index];

	if (homes->page[index] == ARENA_NIL)
		return;
	zs_zspage_destroy(homes->pool, class, homes->page[index]);
	homes->page[index] = ARENA_NIL;
	homes->goal->taken -= class->geometry.pages;
	homes->nr--;
}

/*
 * A zspage for each class whose strays would fill it, those first that are
 * nearest to the class that is emptied now. Wants no lock.
 */
static void make_homes(struct homes *homes, unsigned int emptied)
{
	struct pool *pool = homes->pool;

	leave_home(homes, emptied);
	for (unsigned int i = emptied; i-- > 0 && homes->nr < HOMES_MOST;) {
		struct zs_class *class = &pool->classes[i];

		if (homes->page[i] != ARENA_NIL || whole_zspages(class) == 0)
			continue;
		if (zs_zspage_create(pool, class, 0, &homes->page[i])) {
			homes->page[i] = ARENA_NIL;
			break;
		}
		homes->goal->taken += class->geometry.pages;
		homes->nr++;
	}
}

/* Where an object of a class whose lock is held may go; ARENA_NIL: nowhere. */
static uint32_t place_at_home(struct homes *homes, struct zs_class *class)
{
	uint32_t page = zs_fullest(homes->pool, class, ARENA_NIL);

	if (page == ARENA_NIL) {
		page = homes->page[class->index];
		if (page != ARENA_NIL)
			homes->nr--;
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
			unsigned int group)
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
		homes->goal->freed += zs_release(pool, class, page);
	return page != ARENA_NIL;
}

/*
 * From the fullest group down, as zspages that lose objects sink to groups
 * that come later: those are looked at twice, but never without end.
 */
static void walk_class(struct homes *homes, struct zs_class *class)
{
	for (unsigned int group = ZS_FULL + 1; group-- > 0;) {
		uint64_t tries;

		pthread_mutex_lock(&class->lock);
		tries = class->strays ? class->zspages[group] : 0;
		pthread_mutex_unlock(&class->lock);
		while (tries-- > 0 && !zs_is_reached(homes->goal) &&
		       walk_zspage(homes, class, group))
			make_homes(homes, class->index);
	}
}

/*
 * What strays leave is gathered class by class, so that there is never more of
 * it than of one. It begins with the class in which it ended last time.
 */
static void empty_classes(struct homes *homes)
{
	struct pool *pool = homes->pool;

	for (unsigned int left = pool->nr_classes - 1; left > 0; left--) {
		struct zs_class *class = &pool->classes[pool->home_at];

		make_homes(homes, class->index);
		walk_class(homes, class);
		zs_gather(homes->goal, class);
		if (zs_is_reached(homes->goal))
			break;
		pool->home_at = pool->home_at ? pool->home_at - 1
					      : pool->nr_classes - 2;
	}
}

void zs_bring_home(struct zs_goal *goal)
{
	struct pool *pool = goal->pool;
	struct homes homes = {.goal = goal, .pool = pool};

	if (!is_worth_it(pool))
		return;
	for (unsigned int i = 0; i < pool->nr_classes; i++)
		homes.page[i] = ARENA_NIL;
	empty_classes(&homes);
	for (unsigned int i = 0; i < pool->nr_classes; i++)
		leave_home(&homes, i);
}
