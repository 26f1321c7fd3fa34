/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xattr_access.c - extended attributes as programs see them
 *
 * Which names there are, their limits (xattr(7)), and what the two POSIX ACL
 * names do to the mode. The kernel has checked who may ask, and that user.*
 * is not set on what is neither file nor directory.
 */
#include <errno.h>
#include <string.h>
#include <sys/xattr.h>
#include <linux/limits.h>

#include "fs/acl.h"
#include "fs/fs_private.h"
#include "fs/xattr.h"

static bool is_acl(const char *name)
{
	return strcmp(name, ACL_NAME_ACCESS) == 0 ||
	       strcmp(name, ACL_NAME_DEFAULT) == 0;
}

static int check_name(const char *name)
{
	static const char *const prefixes[] = {"user.", "trusted.",
					       "security."};

	if (is_acl(name))
		return 0;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		size_t length = strlen(prefixes[i]);

		if (strncmp(name, prefixes[i], length) != 0)
			continue;
		if (name[length] == '\0')
			return -EINVAL;
		return strlen(name) > XATTR_NAME_MAX ? -ERANGE : 0;
	}
	return -EOPNOTSUPP;
}

ssize_t fs_getxattr(struct fs *fs, ino_t ino, const char *name, void *value,
		    size_t size)
{
	struct inode *inode = inode_get(fs, ino);
	uint32_t block;
	ssize_t result;

	if (!inode)
		return -ENOENT;
	result = check_name(name);
	if (result)
		return result;

	fs_enter(fs);
	inode_lock_shared(fs, ino);
	block = xattr_find(fs, inode, name);
	if (!block) {
		result = -ENODATA;
	} else {
		result = xattr_size(fs, block);
		if (size && (size_t)result > size)
			result = -ERANGE;
		else if (size)
			xattr_read(fs, block, value);
	}
	inode_unlock(fs, ino);
	fs_leave(fs);
	return result;
}

ssize_t fs_listxattr(struct fs *fs, ino_t ino, char *list, size_t size)
{
	struct inode *inode = inode_get(fs, ino);
	ssize_t result;

	if (!inode)
		return -ENOENT;
	fs_enter(fs);
	inode_lock_shared(fs, ino);
	result = xattr_list(fs, inode, NULL);
	if (size && (size_t)result > size)
		result = -ERANGE;
	else if (size)
		xattr_list(fs, inode, list);
	inode_unlock(fs, ino);
	fs_leave(fs);
	return result;
}

/* What setting one attribute comes to, once ACL rules are applied. */
struct change {
	const char *name;
	uint32_t block; /* SLAB_NONE: remove */
	bool set_mode;
	mode_t mode; /* nine bits */
};

/* Under the exclusive inode lock. */
static int check_existing(const struct fs *fs, const struct inode *inode,
			  const char *name, int flags)
{
	bool exists = xattr_find(fs, inode, name) != SLAB_NONE;

	if (exists && (flags & XATTR_CREATE))
		return -EEXIST;
	if (!exists && (flags & XATTR_REPLACE))
		return -ENODATA;
	/* listxattr(2) gives at most this much, so more must not come to be. */
	if (!exists &&
	    xattr_list(fs, inode, NULL) + strlen(name) + 1 > XATTR_LIST_MAX)
		return -ENOSPC;
	return 0;
}

static void apply(struct fs *fs, ino_t ino, struct inode *inode,
		  const struct change *change)
{
	uint32_t mode = (inode->mode & ~0777u) | change->mode;
	uint32_t old = xattr_find(fs, inode, change->name);

	/*
	 * A stored list is the truth for the mode's nine bits: store it first
	 * and the bits follow even after a crash; where none is stored any
	 * more, the bits must be there before it goes.
	 */
	if (change->set_mode && !change->block)
		inode->mode = mode;
	answer_publish_xattr(ino, change->block ? change->block : old,
			     !change->block);
	xattr_install(fs, inode, change->name, change->block);
	answer_done(0);
	if (change->set_mode && change->block)
		inode->mode = mode;
	inode_changed(inode);
}

/* 1: the list need not be stored, the mode says it all. */
static int prepare_acl(mode_t type, const char *name, const void *value,
		       size_t size, struct change *change)
{
	bool access = strcmp(name, ACL_NAME_ACCESS) == 0;
	int error = acl_validate(value, size);

	if (error)
		return error;
	if (S_ISLNK(type))
		return -EOPNOTSUPP;
	if (acl_is_empty(value, size))
		return 1;
	if (!access)
		return S_ISDIR(type) ? 0 : -EACCES;
	change->set_mode = true;
	change->mode = acl_mode(value, size);
	return acl_is_minimal(value, size);
}

int fs_setxattr(struct fs *fs, ino_t ino, const char *name, const void *value,
		size_t size, int flags)
{
	struct inode *inode = inode_get(fs, ino);
	struct change change = {.name = name};
	int64_t result;

	if (!inode)
		return -ENOENT;
	if (answer_again(&result))
		return result;
	if (flags & ~(XATTR_CREATE | XATTR_REPLACE))
		return -EINVAL;
	result = check_name(name);
	if (result)
		return result;
	if (size > XATTR_SIZE_MAX)
		return -E2BIG;
	if (is_acl(name))
		result = prepare_acl(inode->mode, name, value, size, &change);
	if (result < 0)
		return result;

	fs_enter(fs);
	inode_lock_exclusive(fs, ino);
	result = result == 1
			 ? 0
			 : xattr_make(fs, name, value, size, 0, &change.block);
	if (!result && change.block)
		result = check_existing(fs, inode, name, flags);
	if (!result)
		apply(fs, ino, inode, &change);
	else
		xattr_discard(fs, change.block);
	inode_unlock(fs, ino);
	fs_leave(fs);
	return result;
}

int fs_removexattr(struct fs *fs, ino_t ino, const char *name)
{
	struct inode *inode = inode_get(fs, ino);
	struct change change = {.name = name};
	int64_t result;

	if (!inode)
		return -ENOENT;
	if (answer_again(&result))
		return result;
	result = check_name(name);
	if (result)
		return result;
	fs_enter(fs);
	inode_lock_exclusive(fs, ino);
	/* A list that is not stored is one that says what the mode says. */
	if (xattr_find(fs, inode, name))
		apply(fs, ino, inode, &change);
	else if (!is_acl(name))
		result = -ENODATA;
	inode_unlock(fs, ino);
	fs_leave(fs);
	return result;
}
