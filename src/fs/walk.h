/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walk.h - the walk over the truth that checking and recovery share
 *
 * From the inodes to their cells, entries, xattrs and pages: whatever is in
 * use is claimed, in maps beside the live state, and what is derived is
 * counted anew. With repair, what is damaged is cut off, and the counts are
 * stored; without, both are only told of.
 *
 * Nobody else may touch the filesystem or the store meanwhile.
 */
#ifndef ZRAMFS_WALK_H
#define ZRAMFS_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/fs.h"

/* Whether a directory's parents lead to the root. */
enum walk_state {
	WALK_UNKNOWN = 0,
	WALK_ASKING, /* while following them */
	WALK_CONNECTED,
	WALK_LOST
};

/* What the walk finds out about each inode. */
struct walk_record {
	uint32_t names;
	uint32_t subdirectories;
	uint32_t parent; /* number; of directories with a name */
	uint32_t state;	 /* of directories */
};

struct walk {
	struct fs *fs;
	bool repair;
	struct fs_check *check;
	void (*report)(void *context, const char *line);
	void *context;
	unsigned int reported;
	struct walk_record *records;
	uint64_t nr_records;
	struct arena_map *arena_map;
	struct slab_map *inodes;
	struct slab_map *blocks;
	struct store_map *store_map;
};

/*
 * All memory the walk takes. -ENOMEM. Clears *check. report may be NULL.
 */
int walk_create(struct walk *walk, struct fs *fs, bool repair,
		struct fs_check *check,
		void (*report)(void *context, const char *line), void *context);
void walk_destroy(struct walk *walk);

/* The walk, and what follows for the arena's pages. -ENOMEM. */
int walk_run(struct walk *walk);

/*
 * Count n findings, and tell of the first of all in words: of the truth, or of
 * what is derived from it.
 */
void walk_error(struct walk *walk, uint64_t n, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void walk_difference(struct walk *walk, uint64_t n, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * --- between walk.c, which walks directories, and walk_inode.c, which looks
 *     at one inode
 */
struct walk_record *walk_record(const struct walk *walk, uint32_t block);
/* Under slab_scan(); context: struct walk. Skips what is not live. */
int walk_inode(void *context, uint32_t block, void *address);

#endif
