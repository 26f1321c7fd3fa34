/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options_private.h - what the files of options share among themselves
 */
#ifndef ZRAMFS_OPTIONS_PRIVATE_H
#define ZRAMFS_OPTIONS_PRIVATE_H

#include "options.h"

/* Where an error is described, in one line. */
struct message {
	char *text;
	size_t size;
};

/* Writes the message; returns error, a negative errno. */
int __attribute__((format(printf, 3, 4)))
options_fail(const struct message *message, int error, const char *format, ...);

/* The command line while it is being read. */
struct parse {
	struct options *options;
	struct message message;
	bool hot_given;
	bool nr_inodes_given;
};

/*
 * An option of zramfs's own, "name" or "name=value": false when it is none.
 * Else *error is 0, or -EINVAL with the message written.
 */
bool options_set_own(struct parse *parse, const char *option, int *error);

uint64_t options_ram_bytes(void);

/* Digits of base 8 or 10, up to max. 0, -EINVAL, -ERANGE. */
int options_number(const char *text, int base, uint64_t max, uint64_t *value);

/*
 * Decimal, with k, m, g or t behind it or nothing; up to what a file offset
 * can say, so that nobody's sums overflow. 0, -EINVAL, -ERANGE.
 */
int options_multiple(const char *text, uint64_t *value);

/* An option that is not zramfs's own, but FUSE's or mount(8)'s. */
enum mount_option {
	MOUNT_OPTION_PASS,  /* libfuse knows it */
	MOUNT_OPTION_DROP,  /* for mount(8) alone, or true anyway */
	MOUNT_OPTION_WRONG, /* and the message says why */
};

enum mount_option options_mount(const char *option,
				const struct message *message);

#endif
