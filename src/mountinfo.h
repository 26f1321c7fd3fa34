/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mountinfo.h - which mount a path is in
 *
 * The filesystem is not asked for it, as it may be one that does not answer:
 * what is told is the kernel's own knowledge.
 */
#ifndef ZRAMFS_MOUNTINFO_H
#define ZRAMFS_MOUNTINFO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MOUNTINFO_PATH "/proc/self/mountinfo"

/* Names that are longer are cut short: those that matter are not. */
#define MOUNTINFO_NAME 64

struct mountinfo {
	uint64_t id;
	bool is_root; /* path is the mount's root */
	dev_t device; /* of what path is, as stat(2) shows it */
	ino_t inode;
	char type[MOUNTINFO_NAME];
	char source[MOUNTINFO_NAME];
};

/* Negative errno; -ENOTSUP: the kernel (before Linux 5.8) does not tell. */
int mountinfo_of(const char *path, struct mountinfo *info);

/* The same, but for type and source, which take a look at all mounts. */
int mountinfo_place(const char *path, struct mountinfo *info);

#endif
