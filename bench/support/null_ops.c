/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * null_ops.c - see null_ops.h
 */
#include "null_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <string.h>

#include "null_names.h"
#include "ops_private.h"
#include "options.h"

static struct node *root;

/* What is read, of pages of its own as a worker's room for replies is. */
static _Alignas(4096) char zeros[REQUEST_DATA_MAX];

static struct node *node_of(fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID ? root : (struct node *)ino;
}

static void reply_status(fuse_req_t req, int error)
{
	fuse_reply_err(req, -error);
}

static void entry_of(struct node *node, const struct stat *attr,
		     struct fuse_entry_param *param)
{
	memset(param, 0, sizeof(*param));
	param->ino = (fuse_ino_t)node;
	param->attr = *attr;
	param->attr_timeout = OPS_TIMEOUT;
	param->entry_timeout = OPS_TIMEOUT;
}

static void reply_node(fuse_req_t req, int error, struct node *node)
{
	struct fuse_entry_param param;
	struct stat attr;

	if (error) {
		reply_status(req, error);
		return;
	}
	names_attr(node, &attr);
	entry_of(node, &attr, &param);
	fuse_reply_entry(req, &param);
}

/* --- names ------------------------------------------------------------- */

static void null_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param none = {.entry_timeout = OPS_TIMEOUT};
	struct node *node;

	if (names_lookup(node_of(parent), name, &node))
		fuse_reply_entry(req, &none);
	else
		reply_node(req, 0, node);
}

static void null_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
	if (ino != FUSE_ROOT_ID)
		names_forget(node_of(ino), count);
	fuse_reply_none(req);
}

static void null_forget_multi(fuse_req_t req, size_t count,
			      struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < count; i++)
		if (forgets[i].ino != FUSE_ROOT_ID)
			names_forget(node_of(forgets[i].ino),
				     forgets[i].nlookup);
	fuse_reply_none(req);
}

static int make(fuse_req_t req, fuse_ino_t parent, const char *name,
		mode_t mode, dev_t rdev, const char *target, struct node **node)
{
	const struct fuse_ctx *context = fuse_req_ctx(req);
	struct stat attr = {
		.st_mode = mode & ~(target ? 0 : context->umask),
		.st_rdev = rdev,
		.st_uid = context->uid,
		.st_gid = context->gid,
	};

	return names_make(node_of(parent), name, &attr, target, node);
}

static void null_mknod(fuse_req_t req, fuse_ino_t parent, const char *name,
		       mode_t mode, dev_t rdev)
{
	struct node *node;
	int error = make(req, parent, name, mode, rdev, NULL, &node);

	reply_node(req, error, node);
}

static void null_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name,
		       mode_t mode)
{
	struct node *node;
	int error = make(req, parent, name, S_IFDIR | (mode & 07777), 0, NULL,
			 &node);

	reply_node(req, error, node);
}

static void null_symlink(fuse_req_t req, const char *target, fuse_ino_t parent,
			 const char *name)
{
	struct node *node;
	int error = make(req, parent, name, S_IFLNK | 0777, 0, target, &node);

	reply_node(req, error, node);
}

static void null_readlink(fuse_req_t req, fuse_ino_t ino)
{
	fuse_reply_readlink(req, names_target(node_of(ino)));
}

static void null_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent,
		      const char *name)
{
	reply_node(req, names_link(node_of(ino), node_of(parent), name),
		   node_of(ino));
}

static void null_remove(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	reply_status(req, names_remove(node_of(parent), name));
}

static void null_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
			fuse_ino_t new_parent, const char *new_name,
			unsigned int flags)
{
	if (flags)
		reply_status(req, -EINVAL);
	else
		reply_status(req, names_rename(node_of(parent), name,
					       node_of(new_parent), new_name));
}

/* --- attributes -------------------------------------------------------- */

static void null_getattr(fuse_req_t req, fuse_ino_t ino,
			 struct fuse_file_info *fi)
{
	struct stat attr;

	names_attr(node_of(ino), &attr);
	fuse_reply_attr(req, &attr, OPS_TIMEOUT);
}

static void null_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr,
			 int valid, struct fuse_file_info *fi)
{
	names_set_attr(node_of(ino), valid, attr);
	fuse_reply_attr(req, attr, OPS_TIMEOUT);
}

static void null_statfs(fuse_req_t req, fuse_ino_t ino)
{
	/* As much as anybody could want to write. */
	struct statvfs statvfs = {
		.f_bsize = 4096,
		.f_frsize = 4096,
		.f_blocks = 1ULL << 30,
		.f_bfree = 1ULL << 30,
		.f_bavail = 1ULL << 30,
		.f_files = 1ULL << 30,
		.f_ffree = (1ULL << 30) - names_count(),
		.f_namemax = 255,
	};

	fuse_reply_statfs(req, &statvfs);
}

/* --- files ------------------------------------------------------------- */

static void open_flags(struct fuse_file_info *fi)
{
	fi->keep_cache = 1;
	fi->noflush = 1;
	if (ops_writes_directly(fi)) {
		fi->direct_io = 1;
		request_current()->parallel_direct_writes = true;
	}
}

