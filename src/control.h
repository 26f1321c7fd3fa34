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
	uint32_t pid;	/* of the daemon */
	char codec[32]; /* as alg= */
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
	uint64_t hot_limit;	/* bytes */
	uint64_t meta_bytes;	/* of mem_used_total, all but pages' data */
	uint64_t process_bytes; /* of meta_bytes, the daemon's own memory */
	uint64_t compr_failed;
	uint64_t checksum_errors;
	uint64_t size;
	uint64_t size_used;
	uint64_t inodes;
	uint64_t inodes_used;
	uint64_t writer_compressions;
	uint64_t background_compressions;
	uint64_t clusters; /* pages compressed together */
	uint64_t requests[CONTROL_OPCODES]; /* by FUSE opcode; 0: others */
};

struct control_compact {
	uint64_t pages; /* given back */
	int32_t error;	/* -ENOSPC: no memory to compress some pages */
	uint32_t reserved;
};

struct control_set {
	char key[16];
	uint64_t value; /* once refused as too little: the least */
	int32_t error;	/* 0, or a negative errno: nothing was changed */
	uint32_t reserved;
};

#define CONTROL_CHECK_LINES  16
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

/* Size classes, CONTROL_CLASSES_MAX at a time: an ioctl carries 16 KiB. */
#define CONTROL_CLASSES_MAX 128
struct control_class { /* as struct pool_class_stats */
	uint32_t size;
	uint32_t pages_per_zspage;
	uint32_t objects_per_zspage;
	uint32_t reserved;
	uint64_t zspages[5];
	uint64_t objects_allocated;
	uint64_t objects_used;
	uint64_t pages_used;
	uint64_t pages_freeable;
};
struct control_classes {
	uint32_t first; /* in: of the class in classes[0] */
	uint32_t count; /* out: in classes[] */
	uint32_t all;	/* out: that the pool has */
	uint32_t reserved;
	char pool[16];
	struct control_class classes[CONTROL_CLASSES_MAX];
};

/* What a file costs. Pages are 4 KiB; holes are not counted. */
#define CONTROL_CODECS 8
struct control_usage {
	uint64_t ino;  /* in, for CONTROL_USAGES */
	int32_t error; /* for CONTROL_USAGES: negative errno */
	uint32_t reserved;
	uint64_t size; /* st_size */
	uint64_t pages;
	uint64_t same_pages;
	uint64_t hot_pages;
	uint64_t compressed_pages;
	uint64_t huge_pages;
	uint64_t shared_pages; /* have other references too */
	uint64_t stored_bytes; /* each page's length */
	uint64_t share_bytes;  /* each page's length over its references */
	uint64_t codec_pages[CONTROL_CODECS]; /* by enum codec_id */
};

/*
 * Many at once, by number. As none of them is opened, others than those who may
 * change things learn of their own files only. error: -EACCES: not theirs;
 * -ESTALE, -EISDIR or -EINVAL: no regular file (any more).
 */
#define CONTROL_USAGES_MAX 100
struct control_usages {
	uint32_t count; /* in: in file[] */
	uint32_t all;	/* out: not own files only */
	struct control_usage file[CONTROL_USAGES_MAX];
};

struct control_upgrade {
	char program[512]; /* in: its full name */
	int32_t error;	   /* 0: the next worker will be it */
	uint32_t reserved;
	char message[256];
};

#define CONTROL_STAT	_IOR('z', 1, struct control_stat)
#define CONTROL_COMPACT _IOR('z', 2, struct control_compact)
#define CONTROL_SET	_IOWR('z', 3, struct control_set)
#define CONTROL_CHECK	_IOWR('z', 4, struct control_check)
#define CONTROL_CLASSES _IOWR('z', 5, struct control_classes)
/* Of the open file. */
#define CONTROL_USAGE	_IOR('z', 6, struct control_usage)
#define CONTROL_USAGES	_IOWR('z', 7, struct control_usages)
#define CONTROL_UPGRADE _IOWR('z', 8, struct control_upgrade)

#endif
