/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * check.c - checking a live filesystem, and recovering one after a crash
 *
 * Both are the walk over the truth (walk.h): checking compares what it finds
 * with the live state, recovery makes it the live state.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "fault.h"
#include "fs/directory.h"
#include "fs/fs_private.h"
#include "fs/walk.h"

/* Pages read at a time under an inode's lock. */
#define VERIFY_STEP 256

/* --- checking ---------------------------------------------------------- */

static void compare_counters(struct walk *walk)
{
	const struct fs_root *root = walk->fs->root;
	const struct fs_check *check = walk->check;

	if (root->used_inodes != check->inodes + check->links)
		walk_difference(walk, 1,
				"%" PRIu64 " inodes and links counted, %" PRIu64
				" found",
				(uint64_t)root->used_inodes,
				check->inodes + check->links);
	if (root->used_pages != check->pages)
		walk_difference(walk, 1,
				"%" PRIu64 " pages counted, %" PRIu64 " found",
				(uint64_t)root->used_pages, check->pages);
	if (index_count(walk->fs->names) != check->entries)
		walk_difference(walk, 1,
				"name index: %" PRIu64 " records, %" PRIu64
				" entries",
				index_count(walk->fs->names), check->entries);
}

static void compare_maps(struct walk *walk)
{
	struct fs *fs = walk->fs;

	walk_difference(walk, slab_map_compare(walk->inodes, fs->inodes),
			"inode blocks in use that are not live, or free ones "
			"that are");
	walk_difference(walk, slab_map_compare(walk->blocks, fs->blocks),
			"blocks in use that nothing names, or free ones that "
			"something does");
	store_map_compare(walk->store_map, &walk->check->differences,
			  walk->report, walk->context);
	walk_difference(walk, arena_map_compare(walk->arena_map, fs->arena),
			"pages in use that nothing claims, or free ones that "
			"something does");
}

static int check_stopped(struct fs *fs, struct fs_check *check,
			 void (*report)(void *context, const char *line),
			 void *context)
{
	struct walk walk;
	int error = walk_create(&walk, fs, false, check, report, context);

	if (error)
		return error;
	error = walk_run(&walk);
	if (!error)
		error = index_claim(fs->names, walk.arena_map);
	if (error == -EEXIST || error == -ERANGE) {
		walk_error(&walk, 1, "two things claim one page of memory");
		error = 0;
	}
	if (!error) {
		compare_counters(&walk);
		compare_maps(&walk);
	}
	walk_destroy(&walk);
	return error;
}

struct verifier {
	struct fs *fs;
	struct fs_check *check;
	void (*report)(void *context, const char *line);
	void *context;
};

static void report_page(struct verifier *verifier, ino_t ino, uint64_t index)
{
	char line[160];

	/* Of the first ones only. */
	if (verifier->check->errors++ >= 16 || !verifier->report)
		return;
	snprintf(line, sizeof(line),
		 "inode %ju: page %" PRIu64 " cannot be read", (uintmax_t)ino,
		 index);
	verifier->report(verifier->context, line);
}

/* Some pages from *index on. False when there are no more. */
static bool verify_step(struct verifier *verifier, ino_t ino, uint64_t *index)
{
	struct fs *fs = verifier->fs;
	const struct inode *inode = inode_get(fs, ino);
	_Alignas(64) char page[PAGE_SIZE];
	store_cell *cell;

	if (!inode || !S_ISREG(inode->mode))
		return false;
	for (unsigned int i = 0; i < VERIFY_STEP; i++) {
		cell = pagetable_next(fs->blocks, &inode->table, index,
				      PAGETABLE_INDEX_MAX);
		if (!cell)
			return false;
		if (store_read(fs->store, cell, page, 0, PAGE_SIZE))
			report_page(verifier, ino, *index);
		++*index;
	}
	return true;
}

/*
 * The shared namespace lock keeps the inode while pages are read; both locks
 * are dropped between steps, so that others get their turn.
 */
