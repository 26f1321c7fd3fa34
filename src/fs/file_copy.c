/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file_copy.c - copy_file_range(2): copying by sharing pages
 *
 * Where source and target begin at the same place within a page, whole pages
 * are copied by taking another reference to each, in steps of FS_WRITE_PAGES
 * under the locks of both files; a hole is copied as a hole. The rest is read
 * and written, so it is as safe as the two are. Like a write, a step is done
 * whole or not at all.
 */
#include <errno.h>

#include "fs/file.h"

/* What one call does at most: callers ask again, and others get a turn. */
#define COPY_BYTES_MAX (UINT64_C(64) << 20)

/* How much is read and written at a time where pages cannot be shared. */
#define COPY_BUFFER (16 * PAGE_SIZE)

struct copy {
	struct fs *fs;
	ino_t source_ino;
	ino_t target_ino;
	struct inode *source;
	struct inode *target;
	uint64_t from; /* bytes, in the source */
	uint64_t to;   /* in the target */
	uint64_t length;
	uint64_t done;
};

/* A step: pages under way into the target. */
struct step {
	uint64_t from; /* pages */
	uint64_t to;
	unsigned int pages;
	/* Shared pages until they are published, then those they replaced. */
	store_ref ref[FS_WRITE_PAGES];
};

/* --- reading and writing ----------------------------------------------- */

/* Up to so many bytes; *done tells how many, also when it fails after some. */
static int copy_bytes(struct copy *copy, uint64_t bytes)
{
	char buffer[COPY_BUFFER];

	while (bytes) {
		uint64_t to = copy->to + copy->done;
		/* Ending at a page's end, so that most writes are aligned. */
		uint64_t size = COPY_BUFFER - (to & PAGE_MASK);
		ssize_t count;

		if (size > bytes)
			size = bytes;
		count = fs_read(copy->fs, copy->source_ino, buffer, size,
				copy->from + copy->done);
		if (count > 0)
			count = file_write(copy->fs, copy->target_ino, buffer,
					   count, to, false);
		if (count < 0)
			return count;
		copy->done += count;
		bytes -= count;
		if ((uint64_t)count < size) {
			/* The source has become shorter. */
			copy->length = copy->done;
			return 0;
		}
	}
	return 0;
}

/* --- sharing ----------------------------------------------------------- */

static void step_drop(struct copy *copy, struct step *step)
{
	unsigned int i;

	for (i = 0; i < step->pages; i++)
		store_drop(copy->fs->store, step->ref[i]);
}

static int step_share(struct copy *copy, struct step *step)
{
	unsigned int i;

	for (i = 0; i < step->pages; i++) {
		store_cell *cell = pagetable_find(
			copy->fs->blocks, &copy->source->table, step->from + i);
		int err;

		step->ref[i] = STORE_HOLE;
		if (!cell)
			continue;
		err = store_share(copy->fs->store, cell, &step->ref[i]);
		if (err) {
			step->pages = i;
			return err;
		}
	}
	return 0;
}

static bool step_is_hole(const struct step *step)
{
	unsigned int i;

	for (i = 0; i < step->pages; i++)
		if (step->ref[i] != STORE_HOLE)
			return false;
	return true;
}

static store_cell *step_cell(const struct copy *copy, const struct step *step,
			     unsigned int i)
{
	return pagetable_find(copy->fs->blocks, &copy->target->table,
			      step->to + i);
}

/* Charge for the target's holes that will be filled. */
static int step_charge(struct copy *copy, struct step *step)
{
	uint64_t holes = 0;
	unsigned int i;

	for (i = 0; i < step->pages; i++)
		if (step->ref[i] != STORE_HOLE &&
		    !atomic_load_explicit(step_cell(copy, step, i),
					  memory_order_relaxed))
			holes++;
	return limits_charge_pages(copy->fs, holes);
}

static void step_swap(struct copy *copy, struct step *step)
{
	uint64_t filled = 0, emptied = 0;
	unsigned int i;

	for (i = 0; i < step->pages; i++) {
		store_cell *cell = step_cell(copy, step, i);
		store_ref ref = step->ref[i];

		if (!cell) /* a hole comes where a hole is */
			continue;
		step->ref[i] = atomic_exchange_explicit(cell, ref,
							memory_order_acq_rel);
		filled += ref != STORE_HOLE && step->ref[i] == STORE_HOLE;
		emptied += ref == STORE_HOLE && step->ref[i] != STORE_HOLE;
	}
	atomic_fetch_add_explicit(&copy->target->pages, filled,
				  memory_order_relaxed);
	file_uncount(copy->fs, copy->target, emptied);
}

