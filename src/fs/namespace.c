/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * namespace.c - looking names up, linking and unlinking them
 *
 * Each change is published by one store to a directory's cell; counts and
 * times follow under the same lock. make.c gives new inodes their first name,
 * rename.c moves names.
 */
#include "fs/namespace.h"

#include <errno.h>
#include <string.h>

#include "fs/blob.h"
#include "fs/directory.h"
#include "fs/fs_private.h"

int place_find(struct fs *fs, ino_t parent, const char *name,
	       struct place *place)
{
	struct inode *directory = inode_get(fs, parent);
	size_t length = strnlen(name, FS_NAME_MAX + 1);
	const struct entry *entry;

	if (!directory)
		return -ENOENT;
	if (!S_ISDIR(directory->mode))
		return -ENOTDIR;
	if (!directory->nlink || !length)
		return -ENOENT;
	if (length > FS_NAME_MAX)
		return -ENAMETOOLONG;
	if (is_dot(name, length) || is_dot_dot(name, length))
		return -EINVAL;
	*place = (struct place){
		.parent = parent,
		.directory = directory,
		.name = name,
		.length = length,
		.block = directory_find(fs, parent, name, length),
	};
	if (!place->block)
		return 0;
	entry = directory_entry(fs, place->block);
	place->cookie = entry_cookie(entry);
	place->ino = entry->ino;
	place->inode = inode_get(fs, entry->ino);
	return 0;
}

int place_may_fill(const struct place *place)
{
	return place->directory->mode & INODE_IMMUTABLE ? -EPERM : 0;
}

int place_may_empty(const struct place *place)
{
	return inode_is_fixed(place->directory) || inode_is_fixed(place->inode)
		       ? -EPERM
		       : 0;
}

void directory_touch(struct inode *directory)
{
	directory->mtime = inode_changed(directory);
}

static void entry_describe(struct fs *fs, ino_t ino, struct inode *inode,
			   struct fs_entry *entry)
{
	entry->ino = ino;
	entry->generation = inode->generation;
	inode_lock_shared(fs, ino);
	inode_stat(fs, ino, inode, &entry->attr);
	inode_unlock(fs, ino);
}

void entry_fill(struct fs *fs, ino_t ino, struct inode *inode,
		struct fs_entry *entry)
{
	answer_count_lookup(fs, ino, inode);
	entry_describe(fs, ino, inode, entry);
}

int entry_again(struct fs *fs, struct fs_entry *entry)
{
	ino_t ino = answer_entry();
	struct inode *inode;

	fs_enter(fs);
	/* Looked up as it was, it lives. */
	inode = inode_get(fs, ino);
	if (inode)
		entry_describe(fs, ino, inode, entry);
	fs_leave(fs);
	return inode ? 0 : -ENOENT;
}

/* "." and ".." are no entries; a removed directory has no parent any more. */
static int lookup_dots(struct fs *fs, ino_t parent, bool up,
		       struct fs_entry *entry)
{
	struct inode *directory = inode_get(fs, parent);

	if (!directory || (up && !directory->nlink))
		return -ENOENT;
	if (!S_ISDIR(directory->mode))
		return -ENOTDIR;
	if (up) {
		parent = directory->parent;
		directory = inode_get(fs, parent);
	}
	entry_fill(fs, parent, directory, entry);
	return 0;
}

static int lookup(struct fs *fs, ino_t parent, const char *name,
		  struct fs_entry *entry)
{
	size_t length = strnlen(name, FS_NAME_MAX + 1);
	struct place place;
	int error;

	if (is_dot(name, length) || is_dot_dot(name, length))
		return lookup_dots(fs, parent, length == 2, entry);
	error = place_find(fs, parent, name, &place);
	if (error)
		return error;
	if (!place.block)
		return -ENOENT;
	entry_fill(fs, place.ino, place.inode, entry);
	return 0;
}

int fs_lookup(struct fs *fs, ino_t parent, const char *name,
	      struct fs_entry *entry)
{
	int error;

	fs_enter(fs);
	pthread_rwlock_rdlock(&fs->namespace_lock);
	error = lookup(fs, parent, name, entry);
	pthread_rwlock_unlock(&fs->namespace_lock);
	fs_leave(fs);
	return error;
}

int fs_lookup_ino(struct fs *fs, ino_t ino, struct fs_entry *entry)
{
	struct inode *inode;
	int error = 0;

	fs_enter(fs);
	pthread_rwlock_rdlock(&fs->namespace_lock);
	inode = inode_get(fs, ino);
	/* Whoever asks does not hold it: without a name, nobody will again. */
	if (inode && inode->nlink)
		entry_fill(fs, ino, inode, entry);
	else
		error = -ESTALE;
	pthread_rwlock_unlock(&fs->namespace_lock);
	fs_leave(fs);
	return error;
}

void fs_forget(struct fs *fs, ino_t ino, uint64_t count)
{
	struct inode *inode;
	bool dead = false;
	uint32_t block;

	if (answer_was_forgotten())
		return;
	fs_enter(fs);
	/*
	 * The shared lock keeps the inode from being buried between the two
	 * looks at it; whoever takes its last name later sees no lookups.
	 */
	pthread_rwlock_rdlock(&fs->namespace_lock);
	inode = inode_get(fs, ino);
	if (inode)
		dead = answer_forget(fs, ino, inode, count) == 0 &&
		       inode->nlink == 0;
	else
		answer_forget_nothing();
	pthread_rwlock_unlock(&fs->namespace_lock);

	if (dead) {
		pthread_rwlock_wrlock(&fs->namespace_lock);
		block = inode_bury(fs, ino);
		pthread_rwlock_unlock(&fs->namespace_lock);
		inode_release(fs, block);
	}
	fs_leave(fs);
}

