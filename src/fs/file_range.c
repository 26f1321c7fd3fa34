/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file_range.c - fallocate(2), and seeking data and holes
 *
 * A range has whole pages, which change by their cells alone, and up to two
 * edges, partial pages of which a zeroed copy is made. Edges are made before
 * anything changes, since only they, and the charge, and nodes of the table,
 * can fail for lack of memory. All under the exclusive lock, so the files'
 * other users see a range change at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "fs/file.h"

#define MODES \
	(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)

struct edge {
	store_cell *cell;
	store_ref ref; /* the zeroed page; STORE_HOLE: there is none */
};

/* Bytes from `from` to `to`, not empty. */
struct range {
	uint64_t from;
	uint64_t to;
	unsigned int nr_edges;
	struct edge edge[2];
};

/* Whole pages of the range are first_whole to end_whole - 1, if any. */
static uint64_t first_whole(const struct range *range)
{
	return file_pages(range->from);
}

static uint64_t end_whole(const struct range *range)
{
	return range->to >> PAGE_SHIFT;
}

static uint64_t last_page(const struct range *range)
{
	return (range->to - 1) >> PAGE_SHIFT;
}

/* --- edges ------------------------------------------------------------- */

static int add_edge(struct fs *fs, struct inode *inode, struct range *range,
		    uint64_t index, unsigned int flags)
{
	uint64_t start = index << PAGE_SHIFT;
	unsigned int from = range->from > start ? range->from - start : 0;
	unsigned int to =
		range->to - start < PAGE_SIZE ? range->to - start : PAGE_SIZE;
	struct edge *edge = &range->edge[range->nr_edges];
	int err;

	edge->cell = pagetable_find(fs->blocks, &inode->table, index);
	err = file_zeroed_page(fs, edge->cell, from, to, flags, &edge->ref);
	if (!err && edge->ref != STORE_HOLE)
		range->nr_edges++;
	return err;
}

static void drop_edges(struct fs *fs, struct range *range)
{
	while (range->nr_edges)
		store_drop(fs->store, range->edge[--range->nr_edges].ref);
}

static int make_edges(struct fs *fs, struct inode *inode, struct range *range,
		      unsigned int flags)
{
	uint64_t first = range->from >> PAGE_SHIFT, last = last_page(range);
	int err = 0;

	range->nr_edges = 0;
	if (range->from & PAGE_MASK)
		err = add_edge(fs, inode, range, first, flags);
	if (!err && range->to & PAGE_MASK &&
	    !(first == last && range->from & PAGE_MASK))
		err = add_edge(fs, inode, range, last, flags);
	if (err)
		drop_edges(fs, range);
	return err;
}

static void publish_edges(struct fs *fs, struct range *range)
{
	while (range->nr_edges) {
		struct edge *edge = &range->edge[--range->nr_edges];

		file_replace(fs, edge->cell, edge->ref);
	}
}

/* --- the modes --------------------------------------------------------- */

static int punch(struct fs *fs, struct inode *inode, struct range *range)
{
	int err = make_edges(fs, inode, range, ARENA_RESERVE);

	if (err)
		return err;
	publish_edges(fs, range);
	if (first_whole(range) < end_whole(range))
		file_drop_pages(fs, inode, first_whole(range),
				end_whole(range) - 1);
	return 0;
}

static uint64_t count_holes(const struct fs *fs, const struct inode *inode,
			    uint64_t first, uint64_t last)
{
	uint64_t index = first, holes = last - first + 1;

	while (index <= last &&
	       pagetable_next(fs->blocks, &inode->table, &index, last)) {
		holes--;
		index++;
	}
	return holes;
}

/*
 * Can there be nodes for so many cells? Asked before anything is made, so that
 * what cannot be has no price. (Without size=, nothing else bounds a range.)
 */
static bool table_may_grow(const struct fs *fs, uint64_t cells)
{
	uint64_t pages = cells / (PAGE_SIZE / sizeof(store_cell));

	return pages <= arena_capacity(fs->arena, ARENA_BLOCKS) &&
	       !arena_is_full(fs->arena, (unsigned int)pages);
}

/* Zeros into the holes of first..last, which have cells and are charged for. */
static int fill_holes(struct fs *fs, struct inode *inode, uint64_t first,
		      uint64_t last, uint64_t holes)
{
	uint64_t index, filled = 0;
	store_ref zeros;
	int err = 0;

	for (index = first; filled < holes && index <= last; index++) {
		store_cell *cell =
			pagetable_find(fs->blocks, &inode->table, index);

		if (atomic_load_explicit(cell, memory_order_relaxed))
			continue;
		err = store_fill(fs->store, 0, &zeros);
		if (err)
			break;
		atomic_store_explicit(cell, zeros, memory_order_release);
		filled++;
	}
	atomic_fetch_add_explicit(&inode->pages, filled, memory_order_relaxed);
	limits_uncharge_pages(fs, holes - filled);
	return err;
}