/* Publish the pages; the target then reaches to end at least. */
static int step_publish(struct copy *copy, struct step *step, uint64_t end)
{
	struct fs *fs = copy->fs;
	struct inode *target = copy->target;
	uint64_t last = step->to + step->pages - 1;
	int err;

	file_forget_stale(fs, target, end);
	if (!step_is_hole(step)) {
		err = pagetable_reserve(fs->blocks, &target->table, step->to,
					last, 0);
		if (!err)
			err = step_charge(copy, step);
		if (err) {
			pagetable_prune(fs->blocks, &target->table, step->to,
					last);
			return err;
		}
	}
	if (end > file_size(target))
		atomic_store_explicit(&target->size, end, memory_order_release);
	step_swap(copy, step);
	pagetable_prune(fs->blocks, &target->table, step->to, last);
	file_modified(target);
	return 0;
}

/*
 * May the page that the copy ends in be shared? Its bytes past the copy's end
 * are zero if the source ends there as well, and are not looked at if the
 * target ends there.
 */
static bool tail_is_sharable(const struct copy *copy, uint64_t end)
{
	return end & PAGE_MASK ? file_size(copy->source) + copy->to <=
						 end + copy->from &&
					 file_size(copy->target) <= end
			       : true;
}

/*
 * Share the pages of so many bytes of the target's pages; only at the very end
 * of the copy may that be part of a page. -EAGAIN: it cannot be shared.
 */
static int copy_pages(struct copy *copy, uint64_t bytes)
{
	uint64_t end = copy->to + copy->done + bytes;
	struct step step = {
		.from = (copy->from + copy->done) >> PAGE_SHIFT,
		.to = (copy->to + copy->done) >> PAGE_SHIFT,
		.pages = file_pages(bytes),
	};
	int err = -EAGAIN;

	fs_enter(copy->fs);
	inode_lock_two(copy->fs, copy->target_ino, copy->source_ino, false);
	if (tail_is_sharable(copy, end)) {
		err = step_share(copy, &step);
		if (!err)
			err = step_publish(copy, &step, end);
	} else {
		step.pages = 0;
	}
	inode_unlock_two(copy->fs, copy->target_ino, copy->source_ino);
	step_drop(copy, &step);
	fs_leave(copy->fs);
	if (!err)
		copy->done += bytes;
	return err;
}

/* One step of sharing, or of copying where a page cannot be shared. */
static int copy_step(struct copy *copy)
{
	uint64_t left = copy->length - copy->done;
	uint64_t offset = (copy->to + copy->done) & PAGE_MASK;
	uint64_t step = FS_WRITE_PAGES * (uint64_t)PAGE_SIZE;
	int err;

	if ((copy->from ^ copy->to) & PAGE_MASK)
		return copy_bytes(copy, left < step ? left : step);
	if (offset)
		return copy_bytes(copy, left < PAGE_SIZE - offset
						? left
						: PAGE_SIZE - offset);
	if (left >= PAGE_SIZE)
		left &= ~PAGE_MASK;
	if (left > step)
		left = step;
	err = copy_pages(copy, left);
	/* References to one page can run out; its bytes cannot. */
	if (err == -EAGAIN || err == -EOVERFLOW)
		err = copy_bytes(copy, left);
	return err;
}

/* --- the whole --------------------------------------------------------- */

static bool overlaps(const struct copy *copy)
{
	return copy->source == copy->target &&
	       copy->from < copy->to + copy->length &&
	       copy->to < copy->from + copy->length;
}

/* As Linux does it: shorten to the source, then look for overlaps. */
static int copy_init(struct copy *copy)
{
	uint64_t size;

	fs_enter(copy->fs);
	inode_lock_shared(copy->fs, copy->source_ino);
	size = file_size(copy->source);
	inode_unlock(copy->fs, copy->source_ino);
	fs_leave(copy->fs);
	if (copy->from >= size)
		copy->length = 0;
	else if (copy->length > size - copy->from)
		copy->length = size - copy->from;
	if (copy->length == 0)
		return 0;
	if (copy->to >= FS_SIZE_MAX)
		return -EFBIG;
	if (copy->length > FS_SIZE_MAX - copy->to)
		copy->length = FS_SIZE_MAX - copy->to;
	if (overlaps(copy))
		return -EINVAL;
	if (copy->length > COPY_BYTES_MAX)
		copy->length = COPY_BYTES_MAX;
	return 0;
}

ssize_t fs_copy_range(struct fs *fs, ino_t source, off_t source_offset,
		      ino_t target, off_t target_offset, size_t length)
{
	struct copy copy = {.fs = fs,
			    .source_ino = source,
			    .target_ino = target,
			    .from = source_offset,
			    .to = target_offset,
			    .length = length};
	int64_t again;
	int err;

	if (answer_again(&again))
		return again;
	if (source_offset < 0 || target_offset < 0)
		return -EINVAL;
	err = file_get(fs, source, &copy.source);
	if (!err)
		err = file_get(fs, target, &copy.target);
	if (!err)
		err = copy_init(&copy);
	while (!err && copy.done < copy.length)
		err = copy_step(&copy);
	if (copy.done)
		answer_done(copy.done);
	return copy.done ? (ssize_t)copy.done : err;
}
