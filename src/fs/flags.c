/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flags.c - the attributes of chattr(1) that tmpfs has, too
 *
 * They are bits beside st_mode's in an inode's mode, and kept there by all who
 * change that. What immutable and append-only mean for names is checked in
 * namespace.c, make.c and rename.c; for the rest, by whoever calls.
 */
#include <errno.h>
#include <linux/fs.h>

#include "fs/fs_private.h"

static const struct {
	unsigned int flag;
	uint32_t bit;
} bits[] = {
	{FS_IMMUTABLE_FL, INODE_IMMUTABLE},
	{FS_APPEND_FL, INODE_APPEND},
	{FS_NODUMP_FL, INODE_NODUMP},
	{FS_NOATIME_FL, INODE_NOATIME},
};

#define BITS (sizeof(bits) / sizeof(bits[0]))

unsigned int fs_flags(struct fs *fs, ino_t ino)
{
	const struct inode *inode = inode_get(fs, ino);
	unsigned int flags = 0;
	uint32_t mode;

	if (!inode)
		return 0;
	/* Relaxed: no other change is ordered by it. */
	mode = atomic_load_explicit(&inode->mode, memory_order_relaxed);
	if (!(mode & INODE_FLAGS))
		return 0;
	for (size_t i = 0; i < BITS; i++)
		if (mode & bits[i].bit)
			flags |= bits[i].flag;
	return flags;
}

int fs_set_flags(struct fs *fs, ino_t ino, unsigned int flags)
{
	struct inode *inode = inode_get(fs, ino);
	uint32_t mode = 0;

	if (!inode)
		return -ENOENT;
	if (flags & ~FS_FLAGS)
		return -EOPNOTSUPP;
	for (size_t i = 0; i < BITS; i++)
		if (flags & bits[i].flag)
			mode |= bits[i].bit;
	fs_enter(fs);
	inode_lock_exclusive(fs, ino);
	inode->mode = (inode->mode & ~INODE_FLAGS) | mode;
	inode_changed(inode);
	inode_unlock(fs, ino);
	fs_leave(fs);
	return 0;
}
