/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz_options.c - command lines that nobody would type
 *
 * Input: the words of a command line, each ended by a newline.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "driver.h"
#include "options.h"

#define WORDS 64

static unsigned long accepted;

static void check(const struct options *options, int error, const char *message)
{
	if (error) {
		PROMISE(error == -EINVAL);
		PROMISE(message[0] != '\0');
		for (; *message; message++)
			PROMISE(*message != '\n' && *message != '\033');
		return;
	}
	PROMISE(message[0] == '\0');
	PROMISE(options->fuse_options != NULL);
	if (options->help || options->version)
		return;
	PROMISE(options->mountpoint && options->mountpoint[0]);
	PROMISE(options->source != NULL);
	PROMISE(options->threads >= 1 && options->threads <= 256);
	PROMISE(options->mode <= 07777);
	PROMISE(options->codec.level >= options->codec.ops->level_min());
	PROMISE(options->codec.level <= options->codec.ops->level_max());
	PROMISE(options->pool != NULL);
	accepted++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *argv[WORDS + 2] = {"zramfs"};
	/* Short, so that it is too short now and then. */
	char *message = malloc(100);
	struct options options;
	int argc = 1, error;

	PROMISE(text && message);
	memcpy(text, data, size);
	text[size] = '\0';
	for (char *at = text; argc <= WORDS && *at; argc++) {
		argv[argc] = at;
		at += strcspn(at, "\n");
		if (*at)
			*at++ = '\0';
	}
	message[0] = '\0';
	error = options_parse(&options, argc, argv, message, 100);
	check(&options, error, message);
	options_release(&options);
	free(message);
	free(text);
	return 0;
}

#ifndef LIBFUZZER
static const char *const pieces[] = {
	"/mnt",	    "src",	   "-o",	 "-f",	     "-d",
	"--",	    "size=",	   "hot=",	 "alg=",     "mode=",
	"uid=",	    "gid=",	   "threads",	 "dedup=on", "pool=",
	"zsmalloc", "writeback",   "nr_inodes=", "zstd:",    "lz4:",
	"none",	    "deflate",	   "mem_limit=", "=",	     "%",
	"k",	    "M",	   "t",		 "0",	     "7",
	"4294967",  "18446744",	   "-",		 "rw",	     "x-y",
	"fsname=",  "allow_other", "\\",	 "1",	     "64",
	"context=", "noopen",
};

static void input(void)
{
	char text[1024] = "/mnt\n-o\n";
	size_t len = driver_below(3) ? strlen(text) : 0;
	size_t size;

	for (size_t n = driver_below(10); n; n--) {
		const char *piece =
			pieces[driver_below(sizeof(pieces) / sizeof(*pieces))];

		len += (size_t)sprintf(
			text + len, "%s%s", piece,
			(const char *[]){"", "", ",", "\n"}[driver_below(4)]);
	}
	size = driver_below(2)
		       ? len
		       : driver_damage((uint8_t *)text, len, sizeof(text));
	LLVMFuzzerTestOneInput((uint8_t *)text, size);
}

int main(int argc, char **argv)
{
	double end = driver_start(argc, argv, 2) + driver_now();
	unsigned long rounds = 0;

	for (; rounds % 256 || driver_now() < end; rounds++)
		input();
	printf("ok - %lu command lines, %lu of them good\n", rounds, accepted);
	return 0;
}
#endif
