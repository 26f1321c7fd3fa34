/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flood.c - fill a filesystem with what is not data, until it says ENOSPC
 *
 * flood names|xattrs|pages DIRECTORY
 *
 * names: empty files with long names, symlinks and directories. xattrs: values
 * of 32 KiB. pages: zero pages far apart, which take page tables alone. Exits
 * 0 when ENOSPC came, and 1 on any other error or when it never came.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define FLOOD_MOST	20000000
#define XATTRS_PER_FILE 16

static const char *directory;

static int make_name(long number)
{
	char path[4096], target[2048];
	int fd, n;

	n = snprintf(path, sizeof(path), "%s/%0200ld", directory, number);
	if (n >= (int)sizeof(path))
		return -1;
	switch (number % 3) {
	case 0:
		memset(target, 't', sizeof(target));
		target[sizeof(target) - 1] = 0;
		return symlink(target, path);
	case 1:
		return mkdir(path, 0755);
	default:
		fd = open(path, O_CREAT | O_WRONLY | O_EXCL, 0644);
		return fd < 0 ? -1 : close(fd);
	}
}

static int make_xattr(long number)
{
	static char value[32768];
	char path[4096], name[64];
	int fd;

	memset(value, (char)number, sizeof(value));
	snprintf(path, sizeof(path), "%s/f%ld", directory,
		 number / XATTRS_PER_FILE);
	snprintf(name, sizeof(name), "user.x%ld", number % XATTRS_PER_FILE);
	fd = open(path, O_CREAT | O_WRONLY, 0644);
	if (fd < 0)
		return -1;
	close(fd);
	return setxattr(path, name, value, sizeof(value), 0);
}

/* A page in each 64 GiB, in a file that is 8 EiB long. */
static int make_page(long number)
{
	static int fd = -1;
	static char zeros[4096];
	char path[4096];

	if (number % (1 << 20) == 0) {
		if (fd >= 0)
			close(fd);
		snprintf(path, sizeof(path), "%s/f%ld", directory,
			 number >> 20);
		fd = open(path, O_CREAT | O_WRONLY, 0644);
		if (fd < 0)
			return -1;
	}
	return pwrite(fd, zeros, sizeof(zeros), (number % (1 << 20)) << 36) < 0
		       ? -1
		       : 0;
}

int main(int argc, char **argv)
{
	int (*make)(long) = NULL;
	long number;

	if (argc == 3 && strcmp(argv[1], "names") == 0)
		make = make_name;
	else if (argc == 3 && strcmp(argv[1], "xattrs") == 0)
		make = make_xattr;
	else if (argc == 3 && strcmp(argv[1], "pages") == 0)
		make = make_page;
	if (!make) {
		fprintf(stderr, "usage: flood names|xattrs|pages DIRECTORY\n");
		return 2;
	}
	directory = argv[2];
	for (number = 0; number < FLOOD_MOST; number++)
		if (make(number) < 0)
			break;
	if (number == FLOOD_MOST || errno != ENOSPC) {
		fprintf(stderr, "after %ld: %s\n", number,
			number == FLOOD_MOST ? "no end" : strerror(errno));
		return 1;
	}
	printf("%ld\n", number);
	return 0;
}
