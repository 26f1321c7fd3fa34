/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ops_flags.c - what chattr(1) sets, and what it forbids. See ops_private.h.
 *
 * For its own filesystems the kernel keeps immutable and append-only by itself
 * (inode_permission(), may_open(), may_setattr(), xattr_permission(),
 * vfs_fallocate()); FUSE has no way to tell it that a file is. So the same is
 * checked here, when the request comes. By the kernel's rule, who has a file
 * open for writing goes on writing; but not with the noopen option, where
 * nobody knows who opened a file before.
 */
#include "ops_private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/fuse.h>
#include <string.h>
#include <sys/stat.h>

#define FIXED (FS_IMMUTABLE_FL | FS_APPEND_FL)

int ops_may_open(fuse_req_t req, fuse_ino_t ino, int how)
{
	unsigned int flags = fs_flags(ops_fs(req), ino);
	bool writes = (how & O_ACCMODE) != O_RDONLY;

	if ((flags & FIXED) && (how & O_TRUNC))
		return -EPERM;
	if ((flags & FS_IMMUTABLE_FL) && writes)
		return -EPERM;
	if ((flags & FS_APPEND_FL) && writes && !(how & O_APPEND))
		return -EPERM;
	return 0;
}

int ops_may_write(fuse_req_t req, fuse_ino_t ino,
		  const struct fuse_file_info *fi)
{
	unsigned int flags;

	if (!ops_service(req)->noopen || (fi->fh & HANDLE_OPENED))
		return 0;
	/* The kernel has taken it, maybe before the flags were set. */
	if (fi->writepage)
		return 0;
	flags = fs_flags(ops_fs(req), ino);
	if ((flags & FS_IMMUTABLE_FL) ||
	    ((flags & FS_APPEND_FL) && !(fi->flags & O_APPEND)))
		return -EPERM;
	return 0;
}

int ops_may_setattr(fuse_req_t req, fuse_ino_t ino, unsigned int valid,
		    bool by_descriptor)
{
	unsigned int flags = fs_flags(ops_fs(req), ino);
	unsigned int fixed = ops_service(req)->noopen ? FIXED : FS_APPEND_FL;

	if (!(flags & FIXED))
		return 0;
	/* ftruncate(2), or the kernel's own: times that it has kept. */
	if (by_descriptor)
		return (valid & FATTR_SIZE) && (flags & fixed) ? -EPERM : 0;
	if (valid & (FATTR_SIZE | FATTR_MODE | FATTR_UID | FATTR_GID))
		return -EPERM;
	if (((valid & FATTR_ATIME) && !(valid & FATTR_ATIME_NOW)) ||
	    ((valid & FATTR_MTIME) && !(valid & FATTR_MTIME_NOW)))
		return -EPERM;
	if ((valid & (FATTR_ATIME | FATTR_MTIME)) && (flags & FS_IMMUTABLE_FL))
		return -EPERM;
	return 0;
}

int ops_may_set_xattr(fuse_req_t req, fuse_ino_t ino)
{
	return fs_flags(ops_fs(req), ino) & FIXED ? -EPERM : 0;
}

int ops_may_allocate(fuse_req_t req, fuse_ino_t ino, int mode)
{
	unsigned int flags = fs_flags(ops_fs(req), ino);

	if ((flags & FS_IMMUTABLE_FL) ||
	    ((flags & FS_APPEND_FL) && (mode & ~FALLOC_FL_KEEP_SIZE)))
		return -EPERM;
	return 0;
}

static int set_flags(fuse_req_t req, fuse_ino_t ino, unsigned int flags)
{
	unsigned int changed = fs_flags(ops_fs(req), ino) ^ flags;
	struct stat attr;
	int error;

	error = fs_getattr(ops_fs(req), ino, &attr);
	if (error)
		return error;
	if (fuse_req_ctx(req)->uid != attr.st_uid &&
	    !ops_is_capable(req, CAP_FOWNER))
		return -EPERM;
	if ((changed & FIXED) && !ops_is_capable(req, CAP_LINUX_IMMUTABLE))
		return -EPERM;
	return fs_set_flags(ops_fs(req), ino, flags);
}

/* The same, as the other pair of commands names them. */
static const struct {
	unsigned int flag;
	unsigned int xflag;
} xflags[] = {
	{FS_IMMUTABLE_FL, FS_XFLAG_IMMUTABLE},
	{FS_APPEND_FL, FS_XFLAG_APPEND},
	{FS_NODUMP_FL, FS_XFLAG_NODUMP},
	{FS_NOATIME_FL, FS_XFLAG_NOATIME},
};

static unsigned int to_xflags(unsigned int flags)
{
	unsigned int result = 0;

	for (size_t i = 0; i < sizeof(xflags) / sizeof(xflags[0]); i++)
		if (flags & xflags[i].flag)
			result |= xflags[i].xflag;
	return result;
}

/* -EOPNOTSUPP: it has what there is not here. */
static int from_xattr(const struct fsxattr *from, unsigned int *flags)
{
	unsigned int left = from->fsx_xflags;

	*flags = 0;
	for (size_t i = 0; i < sizeof(xflags) / sizeof(xflags[0]); i++) {
		if (left & xflags[i].xflag)
			*flags |= xflags[i].flag;
		left &= ~xflags[i].xflag;
	}
	return left || from->fsx_extsize || from->fsx_projid ||
			       from->fsx_cowextsize
		       ? -EOPNOTSUPP
		       : 0;
}

static void get(fuse_req_t req, fuse_ino_t ino, bool extended, size_t size)
{
	unsigned int flags = fs_flags(ops_fs(req), ino);
	struct fsxattr xattr = {.fsx_xflags = to_xflags(flags)};
	const void *reply = extended ? (const void *)&xattr : &flags;
	size_t length = extended ? sizeof(xattr) : sizeof(flags);

	if (size < length)
		fuse_reply_err(req, EINVAL);
	else
		fuse_reply_ioctl(req, 0, reply, length);
}

static void set(fuse_req_t req, fuse_ino_t ino, bool extended, const void *in,
		size_t size)
{
	unsigned int flags;
	struct fsxattr xattr;
	int error = 0;

	if (size < (extended ? sizeof(xattr) : sizeof(flags))) {
		error = -EINVAL;
	} else if (extended) {
		memcpy(&xattr, in, sizeof(xattr));
		error = from_xattr(&xattr, &flags);
	} else {
		memcpy(&flags, in, sizeof(flags));
	}
	if (!error)
		error = set_flags(req, ino, flags);
	if (error)
		ops_reply_error(req, error);
	else
		fuse_reply_ioctl(req, 0, NULL, 0);
}

/*
 * The first two commands' numbers speak of a long, but all pass an int. The
 * kernel asks by the third before it sets by the second.
 */
bool ops_flags_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int command,
		     const void *in, size_t in_size, size_t out_size)
{
	switch (command) {
	case FS_IOC_GETFLAGS:
	case FS_IOC_FSGETXATTR:
		get(req, ino, command == FS_IOC_FSGETXATTR, out_size);
		return true;
	case FS_IOC_SETFLAGS:
	case FS_IOC_FSSETXATTR:
		set(req, ino, command == FS_IOC_FSSETXATTR, in, in_size);
		return true;
	}
	return false;
}
