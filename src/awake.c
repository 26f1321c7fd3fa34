/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * awake.c - see awake.h
 */
#include "awake.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

/*
 * So many requests within a tick are a burst: 3,000 in a second. Below, what
 * halting costs is lost in what the client does between requests.
 */
#define BURST 16

/* In us. The second is the kernel's PM_QOS_CPU_LATENCY_DEFAULT_VALUE. */
#define READY_AT_ONCE 0
#define NO_MATTER     2000000000

static int ask(const struct awake *awake, int32_t latency)
{
	ssize_t written = write(awake->fd, &latency, sizeof(latency));

	return written == sizeof(latency) ? 0 : -(written < 0 ? errno : EIO);
}

int awake_open(struct awake *awake, const char *device)
{
	int error;

	awake->held = false;
	awake->fd = open(device, O_WRONLY | O_CLOEXEC);
	if (awake->fd < 0)
		return -errno;
	error = ask(awake, NO_MATTER);
	if (error)
		awake_close(awake);
	return error;
}

void awake_close(struct awake *awake)
{
	if (awake->fd >= 0)
		close(awake->fd);
	awake->fd = -1;
	awake->held = false;
}

/* The device cannot fail once it took a value; should it, none is held. */
static void set(struct awake *awake, bool hold)
{
	if (ask(awake, hold ? READY_AT_ONCE : NO_MATTER))
		awake_close(awake);
	else
		awake->held = hold;
}

void awake_hold(struct awake *awake, uint64_t served)
{
	if (awake->fd < 0 || awake->held)
		return;
	awake->served = served;
	set(awake, true);
}

void awake_tick(struct awake *awake, uint64_t served)
{
	if (!awake->held)
		return;
	if (served - awake->served < BURST)
		set(awake, false);
	awake->served = served;
}

bool awake_pace(struct awake_pace *pace)
{
	struct timespec now;
	int64_t since = pace->since;

	if (++pace->count < BURST)
		return false;
	clock_gettime(CLOCK_MONOTONIC, &now);
	pace->count = 0;
	pace->since = now.tv_sec * 1000000000ll + now.tv_nsec;
	return pace->since - since < AWAKE_TICK_MS * 1000000ll;
}
