/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fault.h - dying, and running out of memory, where a test wants it
 *
 * For test builds only (make FAULTS=1): elsewhere nothing of it is compiled.
 * What is to happen is asked for in the environment, or by a test program that
 * calls fault_arm():
 *
 *   kill=N   SIGKILL at the N-th point that is passed, counted from 1
 *   alloc=N  the N-th allocation fails
 *
 * Knows no other room; every room may use it.
 */
#ifndef ZRAMFS_FAULT_H
#define ZRAMFS_FAULT_H

#include <stdbool.h>

#ifdef ZRAMFS_FAULTS

/* A point in time that is worth dying at. */
void fault_point(const char *name);

/* True when this allocation has to fail. */
bool fault_alloc(void);

/* Counting begins anew; 0: nothing happens. */
void fault_arm(unsigned long kill, unsigned long alloc);

/* How many were passed since. */
unsigned long fault_points(void);
unsigned long fault_allocs(void);
/* The name of the last point. */
const char *fault_name(void);

#else

#define fault_point(name) ((void)0)
#define fault_alloc()	  false

#endif

#endif
