/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * awake.h - processors that do not halt while a client waits for answers
 *
 * A client that sends one request after the other sleeps while its request is
 * served, and the worker sleeps until the next. So each request wakes two
 * processors, and where an idle one halts (in a guest: leaves to the host),
 * waking it takes longer than serving the request. The kernel's PM QoS
 * interface, Documentation/power/pm_qos_interface.rst, lets a process ask that
 * idle processors be ready at once, for as long as it holds
 * /dev/cpu_dma_latency open with a latency of 0 written to it. They then poll;
 * the time counts as idle all the same.
 *
 * That costs power, so it is asked for in bursts: from when requests come in
 * quick succession until they no longer do. A process that dies asks for
 * nothing any more.
 *
 * Workers call awake_pace() only; all else belongs to the thread that waits.
 */
#ifndef ZRAMFS_AWAKE_H
#define ZRAMFS_AWAKE_H

#include <stdbool.h>
#include <stdint.h>

#define AWAKE_DEVICE "/dev/cpu_dma_latency"

/* So often it is looked whether requests still come, while held. */
#define AWAKE_TICK_MS 5

struct awake {
	int fd; /* -1: none, all below does nothing */
	bool held;
	uint64_t served; /* at the last tick */
};

/* -EACCES, -ENOENT or what else open(2) and write(2) give; then fd is -1. */
int awake_open(struct awake *awake, const char *device);
void awake_close(struct awake *awake);

/* A burst has begun; served: requests until now. */
void awake_hold(struct awake *awake, uint64_t served);

/* AWAKE_TICK_MS later: lets go when too few requests were served since. */
void awake_tick(struct awake *awake, uint64_t served);

/* A worker's own view of how fast requests come. Zero when new. */
struct awake_pace {
	unsigned int count;
	int64_t since; /* ns of the monotonic clock */
};

/* After each request: true when the last few came in quick succession. */
bool awake_pace(struct awake_pace *pace);

#endif
