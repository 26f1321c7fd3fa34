/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ops.c - the table of operations; names and attributes. See ops.h.
 *
 * A reply fails only when the connection is gone, and with it all that the
 * kernel has looked up: results of fuse_reply_...() have no consequence.
 */
#include "ops_private.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/fuse.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "log.h"

void ops_caller(fuse_req_t req, struct fs_caller *caller)
{
	const struct fuse_ctx *context = fuse_req_ctx(req);

	caller->uid = context->uid;
	caller->gid = context->gid;
	caller->pid = context->pid;
	caller->umask = context->umask;
}

void ops_reply_error(fuse_req_t req, int error)
{
	fuse_reply_err(req, -error);
}

/*
 * The kernel may ask for attributes that have run out before it reads from its
 * page cache: so they do when atime has to move then. See op_getattr().
 */
static double attr_timeout(fuse_req_t req, fuse_ino_t ino)
{
	const struct service *service = ops_service(req);
	double holds;

	if (!service->noopen || service->noatime)
		return OPS_TIMEOUT;
	holds = fs_atime_holds(service->fs, ino);
	return holds < OPS_TIMEOUT ? holds : OPS_TIMEOUT;
}

void ops_entry(fuse_req_t req, const struct fs_entry *from,
	       struct fuse_entry_param *to)
{
	memset(to, 0, sizeof(*to));
	to->ino = from->ino;
	to->generation = from->generation;
	to->attr = from->attr;
	to->attr_timeout = attr_timeout(req, from->ino);
	to->entry_timeout = OPS_TIMEOUT;
}

/* --- agreement --------------------------------------------------------- */

/*
 * Requests that the kernel may have under way without anybody waiting:
 * readahead, writeback, asynchronous direct I/O.
 */
#define MAX_BACKGROUND 64

static void op_init(void *userdata, struct fuse_conn_info *connection)
{
	struct service *service = userdata;
	unsigned int wanted = FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO |
			      FUSE_CAP_EXPORT_SUPPORT | FUSE_CAP_IOCTL_DIR |
			      FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO |
			      FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_POSIX_ACL |
			      FUSE_CAP_DONT_MASK | FUSE_CAP_CACHE_SYMLINKS |
			      FUSE_CAP_NO_OPENDIR_SUPPORT;

	/* DONT_MASK: a parent's default ACL takes the place of the umask. */
	if (service->writeback)
		wanted |= FUSE_CAP_WRITEBACK_CACHE;
	if (service->noopen &&
	    !(connection->capable & FUSE_CAP_NO_OPEN_SUPPORT)) {
		log_line(LOG_WARNING,
			 "this kernel cannot open files without asking: it "
			 "will ask");
		service->noopen = false;
	}
	/* Truncating as part of opening: else the kernel asks for that. */
	wanted |= service->noopen ? FUSE_CAP_NO_OPEN_SUPPORT
				  : FUSE_CAP_ATOMIC_O_TRUNC;
	connection->want = wanted & connection->capable;
	connection->max_write =
		service->block ? REQUEST_DATA_BLOCK : service->ledger.data_max;
	connection->max_read = service->max_read;
	connection->max_background = MAX_BACKGROUND;
	connection->congestion_threshold = MAX_BACKGROUND;
	connection->time_gran = 1;
}

/* --- names ------------------------------------------------------------- */

static void reply_entry(fuse_req_t req, int error, const struct fs_entry *entry)
{
	struct fuse_entry_param param;

	if (error) {
		ops_reply_error(req, error);
		return;
	}
	ops_entry(req, entry, &param);
	fuse_reply_entry(req, &param);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fs_entry entry;
	struct fuse_entry_param none;
	int error;

	/* How the kernel asks for an inode by an exported handle. */
	if (!strcmp(name, "."))
		error = fs_lookup_ino(ops_fs(req), parent, &entry);
	else
		error = fs_lookup(ops_fs(req), parent, name, &entry);
	if (error != -ENOENT) {
		reply_entry(req, error, &entry);
		return;
	}
	/* Inode 0: remember that there is no such name. */
	memset(&none, 0, sizeof(none));
	none.entry_timeout = OPS_TIMEOUT;
	fuse_reply_entry(req, &none);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
	fs_forget(ops_fs(req), ino, count);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count,
			    struct fuse_forget_data *forgets)
{
	size_t i;

