/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ops_xattr.c - extended attributes. See ops_private.h.
 */
#include "ops_private.h"

#include <sys/stat.h>
#include <sys/xattr.h>

/*
 * The kernel asks for this with an access ACL that was set by somebody who is
 * not in the file's group.
 */
static int drop_set_group_id(struct fs *fs, ino_t ino)
{
	struct stat attr;
	int error;

	error = fs_getattr(fs, ino, &attr);
	if (error || !(attr.st_mode & S_ISGID))
		return error;
	attr.st_mode &= ~S_ISGID;
	return fs_setattr(fs, ino, FS_SET_MODE, &attr, &attr);
}

void ops_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
		  const char *value, size_t size, int flags)
{
	int error;

	error = fs_setxattr(ops_fs(req), ino, name, value, size, flags);
	if (!error && request_current()->kill_priv)
		error = drop_set_group_id(ops_fs(req), ino);
	ops_reply_error(req, error);
}

/* size 0 asks for the length alone. */
static void reply_value(fuse_req_t req, ssize_t length, size_t size)
{
	if (length < 0)
		ops_reply_error(req, length);
	else if (size == 0)
		fuse_reply_xattr(req, length);
	else
		fuse_reply_buf(req, request_current()->reply, length);
}

static size_t value_room(size_t size)
{
	return size < REQUEST_DATA_MAX ? size : REQUEST_DATA_MAX;
}

void ops_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	reply_value(req,
		    fs_getxattr(ops_fs(req), ino, name,
				request_current()->reply, value_room(size)),
		    size);
}

void ops_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	reply_value(req,
		    fs_listxattr(ops_fs(req), ino, request_current()->reply,
				 value_room(size)),
		    size);
}

void ops_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	ops_reply_error(req, fs_removexattr(ops_fs(req), ino, name));
}
