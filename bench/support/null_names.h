/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * null_names.h - the names and attributes of files that have no contents
 *
 * Owns all nodes (files, directories, symlinks) and entries (names) of the
 * null filesystem. Every function takes the table's one lock but where it
 * says otherwise; none waits for anything else. A node stays in being while it
 * has a name or the kernel knows it: whoever got a node from names_lookup() or
 * names_make() owes names_forget() for it.
 *
 * Any thread. Errors are negative errno.
 */
#ifndef ZRAMFS_BENCH_NULL_NAMES_H
#define ZRAMFS_BENCH_NULL_NAMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct node;

/* The root directory; NULL when out of memory. One table in a process. */
struct node *names_start(mode_t mode);

/* Size in bytes; without the lock, for reads and writes. */
uint64_t names_size(const struct node *node);
void names_grow(struct node *node, uint64_t size);

void names_attr(struct node *node, struct stat *attr);

/* What to set: FUSE_SET_ATTR_ bits; the new attributes are left in *attr. */
void names_set_attr(struct node *node, int valid, struct stat *attr);

/* -ENOENT. Counts one lookup. */
int names_lookup(struct node *parent, const char *name, struct node **found);

/*
 * Make a node by the mode, uid, gid and rdev in *attr, with a name unless
 * that is NULL. target: of a symlink, else NULL. -EEXIST, -ENOMEM. Counts one
 * lookup.
 */
int names_make(struct node *parent, const char *name, const struct stat *attr,
	       const char *target, struct node **made);

/* -EEXIST, -ENOMEM. Counts one lookup of the node. */
int names_link(struct node *node, struct node *parent, const char *name);

/* -ENOENT; -ENOTEMPTY for a directory with entries. */
int names_remove(struct node *parent, const char *name);

/* Replaces what has the new name, as names_remove() would. */
int names_rename(struct node *parent, const char *name, struct node *new_parent,
		 const char *new_name);

void names_forget(struct node *node, uint64_t count);

/* NULL unless it is a symlink; valid while the kernel knows the node. */
const char *names_target(const struct node *node);

/*
 * Call fill() for each entry after cursor (0: from the start, with "." and
 * ".."), under the lock, until it gives false. fill() gets the cursor to go on
 * from, and may say with *kept that the kernel now knows the node.
 */
typedef bool (*names_fill)(void *context, const char *name, struct node *node,
			   const struct stat *attr, uint64_t cursor,
			   bool *kept);
void names_list(struct node *directory, uint64_t cursor, names_fill fill,
		void *context);

/* Files and directories there are. */
uint64_t names_count(void);

#endif
