/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ctl.c - see ctl.h
 */
#include "ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "block.h"
#include "control.h"

int ctl_complain(int status, const char *format, ...)
{
	va_list arguments;

	fputs("zramfsctl: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	putc('\n', stderr);
	return status;
}

int ctl_bad_usage(const char *format, const char *argument)
{
	fputs("zramfsctl: ", stderr);
	fprintf(stderr, format, argument);
	fputs(" (see zramfsctl --help)\n", stderr);
	return EXIT_USAGE;
}

int ctl_finish_output(void)
{
	if (fflush(stdout) || ferror(stdout))
		return ctl_complain(EXIT_WRONG, "standard output: %s",
				    strerror(errno));
	return 0;
}

/* --- asking the daemon ------------------------------------------------- */

int ctl_not_zramfs(const char *path)
{
	ctl_complain(
		EXIT_WRONG,
		"%s: not a zramfs mount (mount one with: zramfs MOUNTPOINT)",
		path);
	return -1;
}

/* What is no zramfs itself may have one behind it, as in block mode. */
static int open_behind(const char *path, uint64_t *device_size)
{
	int fd = block_open_behind(path, device_size);

	if (fd >= 0)
		return fd;
	if (fd == -ENOTBLK)
		return ctl_not_zramfs(path);
	ctl_complain(EXIT_WRONG, "%s: %s", path,
		     fd == -ESRCH ? "its daemon is gone"
		     : fd == -EACCES || fd == -EPERM
			     ? "only root may look at the zramfs behind it"
			     : strerror(-fd));
	return -1;
}

int ctl_open(const char *path, uint64_t *device_size)
{
	struct statfs statfs_buf;
	int fd;

	if (statfs(path, &statfs_buf)) {
		if (errno == ENOTCONN)
			ctl_complain(EXIT_WRONG, "%s: its daemon is gone",
				     path);
		else
			ctl_complain(EXIT_WRONG, "%s: %s", path,
				     strerror(errno));
		return -1;
	}
	if (statfs_buf.f_type != FUSE_SUPER_MAGIC)
		return open_behind(path, device_size);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		ctl_complain(EXIT_WRONG, "%s: %s", path, strerror(errno));
	return fd;
}

int ctl_ask(const char *path, unsigned long command, void *argument)
{
	uint64_t device_size = 0;
	int fd = ctl_open(path, &device_size);
	int error = 0;

	if (fd < 0)
		return -1;
	if (device_size && command == CONTROL_SET &&
	    !strcmp(((struct control_set *)argument)->key, "size")) {
		close(fd);
		ctl_complain(EXIT_WRONG, "%s: a device stays as large as it is",
			     path);
		return -1;
	}
	if (ioctl(fd, command, argument) < 0)
		error = errno;
	else if (device_size && command == CONTROL_STAT)
		((struct control_stat *)argument)->size = device_size;
	close(fd);
	/* Other FUSE filesystems know no ioctls, or not these. */
	if (error == ENOTTY || error == ENOSYS)
		return ctl_not_zramfs(path);
	if (error == EPERM) {
		ctl_complain(
			EXIT_WRONG,
			"%s: only root and the user who mounted it may do that",
			path);
		return -1;
	}
	return error;
}

int ctl_ask_failed(const char *path, int error)
{
	if (error > 0)
		ctl_complain(EXIT_WRONG, "%s: %s", path, strerror(error));
	return EXIT_WRONG;
}