static void verify_inode(struct verifier *verifier, ino_t ino)
{
	struct fs *fs = verifier->fs;
	uint64_t index = 0;
	bool more;

	do {
		fs_enter(fs);
		pthread_rwlock_rdlock(&fs->namespace_lock);
		inode_lock_shared(fs, ino);
		more = verify_step(verifier, ino, &index);
		inode_unlock(fs, ino);
		pthread_rwlock_unlock(&fs->namespace_lock);
		fs_leave(fs);
	} while (more);
}

/* Every number that could be an inode's, as they come and go meanwhile. */
static void verify_pages(struct verifier *verifier)
{
	const struct fs *fs = verifier->fs;
	uint64_t end = (uint64_t)arena_extent(fs->arena, ARENA_INODES)
		       << SLAB_SHIFT;
	const unsigned int step = sizeof(struct inode) >> SLAB_UNIT_SHIFT;
	const unsigned int in_page = PAGE_SIZE / sizeof(struct inode);

	for (uint64_t page = 0; page < end; page += 1u << SLAB_SHIFT) {
		for (unsigned int i = 0; i < in_page; i++)
			verify_inode(verifier, page + (uint64_t)i * step);
	}
}

int fs_check(struct fs *fs, bool verify, struct fs_check *check,
	     void (*report)(void *context, const char *line), void *context)
{
	struct verifier verifier = {fs, check, report, context};
	int error;

	fs_stop(fs);
	store_pause(fs->store);
	error = check_stopped(fs, check, report, context);
	store_resume(fs->store);
	fs_continue(fs);
	if (!error && verify)
		verify_pages(&verifier);
	return error;
}

/* --- recovering -------------------------------------------------------- */

/* What the walk has found becomes the live state. */
static int settle(const struct walk *walk)
{
	struct fs *fs = walk->fs;
	int error = arena_settle(fs->arena, walk->arena_map);

	if (!error)
		error = slab_settle(fs->inodes, walk->inodes);
	if (!error)
		error = slab_settle(fs->blocks, walk->blocks);
	if (!error)
		error = store_map_settle(walk->store_map);
	if (!error)
		error = index_create(&fs->names, fs->arena, ARENA_NAMES,
				     &directory_index_ops, fs);
	if (!error)
		index_expect(fs->names, walk->check->entries);
	fs->root->used_inodes = walk->check->inodes + walk->check->links;
	fs->root->used_pages = walk->check->pages;
	return error;
}

static int index_names(void *context, uint32_t block, void *address)
{
	struct fs *fs = context;
	const struct inode *inode = address;
	uint64_t cookie = 0;
	pagetable_cell *cell;

	if (!S_ISDIR(inode->mode))
		return 0;
	for (; (cell = pagetable_next(fs->blocks, &inode->table, &cookie,
				      PAGETABLE_INDEX_MAX));
	     cookie++)
		directory_found(fs, *cell);
	return 0;
}

/* What had lost its last name, and whom nobody had looked up. */
static int drop_orphan(void *context, uint32_t block, void *address)
{
	struct fs *fs = context;
	const struct inode *inode = address;
	uint32_t dead;

	if (!inode->mode || inode->nlink || inode->lookups)
		return 0;
	pthread_rwlock_wrlock(&fs->namespace_lock);
	dead = inode_bury(fs, inode_number(fs, block));
	pthread_rwlock_unlock(&fs->namespace_lock);
	inode_release(fs, dead);
	return 0;
}

int fs_recover(struct fs *fs, struct fs_check *check,
	       void (*report)(void *context, const char *line), void *context)
{
	struct walk walk;
	int error;

	fault_point("recovery begun");
	intent_replay(fs);
	fault_point("intents replayed");
	answers_settle(fs);
	fault_point("answers settled");
	error = walk_create(&walk, fs, true, check, report, context);
	if (error)
		return error;
	error = walk_run(&walk);
	if (!error)
		error = settle(&walk);
	walk_destroy(&walk);
	if (error)
		return error;
	fault_point("settled");
	slab_scan(fs->inodes, index_names, fs);
	slab_scan(fs->inodes, drop_orphan, fs);
	return 0;
}
