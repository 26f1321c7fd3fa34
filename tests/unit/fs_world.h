/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fs_world.h - a filesystem to test names with, and ways to look at all of it
 */
#ifndef ZRAMFS_TESTS_FS_WORLD_H
#define ZRAMFS_TESTS_FS_WORLD_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fs/directory.h"
#include "fs/fs_private.h"

#define ROOT FS_ROOT_INO

struct world {
	struct arena *arena;
	struct store *store;
	struct fs *fs;
};

extern const struct fs_caller world_caller; /* uid 0, umask 0 */

/* Mode 0755, no bounds but these; 0: none. Attaches the calling thread. */
void world_create(struct world *world, uint64_t nr_inodes);
/* Expects a clean check. */
void world_destroy(struct world *world);
/* For cmocka: such a world, unbounded, for each test. */
int fs_world_setup(void **state);
int fs_world_teardown(void **state);
/* What is left when the process dies: the memfd. Then a new process. */
void world_crash(struct world *world);
void world_recover(struct world *world, struct fs_check *check);
int world_abandon(struct world *world);
void world_attach(struct world *world, int fd);

/* The check must find nothing. Returns what it counted. */
struct fs_check world_check(struct world *world);
/* What it finds: errors and differences. */
uint64_t world_findings(struct world *world);

/*
 * All that can be seen of the tree, in words: names, numbers, attributes,
 * times, xattrs, targets, data. free() it.
 */
char *world_dump(struct world *world);

/* Make something that must work, and give the lookup back. */
ino_t make(struct world *world, ino_t parent, const char *name, mode_t mode);
ino_t make_file(struct world *world, ino_t parent, const char *name);
ino_t make_dir(struct world *world, ino_t parent, const char *name);
/* Keeps the lookup. */
ino_t make_held(struct world *world, ino_t parent, const char *name,
		mode_t mode);
/* The number under a name, 0 if there is none; gives the lookup back. */
ino_t find(struct world *world, ino_t parent, const char *name);
struct stat attributes(struct world *world, ino_t ino);
int move(struct world *world, ino_t parent, const char *name, ino_t new_parent,
	 const char *new_name, unsigned int flags);
bool is_live(struct world *world, ino_t ino);

/*
 * Take every free block there is, and see to it that only so many pages more
 * can be had, until world_relax().
 */
void world_starve(struct world *world, unsigned int pages);
void world_relax(struct world *world);

uint64_t random_below(uint64_t *state, uint64_t bound);

#endif
