/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fault.c - see fault.h
 */
#include "fault.h"

#ifdef ZRAMFS_FAULTS

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic unsigned long points, allocs;
static _Atomic unsigned long kill_at, alloc_at;
static _Atomic unsigned long pending_kill, pending_alloc;
static atomic_bool pending;
static _Atomic long blocks;
static const char *_Atomic last_name;
static char stop_at[64]; /* written before there are other threads */

void fault_point(const char *name)
{
	unsigned long point;

	if (atomic_load(&pending) && !strcmp(name, FAULT_REQUEST) &&
	    atomic_exchange(&pending, false))
		fault_arm(atomic_load(&pending_kill),
			  atomic_load(&pending_alloc));
	point = atomic_fetch_add(&points, 1) + 1;
	atomic_store(&last_name, name);
	if (!strcmp(name, stop_at)) {
		stop_at[0] = '\0';
		kill(getpid(), SIGSTOP);
	}
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

void fault_arm_request(unsigned long kill, unsigned long alloc)
{
	fault_arm(0, 0);
	atomic_store(&pending_kill, kill);
	atomic_store(&pending_alloc, alloc);
	atomic_store(&pending, kill || alloc);
}

int fault_disarm_alloc(void)
{
	unsigned long nth = atomic_exchange(&alloc_at, 0);

	if (atomic_exchange(&pending, false))
		return -ERANGE;
	if (!nth)
		return -ENODATA;
	return atomic_load(&allocs) >= nth ? 0 : -ERANGE;
}

/* Nothing is allocated, and the file is for one worker. */
void fault_start(void)
{
	const char *path = getenv("ZRAMFS_FAULT_START");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char text[sizeof(stop_at)] = "";
	unsigned long nth;

	if (fd < 0)
		return;
	if (read(fd, text, sizeof(text) - 1) > 0) {
		text[strcspn(text, "\n")] = '\0';
		nth = strtoul(text, NULL, 10);
		if (nth)
			fault_arm(0, nth);
		else
			strcpy(stop_at, text);
	}
	close(fd);
	unlink(path);
}

void fault_count_block(int change)
{
	atomic_fetch_add(&blocks, change);
}

long fault_blocks(void)
{
	return atomic_load(&blocks);
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
