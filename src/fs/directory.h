/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * directory.h - directory entries: cells, entry blocks, and the name index
 *
 * A directory's table (pagetable.h) maps cookies to entry blocks. A cookie is
 * given once and grows; only when a directory becomes empty does it start at 0
 * again. That makes listing stable: an entry keeps its place for as long as it
 * exists.
 *
 * The cell is the truth: an entry exists while a cell names it. The block is
 * written before that and never changed after, but for its index link. The
 * name index finds blocks by parent and name; it and the directory's count of
 * entries are derived, and kept by the functions here.
 *
 * All of it is under the namespace lock: shared to find, exclusive for the
 * rest. Nothing here touches link counts and times.
 */
#ifndef ZRAMFS_DIRECTORY_H
#define ZRAMFS_DIRECTORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "arena/index.h"

/* Cookies fit an entry's 48 bits; a million a second last for nine years. */
#define DIRECTORY_COOKIE_MAX ((UINT64_C(1) << 48) - 1)

/* In a BLOCKS block of 20 bytes and the name. */
struct entry {
	uint32_t ino;	 /* inode number */
	uint32_t parent; /* inode number of the directory */
	uint32_t link;	 /* (derived) the name index's */
	uint32_t cookie_low;
	uint16_t cookie_high;
	uint8_t type; /* DT_* */
	uint8_t length;
	char name[]; /* not terminated */
};

struct fs;
struct inode;

extern const struct index_ops directory_index_ops; /* context: struct fs */

struct entry *directory_entry(const struct fs *fs, uint32_t block);
uint64_t entry_cookie(const struct entry *entry);

/* The entry's block, SLAB_NONE if there is no such name. */
uint32_t directory_find(const struct fs *fs, ino_t parent, const char *name,
			size_t length);

/*
 * Make an entry block, in no cell yet; slab_free() takes it back. -ENOSPC.
 */
int directory_prepare(struct fs *fs, ino_t parent, const char *name,
		      size_t length, ino_t ino, mode_t mode, uint32_t *block);
void directory_set_cookie(struct fs *fs, uint32_t block, uint64_t cookie);

/*
 * Make room for one more entry; *cookie is where. -ENOSPC.
 * directory_unreserve() gives up the room when nothing was put there.
 */
int directory_reserve(struct fs *fs, struct inode *directory, uint64_t *cookie);
void directory_unreserve(struct fs *fs, struct inode *directory,
			 uint64_t cookie);

/* The one store that makes a cell name another entry, or (SLAB_NONE) none. */
void directory_store(struct fs *fs, struct inode *directory, uint64_t cookie,
		     uint32_t block);

/*
 * After a cell came to name this entry, or no longer does: the index. An
 * entry that is no longer named is freed.
 */
void directory_added(struct fs *fs, uint32_t block);
/* The same when recovering: the index has room for all, see index_expect(). */
void directory_found(struct fs *fs, uint32_t block);
void directory_removed(struct fs *fs, uint32_t block);

/* After a cell was filled that was empty, or was emptied: the count. */
void directory_grown(struct fs *fs, struct inode *directory, uint64_t cookie);
void directory_shrunk(struct fs *fs, struct inode *directory, uint64_t cookie);

#endif
