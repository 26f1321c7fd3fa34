/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * damage.c - see damage.h
 */
#include "fs/damage.h"

#ifdef ZRAMFS_FAULTS

#include <errno.h>

#include "fs/file.h"
#include "store/damage.h"

int fs_damage(struct fs *fs, ino_t ino, uint64_t page)
{
	const store_cell *cell;
	struct inode *inode;
	int error = file_get(fs, ino, &inode);

	if (error)
		return error;
	fs_enter(fs);
	inode_lock_shared(fs, ino);
	cell = pagetable_find(fs->blocks, &inode->table, page);
	error = cell ? store_damage(fs->store, cell) : -ENOENT;
	inode_unlock(fs, ino);
	fs_leave(fs);
	return error;
}

#endif