/* Where the file is to be linked to; its inode is in place->inode. */
static int find_place_for_link(struct fs *fs, ino_t ino, ino_t parent,
			       const char *name, struct place *place)
{
	struct inode *inode = inode_get(fs, ino);
	int error;

	if (!inode)
		return -ENOENT;
	if (S_ISDIR(inode->mode))
		return -EPERM;
	error = place_find(fs, parent, name, place);
	if (error)
		return error;
	if (place->block)
		return -EEXIST;
	if (inode_is_fixed(inode) || place_may_fill(place))
		return -EPERM;
	if (inode->nlink >= FS_LINK_MAX)
		return -EMLINK;
	place->ino = ino;
	place->inode = inode;
	return 0;
}

/* All that can fail: the entry, and the cell that it is for. */
static int prepare_link(struct fs *fs, const struct place *place,
			uint32_t *block, uint64_t *cookie)
{
	int error = limits_charge_name(fs, place->inode);

	if (error)
		return error;
	error = directory_prepare(fs, place->parent, place->name, place->length,
				  place->ino, place->inode->mode, block);
	if (!error) {
		error = directory_reserve(fs, place->directory, cookie);
		if (error)
			slab_free(fs->blocks, *block);
	}
	if (error) {
		limits_uncharge_name(fs, place->inode);
		return error;
	}
	directory_set_cookie(fs, *block, *cookie);
	return 0;
}

static int link_locked(struct fs *fs, ino_t ino, ino_t parent, const char *name,
		       struct fs_entry *entry)
{
	struct place place;
	uint64_t cookie;
	uint32_t block;
	int error = find_place_for_link(fs, ino, parent, name, &place);

	if (!error)
		error = prepare_link(fs, &place, &block, &cookie);
	if (error)
		return error;
	answer_publish_cell(parent, cookie, block, ino,
			    &(struct answer_times){{parent}, {ino}});
	directory_store(fs, place.directory, cookie, block);
	answer_done(0);

	directory_grown(fs, place.directory, cookie);
	directory_added(fs, block);
	directory_touch(place.directory);
	place.inode->nlink++;
	inode_changed(place.inode);
	entry_fill(fs, ino, place.inode, entry);
	return 0;
}

int fs_link(struct fs *fs, ino_t ino, ino_t parent, const char *name,
	    struct fs_entry *entry)
{
	int64_t error;

	if (answer_again(&error))
		return entry_again(fs, entry);
	fs_enter(fs);
	pthread_rwlock_wrlock(&fs->namespace_lock);
	error = link_locked(fs, ino, parent, name, entry);
	pthread_rwlock_unlock(&fs->namespace_lock);
	fs_leave(fs);
	return error;
}

/* Take the name away; the inode of what has died is in *dead. */
static void unlink_place(struct fs *fs, const struct place *place,
			 uint32_t *dead)
{
	struct inode *inode = place->inode;

	answer_publish_cell(
		place->parent, place->cookie, SLAB_NONE, 0,
		&(struct answer_times){{place->parent}, {place->ino}});
	directory_store(fs, place->directory, place->cookie, SLAB_NONE);
	answer_done(0);

	directory_shrunk(fs, place->directory, place->cookie);
	directory_removed(fs, place->block);
	directory_touch(place->directory);
	if (S_ISDIR(inode->mode)) {
		place->directory->nlink--;
		inode->nlink = 0;
	} else {
		inode->nlink--;
		limits_uncharge_name(fs, inode);
	}
	inode_changed(inode);
	*dead = inode_bury(fs, place->ino);
}

static int unlink_locked(struct fs *fs, ino_t parent, const char *name,
			 bool directory, uint32_t *dead)
{
	struct place place;
	int error = place_find(fs, parent, name, &place);

	if (error)
		return error;
	if (!place.block)
		return -ENOENT;
	if (place_may_empty(&place))
		return -EPERM;
	if (directory && !S_ISDIR(place.inode->mode))
		return -ENOTDIR;
	if (!directory && S_ISDIR(place.inode->mode))
		return -EISDIR;
	if (directory && place.inode->entries)
		return -ENOTEMPTY;
	unlink_place(fs, &place, dead);
	return 0;
}

static int remove_name(struct fs *fs, ino_t parent, const char *name,
		       bool directory)
{
	uint32_t dead = SLAB_NONE;
	int64_t error;

	if (answer_again(&error))
		return error;
	fs_enter(fs);
	pthread_rwlock_wrlock(&fs->namespace_lock);
	error = unlink_locked(fs, parent, name, directory, &dead);
	pthread_rwlock_unlock(&fs->namespace_lock);
	inode_release(fs, dead);
	fs_leave(fs);
	return error;
}

int fs_unlink(struct fs *fs, ino_t parent, const char *name)
{
	return remove_name(fs, parent, name, false);
}

int fs_rmdir(struct fs *fs, ino_t parent, const char *name)
{
	return remove_name(fs, parent, name, true);
}

ssize_t fs_readlink(struct fs *fs, ino_t ino, char *buffer, size_t size)
{
	struct inode *inode = inode_get(fs, ino);

	if (!inode)
		return -ENOENT;
	if (!S_ISLNK(inode->mode))
		return -EINVAL;
	fs_enter(fs);
	if (inode->size < size)
		size = inode->size;
	blob_read(fs, inode->target, buffer, size);
	fs_leave(fs);
	return size;
}
