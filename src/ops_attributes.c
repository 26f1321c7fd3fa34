/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ops_attributes.c - getattr and setattr, and how long attributes hold
 *
 * Owns what the kernel leaves to a filesystem in FUSE and does itself for
 * others: whose suid bits go when, and when atime has to have moved. What
 * attributes are is fs.h's.
 */
#include "ops_private.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/fuse.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/*
 * The kernel may ask for attributes that have run out before it reads from its
 * page cache: so they do when atime has to move then. See ops_getattr().
 */
double ops_attr_timeout(fuse_req_t req, fuse_ino_t ino)
{
	const struct service *service = ops_service(req);
	double holds;

	if (!service->noopen || service->noatime)
		return OPS_TIMEOUT;
	holds = fs_atime_holds(service->fs, ino);
	return holds < OPS_TIMEOUT ? holds : OPS_TIMEOUT;
}

static void reply_attr(fuse_req_t req, fuse_ino_t ino, const struct stat *attr)
{
	fuse_reply_attr(req, attr, ops_attr_timeout(req, ino));
}

/*
 * By descriptor (fi is there), the kernel asks before a read(2) that gets to
 * the end of the file, if attributes have run out; the page cache may answer
 * the read itself. For a moved atime to be among them, it moves first.
 *
 * With FUSE_AUTO_INVAL_DATA it would ask before any read(2); but it would also
 * drop a file's pages from its cache after each write, for mtime has changed.
 */
void ops_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat attr;
	int error;

	if (fi && ops_attr_timeout(req, ino) == 0 && ops_is_reading(req))
		ops_accessed(req, ino);
	error = fs_getattr(ops_fs(req), ino, &attr);
	if (error)
		ops_reply_error(req, error);
	else
		reply_attr(req, ino, &attr);
}

/*
 * The kernel leaves it to us to take suid away when the owner changes. It
 * also does for chown(-1, -1), which comes as a request to set nothing, or
 * ctime alone; and before fallocate(2) and copy_file_range(2), which comes as
 * a request to set nothing, too.
 */
static bool sets_nothing(unsigned int valid)
{
	return !(valid & (FATTR_MODE | FATTR_UID | FATTR_GID | FATTR_SIZE |
			  FATTR_ATIME | FATTR_MTIME | FATTR_ATIME_NOW |
			  FATTR_MTIME_NOW));
}

/*
 * Setting nothing, when that takes bits away, is for the owner, and for those
 * who write. The kernel checks this for other filesystems, but for FUSE after
 * it has dropped what it would check. An ACL that lets somebody write shows in
 * the group's bits: so it is enough to look at the mode.
 */
static int may_set_nothing(fuse_req_t req, fuse_ino_t ino)
{
	const struct fuse_ctx *context = fuse_req_ctx(req);
	struct stat attr;
	int error;

	error = fs_getattr(ops_fs(req), ino, &attr);
	if (error || S_ISDIR(attr.st_mode) ||
	    !(attr.st_mode & (S_ISUID | S_ISGID)))
		return error;
	if (context->uid == attr.st_uid ||
	    (attr.st_mode & (S_IWGRP | S_IWOTH)) ||
	    ops_is_capable(req, CAP_FOWNER))
		return 0;
	return -EPERM;
}

/*
 * open(2) with O_TRUNC of a file that is empty, where the kernel asks for that
 * apart: unlike truncate(2), which looks the same, it is a modification.
 */
static bool is_truncating_open(fuse_req_t req, fuse_ino_t ino,
			       unsigned int valid)
{
	struct stat attr;

	return ops_service(req)->noopen &&
	       (valid & (FATTR_SIZE | FATTR_FH)) == FATTR_SIZE &&
	       !fs_getattr(ops_fs(req), ino, &attr) && !attr.st_size &&
	       ops_system_call(req, NULL) != SYS_truncate;
}

static unsigned int setattr_valid(unsigned int from)
{
	static const struct {
		unsigned int fuse;
		unsigned int fs;
	} bits[] = {
		{FATTR_MODE, FS_SET_MODE},
		{FATTR_UID, FS_SET_UID},
		{FATTR_GID, FS_SET_GID},
		{FATTR_SIZE, FS_SET_SIZE},
		{FATTR_ATIME, FS_SET_ATIME},
		{FATTR_MTIME, FS_SET_MTIME},
		{FATTR_ATIME_NOW, FS_SET_ATIME_NOW},
		{FATTR_MTIME_NOW, FS_SET_MTIME_NOW},
		{FATTR_CTIME, FS_SET_CTIME},
	};
	unsigned int valid = 0;
	size_t i;

	for (i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		if (from & bits[i].fuse)
			valid |= bits[i].fs;
	/* A "now" bit comes with its plain one. */
	if (valid & FS_SET_ATIME_NOW)
		valid &= ~FS_SET_ATIME;
	if (valid & FS_SET_MTIME_NOW)
		valid &= ~FS_SET_MTIME;
	return valid;
}

void ops_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		 struct fuse_file_info *fi)
{
	unsigned int valid = setattr_valid(to_set);
	bool nothing = sets_nothing(to_set);
	struct stat result;
	int error;

	error = ops_may_setattr(req, ino, to_set, fi != NULL);
	if (!error && nothing)
		error = may_set_nothing(req, ino);
	if (is_truncating_open(req, ino, to_set))
		valid |= FS_SET_MTIME_NOW;
	if (request_current()->kill_priv || nothing ||
	    (to_set & (FATTR_UID | FATTR_GID)))
		valid |= FS_SET_KILL_PRIV | ops_kill_sgid(req, ino);
	if (!error)
		error = fs_setattr(ops_fs(req), ino, valid, attr, &result);
	if (error)
		ops_reply_error(req, error);
	else
		reply_attr(req, ino, &result);
}
