/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walk.c - the walk over the truth: directories first
 *
 * Which inodes have names, and how many, must be known before any inode is
 * judged. So all directories' entries come first, then every inode by itself
 * (walk_inode.c). Memory is taken once, before; then nothing can fail for
 * want of it but what the store's map does.
 */
#include "fs/walk.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/directory.h"
#include "fs/fs_private.h"
#include "fs/namespace.h"

#define REPORTS_MAX 16

#define INODE_UNITS    (sizeof(struct inode) >> SLAB_UNIT_SHIFT)
#define INODES_IN_PAGE (PAGE_SIZE / sizeof(struct inode))

static void tell(struct walk *walk, const char *format, va_list arguments)
{
	char line[160];

	if (!walk->report || walk->reported++ >= REPORTS_MAX)
		return;
	vsnprintf(line, sizeof(line), format, arguments);
	walk->report(walk->context, line);
}

void walk_error(struct walk *walk, uint64_t n, const char *format, ...)
{
	va_list arguments;

	if (!n)
		return;
	walk->check->errors += n;
	va_start(arguments, format);
	tell(walk, format, arguments);
	va_end(arguments);
}

void walk_difference(struct walk *walk, uint64_t n, const char *format, ...)
{
	va_list arguments;

	/* What is derived is unknown before a repair, so nothing to tell. */
	if (!n || walk->repair)
		return;
	walk->check->differences += n;
	va_start(arguments, format);
	tell(walk, format, arguments);
	va_end(arguments);
}

struct walk_record *walk_record(const struct walk *walk, uint32_t block)
{
	uint32_t page = block >> SLAB_SHIFT;
	uint32_t unit = block & ((1u << SLAB_SHIFT) - 1);

	return &walk->records[(uint64_t)page * INODES_IN_PAGE +
			      unit / INODE_UNITS];
}

int walk_create(struct walk *walk, struct fs *fs, bool repair,
		struct fs_check *check,
		void (*report)(void *context, const char *line), void *context)
{
	int error;

	*check = (struct fs_check){0};
	*walk = (struct walk){
		.fs = fs,
		.repair = repair,
		.check = check,
		.report = report,
		.context = context,
		.nr_records = (uint64_t)arena_extent(fs->arena, ARENA_INODES) *
			      INODES_IN_PAGE,
	};
	/* One more, as calloc() of nothing may give NULL. */
	walk->records = calloc(walk->nr_records + 1, sizeof(*walk->records));
	error = walk->records ? 0 : -ENOMEM;
	if (!error)
		error = arena_map_create(&walk->arena_map, fs->arena);
	if (!error)
		error = slab_map_create(&walk->inodes, fs->inodes);
	if (!error)
		error = slab_map_create(&walk->blocks, fs->blocks);
	if (!error)
		error = store_map_create(&walk->store_map, fs->store);
	if (error)
		walk_destroy(walk);
	return error;
}

void walk_destroy(struct walk *walk)
{
	store_map_destroy(walk->store_map);
	slab_map_destroy(walk->blocks);
	slab_map_destroy(walk->inodes);
	arena_map_destroy(walk->arena_map);
	free(walk->records);
}

static bool is_legal_name(const struct entry *entry)
{
	return entry->length && !is_dot(entry->name, entry->length) &&
	       !is_dot_dot(entry->name, entry->length) &&
	       !memchr(entry->name, '/', entry->length) &&
	       !memchr(entry->name, '\0', entry->length);
}

/* What is wrong with an entry, NULL if nothing is. */
static const char *judge_entry(const struct walk *walk, ino_t ino,
			       uint64_t cookie, uint32_t block)
{
	struct fs *fs = walk->fs;
	const struct entry *entry = directory_entry(fs, block);
	const struct inode *inode;

	if (offsetof(struct entry, name) + entry->length >
	    slab_size(fs->blocks, block))
		return "name is longer than its block";
	if (!is_legal_name(entry))
		return "name is not legal";
	if (entry->parent != ino || entry_cookie(entry) != cookie)
		return "entry belongs elsewhere";
	if (entry->ino == FS_ROOT_INO)
		return "entry names the root";
	inode = inode_get(fs, entry->ino);
	if (!inode)
		return "entry names no inode";
	if (IFTODT(inode->mode) != entry->type)
		return "entry has another type than its inode";
	if (S_ISDIR(inode->mode) && walk_record(walk, entry->ino)->names)
		return "entry is a directory's second name";
	return NULL;
}

