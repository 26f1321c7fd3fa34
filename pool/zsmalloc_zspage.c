/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zsmalloc_zspage.c - zspages: their frames, their objects, their lists
 *
 * A zspage is a run of pages:
 *
 *	| owner 0 .. owner n-1 | object 0 | object 1 | ... | object n-1 | tail |
 *
 * The owners' numbers stand together at its start, so that what walks them
 * (claims, compaction, allocation) touches one page, not all. A free object's
 * place in that table holds the number of the next free one. A huge page has
 * no room for a table; its owner is in the page frame.
 *
 * The frame of the first page describes the zspage:
 *
 *	kind	    number of the class + 1
 *	inuse	    objects in use
 *	free	    first object that was freed, CHAIN_END if none
 *	state	    fullness group, and how many objects were ever used: those
 *		    from there on are free too, but in no chain, so that pages
 *		    nobody has needed yet are never touched
 *	prev, next  circle of the zspages in the same group
 *
 * and that of each page behind it has kind FOLLOWER | distance to the first.
 * Only kind is truth. Nothing here takes a lock.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "pool/frame_list.h"
#include "pool/zsmalloc.h"

#define FOLLOWER  0x8000u
#define CHAIN_END UINT16_MAX

#define STATE_GROUP_SHIFT 12
#define STATE_TOUCHED	  ((1u << STATE_GROUP_SHIFT) - 1)

_Static_assert(ZS_OBJECTS_MAX <= STATE_TOUCHED, "touched objects fit state");
_Static_assert(ZS_OBJECTS_MAX <= 1u << ZS_OBJECT_BITS, "objects fit handles");

static struct arena_frame *frame_of(const struct pool *pool, uint32_t page)
{
	return pool_frame(pool->arena, page);
}

static unsigned int frame_group(const struct arena_frame *frame)
{
	return frame->state >> STATE_GROUP_SHIFT;
}

static unsigned int frame_touched(const struct arena_frame *frame)
{
	return frame->state & STATE_TOUCHED;
}

static void set_state(struct arena_frame *frame, unsigned int group,
		      unsigned int touched)
{
	frame->state = group << STATE_GROUP_SHIFT | touched;
}

struct zs_class *zs_zspage_class(const struct pool *pool, uint32_t page)
{
	unsigned int kind = frame_of(pool, page)->kind;

	if (kind == 0 || kind > pool->nr_classes)
		return NULL;
	return (struct zs_class *)&pool->classes[kind - 1];
}

struct zs_class *zs_zspage_check(const struct pool *pool, uint64_t page)
{
	uint64_t end = arena_extent(pool->arena, ARENA_POOL);
	struct zs_class *class;

	if (page >= end)
		return NULL;
	class = zs_zspage_class(pool, page);
	if (!class || page + class->geometry.pages > end)
		return NULL;
	for (unsigned int i = 1; i < class->geometry.pages; i++)
		if (frame_of(pool, page + i)->kind != (FOLLOWER | i))
			return NULL;
	return class;
}

int zs_zspage_create(struct pool *pool, const struct zs_class *class,
		     unsigned int flags, uint32_t *page)
{
	unsigned int pages = class->geometry.pages;
	struct arena_frame *frame;
	int err;

	err = arena_alloc(pool->arena, ARENA_POOL, pages, flags, page);
	if (err)
		return err;
	for (unsigned int i = 1; i < pages; i++)
		*frame_of(pool, *page + i) =
			(struct arena_frame){.kind = FOLLOWER | i};
	frame = frame_of(pool, *page);
	*frame = (struct arena_frame){.kind = class->index + 1,
				      .free = CHAIN_END,
				      .prev = ARENA_NIL,
				      .next = ARENA_NIL};
	set_state(frame, ZS_NONE, 0);
	return 0;
}

void zs_zspage_destroy(struct pool *pool, const struct zs_class *class,
		       uint32_t page)
{
	unsigned int pages = class->geometry.pages;

	for (unsigned int i = 0; i < pages; i++)
		*frame_of(pool, page + i) = (struct arena_frame){0};
	arena_free(pool->arena, ARENA_POOL, page, pages);
}

uint32_t *zs_owners(const struct pool *pool, uint32_t page)
{
	return arena_page(pool->arena, ARENA_POOL, page);
}

void *zs_object(const struct pool *pool, const struct zs_class *class,
		uint32_t page, unsigned int object)
{
	unsigned char *base = arena_page(pool->arena, ARENA_POOL, page);

	if (zs_is_huge(class))
		return base;
	return base + class->geometry.objects * ZS_HEADER +
	       object * zs_payload(class);
}

/* Only who holds the lock writes, so that a load and a store are enough. */
static void add_room(struct zs_class *class, int slots)
{
	atomic_store_explicit(&class->room, zs_room(class) + slots,
			      memory_order_relaxed);
}

