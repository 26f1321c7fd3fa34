/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rename.c - moving, replacing and exchanging names
 *
 * An entry block is never changed: a moved name is a new block, made before
 * anything changes. Which cells then get which blocks is a list of steps, and
 * the intent record makes them one change. The counts follow.
 *
 * A name that stays in its directory keeps its cell, so that listing the
 * directory meanwhile gives it once, and the change is one store.
 */
#include <errno.h>
#include <linux/fs.h>

#include "fs/directory.h"
#include "fs/fs_private.h"
#include "fs/make.h"
#include "fs/namespace.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#define RENAME_EXCHANGE	 (1 << 1)
#define RENAME_WHITEOUT	 (1 << 2)
#endif

struct renaming {
	const struct fs_caller *caller;
	unsigned int flags;
	struct place from;
	struct place to;
	/* Prepared: */
	uint32_t entry; /* the name's new entry */
	uint32_t left;	/* what the old name gets: entry or SLAB_NONE */
	struct new_inode whiteout;
	bool reserved; /* to.cookie is a new cell */
	uint32_t dead; /* inode block to release afterwards */
};

static bool same_directory(const struct renaming *renaming)
{
	return renaming->from.parent == renaming->to.parent;
}

static bool in_place(const struct renaming *renaming)
{
	return same_directory(renaming) && !renaming->to.block &&
	       !(renaming->flags & RENAME_WHITEOUT);
}

static int check_flags(unsigned int flags)
{
	if (flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT))
		return -EINVAL;
	if ((flags & RENAME_EXCHANGE) &&
	    (flags & (RENAME_NOREPLACE | RENAME_WHITEOUT)))
		return -EINVAL;
	return 0;
}

static int check_replaced(const struct inode *inode,
			  const struct inode *replaced)
{
	bool directory = S_ISDIR(inode->mode);

	if (directory && !S_ISDIR(replaced->mode))
		return -ENOTDIR;
	if (!directory && S_ISDIR(replaced->mode))
		return -EISDIR;
	return directory && replaced->entries ? -ENOTEMPTY : 0;
}

static int check(const struct renaming *renaming)
{
	const struct place *to = &renaming->to;

	if (!renaming->from.block)
		return -ENOENT;
	if (place_may_empty(&renaming->from) ||
	    (to->block ? place_may_empty(to) : place_may_fill(to)))
		return -EPERM;
	if (renaming->flags & RENAME_EXCHANGE)
		return to->block ? 0 : -ENOENT;
	if (!to->block)
		return 0;
	if (renaming->flags & RENAME_NOREPLACE)
		return -EEXIST;
	return check_replaced(renaming->from.inode, to->inode);
}

static int prepare_whiteout(struct fs *fs, struct renaming *renaming)
{
	const struct place *from = &renaming->from;
	const struct fs_caller nobody_masks = {
		.uid = renaming->caller->uid,
		.gid = renaming->caller->gid,
	};
	struct make make = {.mode = S_IFCHR};
	int error = inode_make(fs, &nobody_masks, from->parent, from->directory,
			       &make, &renaming->whiteout);

	if (error)
		return error;
	error = directory_prepare(fs, from->parent, from->name, from->length,
				  renaming->whiteout.ino, S_IFCHR,
				  &renaming->left);
	if (error) {
		inode_unmake(fs, &renaming->whiteout);
		return error;
	}
	directory_set_cookie(fs, renaming->left, from->cookie);
	return 0;
}

/* The entry that the old name gets, when it gets one. */
static int prepare_left(struct fs *fs, struct renaming *renaming)
{
	const struct place *from = &renaming->from;
	int error;

	if (renaming->flags & RENAME_WHITEOUT)
		return prepare_whiteout(fs, renaming);
	if (!(renaming->flags & RENAME_EXCHANGE))
		return 0;
	error = directory_prepare(fs, from->parent, from->name, from->length,
				  renaming->to.ino, renaming->to.inode->mode,
				  &renaming->left);
	if (!error)
		directory_set_cookie(fs, renaming->left, from->cookie);
	return error;
}

static void unprepare_left(struct fs *fs, struct renaming *renaming)
{
	slab_free(fs->blocks, renaming->left);
	if (renaming->flags & RENAME_WHITEOUT)
		inode_unmake(fs, &renaming->whiteout);
}

/* The cell that the new name gets. */
static int prepare_cell(struct fs *fs, struct renaming *renaming)
{
	struct place *to = &renaming->to;

	if (to->block)
		return 0;
	if (in_place(renaming)) {
		to->cookie = renaming->from.cookie;
		return 0;
	}
	renaming->reserved = true;
	return directory_reserve(fs, to->directory, &to->cookie);
}

