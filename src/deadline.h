/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * deadline.h - waiting for a condition, but not for ever
 *
 * By the monotonic clock, so that setting the system's time makes nobody wait
 * longer. Knows nobody; thread-safe.
 */
#ifndef ZRAMFS_DEADLINE_H
#define ZRAMFS_DEADLINE_H

#include <pthread.h>
#include <time.h>

/* For waits that end at what deadline_after() gives. A negative errno. */
int deadline_cond_init(pthread_cond_t *cond);

/* So many ms from now. */
struct timespec deadline_after(unsigned int ms);

#endif