/* Bring a zspage to the list that its inuse asks for. */
static void regroup(struct pool *pool, struct zs_class *class, uint32_t page,
		    struct arena_frame *frame)
{
	unsigned int old = frame_group(frame);
	unsigned int new =
		frame->inuse ? frame->inuse *ZS_GROUPS / class->geometry.objects
			     : ZS_NONE;

	if (new == old)
		return;
	if (old != ZS_NONE) {
		frame_list_del(pool->arena, &class->list[old], page);
		class->zspages[old]--;
	} else {
		add_room(class, class->geometry.objects);
	}
	if (new != ZS_NONE) {
		frame_list_add(pool->arena, &class->list[new], page);
		class->zspages[new]++;
	} else {
		add_room(class, -class->geometry.objects);
	}
	set_state(frame, new, frame_touched(frame));
}

uint32_t zs_fullest(const struct pool *pool, const struct zs_class *class,
		    uint32_t except)
{
	for (unsigned int group = ZS_GROUPS; group-- > 0;) {
		uint32_t page = class->list[group];

		if (page == except && page != ARENA_NIL)
			page = frame_of(pool, page)->next;
		if (page != except && page != ARENA_NIL)
			return page;
	}
	return ARENA_NIL;
}

uint32_t zs_oldest(const struct pool *pool, const struct zs_class *class,
		   unsigned int group)
{
	return frame_list_oldest(pool->arena, class->list[group]);
}

void zs_renew(struct pool *pool, struct zs_class *class, uint32_t page)
{
	unsigned int group = frame_group(frame_of(pool, page));

	if (group != ZS_NONE) {
		frame_list_del(pool->arena, &class->list[group], page);
		frame_list_add(pool->arena, &class->list[group], page);
	}
}

unsigned int zs_take(struct pool *pool, struct zs_class *class, uint32_t page,
		     uint32_t owner)
{
	struct arena_frame *frame = frame_of(pool, page);
	uint32_t *owners = zs_owners(pool, page);
	unsigned int object = frame->free;

	if (object != CHAIN_END) {
		frame->free = owners[object];
	} else {
		object = frame_touched(frame);
		set_state(frame, frame_group(frame), object + 1);
	}
	assert(object < class->geometry.objects);
	owners[object] = owner;
	frame->inuse++;
	class->used++;
	regroup(pool, class, page, frame);
	add_room(class, -1);
	return object;
}

bool zs_put(struct pool *pool, struct zs_class *class, uint32_t page,
	    unsigned int object)
{
	struct arena_frame *frame = frame_of(pool, page);

	/* A second free of the same object, as far as it shows. */
	assert(frame->inuse > 0 && object != frame->free);
	assert(object < frame_touched(frame));
	zs_owners(pool, page)[object] = frame->free;
	frame->free = object;
	frame->inuse--;
	class->used--;
	add_room(class, 1);
	regroup(pool, class, page, frame);
	return frame->inuse == 0;
}

unsigned int zs_inuse(const struct pool *pool, uint32_t page)
{
	return frame_of(pool, page)->inuse;
}

static void set_first_bits(struct zs_bitmap *bitmap, unsigned int nr)
{
	memset(bitmap, 0, sizeof(*bitmap));
	memset(bitmap, 0xff, nr / 64 * sizeof(bitmap->word[0]));
	if (nr % 64)
		bitmap->word[nr / 64] = (UINT64_C(1) << (nr % 64)) - 1;
}

unsigned int zs_live(const struct pool *pool, const struct zs_class *class,
		     uint32_t page, struct zs_bitmap *live)
{
	const struct arena_frame *frame = frame_of(pool, page);
	const uint32_t *owners = zs_owners(pool, page);
	unsigned int touched = frame_touched(frame);
	uint32_t object = frame->free;

	if (touched > class->geometry.objects)
		touched = class->geometry.objects;
	if (zs_is_huge(class)) {
		set_first_bits(live, frame->inuse != 0);
		return 0;
	}
	set_first_bits(live, touched);
	while (object != CHAIN_END) {
		if (object >= touched || !zs_test_bit(live, object))
			return 1;
		zs_clear_bit(live, object);
		object = owners[object];
	}
	return 0;
}

void zs_restore(struct pool *pool, struct zs_class *class, uint32_t page,
		const struct zs_bitmap *live)
{
	struct arena_frame *frame = frame_of(pool, page);
	uint32_t *owners = zs_owners(pool, page);
	unsigned int touched = class->geometry.objects;

	frame->inuse = 0;
	while (!zs_test_bit(live, touched - 1))
		touched--;
	frame->free = CHAIN_END;
	for (unsigned int object = touched; object-- > 0;) {
		if (zs_test_bit(live, object)) {
			frame->inuse++;
			continue;
		}
		owners[object] = frame->free;
		frame->free = object;
	}
	class->used += frame->inuse;
	set_state(frame, ZS_NONE, touched);
	regroup(pool, class, page, frame);
	add_room(class, -(int)frame->inuse);
}
