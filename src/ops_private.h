/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ops_private.h - what the files of the operations share
 *
 * ops.c has the table, the agreement with the kernel, and what concerns names;
 * ops_attributes.c what concerns attributes; ops_file.c what concerns the
 * contents of files and directories; ops_xattr.c extended attributes;
 * ops_caller.c what the kernel does not tell of who asks; ops_flags.c the flags
 * of chattr(1); control.c the ioctls of control.h.
 */
#ifndef ZRAMFS_OPS_PRIVATE_H
#define ZRAMFS_OPS_PRIVATE_H

#include <stdbool.h>

#include "ops.h"
#include "request.h"
#include "service.h"

/*
 * Nothing but this mount changes the filesystem, so what the kernel knows of
 * it stays true until the kernel itself changes it.
 */
#define OPS_TIMEOUT 1e9 /* seconds */

/*
 * What a file was opened as: in its handle, which the kernel sends along. 0
 * where it did not ask.
 */
enum ops_handle {
	HANDLE_BLOCK = 1 << 0,	/* see block.h */
	HANDLE_OPENED = 1 << 1, /* by our leave */
	HANDLE_DIRECT = 1 << 2, /* the page cache has no part in it */
};

static inline struct service *ops_service(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static inline struct fs *ops_fs(fuse_req_t req)
{
	return ops_service(req)->fs;
}

/* What fs.h knows of the caller. */
void ops_caller(fuse_req_t req, struct fs_caller *caller);

/* --- ops_caller.c ------------------------------------------------------ */

/*
 * Whether the caller's thread has a capability (capabilities(7)), or is in a
 * group. The kernel does not send that: it is looked up in /proc, so ask only
 * where it matters.
 */
bool ops_is_capable(fuse_req_t req, int capability);
bool ops_in_group(fuse_req_t req, gid_t group);

/*
 * Beside what FS_SET_KILL_PRIV means, is sgid to be taken away from a file that
 * is not group-executable? FS_SET_KILL_SGID if so, else 0.
 */
unsigned int ops_kill_sgid(fuse_req_t req, fuse_ino_t ino);
/* Do so, before the contents change, if the kernel asks for it. */
int ops_before_write(fuse_req_t req, fuse_ino_t ino);

/*
 * The number of the system call that the caller is in, and its first two
 * arguments (NULL: not wanted); -1 where that cannot be told. A caller of
 * another architecture (32 bits) has other numbers.
 */
long ops_system_call(fuse_req_t req, unsigned long argument[2]);

/*
 * The caller is in a system call that reads a file, and whose reading counts
 * (O_NOATIME). True where that cannot be told.
 */
bool ops_is_reading(fuse_req_t req);

/* --- ops_flags.c ------------------------------------------------------- */

/* What immutable and append-only allow: 0 or -EPERM. how: open(2)'s flags. */
int ops_may_open(fuse_req_t req, fuse_ino_t ino, int how);
/*
 * The same for a write, for those whose opening was not asked for: for all
 * others, it is 0. fi: what was opened.
 */
int ops_may_write(fuse_req_t req, fuse_ino_t ino,
		  const struct fuse_file_info *fi);
/* valid: FATTR_...; by_descriptor: it is FATTR_FH, too. */
int ops_may_setattr(fuse_req_t req, fuse_ino_t ino, unsigned int valid,
		    bool by_descriptor);
int ops_may_set_xattr(fuse_req_t req, fuse_ino_t ino);
int ops_may_allocate(fuse_req_t req, fuse_ino_t ino, int mode);
/* False if the command is none of these, and nothing was replied. */
bool ops_flags_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int command,
		     const void *in, size_t in_size, size_t out_size);

/* --- all --------------------------------------------------------------- */

/* A read of the contents, or of a directory or symlink, was answered. */
static inline void ops_accessed(fuse_req_t req, fuse_ino_t ino)
{
	if (!ops_service(req)->noatime)
		fs_accessed(ops_fs(req), ino);
}

/* error: 0 or a negative errno, as fs.h gives them. */
void ops_reply_error(fuse_req_t req, int error);

/* For how many seconds the kernel may believe an inode's attributes. */
double ops_attr_timeout(fuse_req_t req, fuse_ino_t ino);

/* From fs.h's terms to FUSE's, with the timeouts. */
void ops_entry(fuse_req_t req, const struct fs_entry *from,
	       struct fuse_entry_param *to);

void ops_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		 struct fuse_file_info *fi);

void ops_create(fuse_req_t req, fuse_ino_t parent, const char *name,
		mode_t mode, struct fuse_file_info *fi);
void ops_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
	      struct fuse_file_info *fi);
void ops_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size,
	       off_t offset, struct fuse_file_info *fi);
void ops_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset,
		   off_t length, struct fuse_file_info *fi);
void ops_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
	       struct fuse_file_info *fi);
void ops_copy_file_range(fuse_req_t req, fuse_ino_t source, off_t source_offset,
			 struct fuse_file_info *source_fi, fuse_ino_t target,
			 off_t target_offset, struct fuse_file_info *target_fi,
			 size_t length, int flags);
void ops_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		 struct fuse_file_info *fi);
void ops_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		     struct fuse_file_info *fi);

void ops_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
		  const char *value, size_t size, int flags);
void ops_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
		  size_t size);
void ops_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void ops_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);

/* The ioctls of control.h. */
void control_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int command,
		   void *argument, struct fuse_file_info *fi,
		   unsigned int flags, const void *in, size_t in_size,
		   size_t out_size);
struct control_set;
void control_set(fuse_req_t req, fuse_ino_t ino,
		 const struct control_set *wanted);

#endif
