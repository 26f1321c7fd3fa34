/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mapped.c - store to each page of a mapped file, and tell how it ended
 *
 * mapped FILE BYTES
 *
 * The file is made so long first, if it is not; what it has not is a hole.
 * Prints 'SIGBUS' when the kernel has refused a store; else what msync(2)
 * said, 'OK' or the name of the error.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096

static sigjmp_buf refused;

static void on_refused(int signal)
{
	siglongjmp(refused, 1);
}

static const char *store(char *map, size_t bytes)
{
	size_t at;

	signal(SIGBUS, on_refused);
	if (sigsetjmp(refused, 1))
		return "SIGBUS";
	for (at = 0; at < bytes; at += PAGE)
		map[at] = 'm';
	return msync(map, bytes, MS_SYNC) ? strerrorname_np(errno) : "OK";
}

int main(int argc, char **argv)
{
	struct stat st;
	size_t bytes;
	char *map;
	int fd;

	if (argc != 3) {
		fprintf(stderr, "usage: mapped FILE BYTES\n");
		return 2;
	}
	bytes = strtoull(argv[2], NULL, 0);
	fd = open(argv[1], O_RDWR | O_CREAT, 0644);
	if (fd < 0 || fstat(fd, &st) ||
	    ((size_t)st.st_size < bytes && ftruncate(fd, bytes))) {
		perror(argv[1]);
		return 1;
	}
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	puts(store(map, bytes));
	return 0;
}
