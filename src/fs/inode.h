/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inode.h - what an inode is in the arena
 *
 * 96 bytes in the INODES slab; the inode number is the block number there, but
 * for the root, which is FS_ROOT_INO wherever its block is. An inode is live
 * when its mode is not zero; the mode is stored last when one is made, and
 * zeroed first when one dies.
 *
 * Fields marked (derived) are rebuilt from directory cells and page tables.
 *
 * Guarded by the inode's lock (inode_lock_*()): uid, gid, mode, size, xattr,
 * the shape of a file's table. By the namespace lock: nlink, parent, the table
 * of a directory, its cookie and entries. Times, pages and lookups are atomic
 * and may change under a shared lock, or none.
 *
 * Inode blocks are given out and taken back under the exclusive namespace lock
 * only: who holds it, even shared, may look at any number.
 */
#ifndef ZRAMFS_INODE_H
#define ZRAMFS_INODE_H

#include <stdint.h>
#include <sys/stat.h>

#include "fs/pagetable.h"

/*
 * Beside st_mode's 16 bits in mode; (derived): there is a security.capability
 * among the xattrs, so that a writer can tell without walking them.
 */
#define INODE_CAPABLE 0x10000u

/* The flags of fs_set_flags(), in mode as well. */
#define INODE_IMMUTABLE 0x20000u
#define INODE_APPEND	0x40000u
#define INODE_NODUMP	0x80000u
#define INODE_NOATIME	0x100000u
#define INODE_FLAGS \
	(INODE_IMMUTABLE | INODE_APPEND | INODE_NODUMP | INODE_NOATIME)
/*
 * Likewise: somebody may keep pages of the file, so that not all reads are
 * seen. See fs_keeps_pages().
 */
#define INODE_KEPT 0x200000u
/* What a directory passes on. */
#define INODE_INHERITED (INODE_NODUMP | INODE_NOATIME)

/* In ctime, which keeps even numbers: it was shown since it was set. */
#define INODE_CTIME_SEEN INT64_C(1)

struct inode {
	_Atomic uint32_t mode;
	_Atomic uint32_t uid;
	_Atomic uint32_t gid;
	_Atomic uint32_t nlink; /* (derived) */
	uint32_t rdev;		/* as st_rdev, major and minor packed */
	uint32_t generation;
	_Atomic int64_t atime; /* nanoseconds since 1970: 1677 to 2262 */
	_Atomic int64_t mtime;
	_Atomic int64_t ctime; /* the lowest bit: INODE_CTIME_SEEN */
	union {
		_Atomic uint64_t size;	 /* bytes; of files and symlinks */
		_Atomic uint64_t cookie; /* next to give; of directories */
	};
	union {
		_Atomic uint64_t pages;	  /* (derived) not holes; of files */
		_Atomic uint64_t entries; /* (derived) of directories */
	};
	_Atomic uint64_t lookups;
	struct pagetable table;
	_Atomic uint32_t xattr; /* block of the first; SLAB_NONE */
	union {
		_Atomic uint32_t parent; /* (derived) number; of directories */
		uint32_t target;	 /* blob; of symlinks */
	};
};

_Static_assert(sizeof(struct inode) == 96, "arena layout");

#endif
