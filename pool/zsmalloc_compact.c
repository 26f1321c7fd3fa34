/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zsmalloc_compact.c - move objects so that whole zspages run empty
 *
 * Three steps, each for one class after the other, those first that give most
 * back for each object moved; who wants no more than some pages, as while much
 * is being deleted, gets no further than he needs:
 *
 * zs_gather() moves objects from the emptiest zspages of a class to the
 * fullest, as long as that can free one. Then less than one zspage's worth of
 * free slots is left in the class.
 *
 * zs_bring_home() takes strays back to their classes (zsmalloc_home.c).
 *
 * spread() sees to the rest. With 160 classes of zspages of up to 12 pages it
 * is 3 to 10 % of a pool of 20 to 100 MB. But an object fits in any larger
 * class too, for the price of some bytes, and the classes above have free
 * slots of their own: so the last zspage of a class is emptied into those, if
 * they can take all of it, from small classes to large.
 *
 * As zspages are emptied again and again, objects must not wander ever further
 * up. So the way is measured from the class that the object's size asks for,
 * and it goes to the first from there on that has room: which also brings
 * objects back down. With real sizes (see zsmalloc_class.c) what is more than
 * the compressed bytes falls to 1.6 % (redis, zstd), 1.4 % (redis, lz4) and
 * 2.4 % (lib, zstd). When a twentieth of the objects is replaced before each
 * of 40 compactions, it is 2.9, 2.4 and 5.5 % in the end, and would be 3.3,
 * 2.5 and 7.6 % if objects went up only.
 *
 * The first and the last allocate nothing. Each holds a class's lock for one
 * zspage at a time. They end though owners refuse and other threads allocate
 * and free: zs_gather() tries as many zspages as each group had when it came to
 * it, and spread() goes on in a class only while it frees one, and not more
 * often than there were.
 */
#include <string.h>

#include "pool/zsmalloc.h"

/*
 * The most bytes by which a slot may be larger than the class that its object
 * asks for. Less leaves zspages that cannot be emptied (at 256, 3.0 % for lib,
 * zstd); more gains next to nothing.
 */
#define STRETCH_MAX 512

static size_t begin_move(struct pool *pool, uint32_t page, unsigned int object)
{
	return pool->owner_ops->move_begin(pool->context,
					   zs_owners(pool, page)[object],
					   zs_handle(page, object));
}

static void end_move(struct pool *pool, uint32_t owner, uint32_t page,
		     unsigned int object)
{
	pool->owner_ops->move_end(pool->context, owner,
				  zs_handle(page, object));
}

bool zs_move_object(struct pool *pool, struct zs_class *from, uint32_t page,
		    unsigned int object, size_t size, struct zs_class *to,
		    uint32_t to_page)
{
	uint32_t owner = zs_owners(pool, page)[object];
	unsigned int to_object = zs_take(pool, to, to_page, owner);

	zs_count_stray(from, zs_class_for(pool, size), -1);
	zs_count_stray(to, zs_class_for(pool, size), 1);
	memcpy(zs_object(pool, to, to_page, to_object),
	       zs_object(pool, from, page, object), size);
	end_move(pool, owner, to_page, to_object);
	atomic_fetch_add_explicit(&pool->objects_moved, 1,
				  memory_order_relaxed);
	return zs_put(pool, from, page, object);
}

uint64_t zs_release(struct pool *pool, const struct zs_class *class,
		    uint32_t page)
{
	zs_zspage_destroy(pool, class, page);
	atomic_fetch_add_explicit(&pool->pages_compacted, class->geometry.pages,
				  memory_order_relaxed);
	return class->geometry.pages;
}

/*
 * Move what can be moved of a zspage into the fullest others of its class,
 * whose lock is held. True if it is empty and in no list.
 */
static bool gather_zspage(struct pool *pool, struct zs_class *class,
			  uint32_t page)
{
	struct zs_bitmap live;
	bool empty = false;

	if (zs_live(pool, class, page, &live) != 0)
		return false;
	for (unsigned int i = 0; i < class->geometry.objects; i++) {
		uint32_t to_page;
		size_t size;

		if (!zs_test_bit(&live, i))
			continue;
		to_page = zs_fullest(pool, class, page);
		if (to_page == ARENA_NIL)
			break;
		size = begin_move(pool, page, i);
		if (size)
			empty = zs_move_object(pool, class, page, i, size,
					       class, to_page);
	}
	return empty;
}

/* One zspage of a group. False when there is nothing to be gained. */
static bool gather_one(struct zs_goal *goal, struct zs_class *class,
		       unsigned int group)
{
	struct pool *pool = goal->pool;
	uint32_t page = ARENA_NIL;
	bool empty = false;

	pthread_mutex_lock(&class->lock);
	if (zs_room(class) >= class->geometry.objects)
		page = zs_oldest(pool, class, group);
	if (page != ARENA_NIL) {
		empty = gather_zspage(pool, class, page);
		if (!empty)
			zs_renew(pool, class, page);
	}
	pthread_mutex_unlock(&class->lock);
	if (empty)
		goal->freed += zs_release(pool, class, page);
	return page != ARENA_NIL;
}

