/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block_trim.c - have the filesystem of block mode discard what it does not use
 *
 * FITRIM waits for discards that this very daemon serves, and cannot be killed
 * while it does. In a thread of the worker it would keep a worker that was
 * killed from ending, and so the next from starting, for ever; so a process of
 * its own does it, for some milliseconds, which holds nothing that another
 * waits for: no connection, and not the mount either. It looks at the
 * filesystem through a mount that is in no tree, and umount(8) finds nobody
 * inside.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "block_private.h"

/*
 * Only where something is stored can something be discarded; ext4 would load
 * the bitmap of each of its block groups, which are of this size.
 */
#define GROUP_SIZE (INT64_C(128) << 20)

size_t block_trim_ranges(off_t (*next_stored)(void *context, off_t offset),
			 void *context,
			 struct block_range ranges[BLOCK_RANGES_MAX])
{
	struct block_range *range = NULL;
	off_t at = 0;
	size_t count = 0;

	while ((at = next_stored(context, at)) >= 0) {
		uint64_t start = at / GROUP_SIZE * GROUP_SIZE;

		at = start + GROUP_SIZE;
		/* The last of too many covers what is in between as well. */
		if (range && (start == range->start + range->length ||
			      count == BLOCK_RANGES_MAX)) {
			range->length = at - range->start;
			continue;
		}
		range = &ranges[count++];
		range->start = start;
		range->length = GROUP_SIZE;
	}
	return count;
}

/* An open directory of the filesystem, -errno. Only a child calls it. */
static int open_root(const char *mountpoint, dev_t device)
{
	struct stat stat_buf;
	int mount, root;

	mount = open_tree(AT_FDCWD, mountpoint,
			  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (mount < 0)
		return -errno;
	root = openat(mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	/* Something else may have been mounted there since. */
	if (fstat(root, &stat_buf))
		return -errno;
	return stat_buf.st_dev == device ? root : -ENOENT;
}

static int trim_range(int root, const struct block_range *range, uint64_t least)
{
	struct fstrim_range asked = {
		.start = range->start,
		.len = range->length,
		.minlen = least,
	};

	return ioctl(root, FITRIM, &asked) ? errno : 0;
}

/*
 * ext4 passes over a group in which nothing was freed since it was trimmed,
 * but takes what is freed during a trim for trimmed: it unlocks the group for
 * each discard, and marks it at the end. It looks anew when shorter extents
 * are asked for than were the last time. (fs/ext4/mballoc.c, ext4_trim_fs(),
 * s_last_trim_minblks.)
 */
#define LONGER (128 << 10)

/* After fork() in a process with threads: system calls only. An errno. */
static int trim_all(const char *mountpoint, dev_t device,
		    const struct block_range *ranges, size_t count, bool anew)
{
	int error = 0;
	int root;
	size_t i;

	if (close_range(STDERR_FILENO + 1, ~0U, 0))
		return errno;
	prctl(PR_SET_NAME, "zramfs-trim");
	root = open_root(mountpoint, device);
	if (root < 0)
		return -root;
	if (anew && count)
		error = trim_range(root, &ranges[0], LONGER);
	for (i = 0; i < count && !error; i++)
		error = trim_range(root, &ranges[i], 0);
	return error;
}

pid_t block_trim_begin(const char *mountpoint, dev_t device,
		       const struct block_range *ranges, size_t count,
		       bool anew)
{
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0)
		_exit(trim_all(mountpoint, device, ranges, count, anew));
	return pid;
}

void block_trim_wait(pid_t pid)
{
	siginfo_t info;

	while (waitid(P_PID, pid, &info, WEXITED | WNOWAIT) && errno == EINTR)
		;
}

int block_trim_end(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}
