/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage.c - what one file costs, page by page
 *
 * Only reads. The sums are taken in steps, with the lock shared for one step
 * at a time, so that a large file's writers get their turn; a file that
 * changes meanwhile is counted partly before and partly after.
 *
 * The file may be one that nobody has looked up, and may be deleted between
 * two steps: so each step holds the namespace lock, and finds it anew.
 */
#include "fs/file.h"

/* Some 50 us, while which no name changes. */
#define STEP_PAGES 1024

static void count_object(struct fs_usage *usage,
			 const struct store_page_info *info)
{
	usage->stored_bytes += info->length;
	usage->share_bytes +=
		info->length / (info->references ? info->references : 1);
	if (info->references > 1)
		usage->shared_pages++;
}

static void count_page(struct fs_usage *usage,
		       const struct store_page_info *info)
{
	if (info->kind == STORE_KIND_HOLE)
		return;
	usage->pages++;
	switch (info->kind) {
	case STORE_KIND_HOT:
		usage->hot_pages++;
		break;
	case STORE_KIND_HUGE:
		usage->huge_pages++;
		break;
	case STORE_KIND_COMPRESSED:
		usage->compressed_pages++;
		usage->codec_pages[info->codec & 15]++;
		break;
	default:
		usage->fill_pages++;
		return;
	}
	count_object(usage, info);
}

/* Returns false when there was nothing left at or after *index. */
static bool count_step(struct fs *fs, const struct inode *inode,
		       uint64_t *index, struct fs_usage *usage)
{
	struct store_page_info info;
	unsigned int pages;
	store_cell *cell;

	for (pages = 0; pages < STEP_PAGES; pages++) {
		cell = pagetable_next(fs->blocks, &inode->table, index,
				      PAGETABLE_INDEX_MAX);
		if (!cell)
			return false;
		store_page_info(fs->store, cell, &info);
		count_page(usage, &info);
		++*index;
	}
	return true;
}

/* 1: there is more; 0; or -errno. */
static int usage_step(struct fs *fs, ino_t ino, uint64_t *index,
		      struct fs_usage *usage)
{
	struct inode *inode;
	int ret;

	fs_enter(fs);
	pthread_rwlock_rdlock(&fs->namespace_lock);
	ret = file_get(fs, ino, &inode);
	if (!ret) {
		inode_lock_shared(fs, ino);
		usage->uid = inode->uid;
		usage->size = file_size(inode);
		ret = count_step(fs, inode, index, usage);
		inode_unlock(fs, ino);
	}
	pthread_rwlock_unlock(&fs->namespace_lock);
	fs_leave(fs);
	return ret;
}

int fs_usage(struct fs *fs, ino_t ino, struct fs_usage *usage)
{
	uint64_t index = 0;
	int ret;

	*usage = (struct fs_usage){0};
	do
		ret = usage_step(fs, ino, &index, usage);
	while (ret > 0);
	return ret;
}
