/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control.h - the ioctls that zramfsctl and the daemon share
 *
 * They go to the mount's root directory (or any file or directory in it).
 * Reading is open to whoever can open it; changing needs root, or the user
 * who mounted, else -EPERM. Numbers are in host order and size: both ends run
 * on one machine. CONTROL_VERSION changes with any struct; a daemon answers
 * another version's numbers with -ENOTTY (the size is part of the number).
 */
#ifndef ZRAMFS_CONTROL_H
#define ZRAMFS_CONTROL_H

#include <linux/ioctl.h>
#include <stdint.h>

#define CONTROL_VERSION 1
#define CONTROL_OPCODES 64

struct control_stat {
	uint32_t version;
	uint32_t pid;	   /* of the daemon */
	char codec[32];	   /* as alg= */
	char pool[16];
	/* The kernel's mm_stat, in its order. Bytes, then pages. */
	uint64_t orig_data_size;
	uint64_t compr_data_size;
	uint64_t mem_used_total;
	uint64_t mem_limit;
	uint64_t mem_used_max;
	uint64_t same_pages;
	uint64_t pages_compacted;
	uint64_t huge_pages;
	uint64_t huge_pages_since;
	/* Ours. */
	uint64_t stored_pages;
	uint64_t dedup_pages;
	uint64_t hot_pages;
	uint64_t hot_limit; /* bytes */
	uint64_t meta_bytes; /* of mem_used_total, all but pages' data */
	uint64_t process_bytes; /* of meta_bytes, the daemon's own memory */
	uint64_t compr_failed;
	uint64_t checksum_errors;
	uint64_t size;
	uint64_t size_used;
	uint64_t inodes;
	uint64_t inodes_used;
	uint64_t writer_compressions;
	uint64_t background_compressions;
	uint64_t requests[CONTROL_OPCODES]; /* by FUSE opcode; 0: others */
};

struct control_compact {
	uint64_t pages; /* given back */
	int32_t error;	/* -ENOSPC when some pages had to stay hot */
	uint32_t reserved;
};

struct control_set {
	char key[16];
	uint64_t value;
};

#define CONTROL_CHECK_LINES 16
#define CONTROL_CHECK_VERIFY 1u
struct control_check {
	uint32_t flags;
	uint32_t lines; /* in line[] */
	uint64_t inodes;
	uint64_t entries;
	uint64_t pages;
	uint64_t errors;
	uint64_t differences;
	char line[CONTROL_CHECK_LINES][160];
};

#define CONTROL_STAT	_IOR('z', 1, struct control_stat)
#define CONTROL_COMPACT _IOR('z', 2, struct control_compact)
#define CONTROL_SET	_IOW('z', 3, struct control_set)
#define CONTROL_CHECK	_IOWR('z', 4, struct control_check)

#endif
