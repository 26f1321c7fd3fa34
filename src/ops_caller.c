/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ops_caller.c - what the kernel does not tell of who asks. See ops_private.h.
 *
 * The caller waits for its answer, so /proc still shows it as it was when it
 * asked. A caller in another pid namespace has no number here: it then counts
 * as root if it is, and as in the group that it was sent with.
 */
#include "ops_private.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Up to the capabilities; before them come at most 65536 groups. */
#define STATUS_SIZE (1u << 20)

/* The rest of the line of that name in /proc/PID/status; the caller frees. */
static char *status_line(pid_t pid, const char *name)
{
	char path[32], *status, *line, *end;
	size_t length = 0;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	status = malloc(STATUS_SIZE);
	while (status && length < STATUS_SIZE - 1 &&
	       (got = read(fd, status + length, STATUS_SIZE - 1 - length)) > 0)
		length += got;
	close(fd);
	if (!status)
		return NULL;
	status[length] = '\0';
	line = strstr(status, name);
	if (!line) {
		free(status);
		return NULL;
	}
	line += strlen(name);
	end = strchrnul(line, '\n');
	memmove(status, line, end - line);
	status[end - line] = '\0';
	return status;
}

bool ops_is_capable(fuse_req_t req, int capability)
{
	const struct fuse_ctx *context = fuse_req_ctx(req);
	char *line =
		context->pid ? status_line(context->pid, "\nCapEff:") : NULL;
	bool is;

	if (!line)
		return context->uid == 0;
	is = strtoull(line, NULL, 16) >> capability & 1;
	free(line);
	return is;
}

bool ops_in_group(fuse_req_t req, gid_t group)
{
	const struct fuse_ctx *context = fuse_req_ctx(req);
	char *line, *at, *end;
	bool is = false;

	if (context->gid == group)
		return true;
	line = context->pid ? status_line(context->pid, "\nGroups:") : NULL;
	for (at = line; at && !is; at = end) {
		unsigned long one = strtoul(at, &end, 10);

		if (end == at)
			break;
		is = one == group;
	}
	free(line);
	return is;
}

unsigned int ops_kill_sgid(fuse_req_t req, fuse_ino_t ino)
{
	struct stat attr;

	if (fs_getattr(ops_fs(req), ino, &attr) || S_ISDIR(attr.st_mode) ||
	    (attr.st_mode & (S_ISGID | S_IXGRP)) != S_ISGID)
		return 0;
	if (ops_in_group(req, attr.st_gid) || ops_is_capable(req, CAP_FSETID))
		return 0;
	return FS_SET_KILL_SGID;
}

int ops_before_write(fuse_req_t req, fuse_ino_t ino)
{
	struct stat attr;
	unsigned int valid;

	if (!request_current()->kill_priv || !fs_has_sgid(ops_fs(req), ino))
		return 0;
	valid = ops_kill_sgid(req, ino);
	return valid ? fs_setattr(ops_fs(req), ino, valid, &attr, &attr) : 0;
}
