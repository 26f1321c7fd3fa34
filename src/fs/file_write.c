/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file_write.c - writing to regular files
 *
 * A write makes all its pages first, with no lock held, then publishes them in
 * the file's cells: all of them, or none. Whole pages come from the caller's
 * buffer. A partial one is made from a base, the page that is there, to which
 * the write holds a reference of its own: as long as it does, the same
 * reference in the cell means the same page, and a compare-and-swap is safe.
 *
 * Writes within the file share the inode's lock and change cells by atomic
 * operations. The exclusive lock is for those that make the file longer, need
 * nodes, take privileges away, or have two bases that must be compared
 * together.
 */
#include <errno.h>

#include "fault.h"
#include "fs/write.h"

/*
 * When other writers were quicker this often, the base is read and patched
 * under the exclusive lock, which ends the race.
 */
#define WRITE_ATTEMPTS 4

/* --- publishing -------------------------------------------------------- */

/* Charge for what the write would fill; *holes tells how much that is. */
static int charge_holes(struct write *write, uint64_t *holes)
{
	uint64_t index;

	*holes = 0;
	for (index = write->first; index <= write->last; index++)
		if (!atomic_load_explicit(write_cell(write, index),
					  memory_order_relaxed))
			++*holes;
	return limits_charge_pages(write->fs, *holes);
}

/*
 * Exchange new pages and cells; but for `done`, which has been. holes: how
 * many were charged for.
 */
static void swap_pages(struct write *write, uint64_t done, uint64_t holes)
{
	uint64_t index, filled = 0;

	for (index = write->first; index <= write->last; index++) {
		store_ref *ref = write_ref(write, index);

		fault_point("page to be written");
		/* Release: the page is there before the cell names it. */
		if (index != done)
			*ref = atomic_exchange_explicit(
				write_cell(write, index), *ref,
				memory_order_acq_rel);
		if (*ref == STORE_HOLE)
			filled++;
	}
	/* Others may have filled some of the holes since they were counted. */
	limits_uncharge_pages(write->fs, holes - filled);
	atomic_fetch_add_explicit(&write->inode->pages, filled,
				  memory_order_relaxed);
	file_modified(write->inode);
}

/*
 * Under the shared lock, with at most one partial page: the only step that
 * can fail comes first. -EAGAIN when the base has been replaced.
 */
static int publish_shared(struct write *write)
{
	uint64_t holes, index = UINT64_MAX;
	store_ref base;
	int err;

	err = charge_holes(write, &holes);
	if (err)
		return err;
	if (write->nr_partial) {
		index = write->partial[0];
		base = write->base[0];
		if (!atomic_compare_exchange_strong_explicit(
			    write_cell(write, index), &base,
			    *write_ref(write, index), memory_order_acq_rel,
			    memory_order_relaxed)) {
			limits_uncharge_pages(write->fs, holes);
			return -EAGAIN;
		}
		*write_ref(write, index) = base;
	}
	swap_pages(write, index, holes);
	return 0;
}

/* Under the exclusive lock, with bases that are known to be current. */
static int publish_exclusive(struct write *write)
{
	struct fs *fs = write->fs;
	struct inode *inode = write->inode;
	uint64_t holes;
	int err;

	err = pagetable_reserve(fs->blocks, &inode->table, write->first,
				write->last, 0);
	if (err)
		return err;
	err = charge_holes(write, &holes);
	if (err) {
		pagetable_prune(fs->blocks, &inode->table, write->first,
				write->last);
		return err;
	}
	attributes_kill_privileges(fs, inode, write->kill_privileges);
	/*
	 * The size first: after a crash in between the file ends in a hole,
	 * and not in bytes past its end that are not zero.
	 */
	if (write->end > file_size(inode))
		atomic_store_explicit(&inode->size, write->end,
				      memory_order_release);
	swap_pages(write, UINT64_MAX, holes);
	return 0;
}

/* Asked without a lock, the answer is a hint. */
static bool may_share(const struct write *write)
{
	return write->nr_partial < 2 && write->end <= file_size(write->inode) &&
	       !attributes_has_privileges(write->fs, write->inode,
					  write->kill_privileges);
}

static bool bases_are_current(const struct write *write)
{
	unsigned int i;

	for (i = 0; i < write->nr_partial; i++) {
		store_cell *cell = write_cell(write, write->partial[i]);

		if (write->base[i] !=
		    (cell ? atomic_load_explicit(cell, memory_order_relaxed)
			  : STORE_HOLE))
			return false;
	}
	return true;
}

