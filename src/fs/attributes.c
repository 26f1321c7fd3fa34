/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attributes.c - getattr and setattr
 *
 * Who may change what, and which bits chmod(2) drops, the kernel has decided.
 * Here the values are set together under the inode's lock, with the times
 * moving as on tmpfs.
 */
#include <errno.h>
#include <stdlib.h>

#include "fault.h"
#include "fs/acl.h"
#include "fs/fs_private.h"
#include "fs/xattr.h"

int fs_getattr(struct fs *fs, ino_t ino, struct stat *attr)
{
	struct inode *inode = inode_get(fs, ino);

	if (!inode)
		return -ENOENT;
	fs_enter(fs);
	inode_lock_shared(fs, ino);
	inode_stat(fs, ino, inode, attr);
	inode_unlock(fs, ino);
	fs_leave(fs);
	return 0;
}

bool fs_has_sgid(struct fs *fs, ino_t ino)
{
	const struct inode *inode = inode_get(fs, ino);

	return inode &&
	       (atomic_load_explicit(&inode->mode, memory_order_relaxed) &
		(S_ISGID | S_IXGRP)) == S_ISGID;
}

/* sgid without group execution once meant mandatory locking: it stays. */
static uint32_t privileges(uint32_t mode, bool kill_priv)
{
	uint32_t bits = mode & INODE_CAPABLE;

	if (!kill_priv)
		return bits;
	bits |= mode & S_ISUID;
	if ((mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
		bits |= S_ISGID;
	return bits;
}

bool attributes_has_privileges(const struct fs *fs, const struct inode *inode,
			       bool kill_priv)
{
	/* Relaxed: the answer is looked at again under the lock. */
	return privileges(
		       atomic_load_explicit(&inode->mode, memory_order_relaxed),
		       kill_priv) != 0;
}

static void kill(struct fs *fs, struct inode *inode, uint32_t bits)
{
	if (bits & INODE_CAPABLE)
		xattr_install(fs, inode, XATTR_CAPABILITY, SLAB_NONE);
	inode->mode &= ~bits;
}

void attributes_kill_privileges(struct fs *fs, struct inode *inode,
				bool kill_priv)
{
	kill(fs, inode, privileges(inode->mode, kill_priv));
}

/*
 * The access list that goes with new permission bits, in a new block, so that
 * it can be put in place by one store. SLAB_NONE where there is no list.
 * From the reserve: giving permissions up must not fail for want of memory.
 */
static int prepare_list(struct fs *fs, const struct inode *inode, mode_t mode,
			uint32_t *block)
{
	uint32_t old = xattr_find(fs, inode, ACL_NAME_ACCESS);
	size_t size;
	void *acl;
	int error;

	*block = SLAB_NONE;
	if (!old)
		return 0;
	size = xattr_size(fs, old);
	acl = fault_alloc() ? NULL : malloc(size);
	if (!acl)
		return -ENOMEM;
	xattr_read(fs, old, acl);
	acl_set_mode(acl, size, mode);
	error = xattr_make(fs, ACL_NAME_ACCESS, acl, size, ARENA_RESERVE,
			   block);
	free(acl);
	return error;
}

static int check_size(const struct inode *inode, off_t size)
{
	if (S_ISDIR(inode->mode))
		return -EISDIR;
	if (!S_ISREG(inode->mode) || size < 0)
		return -EINVAL;
	return 0;
}

static void set_mode(struct fs *fs, struct inode *inode, mode_t mode,
		     uint32_t list)
{
	if (list)
		xattr_install(fs, inode, ACL_NAME_ACCESS, list);
	inode->mode = (inode->mode & ~07777u) | (mode & 07777);
}

static void set_times(struct inode *inode, unsigned int valid,
		      const struct stat *attr)
{
	int64_t now = inode_changed(inode);

	if (valid & (FS_SET_MTIME_NOW | FS_SET_SIZE))
		inode->mtime = now;
	if (valid & FS_SET_MTIME)
		inode->mtime = inode_time(&attr->st_mtim);
	if (valid & FS_SET_ATIME_NOW)
		inode->atime = now;
	if (valid & FS_SET_ATIME)
		inode->atime = inode_time(&attr->st_atim);
	if (valid & FS_SET_CTIME)
		inode->ctime = inode_time(&attr->st_ctim) & ~INODE_CTIME_SEEN;
}

/*
 * A file that has this size, and no pages either that might be cut off, is not
 * modified by setting it. With pages it is, as on tmpfs.
 */
static bool is_modified_by_size(const struct inode *inode, off_t size)
{
	return inode->size != (uint64_t)size || inode->pages;
}

/* Under the exclusive inode lock. What can fail comes first. */
static int set_attributes(struct fs *fs, struct inode *inode,
			  unsigned int valid, const struct stat *attr)
{
	uint32_t list = SLAB_NONE;
	int error = 0;

	/* Of one that was begun before, the size may be all that was set. */
	if ((valid & FS_SET_SIZE) && !answer_is_resumed() &&
	    !is_modified_by_size(inode, attr->st_size))
		valid &= ~FS_SET_SIZE;
	if (!valid)
		return 0;
	if (valid & FS_SET_MODE)
		error = prepare_list(fs, inode, attr->st_mode, &list);
	if (!error && (valid & FS_SET_SIZE))
		error = file_truncate(fs, inode, attr->st_size);
	if (error) {
		xattr_discard(fs, list);
		return error;
	}
	fault_point("attributes to be set");
	if (valid & FS_SET_MODE)
		set_mode(fs, inode, attr->st_mode, list);
	if (valid & FS_SET_UID)
		inode->uid = attr->st_uid;
	if (valid & FS_SET_GID)
		inode->gid = attr->st_gid;
	fault_point("privileges to be taken");
	if ((valid & FS_SET_KILL_PRIV) && !S_ISDIR(inode->mode))
		attributes_kill_privileges(fs, inode, true);
	if (valid & FS_SET_KILL_SGID)
		kill(fs, inode, inode->mode & S_ISGID);
	set_times(inode, valid, attr);
	return 0;
}

int fs_setattr(struct fs *fs, ino_t ino, unsigned int valid,
	       const struct stat *attr, struct stat *result)
{
	struct inode *inode = inode_get(fs, ino);
	int64_t error = 0;

	if (!inode)
		return -ENOENT;
	/* Set before: what is left is to say what it is now. */
	if (answer_again(&error))
		valid = 0;
	if (valid & FS_SET_SIZE)
		error = check_size(inode, attr->st_size);
	if (error)
		return error;

	fs_enter(fs);
	inode_lock_exclusive(fs, ino);
	if (valid)
		error = set_attributes(fs, inode, valid, attr);
	if (valid && !error)
		answer_done(0);
	if (!error)
		inode_stat(fs, ino, inode, result);
	inode_unlock(fs, ino);
	fs_leave(fs);
	return error;
}