static int allocate(struct fs *fs, struct inode *inode, uint64_t first,
		    uint64_t last)
{
	uint64_t holes = count_holes(fs, inode, first, last);
	int err;

	if (holes == 0)
		return 0;
	if (!table_may_grow(fs, holes))
		return -ENOSPC;
	err = limits_charge_pages(fs, holes);
	if (err)
		return err;
	err = pagetable_reserve(fs->blocks, &inode->table, first, last, 0);
	if (err) {
		limits_uncharge_pages(fs, holes);
		return err;
	}
	return fill_holes(fs, inode, first, last, holes);
}

/* Every cell of the whole pages is there, and not empty. */
static int zero_whole_pages(struct fs *fs, struct inode *inode,
			    const struct range *range)
{
	uint64_t index;
	store_ref zeros;

	for (index = first_whole(range); index < end_whole(range); index++) {
		int err = store_fill(fs->store, 0, &zeros);

		if (err)
			return err;
		file_replace(fs,
			     pagetable_find(fs->blocks, &inode->table, index),
			     zeros);
	}
	return 0;
}

static int zero(struct fs *fs, struct inode *inode, struct range *range)
{
	int err;

	/* Nodes first: an edge's cell may move when the tree grows. */
	err = allocate(fs, inode, range->from >> PAGE_SHIFT, last_page(range));
	if (!err)
		err = make_edges(fs, inode, range, 0);
	if (err)
		return err;
	publish_edges(fs, range);
	return zero_whole_pages(fs, inode, range);
}

/* Modes that Linux refuses before it asks a filesystem are refused alike. */
static int check_mode(int mode)
{
	if (mode & ~MODES)
		return -EOPNOTSUPP;
	if (mode & FALLOC_FL_PUNCH_HOLE &&
	    (mode & FALLOC_FL_ZERO_RANGE || !(mode & FALLOC_FL_KEEP_SIZE)))
		return -EOPNOTSUPP;
	return 0;
}

static int change_range(struct fs *fs, struct inode *inode, int mode,
			struct range *range)
{
	bool grow =
		!(mode & FALLOC_FL_KEEP_SIZE) && range->to > file_size(inode);
	int err;

	if (grow)
		file_forget_stale(fs, inode, range->to);
	if (mode & FALLOC_FL_PUNCH_HOLE)
		err = punch(fs, inode, range);
	else if (mode & FALLOC_FL_ZERO_RANGE)
		err = zero(fs, inode, range);
	else
		err = allocate(fs, inode, range->from >> PAGE_SHIFT,
			       last_page(range));
	if (err)
		return err;
	if (grow)
		atomic_store_explicit(&inode->size, range->to,
				      memory_order_release);
	file_modified(inode);
	return 0;
}

int fs_fallocate(struct fs *fs, ino_t ino, int mode, off_t offset, off_t length)
{
	struct range range;
	struct inode *inode;
	int64_t err;

	if (answer_again(&err))
		return err;
	if (offset < 0 || length <= 0)
		return -EINVAL;
	err = check_mode(mode);
	if (err)
		return err;
	if (length > FS_SIZE_MAX - offset)
		return -EFBIG;
	err = file_get(fs, ino, &inode);
	if (err)
		return err == -EINVAL ? -ENODEV : err;
	range.from = offset;
	range.to = (uint64_t)offset + length;
	fs_enter(fs);
	inode_lock_exclusive(fs, ino);
	err = change_range(fs, inode, mode, &range);
	if (!err)
		answer_done(0);
	inode_unlock(fs, ino);
	fs_leave(fs);
	return err;
}

/* --- seeking ----------------------------------------------------------- */

/* The first page at or after index without a cell, or with an empty one. */
static uint64_t next_hole(const struct fs *fs, const struct inode *inode,
			  uint64_t index, uint64_t end)
{
	for (; index < end; index++) {
		store_cell *cell =
			pagetable_find(fs->blocks, &inode->table, index);

		if (!cell || !atomic_load_explicit(cell, memory_order_relaxed))
			break;
	}
	return index;
}

static off_t seek(const struct fs *fs, const struct inode *inode,
		  uint64_t offset, bool data)
{
	uint64_t size = file_size(inode);
	uint64_t index = offset >> PAGE_SHIFT, found;

	if (offset >= size)
		return -ENXIO;
	if (data) {
		if (!pagetable_next(fs->blocks, &inode->table, &index,
				    (size - 1) >> PAGE_SHIFT))
			return -ENXIO;
	} else {
		index = next_hole(fs, inode, index, file_pages(size));
	}
	found = index << PAGE_SHIFT;
	if (found < offset)
		found = offset;
	/* The end of file is a hole, inside a page as well. */
	return found < size ? found : size;
}

off_t fs_seek(struct fs *fs, ino_t ino, off_t offset, int whence)
{
	struct inode *inode;
	off_t result;
	int err;

	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return -EINVAL;
	if (offset < 0)
		return -ENXIO;
	err = file_get(fs, ino, &inode);
	if (err)
		return err;
	fs_enter(fs);
	inode_lock_shared(fs, ino);
	result = seek(fs, inode, offset, whence == SEEK_DATA);
	inode_unlock(fs, ino);
	fs_leave(fs);
	return result;
}
