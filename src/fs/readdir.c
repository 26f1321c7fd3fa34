/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * readdir.c - listing directories
 *
 * A cursor says where to go on: 0 from the start, 1 after ".", 2 after "..",
 * and an entry's cookie + 3 after that entry. Since an entry never changes its
 * cookie, whatever comes and goes meanwhile shifts nothing.
 *
 * The namespace lock is held shared while entries are handed out.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "fs/directory.h"
#include "fs/fs_private.h"
#include "fs/namespace.h"

#define CURSOR_DOT     1
#define CURSOR_DOT_DOT 2
#define CURSOR_ENTRIES 3

struct listing {
	bool plus;
	fs_fill fill;
	void *context;
};

static bool give_dots(const struct listing *listing, ino_t ino,
		      const struct inode *directory, uint64_t cursor)
{
	struct fs_entry entry = {.ino = ino};

	entry.attr.st_mode = S_IFDIR;
	entry.attr.st_ino = ino;
	if (cursor < CURSOR_DOT &&
	    !listing->fill(listing->context, ".", &entry, CURSOR_DOT))
		return false;
	entry.ino = directory->parent;
	entry.attr.st_ino = entry.ino;
	return cursor >= CURSOR_DOT_DOT ||
	       listing->fill(listing->context, "..", &entry, CURSOR_DOT_DOT);
}

static bool give_entry(struct fs *fs, const struct listing *listing,
		       const struct entry *record, uint64_t cookie)
{
	struct fs_entry entry = {.ino = record->ino};
	struct inode *inode = NULL;
	char name[FS_NAME_MAX + 1];

	memcpy(name, record->name, record->length);
	name[record->length] = '\0';
	if (listing->plus) {
		/* The caller goes on from here with another request. */
		if (!answer_has_room())
			return false;
		inode = inode_get(fs, record->ino);
		entry.generation = inode->generation;
		inode_lock_shared(fs, record->ino);
		inode_stat(fs, record->ino, inode, &entry.attr);
		inode_unlock(fs, record->ino);
	} else {
		entry.attr.st_ino = record->ino;
		entry.attr.st_mode = DTTOIF(record->type);
	}
	if (!listing->fill(listing->context, name, &entry,
			   cookie + CURSOR_ENTRIES))
		return false;
	if (inode)
		/* It has a name, so it cannot have died. */
		answer_count_lookup(fs, record->ino, inode);
	return true;
}

static void give_entries(struct fs *fs, const struct listing *listing,
			 const struct inode *directory, uint64_t cookie)
{
	pagetable_cell *cell;

	while (cookie <= DIRECTORY_COOKIE_MAX &&
	       (cell = pagetable_next(fs->blocks, &directory->table, &cookie,
				      DIRECTORY_COOKIE_MAX))) {
		if (!give_entry(fs, listing, directory_entry(fs, *cell),
				cookie))
			return;
		cookie++;
	}
}

static int readdir_locked(struct fs *fs, const struct listing *listing,
			  ino_t ino, uint64_t cursor)
{
	struct inode *directory = inode_get(fs, ino);

	if (!directory)
		return -ENOENT;
	if (!S_ISDIR(directory->mode))
		return -ENOTDIR;
	if (!directory->nlink)
		return -ENOENT;
	if (!give_dots(listing, ino, directory, cursor))
		return 0;
	give_entries(fs, listing, directory,
		     cursor > CURSOR_ENTRIES - 1 ? cursor - (CURSOR_ENTRIES - 1)
						 : 0);
	return 0;
}

int fs_readdir(struct fs *fs, ino_t ino, uint64_t cursor, bool plus,
	       fs_fill fill, void *context)
{
	const struct listing listing = {plus, fill, context};
	int error;

	fs_enter(fs);
	pthread_rwlock_rdlock(&fs->namespace_lock);
	error = readdir_locked(fs, &listing, ino, cursor);
	pthread_rwlock_unlock(&fs->namespace_lock);
	fs_leave(fs);
	return error;
}
