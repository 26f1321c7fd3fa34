/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * make.h - a new inode, in steps
 *
 * For those who name it themselves. Under the exclusive namespace lock.
 */
#ifndef ZRAMFS_MAKE_H
#define ZRAMFS_MAKE_H

#include "fs/fs.h"

struct inode;

/* What is asked for. */
struct make {
	mode_t mode;
	dev_t rdev;
	const char *target; /* of symlinks */
};

/* An inode that is complete, but not live: its mode is only here. */
struct new_inode {
	uint32_t block;
	ino_t ino;
	struct inode *inode;
	mode_t mode;
};

/*
 * -ENOSPC, -ENOMEM, -ENAMETOOLONG, -ENOENT (empty target). It has neither
 * links nor lookups.
 */
int inode_make(struct fs *fs, const struct fs_caller *caller, ino_t parent,
	       const struct inode *directory, const struct make *make,
	       struct new_inode *new);
/* Take it back. */
void inode_unmake(struct fs *fs, const struct new_inode *new);
/* Make it live. Cannot be taken back by inode_unmake(). */
void inode_enliven(const struct new_inode *new);

#endif
