/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * write.h - a piece of a write, and the references it holds
 *
 * write_pages.c makes its pages, file_write.c publishes them; see there.
 *
 * A piece belongs to the thread that writes. It owns the references in ref[]
 * and base[] until write_drop(): before publishing those of new pages, after it
 * those that were replaced.
 */
#ifndef ZRAMFS_FS_WRITE_H
#define ZRAMFS_FS_WRITE_H

#include "fs/file.h"

/*
 * A piece of a write, and the references it holds. Large enough that it is
 * filled in where it is used, and not cleared first.
 */
struct write {
	struct fs *fs;
	struct inode *inode;
	ino_t ino;
	bool kill_privileges;
	const char *buffer;
	uint64_t offset;
	uint64_t end;
	uint64_t first; /* pages */
	uint64_t last;
	unsigned int nr_partial;
	uint64_t partial[2];
	store_ref base[2];
	/* New pages until they are published, then those they replaced. */
	store_ref ref[FS_WRITE_PAGES + 2];
};

static inline store_ref *write_ref(struct write *write, uint64_t index)
{
	return &write->ref[index - write->first];
}

static inline store_cell *write_cell(const struct write *write, uint64_t index)
{
	return pagetable_find(write->fs->blocks, &write->inode->table, index);
}

/* Where in this page the write begins and ends. */
static inline unsigned int write_from(const struct write *write, uint64_t index)
{
	return index == write->first ? write->offset & PAGE_MASK : 0;
}

static inline unsigned int write_to(const struct write *write, uint64_t index)
{
	return index == write->last ? ((write->end - 1) & PAGE_MASK) + 1
				    : PAGE_SIZE;
}

/* --- write_pages.c: without the inode's lock, where nothing else is said - */

/* With offset and end set: which pages there are, none made yet. */
void write_begin(struct write *write);

/*
 * Make the pages that the write fills. Errors are those of store_put(), and
 * some may have been made then.
 */
int write_put_whole_pages(struct write *write);

/* Take a reference to each base. Errors are those of store_share(). */
int write_share_bases(struct write *write);

/*
 * Make the pages that it fills in part, from their bases; or, locked, from what
 * the cells name, under the inode's exclusive lock. Errors are those of
 * store_read() and store_put().
 */
int write_put_partial_pages(struct write *write, bool locked);

/* Give references back: those to do with partial pages, or all. */
void write_drop_partial_pages(struct write *write);
void write_drop(struct write *write);

#endif