static int publish(struct write *write)
{
	struct fs *fs = write->fs;
	int err = -EAGAIN;

	if (may_share(write)) {
		inode_lock_shared(fs, write->ino);
		if (may_share(write) &&
		    pagetable_covers(fs->blocks, &write->inode->table,
				     write->first, write->last)) {
			err = publish_shared(write);
			inode_unlock(fs, write->ino);
			return err;
		}
		inode_unlock(fs, write->ino);
	}
	inode_lock_exclusive(fs, write->ino);
	file_forget_stale(fs, write->inode, write->end);
	if (bases_are_current(write))
		err = publish_exclusive(write);
	inode_unlock(fs, write->ino);
	return err;
}

/* --- the whole --------------------------------------------------------- */

/* All in one critical section: only the disk-full kind of failure is left. */
static int write_partial_locked(struct write *write)
{
	int err;

	inode_lock_exclusive(write->fs, write->ino);
	file_forget_stale(write->fs, write->inode, write->end);
	err = write_put_partial_pages(write, true);
	if (!err)
		err = publish_exclusive(write);
	inode_unlock(write->fs, write->ino);
	return err;
}

/* -EAGAIN: another writer was quicker; the partial pages have to be remade. */
static int write_partial(struct write *write)
{
	int err;

	/* A page that cannot be shared once more can be read under the lock. */
	if (write_share_bases(write))
		return -EAGAIN;
	err = write_put_partial_pages(write, false);
	if (!err)
		err = publish(write);
	return err;
}

static bool fills_a_hole(const struct write *write)
{
	uint64_t index;
	bool found = false;

	inode_lock_shared(write->fs, write->ino);
	for (index = write->first; !found && index <= write->last; index++) {
		const store_cell *cell = write_cell(write, index);

		/* Relaxed: whether there is a page, not what is in it. */
		found = !cell ||
			!atomic_load_explicit(cell, memory_order_relaxed);
	}
	inode_unlock(write->fs, write->ino);
	return found;
}

/* What is left may be kept for others: see fs_set_reserve(). */
static bool is_reserved(const struct write *write)
{
	unsigned int reserve =
		atomic_load_explicit(&write->fs->reserve, memory_order_relaxed);

	if (write->first == write->last)
		reserve /= 2;
	return reserve && arena_is_full(write->fs->arena, reserve) &&
	       fills_a_hole(write);
}

static int write_piece(struct write *write)
{
	unsigned int attempt;
	int err;

	write_begin(write);
	if (is_reserved(write))
		return -ENOSPC;
	err = write_put_whole_pages(write);
	if (!err)
		err = -EAGAIN;
	for (attempt = 0; err == -EAGAIN && attempt < WRITE_ATTEMPTS;
	     attempt++) {
		write_drop_partial_pages(write);
		err = write->nr_partial ? write_partial(write) : publish(write);
	}
	if (err == -EAGAIN) {
		write_drop_partial_pages(write);
		err = write_partial_locked(write);
	}
	write_drop(write);
	return err;
}

/* Pieces that one after the other are whole or not at all. */
static ssize_t write_pieces(struct write *write, const char *buffer,
			    size_t size, uint64_t offset)
{
	size_t done = 0;

	while (done < size) {
		size_t room;
		int err;

		write->buffer = buffer + done;
		write->offset = offset + done;
		/*
		 * A page more than FS_WRITE_PAGES, so that so many bytes are
		 * one piece wherever they begin.
		 */
		room = (FS_WRITE_PAGES + 1) * (size_t)PAGE_SIZE -
		       (write->offset & PAGE_MASK);
		if (room > size - done)
			room = size - done;
		write->end = write->offset + room;
		err = write_piece(write);
		if (err)
			return done ? (ssize_t)done : err;
		done += room;
	}
	return done;
}

ssize_t file_write(struct fs *fs, ino_t ino, const void *buffer, size_t size,
		   off_t offset, bool kill_priv)
{
	struct write write;
	ssize_t result;
	int err;

	if (offset < 0)
		return -EINVAL;
	if (size > FS_SIZE_MAX - (uint64_t)offset)
		return -EFBIG;
	err = file_get(fs, ino, &write.inode);
	if (err)
		return err;
	write.fs = fs;
	write.ino = ino;
	write.kill_privileges = kill_priv;
	fs_enter(fs);
	result = write_pieces(&write, buffer, size, offset);
	fs_leave(fs);
	return result;
}

/*
 * A write that was cut short by a crash can be done once more: it has not
 * been answered, so it is still to happen. One that was complete is not, as
 * others may have written there since.
 */
ssize_t fs_write(struct fs *fs, ino_t ino, const void *buffer, size_t size,
		 off_t offset, bool kill_priv)
{
	int64_t result;

	if (answer_again(&result))
		return result;
	result = file_write(fs, ino, buffer, size, offset, kill_priv);
	if (result > 0)
		answer_done(result);
	return result;
}
