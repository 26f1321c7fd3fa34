/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * make.c - new inodes
 *
 * An inode and its entry are complete before the directory's cell names them.
 * Until then everything can fail and is taken back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <linux/limits.h>

#include "fault.h"
#include "fs/acl.h"
#include "fs/blob.h"
#include "fs/directory.h"
#include "fs/fs_private.h"
#include "fs/make.h"
#include "fs/namespace.h"
#include "fs/xattr.h"

/* A copy of a directory's default list; NULL and 0 if it has none. */
static int default_list(struct fs *fs, ino_t parent,
			const struct inode *directory, void **acl, size_t *size)
{
	uint32_t block;
	int error = 0;

	*acl = NULL;
	inode_lock_shared(fs, parent);
	block = xattr_find(fs, directory, ACL_NAME_DEFAULT);
	if (block) {
		*size = xattr_size(fs, block);
		*acl = fault_alloc() ? NULL : malloc(*size);
		if (*acl)
			xattr_read(fs, block, *acl);
		else
			error = -ENOMEM;
	}
	inode_unlock(fs, parent);
	return error;
}

static int give_list(struct fs *fs, struct inode *inode, const char *name,
		     const void *acl, size_t size)
{
	uint32_t block;
	int error = xattr_make(fs, name, acl, size, 0, &block);

	if (!error)
		xattr_install(fs, inode, name, block);
	return error;
}

/*
 * POSIX.1e draft 17, 23.1.5.1 (5): a parent's default list takes the place of
 * the umask.
 */
static int inherit_list(struct fs *fs, ino_t parent,
			const struct inode *directory, struct inode *inode,
			mode_t umask, mode_t *mode)
{
	size_t size;
	void *acl;
	int error;

	if (S_ISLNK(*mode))
		return 0;
	error = default_list(fs, parent, directory, &acl, &size);
	if (error)
		return error;
	if (!acl) {
		*mode &= ~(umask & 0777);
		return 0;
	}
	if (S_ISDIR(*mode))
		error = give_list(fs, inode, ACL_NAME_DEFAULT, acl, size);
	*mode = acl_inherit(acl, size, *mode);
	if (!error && !acl_is_minimal(acl, size))
		error = give_list(fs, inode, ACL_NAME_ACCESS, acl, size);
	free(acl);
	return error;
}

static int set_target(struct fs *fs, struct inode *inode, const char *target)
{
	size_t length = strlen(target);

	if (!length)
		return -ENOENT;
	if (length >= PATH_MAX)
		return -ENAMETOOLONG;
	inode->size = length;
	return blob_make(fs, target, length, 0, &inode->target);
}

static void set_owner(const struct fs_caller *caller,
		      const struct inode *directory, struct inode *inode,
		      mode_t *mode)
{
	inode->uid = caller->uid;
	inode->gid = caller->gid;
	if (directory->mode & S_ISGID) {
		inode->gid = directory->gid;
		if (S_ISDIR(*mode))
			*mode |= S_ISGID;
	}
}

int inode_make(struct fs *fs, const struct fs_caller *caller, ino_t parent,
	       const struct inode *directory, const struct make *make,
	       struct new_inode *new)
{
	int64_t now = inode_now();
	struct inode *inode;
	mode_t mode = make->mode & (S_IFMT | 07777);
	int error = inode_alloc(fs, &new->block);

	if (error)
		return error;
	inode = slab_address(fs->inodes, new->block);
	set_owner(caller, directory, inode, &mode);
	if (S_ISCHR(mode) || S_ISBLK(mode))
		inode->rdev = make->rdev;
	inode->atime = inode->mtime = inode->ctime = now;
	error = inherit_list(fs, parent, directory, inode, caller->umask,
			     &mode);
	if (!error && S_ISLNK(mode))
		error = set_target(fs, inode, make->target);
	if (error) {
		inode_discard(fs, new->block);
		return error;
	}
	if (S_ISDIR(mode))
		inode->parent = parent;
	new->ino = new->block;
	new->inode = inode;
	new->mode = mode;
	if (S_ISREG(mode) || S_ISDIR(mode))
		new->mode |= directory->mode & INODE_INHERITED;
	return 0;
}

void inode_unmake(struct fs *fs, const struct new_inode *new)
{
	struct inode *inode = slab_address(fs->inodes, new->block);

	if (!S_ISDIR(new->mode))
		blob_free(fs, inode->target);
	inode_discard(fs, new->block);
}