void zs_gather(struct zs_goal *goal, struct zs_class *class)
{
	for (unsigned int group = 0; group < ZS_GROUPS; group++) {
		uint64_t tries;

		pthread_mutex_lock(&class->lock);
		tries = class->zspages[group];
		pthread_mutex_unlock(&class->lock);
		while (tries-- > 0 && !zs_is_reached(goal) &&
		       gather_one(goal, class, group))
			;
	}
}

/* May an object that asks for one class be kept in another? */
static bool within_stretch(const struct zs_class *wanted,
			   const struct zs_class *class)
{
	return !zs_is_huge(class) &&
	       class->geometry.size <= wanted->geometry.size + STRETCH_MAX;
}

/*
 * The first class, other than `from`, that has room for an object; its lock is
 * held then, as that of `from` is all the time. Lower classes, which come
 * before it in the order of locks, are passed over when they are busy.
 */
static struct zs_class *lock_place(struct pool *pool,
				   const struct zs_class *from, size_t size,
				   uint32_t *page)
{
	struct zs_class *wanted = zs_class_for(pool, size);

	for (struct zs_class *class = wanted; within_stretch(wanted, class);
	     class ++) {
		if (class == from || zs_room(class) == 0)
			continue;
		if (class > from)
			pthread_mutex_lock(&class->lock);
		else if (pthread_mutex_trylock(&class->lock) != 0)
			continue;
		*page = zs_fullest(pool, class, ARENA_NIL);
		if (*page != ARENA_NIL)
			return class;
		pthread_mutex_unlock(&class->lock);
	}
	return NULL;
}

/* A guess, as other threads take room too. */
static bool room_above(const struct zs_class *from, unsigned int objects)
{
	const struct zs_class *class = from + 1;
	uint64_t room = 0;

	for (; room < objects && within_stretch(from, class); class ++)
		room += zs_room(class);
	return room >= objects;
}

/* As gather_zspage(), but into other classes. */
static bool spread_zspage(struct pool *pool, struct zs_class *class,
			  uint32_t page)
{
	struct zs_bitmap live;
	bool empty = false;

	if (!room_above(class, zs_inuse(pool, page)) ||
	    zs_live(pool, class, page, &live) != 0)
		return false;
	for (unsigned int i = 0; i < class->geometry.objects; i++) {
		struct zs_class *to;
		uint32_t to_page;
		size_t size;

		if (!zs_test_bit(&live, i))
			continue;
		size = begin_move(pool, page, i);
		if (size == 0)
			continue;
		to = lock_place(pool, class, size, &to_page);
		if (!to) {
			end_move(pool, zs_owners(pool, page)[i], page, i);
			continue;
		}
		empty = zs_move_object(pool, class, page, i, size, to, to_page);
		pthread_mutex_unlock(&to->lock);
	}
	return empty;
}

/* The emptiest zspage. False when it could not be freed. */
static bool spread_one(struct zs_goal *goal, struct zs_class *class)
{
	struct pool *pool = goal->pool;
	uint32_t page = ARENA_NIL;
	bool empty;

	pthread_mutex_lock(&class->lock);
	for (unsigned int group = 0; group < ZS_GROUPS && page == ARENA_NIL;
	     group++)
		page = zs_oldest(pool, class, group);
	empty = page != ARENA_NIL && spread_zspage(pool, class, page);
	pthread_mutex_unlock(&class->lock);
	if (empty)
		goal->freed += zs_release(pool, class, page);
	return empty;
}

static void spread(struct zs_goal *goal, struct zs_class *class)
{
	uint64_t tries;

	pthread_mutex_lock(&class->lock);
	tries = zs_count_zspages(class) - class->zspages[ZS_FULL];
	pthread_mutex_unlock(&class->lock);
	while (tries-- > 0 && !zs_is_reached(goal) && spread_one(goal, class))
		;
}

uint64_t zs_compact(struct pool *pool, uint64_t enough)
{
	unsigned int nr = pool->nr_classes - 1; /* but huge pages */
	struct zs_goal goal = {.pool = pool, .enough = enough};

	pthread_mutex_lock(&pool->compact_lock);
	goal.moved = atomic_load_explicit(&pool->objects_moved,
					  memory_order_relaxed);
	for (unsigned int i = 0; i < nr; i++)
		zs_gather(&goal, &pool->classes[i]);
	/* What follows gives less for each object moved: it can wait. */
	if (goal.freed < enough / 4) {
		zs_bring_home(&goal);
		for (unsigned int i = 0; i < nr; i++)
			spread(&goal, &pool->classes[i]);
	}
	pthread_mutex_unlock(&pool->compact_lock);
	return goal.freed > goal.taken ? goal.freed - goal.taken : 0;
}
