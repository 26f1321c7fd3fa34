/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * namespace.h - what the files that change names share
 *
 * All functions are called under the namespace lock, exclusively but for
 * those that only look.
 */
#ifndef ZRAMFS_NAMESPACE_H
#define ZRAMFS_NAMESPACE_H

#include <stdbool.h>
#include <stddef.h>

#include "fs/fs.h"

struct inode;

/* A name in a directory, and what it was found to be. */
struct place {
	ino_t parent;
	struct inode *directory;
	const char *name;
	size_t length;
	uint32_t block; /* the entry; SLAB_NONE if there is none */
	uint64_t cookie;
	ino_t ino;
	struct inode *inode;
};

static inline bool is_dot(const char *name, size_t length)
{
	return length == 1 && name[0] == '.';
}

static inline bool is_dot_dot(const char *name, size_t length)
{
	return length == 2 && name[0] == '.' && name[1] == '.';
}

/*
 * Look a name up, for a change: 0 with an entry or without. -ENOENT when the
 * directory is gone or the name empty, -ENOTDIR, -ENAMETOOLONG, -EINVAL for
 * "." and "..", which are no entries.
 */
int place_find(struct fs *fs, ino_t parent, const char *name,
	       struct place *place);

/* -EPERM: the directory's flags keep names from coming. */
int place_may_fill(const struct place *place);
/* -EPERM: they, or the file's, keep the name from going. */
int place_may_empty(const struct place *place);

/* mtime and ctime of a directory whose entries have changed. */
void directory_touch(struct inode *directory);

/* Count a lookup and fill in the entry. Shared is enough. */
void entry_fill(struct fs *fs, ino_t ino, struct inode *inode,
		struct fs_entry *entry);
/*
 * The entry of a request that was done before, and whose lookup is counted.
 * Takes the locks itself. -ENOENT: that cannot be.
 */
int entry_again(struct fs *fs, struct fs_entry *entry);

#endif