static void null_create(fuse_req_t req, fuse_ino_t parent, const char *name,
			mode_t mode, struct fuse_file_info *fi)
{
	struct fuse_entry_param param;
	struct node *node;
	struct stat attr;
	int error;

	if (request_current()->opcode == FUSE_TMPFILE)
		name = NULL;
	error = make(req, parent, name, S_IFREG | (mode & 07777), 0, NULL,
		     &node);
	if (error) {
		reply_status(req, error);
		return;
	}
	names_attr(node, &attr);
	entry_of(node, &attr, &param);
	open_flags(fi);
	fuse_reply_create(req, &param, fi);
}

static void null_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat attr = {.st_size = 0};

	if (fi->flags & O_TRUNC)
		names_set_attr(node_of(ino), FUSE_SET_ATTR_SIZE, &attr);
	open_flags(fi);
	fuse_reply_open(req, fi);
}

static void null_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		      struct fuse_file_info *fi)
{
	uint64_t end = names_size(node_of(ino));

	if (size > REQUEST_DATA_MAX) {
		reply_status(req, -EINVAL);
		return;
	}
	if ((uint64_t)offset >= end)
		size = 0;
	else if (size > end - offset)
		size = end - offset;
	fuse_reply_buf(req, zeros, size);
}

static void null_write(fuse_req_t req, fuse_ino_t ino, const char *data,
		       size_t size, off_t offset, struct fuse_file_info *fi)
{
	names_grow(node_of(ino), offset + size);
	fuse_reply_write(req, size);
}

static void null_fallocate(fuse_req_t req, fuse_ino_t ino, int mode,
			   off_t offset, off_t length,
			   struct fuse_file_info *fi)
{
	if (!(mode & FALLOC_FL_KEEP_SIZE))
		names_grow(node_of(ino), offset + length);
	reply_status(req, 0);
}

/* --- directories ------------------------------------------------------- */

static void null_opendir(fuse_req_t req, fuse_ino_t ino,
			 struct fuse_file_info *fi)
{
	fuse_reply_err(req, ENOSYS);
}

struct listing {
	fuse_req_t req;
	char *at;
	size_t room;
	bool plus;
};

static bool fill(void *context, const char *name, struct node *node,
		 const struct stat *attr, uint64_t cursor, bool *kept)
{
	struct listing *listing = context;
	struct fuse_entry_param param;
	size_t length;

	if (listing->plus) {
		entry_of(node, attr, &param);
		*kept = strcmp(name, ".") && strcmp(name, "..");
		if (!*kept)
			param.ino = 0;
		length = fuse_add_direntry_plus(listing->req, listing->at,
						listing->room, name, &param,
						cursor);
	} else {
		length = fuse_add_direntry(listing->req, listing->at,
					   listing->room, name, attr, cursor);
	}
	if (length > listing->room)
		return false;
	listing->at += length;
	listing->room -= length;
	return true;
}

static void list(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		 bool plus)
{
	char buffer[16384];
	struct listing listing = {
		.req = req,
		.at = buffer,
		.room = size < sizeof(buffer) ? size : sizeof(buffer),
		.plus = plus,
	};

	names_list(node_of(ino), offset, fill, &listing);
	fuse_reply_buf(req, buffer, listing.at - buffer);
}

static void null_readdir(fuse_req_t req, fuse_ino_t ino, size_t size,
			 off_t offset, struct fuse_file_info *fi)
{
	list(req, ino, size, offset, false);
}

static void null_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size,
			     off_t offset, struct fuse_file_info *fi)
{
	list(req, ino, size, offset, true);
}

/* zramfs's own agreement with the kernel: it looks at these only. */
static void null_init(void *userdata, struct fuse_conn_info *connection)
{
	const struct null_mount *mount = userdata;
	struct service service = {
		.writeback = mount->options->writeback,
		.max_read = transport_max_read(mount->transport),
		.ledger = {.data_max = LEDGER_DATA_MAX},
	};

	ops.init(&service, connection);
}

const struct fuse_lowlevel_ops null_ops = {
	.init = null_init,
	.lookup = null_lookup,
	.forget = null_forget,
	.forget_multi = null_forget_multi,
	.getattr = null_getattr,
	.setattr = null_setattr,
	.readlink = null_readlink,
	.mknod = null_mknod,
	.mkdir = null_mkdir,
	.unlink = null_remove,
	.rmdir = null_remove,
	.symlink = null_symlink,
	.rename = null_rename,
	.link = null_link,
	.create = null_create,
	.open = null_open,
	.read = null_read,
	.write = null_write,
	.fallocate = null_fallocate,
	.opendir = null_opendir,
	.readdir = null_readdir,
	.readdirplus = null_readdirplus,
	.statfs = null_statfs,
};

int null_ops_start(mode_t mode)
{
	memset(zeros, 0, sizeof(zeros));
	root = names_start(mode);
	return root ? 0 : -ENOMEM;
}
