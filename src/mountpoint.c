/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mountpoint.c - see mountpoint.h
 */
#include "mountpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "block.h"
#include "mountinfo.h"

/* What is mounted there, and whether its daemon lives. */
enum occupant {
	NOBODY, /* or another filesystem, which may be mounted over */
	ALIVE,
	DEAD
};

/* Its attributes may be in the kernel's cache; these never are. */
static enum occupant ask_zramfs(const char *path)
{
	struct statfs statfs_buf;

	return statfs(path, &statfs_buf) && errno == ENOTCONN ? DEAD : ALIVE;
}

/* Block mode has an ordinary filesystem there, and a zramfs behind it. */
static enum occupant ask_device(const char *path)
{
	uint64_t size = 0;
	int fd = block_open_behind(path, &size);

	if (fd < 0)
		return fd == -ESRCH ? DEAD : NOBODY;
	close(fd);
	return size ? ALIVE : NOBODY;
}

static enum occupant occupant_of(const char *path)
{
	struct mountinfo info;

	if (mountinfo_of(path, &info) || !info.is_root)
		return NOBODY;
	return strcmp(info.type, "fuse.zramfs") ? ask_device(path)
						: ask_zramfs(path);
}

static int complain(char *message, size_t size, int error, const char *path,
		    const char *what)
{
	snprintf(message, size, "%s: %s", path, what);
	return error;
}

static int complain_dead(char *message, size_t size, const char *path)
{
	snprintf(message, size,
		 "%s: a mount whose daemon is gone; unmount it first: %s %s",
		 path, geteuid() == 0 ? "umount" : "fusermount3 -u", path);
	return -ENOTCONN;
}

static int check(const char *path, char *message, size_t size)
{
	struct stat stat_buf;

	switch (occupant_of(path)) {
	case DEAD:
		return complain_dead(message, size, path);
	case ALIVE:
		return complain(message, size, -EBUSY, path,
				"already a zramfs mount");
	case NOBODY:
		break;
	}
	if (stat(path, &stat_buf))
		return errno == ENOTCONN ? complain_dead(message, size, path)
					 : complain(message, size, -errno, path,
						    strerror(errno));
	if (!S_ISDIR(stat_buf.st_mode))
		return complain(message, size, -ENOTDIR, path,
				"not a directory");
	return 0;
}

int mountpoint_open(struct mountpoint *mountpoint, const char *given,
		    char *message, size_t message_size)
{
	struct mountinfo info;
	int error;

	mountpoint->path = realpath(given, NULL);
	if (!mountpoint->path)
		return errno == ENOTCONN
			       ? complain_dead(message, message_size, given)
			       : complain(message, message_size, -errno, given,
					  strerror(errno));
	error = check(mountpoint->path, message, message_size);
	if (!error) {
		error = mountinfo_place(mountpoint->path, &info);
		if (error)
			complain(message, message_size, error, given,
				 strerror(-error));
	}
	if (error) {
		mountpoint_close(mountpoint);
		return error;
	}
	mountpoint->mount = info.id;
	mountpoint->device = info.device;
	mountpoint->inode = info.inode;
	return 0;
}

bool mountpoint_is_same(const struct mountpoint *mountpoint)
{
	struct mountinfo info;

	return !mountinfo_place(mountpoint->path, &info) &&
	       info.id == mountpoint->mount &&
	       info.device == mountpoint->device &&
	       info.inode == mountpoint->inode;
}

void mountpoint_close(struct mountpoint *mountpoint)
{
	free(mountpoint->path);
	mountpoint->path = NULL;
}
