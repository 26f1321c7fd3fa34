/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hot.h - the hot tier: pages as they were written, waiting for compression
 *
 * A page of the arena's HOT region (a frame) for each hot object, and a queue
 * in order of arrival. The frames are the truth, with the slots that name
 * them; the queue is derived and lies in private memory: 16 bytes for each
 * frame, of which only those in use cost anything.
 *
 * Bounded: hot_take_frame() fails when the limit is reached. One mutex guards
 * the queue; under it nothing else is locked or waited for.
 */
#ifndef ZRAMFS_HOT_H
#define ZRAMFS_HOT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "arena/arena.h"

struct hot_entry {
	uint32_t slot; /* of the object table; 0: not in the queue */
	uint32_t prev;
	uint32_t next;
	uint32_t since; /* ms, wraps */
};

struct hot {
	struct arena *arena;
	struct hot_entry *entry; /* by frame */
	size_t entry_bytes;
	pthread_mutex_t lock; /* guards entry[], head, tail */
	uint32_t head;	      /* oldest; ARENA_NIL */
	uint32_t tail;
	_Atomic uint64_t limit;	 /* frames */
	_Atomic uint64_t frames; /* taken, in the queue or not */
};

/* -ENOMEM. */
int hot_init(struct hot *hot, struct arena *arena, uint64_t bytes);
void hot_exit(struct hot *hot);

/* -EAGAIN at the tier's own limit, -ENOSPC at the arena's. */
int hot_take_frame(struct hot *hot, unsigned int flags, uint32_t *frame);
/* Give a frame back that is not in the queue. */
void hot_give_frame(struct hot *hot, uint32_t frame);
void *hot_page(const struct hot *hot, uint32_t frame);

/* Enter at the young end; or, old: back at the old end, where it came from. */
void hot_enqueue(struct hot *hot, uint32_t frame, uint32_t slot, int64_t now,
		 bool old);
/* Leave the queue, if the frame is in it. */
void hot_dequeue(struct hot *hot, uint32_t frame);

/*
 * Take the oldest frame out of the queue whose age is at least age ms and
 * whose slot pin() agrees to; called under the queue's lock. False: none.
 */
bool hot_oldest(struct hot *hot, int64_t now, int64_t age,
		bool (*pin)(void *context, uint32_t slot), void *context,
		uint32_t *frame, uint32_t *slot);

/* Age in ms of the oldest, -1 when the queue is empty. */
int64_t hot_age(struct hot *hot, int64_t now);
uint64_t hot_frames(const struct hot *hot);
uint64_t hot_limit(const struct hot *hot);
void hot_set_limit(struct hot *hot, uint64_t bytes);

/*
 * Give the queue's memory back when nothing is in it; a full tier has 16 bytes
 * for each frame, which else would stay for good.
 */
void hot_trim(struct hot *hot);

/* After an attach: frames count as taken that the truth named. */
void hot_restore(struct hot *hot, uint64_t frames);

#endif
