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
#include <sys/syscall.h>
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

/* --- what it is at ----------------------------------------------------- */

/* From /proc/PID/NAME, terminated; false where it cannot be read. */
static bool read_proc(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	length = read(fd, text, size - 1);
	close(fd);
	if (length <= 0)
		return false;
	text[length] = '\0';
	return true;
}

/* A descriptor of the caller's was opened with O_NOATIME. */
static bool is_noatime(pid_t pid, unsigned long fd)
{
	char name[48], text[256], *flags;

	snprintf(name, sizeof(name), "fdinfo/%lu", fd);
	if (!read_proc(pid, name, text, sizeof(text)))
		return false;
	flags = strstr(text, "flags:");
	return flags &&
	       (strtoul(flags + strlen("flags:"), NULL, 8) & O_NOATIME);
}

/*
 * /proc/PID/syscall has the number of the system call, and its arguments in
 * hexadecimal; or, where it is in none (io_uring's threads), a word or -1.
 */
long ops_system_call(fuse_req_t req, unsigned long argument[2])
{
	pid_t pid = fuse_req_ctx(req)->pid;
	unsigned long one, two;
	char text[256];
	long call;

	if (!pid || !read_proc(pid, "syscall", text, sizeof(text)) ||
	    sscanf(text, "%ld %lx %lx", &call, &one, &two) != 3)
		return -1;
	if (argument) {
		argument[0] = one;
		argument[1] = two;
	}
	return call;
}

bool ops_is_reading(fuse_req_t req)
{
	pid_t pid = fuse_req_ctx(req)->pid;
	unsigned long argument[2];

	switch (ops_system_call(req, argument)) {
	case SYS_lseek: /* wants to know where the end is */
	case SYS_write: /* likewise, with writeback */
	case SYS_pwrite64:
	case SYS_writev:
	case SYS_pwritev:
	case SYS_pwritev2:
		return false;
	case SYS_read:
	case SYS_pread64:
	case SYS_readv:
	case SYS_preadv:
	case SYS_preadv2:
	case SYS_splice:
	case SYS_copy_file_range:
		return !is_noatime(pid, argument[0]);
	case SYS_sendfile:
		return !is_noatime(pid, argument[1]);
	}
	return true;
}
