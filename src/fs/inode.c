/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inode.c - inodes by number: their locks, their birth and death
 *
 * Owns the blocks of the INODES slab. Knows no names: who gives an inode one,
 * or takes it away, counts that in nlink and asks here whether it has died.
 */
#include <errno.h>

#include "fault.h"
#include "fs/blob.h"
#include "fs/fs_private.h"
#include "fs/xattr.h"

/* As tmpfs shows directories: this much for each entry, "." and ".." too. */
#define DIRECTORY_ENTRY_SIZE 20

#define INODE_UNITS (sizeof(struct inode) >> SLAB_UNIT_SHIFT)

/* 12 units do not divide the first page's start, so 1 is no block's number. */
_Static_assert(FS_ROOT_INO % INODE_UNITS != 0, "the root's number is free");

uint32_t inode_block(const struct fs *fs, ino_t ino)
{
	if (ino == FS_ROOT_INO)
		return fs->root->root_block;
	return ino;
}

ino_t inode_number(const struct fs *fs, uint32_t block)
{
	return block == fs->root->root_block ? FS_ROOT_INO : block;
}

/* Whether the slab has a block there, live or free. */
static bool is_inode_block(const struct fs *fs, uint64_t block)
{
	uint64_t page = block >> SLAB_SHIFT;
	uint32_t unit = block & ((1u << SLAB_SHIFT) - 1);

	if (block == SLAB_NONE || block > UINT32_MAX ||
	    page >= arena_extent(fs->arena, ARENA_INODES))
		return false;
	if (unit % INODE_UNITS != 0 ||
	    unit + INODE_UNITS > PAGE_SIZE >> SLAB_UNIT_SHIFT)
		return false;
	return arena_frame(fs->arena, ARENA_INODES, page)->kind != 0;
}

struct inode *inode_get(const struct fs *fs, ino_t ino)
{
	uint64_t block = ino == FS_ROOT_INO ? fs->root->root_block : ino;
	struct inode *inode;

	if (ino != FS_ROOT_INO && ino == fs->root->root_block)
		return NULL; /* the root has one number only */
	if (!is_inode_block(fs, block))
		return NULL;
	inode = slab_address(fs->inodes, block);
	/* Acquire: pairs with the store of the mode that made it live. */
	if (!atomic_load_explicit(&inode->mode, memory_order_acquire))
		return NULL;
	return inode;
}

/*
 * Numbers differ in their middle bits, a page's inodes by 12; multiplying with
 * 2^32 over the golden ratio spreads them (Knuth, TAOCP 3, 6.4).
 */
static unsigned int inode_stripe(ino_t ino)
{
	_Static_assert(FS_INODE_LOCKS == 256, "eight bits choose a stripe");
	return (uint32_t)((uint32_t)ino * 0x9e3779b1u) >> 24;
}

void inode_lock_shared(struct fs *fs, ino_t ino)
{
	pthread_rwlock_rdlock(&fs->inode_locks[inode_stripe(ino)].lock);
}

void inode_lock_exclusive(struct fs *fs, ino_t ino)
{
	pthread_rwlock_wrlock(&fs->inode_locks[inode_stripe(ino)].lock);
}

void inode_unlock(struct fs *fs, ino_t ino)
{
	pthread_rwlock_unlock(&fs->inode_locks[inode_stripe(ino)].lock);
}

static void lock_stripe(struct fs *fs, unsigned int stripe, bool exclusive)
{
	pthread_rwlock_t *lock = &fs->inode_locks[stripe].lock;

	if (exclusive)
		pthread_rwlock_wrlock(lock);
	else
		pthread_rwlock_rdlock(lock);
}

void inode_lock_two(struct fs *fs, ino_t exclusive, ino_t other,
		    bool other_exclusive)
{
	unsigned int one = inode_stripe(exclusive);
	unsigned int two = inode_stripe(other);

	if (one == two) {
		lock_stripe(fs, one, true);
	} else if (one < two) {
		lock_stripe(fs, one, true);
		lock_stripe(fs, two, other_exclusive);
	} else {
		lock_stripe(fs, two, other_exclusive);
		lock_stripe(fs, one, true);
	}
}

void inode_unlock_two(struct fs *fs, ino_t one, ino_t other)
{
	if (inode_stripe(one) != inode_stripe(other))
		inode_unlock(fs, other);
	inode_unlock(fs, one);
}

void inode_stat(const struct fs *fs, ino_t ino, struct inode *inode,
		struct stat *attr)
{
	uint32_t mode = inode->mode & 0xffff;

	*attr = (struct stat){
		.st_ino = ino,
		.st_mode = mode,
		.st_nlink = inode->nlink,
		.st_uid = inode->uid,
		.st_gid = inode->gid,
		.st_rdev = inode->rdev,
		.st_blksize = PAGE_SIZE,
		.st_atim = inode_timespec(inode->atime),
		.st_mtim = inode_timespec(inode->mtime),
		.st_ctim = inode_show_ctime(inode),
	};
	if (S_ISDIR(mode)) {
		attr->st_size = (inode->entries + 2) * DIRECTORY_ENTRY_SIZE;
	} else {
		attr->st_size = inode->size;
		attr->st_blocks = inode->pages * (PAGE_SIZE / 512);
	}
}

int inode_alloc(struct fs *fs, uint32_t *block)
{
	struct inode *inode;
	int error;

	error = limits_charge_inode(fs);
	if (error)
		return error;
	error = slab_alloc(fs->inodes, sizeof(struct inode), 0, block);
	if (error) {
		limits_uncharge_inode(fs);
		return error;
	}
	inode = slab_address(fs->inodes, *block);
	inode->generation = atomic_fetch_add_explicit(&fs->root->generation, 1,
						      memory_order_relaxed) +
			    1;
	return 0;
}

static void inode_free(struct fs *fs, uint32_t block)
{
	slab_free(fs->inodes, block);
	limits_uncharge_inode(fs);
}

void inode_discard(struct fs *fs, uint32_t block)
{
	struct inode *inode = slab_address(fs->inodes, block);

	xattr_release(fs, inode);
	inode_free(fs, block);
}

uint32_t inode_bury(struct fs *fs, ino_t ino)
{
	struct inode *inode = inode_get(fs, ino);
	uint32_t block = inode_block(fs, ino);
	mode_t mode;

	/*
	 * Two may come to bury the same inode, the second even after its block
	 * was given out again: dead is whoever has no name and no lookup under
	 * this lock, so the second finds nobody, or does the third's work.
	 */
	if (!inode || inode->nlink || inode->lookups)
		return SLAB_NONE;

	mode = inode->mode;
	fault_point("inode to die");
	/* Release: what the death was decided by is seen before it. */
	atomic_store_explicit(&inode->mode, 0, memory_order_release);
	if (!S_ISLNK(mode))
		inode->target = SLAB_NONE; /* was a directory's parent */
	if (inode->table.root || inode->table.first || inode->xattr ||
	    inode->target)
		return block;
	inode_free(fs, block);
	return SLAB_NONE;
}

void inode_release(struct fs *fs, uint32_t block)
{
	struct inode *inode;

	if (block == SLAB_NONE)
		return;
	inode = slab_address(fs->inodes, block);
	fault_point("inode dead");
	file_release(fs, inode);
	xattr_release(fs, inode);
	blob_free(fs, inode->target);

	pthread_rwlock_wrlock(&fs->namespace_lock);
	inode_free(fs, block);
	pthread_rwlock_unlock(&fs->namespace_lock);
}
