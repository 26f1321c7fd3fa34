/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hot.c - frames and queue of the hot tier
 *
 * Owns the queue; the frames belong to the arena and, once named by a slot,
 * to that object. Knows nothing of compression. See hot.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "arena/lock.h"
#include "store/hot.h"

int hot_init(struct hot *hot, struct arena *arena, uint64_t bytes)
{
	void *entry;

	hot->arena = arena;
	hot->entry_bytes =
		arena_capacity(arena, ARENA_HOT) * sizeof(struct hot_entry);
	entry = mmap(NULL, hot->entry_bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (entry == MAP_FAILED)
		return -ENOMEM;
	hot->entry = entry;
	lock_init(&hot->lock);
	hot->head = hot->tail = ARENA_NIL;
	atomic_init(&hot->frames, 0);
	hot_set_limit(hot, bytes);
	return 0;
}

void hot_exit(struct hot *hot)
{
	if (!hot->entry)
		return;
	munmap(hot->entry, hot->entry_bytes);
	pthread_mutex_destroy(&hot->lock);
	hot->entry = NULL;
}

int hot_take_frame(struct hot *hot, unsigned int flags, uint32_t *frame)
{
	/* Relaxed: the count bounds memory, it publishes nothing. */
	uint64_t before = atomic_fetch_add_explicit(&hot->frames, 1,
						    memory_order_relaxed);
	int ret = -EAGAIN;

	if (before < hot_limit(hot))
		ret = arena_alloc(hot->arena, ARENA_HOT, 1, flags, frame);
	if (ret)
		atomic_fetch_sub_explicit(&hot->frames, 1,
					  memory_order_relaxed);
	return ret;
}

void hot_give_frame(struct hot *hot, uint32_t frame)
{
	arena_free(hot->arena, ARENA_HOT, frame, 1);
	atomic_fetch_sub_explicit(&hot->frames, 1, memory_order_relaxed);
}

void *hot_page(const struct hot *hot, uint32_t frame)
{
	return arena_page(hot->arena, ARENA_HOT, frame);
}

static void unlink_frame(struct hot *hot, uint32_t frame)
{
	struct hot_entry *entry = &hot->entry[frame];

	if (entry->prev == ARENA_NIL)
		hot->head = entry->next;
	else
		hot->entry[entry->prev].next = entry->next;
	if (entry->next == ARENA_NIL)
		hot->tail = entry->prev;
	else
		hot->entry[entry->next].prev = entry->prev;
	entry->slot = 0;
}

/*
 * When the young end was reached. Not before whatever is there: who read the
 * clock may have been held up on the way here, and the queue is in order.
 */
static uint32_t arrival(const struct hot *hot, int64_t now)
{
	uint32_t last;

	if (hot->tail == ARENA_NIL)
		return (uint32_t)now;
	last = hot->entry[hot->tail].since;
	return (int32_t)(last - (uint32_t)now) > 0 ? last : (uint32_t)now;
}

void hot_enqueue(struct hot *hot, uint32_t frame, uint32_t slot, int64_t now,
		 bool old)
{
	struct hot_entry *entry = &hot->entry[frame];

	pthread_mutex_lock(&hot->lock);
	entry->slot = slot;
	if (!old)
		entry->since = arrival(hot, now);
	entry->prev = old ? ARENA_NIL : hot->tail;
	entry->next = old ? hot->head : ARENA_NIL;
	if (entry->prev == ARENA_NIL)
		hot->head = frame;
	else
		hot->entry[entry->prev].next = frame;
	if (entry->next == ARENA_NIL)
		hot->tail = frame;
	else
		hot->entry[entry->next].prev = frame;
	pthread_mutex_unlock(&hot->lock);
}

void hot_dequeue(struct hot *hot, uint32_t frame)
{
	pthread_mutex_lock(&hot->lock);
	if (hot->entry[frame].slot)
		unlink_frame(hot, frame);
	pthread_mutex_unlock(&hot->lock);
}

static int64_t age_of(const struct hot_entry *entry, int64_t now)
{
	return (int32_t)((uint32_t)now - entry->since);
}

bool hot_oldest(struct hot *hot, int64_t now, int64_t age,
		bool (*pin)(void *context, uint32_t slot), void *context,
		uint32_t *frame, uint32_t *slot)
{
	bool found = false;
	uint32_t at;

	pthread_mutex_lock(&hot->lock);
	for (at = hot->head; at != ARENA_NIL; at = hot->entry[at].next) {
		if (age_of(&hot->entry[at], now) < age)
			break;
		/* One that is being freed refuses; its freer takes it out. */
		if (!pin(context, hot->entry[at].slot))
			continue;
		*frame = at;
		*slot = hot->entry[at].slot;
		unlink_frame(hot, at);
		found = true;
		break;
	}
	pthread_mutex_unlock(&hot->lock);
	return found;
}

int64_t hot_age(struct hot *hot, int64_t now)
{
	int64_t age = -1;

	pthread_mutex_lock(&hot->lock);
	if (hot->head != ARENA_NIL) {
		age = age_of(&hot->entry[hot->head], now);
		if (age < 0)
			age = 0;
	}
	pthread_mutex_unlock(&hot->lock);
	return age;
}

uint64_t hot_frames(const struct hot *hot)
{
	return atomic_load_explicit(&hot->frames, memory_order_relaxed);
}

uint64_t hot_limit(const struct hot *hot)
{
	return atomic_load_explicit(&hot->limit, memory_order_relaxed);
}

void hot_set_limit(struct hot *hot, uint64_t bytes)
{
	uint64_t frames = bytes >> PAGE_SHIFT;
	uint64_t capacity = arena_capacity(hot->arena, ARENA_HOT);

	atomic_store_explicit(&hot->limit,
			      frames < capacity ? frames : capacity,
			      memory_order_relaxed);
}

/* Since Linux 5.18; not in every header. */
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

/* Where it fails, the memory stays for another time: no harm. */
static void give_back(void *memory, size_t size)
{
	if (madvise(memory, size, MADV_DONTNEED) && errno == EINVAL)
		madvise(memory, size, MADV_DONTNEED_LOCKED);
}

void hot_trim(struct hot *hot)
{
	pthread_mutex_lock(&hot->lock);
	/* Zero is what an entry that is not in the queue has to be. */
	if (hot->head == ARENA_NIL)
		give_back(hot->entry, hot->entry_bytes);
	pthread_mutex_unlock(&hot->lock);
}

void hot_restore(struct hot *hot, uint64_t frames)
{
	atomic_store_explicit(&hot->frames, frames, memory_order_relaxed);
}
