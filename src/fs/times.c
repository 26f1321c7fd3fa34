/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * times.c - what time a file's times are set to, and when
 *
 * The clock is coarse, as it is for the kernel's own filesystems: cheap, and
 * in step with theirs. Only where a program has looked at a file since its
 * last change, and would see no difference after the next, is the fine clock
 * asked. Linux does so for tmpfs ("multigrain" timestamps, since 6.13).
 *
 * All here are single atomic stores, which need no lock; nothing else is
 * ordered by them.
 */
#include <errno.h>
#include <math.h>
#include <time.h>

#include "fs/fs_private.h"

#define NSEC_PER_SEC 1000000000LL

/*
 * The last time that came from the fine clock. The coarse one is behind it for
 * a tick; without this, what changes later would seem to be older. Of this
 * process: after another has taken over, the clock has moved on.
 */
static _Atomic int64_t finest;

int64_t inode_time(const struct timespec *time)
{
	int64_t ns;

	if (__builtin_mul_overflow((int64_t)time->tv_sec, NSEC_PER_SEC, &ns) ||
	    __builtin_add_overflow(ns, (int64_t)time->tv_nsec, &ns))
		return time->tv_sec < 0 ? INT64_MIN : INT64_MAX;
	return ns;
}

struct timespec inode_timespec(int64_t ns)
{
	struct timespec time = {.tv_sec = ns / NSEC_PER_SEC,
				.tv_nsec = ns % NSEC_PER_SEC};

	if (time.tv_nsec < 0) {
		time.tv_sec--;
		time.tv_nsec += NSEC_PER_SEC;
	}
	return time;
}

static int64_t clock_time(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return inode_time(&now) & ~INODE_CTIME_SEEN;
}

int64_t inode_now(void)
{
	int64_t now = clock_time(CLOCK_REALTIME_COARSE);
	int64_t floor = atomic_load_explicit(&finest, memory_order_relaxed);

	/* Far ahead of the clock, it is of before the clock was set back. */
	return floor > now && floor - now < NSEC_PER_SEC ? floor : now;
}

static int64_t fine_now(void)
{
	int64_t now = clock_time(CLOCK_REALTIME);

	atomic_store_explicit(&finest, now, memory_order_relaxed);
	return now;
}

int64_t inode_changed(struct inode *inode)
{
	int64_t seen =
		atomic_load_explicit(&inode->ctime, memory_order_relaxed);
	int64_t now = inode_now();

	if ((seen & INODE_CTIME_SEEN) && now <= seen)
		now = fine_now();
	atomic_store_explicit(&inode->ctime, now, memory_order_relaxed);
	return now;
}

struct timespec inode_show_ctime(struct inode *inode)
{
	int64_t ctime =
		atomic_load_explicit(&inode->ctime, memory_order_relaxed);

	if (!(ctime & INODE_CTIME_SEEN))
		atomic_fetch_or_explicit(&inode->ctime, INODE_CTIME_SEEN,
					 memory_order_relaxed);
	return inode_timespec(ctime & ~INODE_CTIME_SEEN);
}

#define DAY (24 * 60 * 60 * NSEC_PER_SEC)

static bool atime_is_due(const struct inode *inode, int64_t now)
{
	int64_t atime = inode->atime;

	return atime <= inode->mtime || atime <= inode->ctime ||
	       now - DAY >= atime;
}

void fs_accessed(struct fs *fs, ino_t ino)
{
	struct inode *inode = inode_get(fs, ino);
	int64_t now = inode_now();

	if (inode && !(inode->mode & INODE_NOATIME) && atime_is_due(inode, now))
		inode->atime = now;
}

bool fs_atime_is_due(struct fs *fs, ino_t ino)
{
	const struct inode *inode = inode_get(fs, ino);

	return inode && !(inode->mode & INODE_NOATIME) &&
	       atime_is_due(inode, inode_now());
}

void fs_keeps_pages(struct fs *fs, ino_t ino)
{
	struct inode *inode = inode_get(fs, ino);

	if (!inode || (inode->mode & INODE_KEPT))
		return;
	/* The lock: against those who change the mode in more than one step. */
	fs_enter(fs);
	inode_lock_shared(fs, ino);
	atomic_fetch_or_explicit(&inode->mode, INODE_KEPT,
				 memory_order_relaxed);
	inode_unlock(fs, ino);
	fs_leave(fs);
}

double fs_atime_holds(struct fs *fs, ino_t ino)
{
	const struct inode *inode = inode_get(fs, ino);
	int64_t now = inode_now();

	if (!inode || !S_ISREG(inode->mode) || (inode->mode & INODE_NOATIME))
		return INFINITY;
	if (!(inode->mode & INODE_KEPT))
		return (double)DAY / NSEC_PER_SEC;
	if (atime_is_due(inode, now))
		return 0;
	return (double)(inode->atime + DAY - now) / NSEC_PER_SEC;
}
