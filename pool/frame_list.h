/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frame_list.h - lists of a pool's pages, linked through their frames
 *
 * A list is a circle, named by the number of its youngest page, or ARENA_NIL
 * when it is empty; the oldest is the one before the youngest. A page is in
 * one list at most, and its frame's prev and next belong to that list.
 *
 * Private to the pools. Takes no lock: callers hold the one that guards the
 * list and the frames of its pages.
 */
#ifndef ZRAMFS_FRAME_LIST_H
#define ZRAMFS_FRAME_LIST_H

#include "arena/arena.h"

static inline struct arena_frame *pool_frame(const struct arena *arena,
					     uint32_t page)
{
	return arena_frame(arena, ARENA_POOL, page);
}

/* Make a page that is in no list the youngest of this one. */
static inline void frame_list_add(const struct arena *arena, uint32_t *list,
				  uint32_t page)
{
	struct arena_frame *frame = pool_frame(arena, page);

	if (*list == ARENA_NIL) {
		frame->prev = page;
		frame->next = page;
	} else {
		struct arena_frame *first = pool_frame(arena, *list);

		frame->next = *list;
		frame->prev = first->prev;
		pool_frame(arena, first->prev)->next = page;
		first->prev = page;
	}
	*list = page;
}

static inline void frame_list_del(const struct arena *arena, uint32_t *list,
				  uint32_t page)
{
	struct arena_frame *frame = pool_frame(arena, page);

	if (frame->next == page) {
		*list = ARENA_NIL;
	} else {
		pool_frame(arena, frame->prev)->next = frame->next;
		pool_frame(arena, frame->next)->prev = frame->prev;
		if (*list == page)
			*list = frame->next;
	}
	frame->prev = ARENA_NIL;
	frame->next = ARENA_NIL;
}

static inline uint32_t frame_list_oldest(const struct arena *arena,
					 uint32_t list)
{
	return list == ARENA_NIL ? ARENA_NIL : pool_frame(arena, list)->prev;
}

#endif
