/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fs.h - the filesystem: inodes, directories, file data, xattrs, limits
 *
 * Everything a local filesystem does, as functions that know nothing of FUSE:
 * inode numbers and names in, struct stat and bytes out, negative errno for
 * errors. What the kernel's VFS does for every filesystem before it asks
 * (path walk, permission checks with default_permissions, file locks,
 * O_APPEND, renames into one's own subtree) is not done again here.
 *
 * Truth, all in the arena: inodes; directory cells (cookie -> entry block);
 * file cells (page number -> store reference); xattr and symlink blocks; intent
 * records. Each is published by one aligned store. Link counts, directory
 * sizes, usage counters and the name index are derived.
 *
 * Lifetime: an inode lives while it has a name or the caller has lookups on
 * it. Every successful function that fills a struct fs_entry counts one
 * lookup, which fs_forget() takes back. Open files need no count of their own:
 * an open file holds its inode looked up.
 *
 * Locks, in order: the gate, which every operation passes and fs_check() shuts;
 * the namespace lock (a rwlock: names, link counts, directory tables); inode
 * locks (striped rwlocks, lower stripe first: sizes, attributes,
 * the shape of page tables); then the store's. Reads and writes within a file
 * share its inode lock: cells are atomic, and each is replaced by a
 * compare-and-swap or an exchange. Compression happens before locks are taken.
 *
 * Every thread that calls must be attached (fs_attach_thread()).
 */
#ifndef ZRAMFS_FS_H
#define ZRAMFS_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

#include "store/store.h"

/* Changes with the layout of anything that filesystem and store keep. */
#define FS_VERSION 1

#define FS_ROOT_INO 1
#define FS_NAME_MAX 255
#define FS_SIZE_MAX INT64_MAX

struct fs;

struct fs_config {
	uint64_t size;	    /* bytes of file data; 0: no bound */
	uint64_t nr_inodes; /* 0: no bound */
	mode_t mode;	    /* of the root, 07777 bits */
	uid_t uid;
	gid_t gid;
};

/* Who asks. */
struct fs_caller {
	uid_t uid;
	gid_t gid;
	pid_t pid;
	mode_t umask;
};

struct fs_entry {
	ino_t ino;
	uint64_t generation;
	struct stat attr;
};

int fs_create(struct fs **fs, struct arena *arena, struct store *store,
	      const struct fs_config *config);
int fs_attach(struct fs **fs, struct arena *arena, struct store *store);
void fs_destroy(struct fs *fs);
int fs_attach_thread(struct fs *fs);
void fs_detach_thread(struct fs *fs);

/* --- requests ---------------------------------------------------------- */

/*
 * For a caller whose requests outlive this process: see answer.h. Memory that
 * outlives it too, for as many requests as are under way at a time: those that
 * a dead process has left, and as many new ones. Before any thread begins one.
 */
struct answer;
void fs_set_answers(struct fs *fs, struct answer *answers, unsigned int count);

/*
 * What the calling thread does from now on is for this request (not 0, never
 * used before). slot: the thread's own.
 */
void fs_begin(struct fs *fs, unsigned int slot, uint64_t request);

/*
 * The same for one that may have been begun before this process was there:
 * called again with what they were called with then, the functions below give
 * the result that they gave then. -EIO: it must not be tried again, the
 * process has crashed in it too often. Only while no other thread is there.
 */
int fs_resume(struct fs *fs, uint64_t request);

/*
 * One that may have been begun was answered otherwise now: what it has looked
 * up is taken back. Only while no other thread is there.
 */
void fs_withdraw(struct fs *fs, uint64_t request);

/*
 * Which of those that may have been begun wait for their answer: to be asked
 * before any is resumed, when none that waits can be given up.
 */
void fs_await(struct fs *fs, bool (*waits)(void *caller, uint64_t request),
	      void *caller);

/*
 * None of those that were left will be resumed any more. all: of those that
 * waited, each one was that is still wanted; the others are withdrawn.
 */
void fs_resumed(struct fs *fs, bool all);

/* The process is crashing in this thread. Safe in signal handlers. */
void fs_fault(void);

/* --- names ------------------------------------------------------------- */

/* -ENOENT, -ENOTDIR, -ENAMETOOLONG. "." and ".." are looked up too. */
int fs_lookup(struct fs *fs, ino_t parent, const char *name,
	      struct fs_entry *entry);
/* The same by number alone, for exported handles; it has a name. -ESTALE. */
int fs_lookup_ino(struct fs *fs, ino_t ino, struct fs_entry *entry);
void fs_forget(struct fs *fs, ino_t ino, uint64_t count);

/*
 * Make a file of any type with a name. mode has the type bits; umask and
 * default ACL of the parent are applied here; a set-group-id parent passes on
 * its group (and the bit to directories). target: for S_IFLNK only.
 * -EEXIST, -ENOSPC, -ENAMETOOLONG, -ENOTDIR, -ENOENT (parent is removed).
 */
int fs_make(struct fs *fs, const struct fs_caller *caller, ino_t parent,
	    const char *name, mode_t mode, dev_t rdev, const char *target,
	    struct fs_entry *entry);
/* A regular file without a name (O_TMPFILE); fs_link() may give it one. */
int fs_make_unnamed(struct fs *fs, const struct fs_caller *caller,
		    ino_t parent, mode_t mode, struct fs_entry *entry);
/* -EMLINK, -EPERM for directories. */
int fs_link(struct fs *fs, ino_t ino, ino_t parent, const char *name,
	    struct fs_entry *entry);
int fs_unlink(struct fs *fs, ino_t parent, const char *name);
int fs_rmdir(struct fs *fs, ino_t parent, const char *name);
/* flags: RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT, as renameat2(2). */
int fs_rename(struct fs *fs, const struct fs_caller *caller, ino_t parent,
	      const char *name, ino_t new_parent, const char *new_name,
	      unsigned int flags);

/*
 * List a directory: calls fill for each entry from cursor 0 or from the one
 * after a cursor that fill was given; "." and ".." come first. fill returns
 * false when it has no room (the entry is then not consumed). With plus, each
 * entry but "." and ".." comes with its attributes, and counts a lookup when
 * fill took it; else only attr.st_ino and the type in st_mode are set.
 * Entries that exist throughout are given exactly once.
 */
typedef bool (*fs_fill)(void *context, const char *name,
			const struct fs_entry *entry, uint64_t cursor);
int fs_readdir(struct fs *fs, ino_t ino, uint64_t cursor, bool plus,
	       fs_fill fill, void *context);

/* At most size bytes, not terminated; returns the length. -EINVAL. */
ssize_t fs_readlink(struct fs *fs, ino_t ino, char *buffer, size_t size);

/* --- attributes -------------------------------------------------------- */

int fs_getattr(struct fs *fs, ino_t ino, struct stat *attr);
/* Whether it is set-group-id but not group-executable. Takes no lock. */
bool fs_has_sgid(struct fs *fs, ino_t ino);

/*
 * The contents have been looked at: move atime if that is due, as relatime has
 * it (when not later than mtime or ctime, or a day old). Whoever reads calls
 * this, for not all reads count (O_NOATIME). Takes no lock.
 */
void fs_accessed(struct fs *fs, ino_t ino);
bool fs_atime_is_due(struct fs *fs, ino_t ino);

/*
 * For a caller that does not see all reads, as it keeps pages of files: it says
 * so for each file of which it does (from then on); and asks for how many
 * seconds reads of the file that it does not see would leave atime alone. 0:
 * the next one would move it. INFINITY: none ever does. As long as no pages are
 * kept, no more than a day, for then the first read moves atime.
 */
void fs_keeps_pages(struct fs *fs, ino_t ino);
double fs_atime_holds(struct fs *fs, ino_t ino);

/*
 * The flags of chattr(1), FS_..._FL of <linux/fs.h>. Immutable and append-only
 * are kept here as far as names go (-EPERM); the caller keeps them else.
 * -EOPNOTSUPP: there are others.
 */
#define FS_FLAGS \
	(FS_IMMUTABLE_FL | FS_APPEND_FL | FS_NODUMP_FL | FS_NOATIME_FL)
unsigned int fs_flags(struct fs *fs, ino_t ino);
int fs_set_flags(struct fs *fs, ino_t ino, unsigned int flags);

enum fs_setattr_valid {
	FS_SET_MODE = 1 << 0,
	FS_SET_UID = 1 << 1,
	FS_SET_GID = 1 << 2,
	FS_SET_SIZE = 1 << 3,
	FS_SET_ATIME = 1 << 4,
	FS_SET_MTIME = 1 << 5,
	FS_SET_ATIME_NOW = 1 << 6,
	FS_SET_MTIME_NOW = 1 << 7,
	FS_SET_CTIME = 1 << 8,
	/*
	 * Take suid, sgid (where group-executable) and capabilities away. Does
	 * nothing to directories.
	 */
	FS_SET_KILL_PRIV = 1 << 9,
	/* Take sgid away, group-executable or not. */
	FS_SET_KILL_SGID = 1 << 10,
};
/*
 * Set the attributes named in valid from attr (st_mode's 07777 bits only),
 * and give all of them back. -EFBIG, -ENOSPC, -EISDIR, -EINVAL.
 */
int fs_setattr(struct fs *fs, ino_t ino, unsigned int valid,
	       const struct stat *attr, struct stat *result);

/* size 0 asks for the length. -ENODATA, -ERANGE, -EOPNOTSUPP. */
ssize_t fs_getxattr(struct fs *fs, ino_t ino, const char *name, void *value,
		    size_t size);
ssize_t fs_listxattr(struct fs *fs, ino_t ino, char *list, size_t size);
/* flags: XATTR_CREATE, XATTR_REPLACE. -EEXIST, -ENODATA, -E2BIG, -ENOSPC. */
int fs_setxattr(struct fs *fs, ino_t ino, const char *name, const void *value,
		size_t size, int flags);
int fs_removexattr(struct fs *fs, ino_t ino, const char *name);

/* --- data -------------------------------------------------------------- */

/* Bytes read; short only at end of file. -EIO, -EISDIR. */
ssize_t fs_read(struct fs *fs, ino_t ino, void *buffer, size_t size,
		off_t offset);

/*
 * All of size bytes, or an error and nothing changed: -ENOSPC, -EFBIG, -EIO.
 * More than 1 MiB goes by pieces: short when one after the first fails.
 * Takes security.capability away; with kill_priv all that FS_SET_KILL_PRIV
 * does.
 */
ssize_t fs_write(struct fs *fs, ino_t ino, const void *buffer, size_t size,
		 off_t offset, bool kill_priv);

/* mode as fallocate(2): 0, KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE; else -EOPNOTSUPP. */
int fs_fallocate(struct fs *fs, ino_t ino, int mode, off_t offset,
		 off_t length);

/* SEEK_DATA and SEEK_HOLE; -ENXIO. */
off_t fs_seek(struct fs *fs, ino_t ino, off_t offset, int whence);

/*
 * Copy by sharing pages where both offsets are page-aligned, by reading and
 * putting elsewhere. Returns bytes copied, 0 at the source's end of file.
 * -EINVAL when the ranges overlap in one file.
 */
ssize_t fs_copy_range(struct fs *fs, ino_t source, off_t source_offset,
		      ino_t target, off_t target_offset, size_t length);

/* --- the whole --------------------------------------------------------- */

/*
 * f_bfree is what is left of size=; f_bavail is less where there is less memory
 * under the arena's limit, each page taken to need one, as nobody knows how it
 * will compress.
 */
int fs_statvfs(struct fs *fs, struct statvfs *statvfs);

struct fs_stats {
	uint64_t size;	      /* bytes, 0: no bound */
	uint64_t size_used;   /* bytes: pages of files, holes not counted */
	uint64_t inodes;      /* bound, 0: none */
	uint64_t inodes_used; /* with each hard link as one more, as in tmpfs */
	uint64_t inode_bytes; /* what inodes take in the arena */
	uint64_t block_bytes; /* what names, tables, xattrs take */
	uint64_t name_index_bytes;
};
void fs_stats(struct fs *fs, struct fs_stats *stats);

/* -EBUSY when below what is in use. */
int fs_set_size(struct fs *fs, uint64_t size);

/*
 * Keep pages of the arena for what is there already: a write to a hole fails
 * with -ENOSPC when less than so many would be left under the arena's limit;
 * of a single page, when less than half as many. For an image, so that the
 * filesystem on it finds room for its own when there is none for data. 0: none.
 */
void fs_set_reserve(struct fs *fs, unsigned int pages);

/* What files cost, for du: sums over one inode's cells. */
struct fs_usage {
	uid_t uid;		/* st_uid */
	uint64_t size;		/* st_size */
	uint64_t pages;		/* not holes */
	uint64_t fill_pages;
	uint64_t hot_pages;
	uint64_t compressed_pages;
	uint64_t huge_pages;
	uint64_t shared_pages;	/* have other references too */
	uint64_t stored_bytes;	/* each page's length */
	uint64_t share_bytes;	/* each page's length over its references */
	uint64_t codec_pages[16];
};
/* Of a regular file, looked up or not. -ESTALE, -EISDIR, -EINVAL. */
int fs_usage(struct fs *fs, ino_t ino, struct fs_usage *usage);

struct fs_check {
	uint64_t inodes;
	uint64_t links;	      /* names of files after each one's first */
	uint64_t entries;
	uint64_t pages;	      /* not holes */
	uint64_t errors;      /* inconsistencies of the truth itself */
	uint64_t differences; /* of the live state from the rebuilt one */
};
/*
 * Stand still, walk the truth, rebuild all that is derived beside the live
 * state and compare. verify also reads every page. report gets a line for each
 * of the first findings. -ENOMEM.
 */
int fs_check(struct fs *fs, bool verify, struct fs_check *check,
	     void (*report)(void *context, const char *line), void *context);

/* After fs_attach(): the same walk, made the live state. */
int fs_recover(struct fs *fs, struct fs_check *check,
	       void (*report)(void *context, const char *line), void *context);

#endif