/* All that can fail. */
static int prepare(struct fs *fs, struct renaming *renaming)
{
	const struct place *from = &renaming->from;
	struct place *to = &renaming->to;
	int error = directory_prepare(fs, to->parent, to->name, to->length,
				      from->ino, from->inode->mode,
				      &renaming->entry);

	if (error)
		return error;
	error = prepare_left(fs, renaming);
	if (!error) {
		error = prepare_cell(fs, renaming);
		if (error)
			unprepare_left(fs, renaming);
	}
	if (error) {
		slab_free(fs->blocks, renaming->entry);
		return error;
	}
	directory_set_cookie(fs, renaming->entry, to->cookie);
	return 0;
}

static void publish(struct fs *fs, const struct renaming *renaming)
{
	const struct intent_step steps[] = {
		{
			.block = inode_block(fs, renaming->to.parent),
			.value = renaming->entry,
			.cookie = renaming->to.cookie,
		},
		{
			.block = inode_block(fs, renaming->from.parent),
			.value = renaming->left,
			.cookie = renaming->from.cookie,
		},
	};

	const struct answer_times times = {
		{renaming->from.parent, renaming->to.parent},
		{renaming->from.ino, renaming->to.block ? renaming->to.ino : 0},
	};

	if (renaming->flags & RENAME_WHITEOUT)
		inode_enliven(&renaming->whiteout);
	answer_publish_cell(renaming->to.parent, renaming->to.cookie,
			    renaming->entry, 0, &times);
	if (in_place(renaming))
		directory_store(fs, renaming->to.directory, renaming->to.cookie,
				renaming->entry);
	else
		intent_run(fs, steps, 2);
	answer_done(0);
}

/* A directory has come to another parent. */
static void reparent(const struct place *place, struct inode *from,
		     const struct place *to)
{
	if (!S_ISDIR(place->inode->mode) || place->parent == to->parent)
		return;
	place->inode->parent = to->parent;
	from->nlink--;
	to->directory->nlink++;
}

static void count_replaced(struct fs *fs, struct renaming *renaming)
{
	const struct place *to = &renaming->to;

	inode_changed(to->inode);
	if (S_ISDIR(to->inode->mode)) {
		to->directory->nlink--;
		to->inode->nlink = 0;
	} else {
		to->inode->nlink--;
		limits_uncharge_name(fs, to->inode);
	}
	renaming->dead = inode_bury(fs, to->ino);
}

/* Of the directories: entries, and the cells that came and went. */
static void count_cells(struct fs *fs, const struct renaming *renaming)
{
	if (renaming->reserved)
		directory_grown(fs, renaming->to.directory,
				renaming->to.cookie);
	if (!renaming->left && !in_place(renaming))
		directory_shrunk(fs, renaming->from.directory,
				 renaming->from.cookie);
}

static void settle(struct fs *fs, struct renaming *renaming)
{
	const struct place *from = &renaming->from;
	const struct place *to = &renaming->to;

	count_cells(fs, renaming);
	directory_removed(fs, from->block);
	if (to->block)
		directory_removed(fs, to->block);
	directory_added(fs, renaming->entry);
	if (renaming->left)
		directory_added(fs, renaming->left);

	reparent(from, from->directory, to);
	inode_changed(from->inode);
	if (renaming->flags & RENAME_EXCHANGE) {
		reparent(to, to->directory, from);
		inode_changed(to->inode);
	} else if (to->block) {
		count_replaced(fs, renaming);
	}
	if (renaming->flags & RENAME_WHITEOUT)
		renaming->whiteout.inode->nlink = 1;
	directory_touch(from->directory);
	directory_touch(to->directory);
}

static int rename_locked(struct fs *fs, struct renaming *renaming, ino_t parent,
			 const char *name, ino_t new_parent,
			 const char *new_name)
{
	int error = place_find(fs, parent, name, &renaming->from);

	if (!error)
		error = place_find(fs, new_parent, new_name, &renaming->to);
	if (!error)
		error = check(renaming);
	if (error)
		return error;
	/* Two names of one file, or the same: POSIX has this do nothing. */
	if (renaming->from.inode == renaming->to.inode)
		return 0;
	error = prepare(fs, renaming);
	if (error)
		return error;
	publish(fs, renaming);
	settle(fs, renaming);
	return 0;
}

int fs_rename(struct fs *fs, const struct fs_caller *caller, ino_t parent,
	      const char *name, ino_t new_parent, const char *new_name,
	      unsigned int flags)
{
	struct renaming renaming = {.caller = caller, .flags = flags};
	int64_t error = check_flags(flags);

	if (error || answer_again(&error))
		return error;
	fs_enter(fs);
	pthread_rwlock_wrlock(&fs->namespace_lock);
	error = rename_locked(fs, &renaming, parent, name, new_parent,
			      new_name);
	pthread_rwlock_unlock(&fs->namespace_lock);
	inode_release(fs, renaming.dead);
	fs_leave(fs);
	return error;
}
