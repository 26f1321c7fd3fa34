/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fault.c - see fault.h
 */
#include "fault.h"

#ifdef ZRAMFS_FAULTS

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic unsigned long points, allocs;
static _Atomic unsigned long kill_at, alloc_at;
static _Atomic unsigned long pending; /* of kill_at */
static const char *_Atomic last_name;

void fault_point(const char *name)
{
	unsigned long point, begin = 0;

	if (atomic_load(&pending) && !strcmp(name, FAULT_REQUEST))
		begin = atomic_exchange(&pending, 0);
	if (begin)
		fault_arm(begin, 0);
	point = atomic_fetch_add(&points, 1) + 1;
	atomic_store(&last_name, name);
	/* At once: not even buffered output is to follow. */
	if (point == atomic_load(&kill_at))
		kill(getpid(), SIGKILL);
}

bool fault_alloc(void)
{
	return atomic_fetch_add(&allocs, 1) + 1 == atomic_load(&alloc_at);
}

void fault_arm(unsigned long kill, unsigned long alloc)
{
	atomic_store(&points, 0);
	atomic_store(&allocs, 0);
	atomic_store(&kill_at, kill);
	atomic_store(&alloc_at, alloc);
}

void fault_arm_request(unsigned long kill)
{
	atomic_store(&pending, kill);
}

bool fault_old_kernel(void)
{
	return getenv("ZRAMFS_OLD_KERNEL") != NULL;
}

unsigned long fault_points(void)
{
	return atomic_load(&points);
}

unsigned long fault_allocs(void)
{
	return atomic_load(&allocs);
}

const char *fault_name(void)
{
	return atomic_load(&last_name);
}

#endif