	for (i = 0; i < count; i++)
		fs_forget(ops_fs(req), forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

static void make(fuse_req_t req, fuse_ino_t parent, const char *name,
		 mode_t mode, dev_t rdev, const char *target)
{
	struct fs_caller caller;
	struct fs_entry entry;
	int error;

	ops_caller(req, &caller);
	error = fs_make(ops_fs(req), &caller, parent, name, mode, rdev, target,
			&entry);
	reply_entry(req, error, &entry);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name,
		     mode_t mode, dev_t rdev)
{
	make(req, parent, name, mode, rdev, NULL);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name,
		     mode_t mode)
{
	make(req, parent, name, S_IFDIR | (mode & 07777), 0, NULL);
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent,
		       const char *name)
{
	make(req, parent, name, S_IFLNK | 0777, 0, target);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	char *target = request_current()->reply;
	ssize_t length;

	length = fs_readlink(ops_fs(req), ino, target, REQUEST_DATA_MAX);
	if (length < 0) {
		ops_reply_error(req, length);
		return;
	}
	ops_accessed(req, ino);
	fuse_reply_buf(req, target, length);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent,
		    const char *name)
{
	struct fs_entry entry;
	int error;

	error = fs_link(ops_fs(req), ino, parent, name, &entry);
	reply_entry(req, error, &entry);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	ops_reply_error(req, fs_unlink(ops_fs(req), parent, name));
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	ops_reply_error(req, fs_rmdir(ops_fs(req), parent, name));
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
		      fuse_ino_t new_parent, const char *new_name,
		      unsigned int flags)
{
	struct fs_caller caller;

	ops_caller(req, &caller);
	ops_reply_error(req, fs_rename(ops_fs(req), &caller, parent, name,
				       new_parent, new_name, flags));
}

/* --- attributes -------------------------------------------------------- */

static void reply_attr(fuse_req_t req, fuse_ino_t ino, const struct stat *attr)
{
	fuse_reply_attr(req, attr, attr_timeout(req, ino));
}

/*
 * By descriptor (fi is there), the kernel asks before a read(2) that gets to
 * the end of the file, if attributes have run out; the page cache may answer
 * the read itself. For a moved atime to be among them, it moves first.
 *
 * With FUSE_AUTO_INVAL_DATA it would ask before any read(2); but it would also
 * drop a file's pages from its cache after each write, for mtime has changed.
 */
static void op_getattr(fuse_req_t req, fuse_ino_t ino,
		       struct fuse_file_info *fi)
{
	struct stat attr;
	int error;

	if (fi && attr_timeout(req, ino) == 0 && ops_is_reading(req))
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

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr,
		       int to_set, struct fuse_file_info *fi)
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

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct statvfs statvfs;
	int error;

	error = fs_statvfs(ops_fs(req), &statvfs);
	if (error)
		ops_reply_error(req, error);
	else
		fuse_reply_statfs(req, &statvfs);
}

static void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int command,
		     void *argument, struct fuse_file_info *fi,
		     unsigned int flags, const void *in, size_t in_size,
		     size_t out_size)
{
	if (!ops_flags_ioctl(req, ino, command, in, in_size, out_size))
		control_ioctl(req, ino, command, argument, fi, flags, in,
			      in_size, out_size);
}

const struct fuse_lowlevel_ops ops = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.readlink = op_readlink,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.unlink = op_unlink,
	.rmdir = op_rmdir,
	.symlink = op_symlink,
	.rename = op_rename,
	.link = op_link,
	.create = ops_create,
	.open = ops_open,
	.release = ops_release,
	.read = ops_read,
	.write = ops_write,
	.fallocate = ops_fallocate,
	.lseek = ops_lseek,
	.copy_file_range = ops_copy_file_range,
	.opendir = ops_opendir,
	.readdir = ops_readdir,
	.readdirplus = ops_readdirplus,
	.statfs = op_statfs,
	.setxattr = ops_setxattr,
	.getxattr = ops_getxattr,
	.listxattr = ops_listxattr,
	.removexattr = ops_removexattr,
	.ioctl = op_ioctl,
};
