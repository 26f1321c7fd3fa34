/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file.h - regular files: what file*.c and usage.c share
 *
 * A file is a size and a table of cells, one store reference for each page.
 * Three things hold between any two operations:
 *
 *   - bytes past the end of file within its last page are zero
 *   - pages wholly past the end are pages of zeros (fallocate() put them
 *     there). A crash in a truncation may leave others, which nobody can see;
 *     whoever makes the file longer calls file_forget_stale() first
 *   - inode.pages and the charge on size= count the cells that are not empty,
 *     wherever they lie
 *
 * A cell that is emptied is emptied before its reference is dropped, so that
 * no cell names a page that is gone.
 */
#ifndef ZRAMFS_FILE_H
#define ZRAMFS_FILE_H

#include "fs/fs_private.h"

#define PAGE_MASK ((uint64_t)PAGE_SIZE - 1)

/* Pages that one write, or one step of a longer one, takes in hand. */
#define FS_WRITE_PAGES 256

/* Pages that hold so many bytes; also the first page wholly past them. */
static inline uint64_t file_pages(uint64_t bytes)
{
	return (bytes + PAGE_MASK) >> PAGE_SHIFT;
}

static inline uint64_t file_size(const struct inode *inode)
{
	return atomic_load_explicit(&inode->size, memory_order_relaxed);
}

/* The regular file of a number: -ESTALE, -EISDIR, -EINVAL. */
int file_get(const struct fs *fs, ino_t ino, struct inode **inode);

/* mtime and ctime are now. */
void file_modified(struct inode *inode);

/* fs_write(), as a part of something larger. */
ssize_t file_write(struct fs *fs, ino_t ino, const void *buffer, size_t size,
		   off_t offset, bool kill_priv);

/* Give what was counted as pages of a file, and charged, back. */
void file_uncount(struct fs *fs, struct inode *inode, uint64_t pages);

/*
 * Make a page like a cell's, but zero in from..to-1. STORE_HOLE when the cell
 * is NULL or empty. flags as store_put(). -ENOSPC, -EIO.
 */
int file_zeroed_page(struct fs *fs, const store_cell *cell, unsigned int from,
		     unsigned int to, unsigned int flags, store_ref *ref);

/* Under the exclusive lock: */

/* Put a reference into a cell that has one, and drop that. */
void file_replace(struct fs *fs, store_cell *cell, store_ref ref);

/* Empty the cells first..last, free nodes. */
void file_drop_pages(struct fs *fs, struct inode *inode, uint64_t first,
		     uint64_t last);

/* Empty what would show from the end of file up to size, and is not zeros. */
void file_forget_stale(struct fs *fs, struct inode *inode, uint64_t size);

#endif