static void count_entry(struct walk *walk, uint32_t directory, ino_t ino,
			uint32_t block)
{
	struct fs *fs = walk->fs;
	const struct entry *entry = directory_entry(fs, block);
	struct walk_record *record = walk_record(walk, entry->ino);

	walk->check->entries++;
	record->names++;
	if (entry->type == DT_DIR) {
		record->parent = ino;
		walk_record(walk, directory)->subdirectories++;
	}
	if (!walk->repair &&
	    directory_find(fs, ino, entry->name, entry->length) != block)
		walk_difference(
			walk, 1,
			"inode %u: the name index lacks its name in %ju",
			entry->ino, (uintmax_t)ino);
}

/* Whether an entry could be there, so that looking at it is safe. */
static bool is_block(const struct walk *walk, uint32_t value)
{
	const struct fs *fs = walk->fs;

	return value != SLAB_NONE &&
	       value >> SLAB_SHIFT < arena_extent(fs->arena, ARENA_BLOCKS) &&
	       slab_size(fs->blocks, value) >= sizeof(struct entry);
}

static void walk_cell(struct walk *walk, uint32_t directory, ino_t ino,
		      uint64_t cookie, pagetable_cell *cell)
{
	uint32_t value = *cell;
	const char *wrong = "cell names no entry";

	/* What is not an entry is not claimed: it may be something else. */
	if (is_block(walk, value))
		wrong = judge_entry(walk, ino, cookie, value);
	if (!wrong && slab_claim(walk->blocks, value))
		wrong = "entry is not its own";
	if (!wrong) {
		count_entry(walk, directory, ino, value);
		return;
	}
	walk_error(walk, 1, "directory %ju, cookie %" PRIu64 ": %s",
		   (uintmax_t)ino, cookie, wrong);
	if (walk->repair)
		*cell = 0;
}

static int walk_directory(void *context, uint32_t block, void *address)
{
	struct walk *walk = context;
	struct fs *fs = walk->fs;
	struct inode *inode = address;
	ino_t ino = inode_number(fs, block);
	uint64_t entries = 0, cookie = 0, end = 0;
	pagetable_cell *cell;

	if (!S_ISDIR(inode->mode))
		return 0;
	if (pagetable_claim(fs->blocks, &inode->table, walk->blocks)) {
		walk_error(walk, 1, "directory %ju: its table is damaged",
			   (uintmax_t)ino);
		if (!walk->repair)
			return 0;
		inode->table.root = 0;
		inode->table.first = 0;
	}
	while ((cell = pagetable_next(fs->blocks, &inode->table, &cookie,
				      PAGETABLE_INDEX_MAX))) {
		walk_cell(walk, block, ino, cookie, cell);
		entries += *cell != 0;
		end = ++cookie;
	}
	if (inode->cookie < end || inode->entries != entries)
		walk_difference(walk, 1,
				"directory %ju: %" PRIu64
				" entries counted, %" PRIu64 " found",
				(uintmax_t)ino, (uint64_t)inode->entries,
				entries);
	if (walk->repair) {
		inode->entries = entries;
		if (inode->cookie < end || !entries)
			inode->cookie = end;
	}
	return 0;
}

int walk_run(struct walk *walk)
{
	struct fs *fs = walk->fs;
	int error;

	walk_record(walk, fs->root->root_block)->state = WALK_CONNECTED;
	slab_scan(fs->inodes, walk_directory, walk);
	slab_scan(fs->inodes, walk_inode, walk);

	error = slab_map_finish(walk->inodes, walk->arena_map);
	if (!error)
		error = slab_map_finish(walk->blocks, walk->arena_map);
	if (!error)
		error = store_map_finish(walk->store_map, walk->arena_map,
					 &walk->check->errors);
	return error;
}
