/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * directory.c - directory entries
 *
 * Owns entry blocks, the cells of directories and the name index. Does not
 * look at the inodes that entries name.
 */
#include "fs/directory.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <xxhash.h>

#include "fs/fs_private.h"

/* 2^64 over the golden ratio: parents differ in few bits, seeds in all. */
#define SPREAD UINT64_C(0x9e3779b97f4a7c15)

#define ENTRY_HEADER offsetof(struct entry, name)

_Static_assert(ENTRY_HEADER == 20, "arena layout");

struct entry *directory_entry(const struct fs *fs, uint32_t block)
{
	return slab_address(fs->blocks, block);
}

uint64_t entry_cookie(const struct entry *entry)
{
	return (uint64_t)entry->cookie_high << 32 | entry->cookie_low;
}

void directory_set_cookie(struct fs *fs, uint32_t block, uint64_t cookie)
{
	struct entry *entry = directory_entry(fs, block);

	entry->cookie_low = (uint32_t)cookie;
	entry->cookie_high = (uint16_t)(cookie >> 32);
}

/* The seed is random for each mount, so that nobody can choose collisions. */
static uint32_t name_hash(const struct fs *fs, uint32_t parent,
			  const char *name, size_t length)
{
	return (uint32_t)XXH3_64bits_withSeed(
		name, length, fs->root->name_seed + parent * SPREAD);
}

static uint32_t entry_hash(const struct fs *fs, const struct entry *entry)
{
	return name_hash(fs, entry->parent, entry->name, entry->length);
}

static uint32_t *index_link(void *context, uint32_t record)
{
	return &directory_entry(context, record)->link;
}

static uint32_t index_hash(void *context, uint32_t record)
{
	return entry_hash(context, directory_entry(context, record));
}

const struct index_ops directory_index_ops = {
	.link = index_link,
	.hash = index_hash,
};

uint32_t directory_find(const struct fs *fs, ino_t parent, const char *name,
			size_t length)
{
	uint32_t block =
		index_first(fs->names, name_hash(fs, parent, name, length));

	while (block) {
		const struct entry *entry = directory_entry(fs, block);

		if (entry->parent == parent && entry->length == length &&
		    memcmp(entry->name, name, length) == 0)
			break;
		block = entry->link;
	}
	return block;
}

int directory_prepare(struct fs *fs, ino_t parent, const char *name,
		      size_t length, ino_t ino, mode_t mode, uint32_t *block)
{
	struct entry *entry;
	int error = slab_alloc(fs->blocks, ENTRY_HEADER + length, 0, block);

	if (error)
		return error;
	entry = directory_entry(fs, *block);
	entry->ino = ino;
	entry->parent = parent;
	entry->type = IFTODT(mode);
	entry->length = length;
	memcpy(entry->name, name, length);
	return 0;
}

int directory_reserve(struct fs *fs, struct inode *directory, uint64_t *cookie)
{
	*cookie = directory->cookie;
	if (*cookie > DIRECTORY_COOKIE_MAX)
		return -ENOSPC;
	return pagetable_reserve(fs->blocks, &directory->table, *cookie,
				 *cookie, 0);
}

void directory_unreserve(struct fs *fs, struct inode *directory,
			 uint64_t cookie)
{
	pagetable_prune(fs->blocks, &directory->table, cookie, cookie);
}

void directory_store(struct fs *fs, struct inode *directory, uint64_t cookie,
		     uint32_t block)
{
	pagetable_cell *cell =
		pagetable_find(fs->blocks, &directory->table, cookie);

	/* Release: the entry and its inode are complete before it is named. */
	atomic_store_explicit(cell, block, memory_order_release);
}

/*
 * Two steps for each change: so the index catches up when it could not grow
 * for a time, and is small again by the time that all names are gone.
 */
static void adjust_index(struct fs *fs)
{
	for (int i = 0; i < 2; i++) {
		int stripe = index_adjust_stripe(fs->names);

		if (stripe < 0)
			break;
		index_adjust(fs->names, stripe);
	}
}

void directory_found(struct fs *fs, uint32_t block)
{
	index_insert(fs->names, entry_hash(fs, directory_entry(fs, block)),
		     block);
}

void directory_added(struct fs *fs, uint32_t block)
{
	directory_found(fs, block);
	adjust_index(fs);
}

void directory_removed(struct fs *fs, uint32_t block)
{
	index_remove(fs->names, entry_hash(fs, directory_entry(fs, block)),
		     block);
	slab_free(fs->blocks, block);
	adjust_index(fs);
}

void directory_grown(struct fs *fs, struct inode *directory, uint64_t cookie)
{
	directory->cookie = cookie + 1;
	directory->entries++;
}

void directory_shrunk(struct fs *fs, struct inode *directory, uint64_t cookie)
{
	directory->entries--;
	pagetable_prune(fs->blocks, &directory->table, cookie, cookie);
	if (directory->entries == 0)
		directory->cookie = 0;
}
