/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lock.h - mutexes that are held for some tens of nanoseconds
 *
 * The locks of arena, slab, store and pool guard a list or a bitmap, and are
 * held shorter than the kernel takes to put a thread to sleep. So a thread
 * that finds one taken spins for a moment before it sleeps (glibc's adaptive
 * mutex).
 */
#ifndef ZRAMFS_LOCK_H
#define ZRAMFS_LOCK_H

#include <pthread.h>

/* As pthread_mutex_init(): 0, or a positive errno. */
static inline int lock_init(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attributes;
	int error = pthread_mutexattr_init(&attributes);

	if (error)
		return error;
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
	error = pthread_mutex_init(lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	return error;
}

#endif
