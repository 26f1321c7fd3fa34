/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate.c - letting operations in, and keeping all of them out
 *
 * Operations count themselves in and out at one of many counters, so that
 * threads do not meet there. Who wants to stop them says so, and waits until
 * all counters are zero.
 *
 * An operation counts itself in and then looks for a stop; a stop is announced
 * and then looks at the counters. Both are sequentially consistent, so that at
 * least one sees the other (as in Dekker's algorithm). stop_lock guards what
 * they say to each other when they have met: no wake-up is lost, because
 * whoever leaves during a stop takes it before waking.
 */
#include "fs/fs_private.h"

static _Thread_local unsigned int own_gate;

void gate_choose(void)
{
	static _Atomic unsigned int threads;

	own_gate =
		atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) %
		FS_GATES;
}

int gates_init(struct fs *fs)
{
	int error = pthread_mutex_init(&fs->stop_lock, NULL);

	if (error)
		return -error;
	error = pthread_cond_init(&fs->stop_changed, NULL);
	if (error)
		pthread_mutex_destroy(&fs->stop_lock);
	return -error;
}

void gates_exit(struct fs *fs)
{
	pthread_cond_destroy(&fs->stop_changed);
	pthread_mutex_destroy(&fs->stop_lock);
}

static void wait_for_end_of_stop(struct fs *fs)
{
	pthread_mutex_lock(&fs->stop_lock);
	while (atomic_load(&fs->stops))
		pthread_cond_wait(&fs->stop_changed, &fs->stop_lock);
	pthread_mutex_unlock(&fs->stop_lock);
}

void fs_enter(struct fs *fs)
{
	_Atomic uint32_t *inside = &fs->gates[own_gate].inside;

	for (;;) {
		atomic_fetch_add(inside, 1);
		if (!atomic_load(&fs->stops))
			return;
		fs_leave(fs);
		wait_for_end_of_stop(fs);
	}
}

void fs_leave(struct fs *fs)
{
	atomic_fetch_sub(&fs->gates[own_gate].inside, 1);
	if (!atomic_load(&fs->stops))
		return;
	pthread_mutex_lock(&fs->stop_lock);
	pthread_cond_broadcast(&fs->stop_changed);
	pthread_mutex_unlock(&fs->stop_lock);
}

static bool somebody_inside(struct fs *fs)
{
	for (size_t i = 0; i < FS_GATES; i++) {
		if (atomic_load(&fs->gates[i].inside))
			return true;
	}
	return false;
}

void fs_stop(struct fs *fs)
{
	pthread_mutex_lock(&fs->stop_lock);
	atomic_fetch_add(&fs->stops, 1);
	while (fs->stopped || somebody_inside(fs))
		pthread_cond_wait(&fs->stop_changed, &fs->stop_lock);
	fs->stopped = true;
	pthread_mutex_unlock(&fs->stop_lock);
}

void fs_continue(struct fs *fs)
{
	pthread_mutex_lock(&fs->stop_lock);
	fs->stopped = false;
	atomic_fetch_sub(&fs->stops, 1);
	pthread_cond_broadcast(&fs->stop_changed);
	pthread_mutex_unlock(&fs->stop_lock);
}
