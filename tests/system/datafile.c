/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * datafile.c - write a file of a given kind of content, or check it
 *
 * datafile [-d] [-b BLOCK] [-o OFFSET] write|verify FILE KIND SEED BYTES
 *
 * KIND is zero, word, text, random or duplicate. write prints how many bytes
 * write(2) took and how it ended: 'N OK', or the name of the error that
 * write(2) itself gave, 'N ENOSPC'. It neither truncates nor retries. verify
 * exits 1 when a byte differs or is missing. -d: O_DIRECT.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/fill.h"

#define PAGE	  4096
#define BLOCK_MAX (1u << 20)

static const char *const kinds[FILL_KINDS] = {"zero", "word", "text", "random",
					      "duplicate"};

static void usage(void)
{
	fprintf(stderr, "usage: datafile [-d] [-b BLOCK] [-o OFFSET] "
			"write|verify FILE KIND SEED BYTES\n");
	exit(2);
}

/* Content depends on the place alone, not on the size of blocks. */
static void content(char *to, size_t length, uint64_t offset,
		    enum fill_kind kind, uint64_t seed)
{
	char page[PAGE];

	while (length > 0) {
		uint64_t number = offset / PAGE;
		size_t skip = offset % PAGE;
		size_t n = PAGE - skip < length ? PAGE - skip : length;

		fill(page, PAGE, 0, kind, seed * 1000003 + number);
		memcpy(to, page + skip, n);
		to += n;
		offset += n;
		length -= n;
	}
}

static int write_file(int fd, char *block, size_t size, uint64_t offset,
		      uint64_t bytes, enum fill_kind kind, uint64_t seed)
{
	uint64_t done = 0;
	ssize_t n;

	while (done < bytes) {
		size_t length = bytes - done < size ? bytes - done : size;

		content(block, length, offset + done, kind, seed);
		n = pwrite(fd, block, length, offset + done);
		if (n <= 0) {
			printf("%lu %s\n", done,
			       n ? strerrorname_np(errno) : "NOTHING");
			return 0;
		}
		done += n;
	}
	printf("%lu OK\n", done);
	return 0;
}

static int verify_file(int fd, char *block, char *want, size_t size,
		       uint64_t offset, uint64_t bytes, enum fill_kind kind,
		       uint64_t seed)
{
	uint64_t done = 0;
	size_t at;
	ssize_t n;

	while (done < bytes) {
		size_t length = bytes - done < size ? bytes - done : size;

		n = pread(fd, block, length, offset + done);
		if (n <= 0) {
			printf("read at %lu: %s\n", offset + done,
			       n ? strerrorname_np(errno) : "end of file");
			return 1;
		}
		content(want, n, offset + done, kind, seed);
		at = first_difference(block, want, n);
		if (at < (size_t)n) {
			printf("byte %lu is %02x, not %02x\n",
			       offset + done + at, block[at] & 0xff,
			       want[at] & 0xff);
			return 1;
		}
		done += n;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static _Alignas(PAGE) char block[BLOCK_MAX], want[BLOCK_MAX];
	uint64_t offset = 0, size = 65536, seed, bytes;
	bool writing;
	int option, flags = 0, kind, fd;

	while ((option = getopt(argc, argv, "db:o:")) != -1) {
		if (option == 'd')
			flags = O_DIRECT;
		else if (option == 'b')
			size = strtoull(optarg, NULL, 0);
		else if (option == 'o')
			offset = strtoull(optarg, NULL, 0);
		else
			usage();
	}
	argv += optind;
	if (argc - optind != 5 || size < 1 || size > BLOCK_MAX)
		usage();
	writing = strcmp(argv[0], "write") == 0;
	for (kind = 0; kind < FILL_KINDS; kind++)
		if (strcmp(argv[2], kinds[kind]) == 0)
			break;
	if (kind == FILL_KINDS || (!writing && strcmp(argv[0], "verify") != 0))
		usage();
	seed = strtoull(argv[3], NULL, 0);
	bytes = strtoull(argv[4], NULL, 0);
	fd = open(argv[1], flags | (writing ? O_WRONLY | O_CREAT : O_RDONLY),
		  0644);
	if (fd < 0) {
		printf("0 %s\n", strerrorname_np(errno));
		return writing ? 0 : 1;
	}
	if (writing)
		return write_file(fd, block, size, offset, bytes, kind, seed);
	return verify_file(fd, block, want, size, offset, bytes, kind, seed);
}
