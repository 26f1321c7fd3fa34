/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * punch.c - punch the pages whose numbers come in, or check what is left
 *
 * punch FILE <NUMBERS                       a hole for each page
 * punch -v FILE KIND SEED BYTES <NUMBERS    these pages are zero, and all
 *                                           others are as datafile wrote them
 */
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/fill.h"

#define PAGE 4096

static int punch(const char *path)
{
	int fd = open(path, O_WRONLY);
	unsigned long page;

	while (fd >= 0 && scanf("%lu", &page) == 1)
		if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			      (off_t)page * PAGE, PAGE) < 0)
			fd = -1;
	if (fd < 0)
		perror(path);
	return fd < 0;
}

static int verify(const char *path, uint64_t seed, unsigned long pages)
{
	bool *hole = calloc(pages, sizeof(*hole));
	int fd = open(path, O_RDONLY);
	char got[PAGE], want[PAGE];
	unsigned long page;

	if (fd < 0 || !hole) {
		perror(path);
		return 1;
	}
	while (scanf("%lu", &page) == 1)
		if (page < pages)
			hole[page] = true;
	for (page = 0; page < pages; page++) {
		if (pread(fd, got, PAGE, (off_t)page * PAGE) != PAGE) {
			perror(path);
			return 1;
		}
		fill(want, PAGE, 0, hole[page] ? FILL_ZERO : FILL_TEXT,
		     seed * 1000003 + page);
		if (memcmp(got, want, PAGE) != 0) {
			printf("page %lu is wrong\n", page);
			return 1;
		}
	}
	free(hole);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2)
		return punch(argv[1]);
	if (argc == 6 && strcmp(argv[1], "-v") == 0 &&
	    strcmp(argv[3], "text") == 0)
		return verify(argv[2], strtoull(argv[4], NULL, 0),
			      strtoull(argv[5], NULL, 0) / PAGE);
	fprintf(stderr, "usage: punch FILE | punch -v FILE text SEED BYTES\n");
	return 2;
}
