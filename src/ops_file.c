/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ops_file.c - the contents of files and directories. See ops_private.h.
 *
 * Data goes from the request's buffer to fs_write() and from fs_read() to the
 * reply as it is: one copy on either side, by the kernel.
 */
#include "ops_private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <string.h>
#include <sys/stat.h>

#include "block.h"

/* --- opening ----------------------------------------------------------- */

/*
 * A read that the page cache answers is not seen here. So when the next read
 * has to move atime, the cache is dropped, and it will be. Not for those who
 * also write: they would drop what they have written at each open.
 */
static bool must_see_reads(fuse_req_t req, fuse_ino_t ino,
			   const struct fuse_file_info *fi)
{
	return (fi->flags & (O_ACCMODE | O_NOATIME)) == O_RDONLY &&
	       !ops_service(req)->noatime && fs_atime_is_due(ops_fs(req), ino);
}

/*
 * Who fills an empty file and cannot read it gains nothing from the page cache:
 * what it writes would be dropped when the file is first read, for then atime
 * has to move. Past it, a write is one request; else it is cut where it begins
 * within a page, and the first one is preceded by a question for
 * security.capability. Not with writeback, where writes are gathered there.
 */
static bool only_fills(fuse_req_t req, const struct fuse_file_info *fi)
{
	return (fi->flags & O_ACCMODE) == O_WRONLY &&
	       !ops_service(req)->writeback;
}

bool ops_writes_directly(const struct fuse_file_info *fi)
{
	return (fi->flags & O_DIRECT) && (fi->flags & O_ACCMODE) != O_RDONLY;
}

static void open_flags(fuse_req_t req, struct fuse_file_info *fi, bool empty)
{
	fi->noflush = 1;
	fi->fh = HANDLE_OPENED;
	if (ops_writes_directly(fi))
		request_current()->parallel_direct_writes = true;
	if (ops_writes_directly(fi) || (empty && only_fills(req, fi))) {
		fi->direct_io = 1;
		fi->fh |= HANDLE_DIRECT;
	}
}

void ops_create(fuse_req_t req, fuse_ino_t parent, const char *name,
		mode_t mode, struct fuse_file_info *fi)
{
	struct fuse_entry_param param;
	struct fs_caller caller;
	struct fs_entry entry;
	int error;

	ops_caller(req, &caller);
	mode = S_IFREG | (mode & 07777);
	if (request_current()->opcode == FUSE_TMPFILE)
		error = fs_make_unnamed(ops_fs(req), &caller, parent, mode,
					&entry);
	else
		error = fs_make(ops_fs(req), &caller, parent, name, mode, 0,
				NULL, &entry);
	if (error) {
		ops_reply_error(req, error);
		return;
	}
	ops_entry(req, &entry, &param);
	fi->keep_cache = 1;
	open_flags(req, fi, true);
	/* There, only one file is ever made. */
	if (ops_service(req)->block)
		fi->fh |= HANDLE_BLOCK;
	fuse_reply_create(req, &param, fi);
}

/* The device that it was for is gone: see block.h. */
void ops_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	if (fi->fh & HANDLE_BLOCK)
		transport_end(ops_service(req)->transport, true);
	fuse_reply_err(req, 0);
}

static int truncate_at_open(fuse_req_t req, fuse_ino_t ino)
{
	struct stat attr = {.st_size = 0};
	/* Unlike truncate(2), a modification even if it was empty. */
	unsigned int valid = FS_SET_SIZE | FS_SET_MTIME_NOW;
	int error;

	error = ops_before_write(req, ino);
	if (error)
		return error;

	if (request_current()->kill_priv)
		valid |= FS_SET_KILL_PRIV;
	return fs_setattr(ops_fs(req), ino, valid, &attr, &attr);
}

void ops_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	int error;

	/* The kernel remembers this; it then has the flags' default: 0. */
	if (ops_service(req)->noopen) {
		fuse_reply_err(req, ENOSYS);
		return;
	}
	error = ops_may_open(req, ino, fi->flags);
	if (!error && (fi->flags & O_TRUNC))
		error = truncate_at_open(req, ino);
	if (error) {
		ops_reply_error(req, error);
		return;
	}
	fi->keep_cache = !must_see_reads(req, ino, fi);
	open_flags(req, fi, fi->flags & O_TRUNC);
	fuse_reply_open(req, fi);
}

/* --- data -------------------------------------------------------------- */

/* Where opening tells nothing, it matters what the page cache may have. */
static void keeps_pages(fuse_req_t req, fuse_ino_t ino)
{
	if (ops_service(req)->noopen)
		fs_keeps_pages(ops_fs(req), ino);
}

/*
 * A read for a descriptor that cannot read is the kernel's own, of a page that
 * is written in part.
 */
