/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fault.h - dying, and running out of memory, where a test wants it
 *
 * For test builds only (make FAULTS=1): elsewhere nothing of it is compiled.
 * A test program calls fault_arm(); of a mounted zramfs it is asked for by
 * zramfsctl set MOUNTPOINT KEY=N:
 *
 *   fault=N        die at the N-th point
 *   fault_alloc=N  the N-th allocation fails; 0: none from now on, it says
 *                  "out of range" when there were fewer than N
 *   fault_blocks=N says "out of range" when more than N blocks are allocated
 *   fault_flip=N   a bit of a file's N-th page: see store/damage.h
 *
 * and a worker that starts looks into the file that ZRAMFS_FAULT_START in the
 * environment names, once: a number there is N, and its N-th allocation fails;
 * else it is the name of a point, where the worker stops (SIGSTOP).
 *
 * Knows no other room; every room may use it.
 */
#ifndef ZRAMFS_FAULT_H
#define ZRAMFS_FAULT_H

#include <stdbool.h>

#define FAULT_REQUEST "request begun"

#ifdef ZRAMFS_FAULTS

/* A point in time that is worth dying at. */
void fault_point(const char *name);

/* True when this allocation has to fail. */
bool fault_alloc(void);

/*
 * SIGKILL at the kill-th point from now on, and failure of the alloc-th
 * allocation, counted from 1; 0: none.
 */
void fault_arm(unsigned long kill, unsigned long alloc);

/*
 * The same, from the next request on. Such a request begins with the point
 * FAULT_REQUEST.
 */
void fault_arm_request(unsigned long kill, unsigned long alloc);

/*
 * No more allocation is to fail. 0 when one has been made to; -ERANGE when
 * there were too few; -ENODATA when none was to.
 */
int fault_disarm_alloc(void);

/* A worker starts. */
void fault_start(void);

/* A block was allocated (1) or freed (-1); so many are there. */
void fault_count_block(int change);
long fault_blocks(void);

/* Whether to do as on Linux before 6.9: ZRAMFS_OLD_KERNEL in the environment.
 */
bool fault_old_kernel(void);

/* How many were passed since. */
unsigned long fault_points(void);
unsigned long fault_allocs(void);
/* The name of the last point. */
const char *fault_name(void);

#else

#define fault_point(name)  ((void)0)
#define fault_alloc()	   false
#define fault_old_kernel() false
#define fault_start()	   ((void)0)

#endif

#endif
