/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ops.c - the table of operations, and names. See ops.h.
 *
 * A reply fails only when the connection is gone, and with it all that the
 * kernel has looked up: results of fuse_reply_...() have no consequence.
 */
#include "ops_private.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

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

void ops_entry(fuse_req_t req, const struct fs_entry *from,
	       struct fuse_entry_param *to)
{
	memset(to, 0, sizeof(*to));
	to->ino = from->ino;
	to->generation = from->generation;
	to->attr = from->attr;
	to->attr_timeout = ops_attr_timeout(req, from->ino);
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

/* --- the rest ----------------------------------------------------------- */

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
	.getattr = ops_getattr,
	.setattr = ops_setattr,
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
