/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mountpoint.h - the directory to mount on, and whether it still is that
 */
#ifndef ZRAMFS_MOUNTPOINT_H
#define ZRAMFS_MOUNTPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mountpoint {
	char *path; /* in full */
	uint64_t mount;
	dev_t device;
	ino_t inode;
};

/*
 * It has to be a directory, and no zramfs already. Negative errno, and one
 * line in message that says what is wrong with it and what to do.
 */
int mountpoint_open(struct mountpoint *mountpoint, const char *given,
		    char *message, size_t message_size);

/* Nothing was mounted there since, and it was not moved away. */
bool mountpoint_is_same(const struct mountpoint *mountpoint);

void mountpoint_close(struct mountpoint *mountpoint);

#endif