void inode_enliven(const struct new_inode *new)
{
	fault_point("inode to be born");
	/* Release: it is complete; pairs with inode_get(). */
	atomic_store_explicit(&new->inode->mode, new->mode,
			      memory_order_release);
}

/* How often to wait for room while something is being deleted. */
#define MAKE_ATTEMPTS 8

static bool is_known_type(mode_t mode)
{
	return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode) ||
	       S_ISFIFO(mode) || S_ISSOCK(mode) || S_ISCHR(mode) ||
	       S_ISBLK(mode);
}

static void publish(struct fs *fs, const struct place *place,
		    const struct new_inode *new, uint32_t block,
		    uint64_t cookie)
{
	inode_enliven(new);
	answer_publish_cell(
		place->parent, cookie, block, new->ino,
		&(struct answer_times){.directory = {place->parent}});
	directory_store(fs, place->directory, cookie, block);
	answer_done(0);

	directory_grown(fs, place->directory, cookie);
	directory_added(fs, block);
	directory_touch(place->directory);
	new->inode->nlink = 1;
	if (S_ISDIR(new->mode)) {
		new->inode->nlink = 2;
		place->directory->nlink++;
	}
}

static int make_locked(struct fs *fs, const struct fs_caller *caller,
		       ino_t parent, const char *name, const struct make *make,
		       struct fs_entry *entry)
{
	struct new_inode new;
	struct place place;
	uint64_t cookie;
	uint32_t block;
	int error = place_find(fs, parent, name, &place);

	if (error)
		return error == -EINVAL ? -EEXIST : error; /* "." or ".." */
	if (place.block)
		return -EEXIST;
	error = place_may_fill(&place);
	if (error)
		return error;
	error = inode_make(fs, caller, parent, place.directory, make, &new);
	if (error)
		return error;
	error = directory_prepare(fs, parent, name, place.length, new.ino,
				  new.mode, &block);
	if (!error) {
		error = directory_reserve(fs, place.directory, &cookie);
		if (error)
			slab_free(fs->blocks, block);
	}
	if (error) {
		inode_unmake(fs, &new);
		return error;
	}
	directory_set_cookie(fs, block, cookie);
	publish(fs, &place, &new, block, cookie);
	entry_fill(fs, new.ino, new.inode, entry);
	return 0;
}

int fs_make(struct fs *fs, const struct fs_caller *caller, ino_t parent,
	    const char *name, mode_t mode, dev_t rdev, const char *target,
	    struct fs_entry *entry)
{
	struct make make = {.mode = mode, .rdev = rdev, .target = target};
	unsigned int attempt = 0;
	int64_t error;

	if (!is_known_type(mode))
		return -EINVAL;
	if (answer_again(&error))
		return entry_again(fs, entry);
	fs_enter(fs);
	do {
		pthread_rwlock_wrlock(&fs->namespace_lock);
		error = make_locked(fs, caller, parent, name, &make, entry);
		pthread_rwlock_unlock(&fs->namespace_lock);
	} while (error == -ENOSPC && attempt++ < MAKE_ATTEMPTS &&
		 store_wait_for_room(fs->store));
	fs_leave(fs);
	return error;
}

static int make_unnamed_locked(struct fs *fs, const struct fs_caller *caller,
			       ino_t parent, mode_t mode,
			       struct fs_entry *entry)
{
	struct inode *directory = inode_get(fs, parent);
	struct make make = {.mode = S_IFREG | (mode & 07777)};
	struct new_inode new;
	int error;

	/* A removed directory takes no names, but this has none. */
	if (!directory)
		return -ENOENT;
	if (!S_ISDIR(directory->mode))
		return -ENOTDIR;
	if (directory->mode & INODE_IMMUTABLE)
		return -EPERM;
	error = inode_make(fs, caller, parent, directory, &make, &new);
	if (error)
		return error;
	inode_enliven(&new);
	answer_publish_unnamed(new.ino);
	entry_fill(fs, new.ino, new.inode, entry);
	answer_done(0);
	return 0;
}

int fs_make_unnamed(struct fs *fs, const struct fs_caller *caller, ino_t parent,
		    mode_t mode, struct fs_entry *entry)
{
	int64_t error;

	if (answer_again(&error))
		return entry_again(fs, entry);
	fs_enter(fs);
	pthread_rwlock_wrlock(&fs->namespace_lock);
	error = make_unnamed_locked(fs, caller, parent, mode, entry);
	pthread_rwlock_unlock(&fs->namespace_lock);
	fs_leave(fs);
	return error;
}
