/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ops_xattr.c - extended attributes. See ops_private.h.
 */
#include "ops_private.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/xattr.h>
#include <string.h>
#include <sys/stat.h>

void ops_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
		  const char *value, size_t size, int flags)
{
	struct stat attr;
	int error;

	error = ops_may_set_xattr(req, ino);
	if (!error)
		error = fs_setxattr(ops_fs(req), ino, name, value, size, flags);
	/*
	 * The kernel asks for this with an access ACL that was set by somebody
	 * who is not in the file's group.
	 */
	if (!error && request_current()->kill_priv)
		error = fs_setattr(ops_fs(req), ino, FS_SET_KILL_SGID, &attr,
				   &attr);
	ops_reply_error(req, error);
}

static bool is_trusted(const char *name)
{
	return strncmp(name, XATTR_TRUSTED_PREFIX, XATTR_TRUSTED_PREFIX_LEN) ==
	       0;
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

/* Take the names that are for CAP_SYS_ADMIN alone out of a list. */
static size_t hide_trusted(char *list, size_t length)
{
	const char *from = list, *end = list + length;
	char *to = list;

	while (from < end) {
		size_t size = strlen(from) + 1;

		if (!is_trusted(from)) {
			memmove(to, from, size);
			to += size;
		}
		from += size;
	}
	return to - list;
}

static bool has_trusted(const char *list, size_t length)
{
	const char *name;

	for (name = list; name < list + length; name += strlen(name) + 1)
		if (is_trusted(name))
			return true;
	return false;
}

void ops_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	char *list = request_current()->reply;
	ssize_t length;

	/* All of it, whatever is asked for: what is hidden takes no room. */
	length = fs_listxattr(ops_fs(req), ino, list, REQUEST_DATA_MAX);
	if (length > 0 && has_trusted(list, length) &&
	    !ops_is_capable(req, CAP_SYS_ADMIN))
		length = hide_trusted(list, length);
	if (size && length > (ssize_t)size)
		length = -ERANGE;
	reply_value(req, length, size);
}

void ops_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	int error;

	error = ops_may_set_xattr(req, ino);
	if (!error)
		error = fs_removexattr(ops_fs(req), ino, name);
	ops_reply_error(req, error);
}
