/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * limits.c - what may be used of pages (size=) and inodes (nr_inodes=)
 *
 * Owns the counters and bounds in struct fs_root. A bound is never passed, not
 * even for a moment: a counter moves by compare-and-swap from one allowed
 * value to another, so a large request that fails cannot make a small one
 * beside it fail.
 *
 * A bound may be lowered while charges go on. Whoever charges looks at the
 * bound again afterwards, whoever lowers it looks at the counter afterwards;
 * with sequentially consistent accesses at least one of them sees the other
 * and steps back.
 */
#include <errno.h>

#include "fs/fs_private.h"

/* A bound of 0 is none. Written so that used + wanted cannot overflow. */
static bool fits(uint64_t bound, uint64_t used, uint64_t wanted)
{
	return bound == 0 || (used <= bound && wanted <= bound - used);
}

static int charge(_Atomic uint64_t *used, _Atomic uint64_t *bound,
		  uint64_t wanted)
{
	uint64_t now = atomic_load_explicit(used, memory_order_seq_cst);

	if (wanted == 0)
		return 0;
	do {
		if (!fits(atomic_load_explicit(bound, memory_order_seq_cst),
			  now, wanted))
			return -ENOSPC;
	} while (!atomic_compare_exchange_weak_explicit(
		used, &now, now + wanted, memory_order_seq_cst,
		memory_order_seq_cst));
	if (fits(atomic_load_explicit(bound, memory_order_seq_cst), now,
		 wanted))
		return 0;
	atomic_fetch_sub_explicit(used, wanted, memory_order_seq_cst);
	return -ENOSPC;
}

int limits_charge_pages(struct fs *fs, uint64_t pages)
{
	return charge(&fs->root->used_pages, &fs->root->size_pages, pages);
}

void limits_uncharge_pages(struct fs *fs, uint64_t pages)
{
	if (pages)
		atomic_fetch_sub_explicit(&fs->root->used_pages, pages,
					  memory_order_seq_cst);
}

void fs_set_reserve(struct fs *fs, unsigned int pages)
{
	/* Relaxed: nothing else goes with it. */
	atomic_store_explicit(&fs->reserve, pages, memory_order_relaxed);
}

int limits_charge_inode(struct fs *fs)
{
	return charge(&fs->root->used_inodes, &fs->root->nr_inodes, 1);
}

void limits_uncharge_inode(struct fs *fs)
{
	atomic_fetch_sub_explicit(&fs->root->used_inodes, 1,
				  memory_order_seq_cst);
}

int limits_charge_name(struct fs *fs, const struct inode *inode)
{
	return inode->nlink ? limits_charge_inode(fs) : 0;
}

void limits_uncharge_name(struct fs *fs, const struct inode *inode)
{
	if (inode->nlink)
		limits_uncharge_inode(fs);
}
