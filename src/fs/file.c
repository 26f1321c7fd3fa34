/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file.c - reading regular files, and making them shorter
 *
 * Owns the order in which a file loses pages; file.h says what must hold.
 * Reads share the inode's lock with writes: a cell is read by the store, which
 * sees to it that the page it names stays while it is copied.
 */
#include <errno.h>
#include <string.h>

#include "fs/file.h"

#include "fault.h"

int file_get(const struct fs *fs, ino_t ino, struct inode **inode)
{
	uint32_t mode;

	*inode = inode_get(fs, ino);
	if (!*inode)
		return -ESTALE;
	mode = atomic_load_explicit(&(*inode)->mode, memory_order_relaxed);
	if (S_ISREG(mode))
		return 0;
	return S_ISDIR(mode) ? -EISDIR : -EINVAL;
}

void file_modified(struct inode *inode)
{
	/* Times stand alone: nothing else is ordered by them. */
	atomic_store_explicit(&inode->mtime, inode_changed(inode),
			      memory_order_relaxed);
}

void file_uncount(struct fs *fs, struct inode *inode, uint64_t pages)
{
	if (pages == 0)
		return;
	atomic_fetch_sub_explicit(&inode->pages, pages, memory_order_relaxed);
	limits_uncharge_pages(fs, pages);
}

/* --- reading ----------------------------------------------------------- */

/*
 * By one thread, however much it is. With the compressors' help, 32 KiB at a
 * time, one client read what had to be decompressed at 3.8 GiB/s on two
 * processors, and at 4.0 without: half of the time is the kernel's copying of
 * the reply, which then finds the pages in another processor's cache.
 */
static int read_pages(struct fs *fs, const struct inode *inode, char *buffer,
		      uint64_t offset, uint64_t length)
{
	while (length) {
		unsigned int from = offset & PAGE_MASK;
		unsigned int bytes = PAGE_SIZE - from;
		const store_cell *cell = pagetable_find(
			fs->blocks, &inode->table, offset >> PAGE_SHIFT);
		int err = 0;

		if (bytes > length)
			bytes = length;
		if (cell)
			err = store_read(fs->store, cell, buffer, from, bytes);
		else
			memset(buffer, 0, bytes);
		if (err)
			return err;
		buffer += bytes;
		offset += bytes;
		length -= bytes;
	}
	return 0;
}

ssize_t fs_read(struct fs *fs, ino_t ino, void *buffer, size_t size,
		off_t offset)
{
	struct inode *inode;
	uint64_t length;
	int err;

	if (offset < 0)
		return -EINVAL;
	err = file_get(fs, ino, &inode);
	if (err)
		return err;
	fs_enter(fs);
	inode_lock_shared(fs, ino);
	length = file_size(inode);
	length = length > (uint64_t)offset ? length - offset : 0;
	if (length > size)
		length = size;
	err = read_pages(fs, inode, buffer, offset, length);
	inode_unlock(fs, ino);
	fs_leave(fs);
	return err ? err : (ssize_t)length;
}

/* --- losing pages ------------------------------------------------------ */

int file_zeroed_page(struct fs *fs, const store_cell *cell, unsigned int from,
		     unsigned int to, unsigned int flags, store_ref *ref)
{
	_Alignas(64) char page[PAGE_SIZE];
	int err;

	*ref = STORE_HOLE;
	if (!cell || !atomic_load_explicit(cell, memory_order_relaxed))
		return 0;
	err = store_read(fs->store, cell, page, 0, PAGE_SIZE);
	if (err)
		return err;
	memset(page + from, 0, to - from);
	return store_put(fs->store, page, flags, ref);
}

void file_replace(struct fs *fs, store_cell *cell, store_ref ref)
{
	fault_point("cell to be replaced");
	/* Release: the page is there before the cell names it. */
	store_drop(fs->store,
		   atomic_exchange_explicit(cell, ref, memory_order_acq_rel));
}

void file_drop_pages(struct fs *fs, struct inode *inode, uint64_t first,
		     uint64_t last)
{
	uint64_t index = first, pages = 0;
	store_cell *cell;

	while (index <= last &&
	       (cell = pagetable_next(fs->blocks, &inode->table, &index,
				      last))) {
		file_replace(fs, cell, STORE_HOLE);
		pages++;
		index++;
	}
	file_uncount(fs, inode, pages);
	pagetable_prune(fs->blocks, &inode->table, first, last);
}

void file_forget_stale(struct fs *fs, struct inode *inode, uint64_t size)
{
	uint64_t index = file_pages(file_size(inode)), pages = 0;
	uint64_t end = file_pages(size);
	store_ref zeros = STORE_HOLE;
	store_cell *cell;

	while (index < end && (cell = pagetable_next(fs->blocks, &inode->table,
						     &index, end - 1))) {
		/* Should there be no such reference, all pages go. */
		if (zeros == STORE_HOLE && store_fill(fs->store, 0, &zeros))
			zeros = STORE_HOLE;
		if (atomic_load_explicit(cell, memory_order_relaxed) != zeros) {
			file_replace(fs, cell, STORE_HOLE);
			pages++;
		}
		index++;
	}
	store_drop(fs->store, zeros);
	file_uncount(fs, inode, pages);
}

/* The last page of a file that gets this size, with nothing past its end. */
static int cut_tail(struct fs *fs, struct inode *inode, uint64_t size)
{
	store_cell *cell =
		pagetable_find(fs->blocks, &inode->table, size >> PAGE_SHIFT);
	store_ref ref;
	int err;

	err = file_zeroed_page(fs, cell, size & PAGE_MASK, PAGE_SIZE,
			       ARENA_RESERVE, &ref);
	if (!err && ref != STORE_HOLE)
		file_replace(fs, cell, ref);
	return err;
}

int file_truncate(struct fs *fs, struct inode *inode, uint64_t size)
{
	uint64_t present = file_size(inode);
	int err = 0;

	if (size > FS_SIZE_MAX)
		return -EFBIG;
	if (size > present)
		file_forget_stale(fs, inode, size);
	else if (size < present && size & PAGE_MASK)
		err = cut_tail(fs, inode, size);
	if (err)
		return err;
	fault_point("size to be set");
	/*
	 * Release: after a crash, a file with the new size has the new tail.
	 * Pages past it may then still be there; file_forget_stale() sees them.
	 */
	atomic_store_explicit(&inode->size, size, memory_order_release);
	if (size <= present)
		file_drop_pages(fs, inode, file_pages(size),
				PAGETABLE_INDEX_MAX);
	return 0;
}

void file_release(struct fs *fs, struct inode *inode)
{
	file_drop_pages(fs, inode, 0, PAGETABLE_INDEX_MAX);
	pagetable_release(fs->blocks, &inode->table);
}