static bool is_seen_read(const struct fuse_file_info *fi)
{
	return !(fi->flags & O_NOATIME) && (fi->flags & O_ACCMODE) != O_WRONLY;
}

void ops_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
	      struct fuse_file_info *fi)
{
	char *reply = request_current()->reply;
	ssize_t length;

	/* The kernel was told not to ask for more. */
	if (size > REQUEST_DATA_MAX) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	length = fs_read(ops_fs(req), ino, reply, size, offset);
	if (length < 0) {
		ops_reply_error(req, length);
		return;
	}
	if (is_seen_read(fi))
		ops_accessed(req, ino);
	keeps_pages(req, ino);
	fuse_reply_buf(req, reply, length);
}

void ops_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size,
	       off_t offset, struct fuse_file_info *fi)
{
	ssize_t length;

	length = ops_may_write(req, ino, fi);
	if (!length)
		length = ops_before_write(req, ino);
	if (!(fi->fh & HANDLE_DIRECT) && !(fi->flags & O_DIRECT))
		keeps_pages(req, ino);
	if (!length)
		length = fs_write(ops_fs(req), ino, data, size, offset,
				  request_current()->kill_priv);
	if (length < 0)
		ops_reply_error(req, length);
	else
		fuse_reply_write(req, length);
}

void ops_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset,
		   off_t length, struct fuse_file_info *fi)
{
	int error;

	error = ops_may_allocate(req, ino, mode);
	if (!error)
		error = fs_fallocate(ops_fs(req), ino, mode, offset, length);
	ops_reply_error(req, error);
}

void ops_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
	       struct fuse_file_info *fi)
{
	off_t found = fs_seek(ops_fs(req), ino, offset, whence);

	if (found < 0)
		ops_reply_error(req, found);
	else
		fuse_reply_lseek(req, found);
}

/*
 * Copying may stop short, and the caller goes on; so that nobody else waits
 * long for the files' locks, and the count fits the reply's 32 bits.
 */
#define COPY_MAX (64u << 20)

void ops_copy_file_range(fuse_req_t req, fuse_ino_t source, off_t source_offset,
			 struct fuse_file_info *source_fi, fuse_ino_t target,
			 off_t target_offset, struct fuse_file_info *target_fi,
			 size_t length, int flags)
{
	ssize_t copied = ops_may_write(req, target, target_fi);

	if (copied) {
		ops_reply_error(req, copied);
		return;
	}
	if (length > COPY_MAX)
		length = COPY_MAX;
	copied = fs_copy_range(ops_fs(req), source, source_offset, target,
			       target_offset, length);
	if (copied < 0) {
		ops_reply_error(req, copied);
		return;
	}
	if (copied > 0)
		ops_accessed(req, source);
	fuse_reply_write(req, copied);
}

/* --- directories ------------------------------------------------------- */

/* ENOSYS tells the kernel not to ask again, and to cache what it lists. */
void ops_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	if (!ops_service(req)->opens_directories) {
		fuse_reply_err(req, ENOSYS);
		return;
	}
	fi->cache_readdir = 1;
	fi->keep_cache = 1;
	fuse_reply_open(req, fi);
}

struct listing {
	fuse_req_t req;
	char *reply;
	size_t size;
	size_t used;
	bool plus;
};

static bool fill(void *context, const char *name, const struct fs_entry *entry,
		 uint64_t cursor)
{
	struct listing *listing = context;
	char *end = listing->reply + listing->used;
	size_t room = listing->size - listing->used;
	struct fuse_entry_param param;
	size_t length;

	if (listing->plus) {
		ops_entry(listing->req, entry, &param);
		/* "." and ".." are not looked up: no inode number for them. */
		if (!strcmp(name, ".") || !strcmp(name, ".."))
			param.ino = 0;
		length = fuse_add_direntry_plus(listing->req, end, room, name,
						&param, cursor);
	} else {
		length = fuse_add_direntry(listing->req, end, room, name,
					   &entry->attr, cursor);
	}
	if (length > room)
		return false;
	listing->used += length;
	return true;
}

static void list(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		 bool plus)
{
	struct listing listing = {
		.req = req,
		.reply = request_current()->reply,
		.size = size < REQUEST_DATA_MAX ? size : REQUEST_DATA_MAX,
		.plus = plus,
	};
	int error;

	error = fs_readdir(ops_fs(req), ino, offset, plus, fill, &listing);
	if (error) {
		ops_reply_error(req, error);
		return;
	}
	ops_accessed(req, ino);
	fuse_reply_buf(req, listing.reply, listing.used);
}

void ops_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		 struct fuse_file_info *fi)
{
	list(req, ino, size, offset, false);
}

void ops_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		     struct fuse_file_info *fi)
{
	list(req, ino, size, offset, true);
}
