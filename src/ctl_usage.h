/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ctl_usage.h - what files and trees cost: sums, and how they are shown
 *
 * For people a line for each path, with a line of headings before the first;
 * for programs an array of JSON objects. Write errors are the stream's: see
 * ferror(3).
 */
#ifndef ZRAMFS_CTL_USAGE_H
#define ZRAMFS_CTL_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "control.h"

struct ctl_usage {
	uint64_t files;		   /* regular ones */
	struct control_usage cost; /* of all of them; ino and error unused */
};

/* Add one file's cost, or another sum. */
void ctl_usage_add_file(struct ctl_usage *sum,
			const struct control_usage *file);
void ctl_usage_add(struct ctl_usage *sum, const struct ctl_usage *other);

struct ctl_usage_output {
	FILE *stream;
	bool json;
	bool human; /* sizes in binary units, else in bytes */
	bool begun;
};

/* Show one path's; and in the end, once, what follows all of them. */
void ctl_usage_show(struct ctl_usage_output *output, const char *path,
		    const struct ctl_usage *sum);
void ctl_usage_end(struct ctl_usage_output *output);

#endif
