/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walk_inode.c - the walk over the truth: one inode
 *
 * Claims what belongs to the inode, and compares, or with repair sets, what is
 * derived from its names, its table and its xattrs. Directories' tables and
 * names have been walked before (walk.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "fs/acl.h"
#include "fs/blob.h"
#include "fs/fs_private.h"
#include "fs/walk.h"
#include "fs/xattr.h"

/*
 * Follow a directory's parents to where the answer is known, or in a circle.
 * All on the way get the same answer, so that all directories together take
 * as many steps as there are directories.
 */
static uint32_t find_state(struct walk *walk, uint32_t block)
{
	struct walk_record *first = walk_record(walk, block);
	struct walk_record *record = first;
	uint32_t state;

	while (record->state == WALK_UNKNOWN && record->parent) {
		record->state = WALK_ASKING;
		record = walk_record(walk,
				     inode_block(walk->fs, record->parent));
	}
	state = record->state == WALK_CONNECTED ? WALK_CONNECTED : WALK_LOST;
	for (record = first; record->state == WALK_ASKING;
	     record = walk_record(walk, inode_block(walk->fs, record->parent)))
		record->state = state;
	return state;
}

static void walk_names(struct walk *walk, ino_t ino, uint32_t block,
		       struct inode *inode)
{
	const struct walk_record *record = walk_record(walk, block);
	uint32_t nlink = record->names;

	/* After a crash they are to be expected: recovery drops them. */
	if (ino != FS_ROOT_INO && !record->names && !inode->lookups &&
	    !walk->repair)
		walk_error(walk, 1, "inode %ju: neither names nor lookups",
			   (uintmax_t)ino);
	if (S_ISDIR(inode->mode)) {
		if (ino == FS_ROOT_INO || record->names)
			nlink = 2 + record->subdirectories;
		if (record->names && find_state(walk, block) == WALK_LOST)
			walk_error(walk, 1,
				   "directory %ju: not to be reached from the "
				   "root",
				   (uintmax_t)ino);
		if (record->names && inode->parent != record->parent)
			walk_difference(walk, 1,
					"directory %ju: its parent is %u, not "
					"%u",
					(uintmax_t)ino, record->parent,
					inode->parent);
		if (walk->repair && record->names)
			inode->parent = record->parent;
		else if (walk->repair)
			inode->parent = ino == FS_ROOT_INO ? FS_ROOT_INO : 0;
	} else if (nlink) {
		walk->check->links += nlink - 1;
	}
	if (inode->nlink != nlink)
		walk_difference(walk, 1,
				"inode %ju: %u links counted, %u found",
				(uintmax_t)ino, inode->nlink, nlink);
	if (walk->repair)
		inode->nlink = nlink;
}

static void walk_page(struct walk *walk, ino_t ino, uint64_t index,
		      store_cell *cell)
{
	if (store_claim(walk->store_map, *cell) == 0) {
		walk->check->pages++;
		return;
	}
	walk_error(walk, 1, "inode %ju: page %" PRIu64 " refers to nothing",
		   (uintmax_t)ino, index);
	/*
	 * The reference would soon be some other page's, and data of another
	 * file is worse than a hole.
	 */
	if (walk->repair)
		*cell = STORE_HOLE;
}

static void walk_pages(struct walk *walk, ino_t ino, struct inode *inode)
{
	const struct slab *blocks = walk->fs->blocks;
	uint64_t index = 0, pages = walk->check->pages;
	store_cell *cell;

	if (pagetable_claim(blocks, &inode->table, walk->blocks)) {
		walk_error(walk, 1, "inode %ju: its page table is damaged",
			   (uintmax_t)ino);
		if (!walk->repair)
			return;
		inode->table.root = 0;
		inode->table.first = 0;
	}
	for (; (cell = pagetable_next(blocks, &inode->table, &index,
				      PAGETABLE_INDEX_MAX));
	     index++)
		walk_page(walk, ino, index, cell);
	pages = walk->check->pages - pages;
	if (inode->pages != pages)
		walk_difference(walk, 1,
				"inode %ju: %" PRIu64 " pages counted, %" PRIu64
				" found",
				(uintmax_t)ino, (uint64_t)inode->pages, pages);
	if (walk->repair)
		inode->pages = pages;
}

static void walk_target(struct walk *walk, ino_t ino, struct inode *inode)
{
	if (inode->size <= BLOB_MAX &&
	    blob_claim(walk->fs, inode->target, inode->size, walk->blocks) == 0)
		return;
	walk_error(walk, 1, "inode %ju: its symlink target is damaged",
		   (uintmax_t)ino);
	if (walk->repair) {
		inode->target = SLAB_NONE;
		inode->size = 0;
	}
}

/* The permission bits that go with the inode's list; -1: it has none. */
static int listed_mode(const struct fs *fs, const struct inode *inode)
{
	uint32_t block = xattr_find(fs, inode, ACL_NAME_ACCESS);
	char acl[BLOB_MAX];
	size_t size;

	if (!block)
		return -1;
	size = xattr_size(fs, block);
	xattr_read(fs, block, acl);
	return acl_validate(acl, size) ? -1 : (int)acl_mode(acl, size);
}

static void walk_xattrs(struct walk *walk, ino_t ino, struct inode *inode)
{
	uint32_t mode = inode->mode & ~INODE_CAPABLE;
	int listed;

	if (xattr_claim(walk->fs, inode, walk->blocks, walk->repair)) {
		walk_error(walk, 1, "inode %ju: its xattrs are damaged",
			   (uintmax_t)ino);
		if (!walk->repair)
			return;
	}
	if (xattr_is_capable(walk->fs, inode))
		mode |= INODE_CAPABLE;
	listed = listed_mode(walk->fs, inode);
	if (listed >= 0)
		mode = (mode & ~0777u) | listed;
	if (inode->mode != mode)
		walk_difference(walk, 1,
				"inode %ju: its mode is not what its xattrs "
				"say",
				(uintmax_t)ino);
	if (walk->repair)
		inode->mode = mode;
}

int walk_inode(void *context, uint32_t block, void *address)
{
	struct walk *walk = context;
	struct inode *inode = address;
	ino_t ino = inode_number(walk->fs, block);

	if (!inode->mode)
		return 0;
	walk->check->inodes++;
	if (slab_claim(walk->inodes, block))
		walk_error(walk, 1, "inode %ju: no block can be there",
			   (uintmax_t)ino);
	walk_names(walk, ino, block, inode);
	walk_xattrs(walk, ino, inode);
	switch (inode->mode & S_IFMT) {
	case S_IFREG:
		walk_pages(walk, ino, inode);
		break;
	case S_IFLNK:
		walk_target(walk, ino, inode);
		break;
	case S_IFDIR:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		break;
	default:
		walk_error(walk, 1, "inode %ju: has no known type",
			   (uintmax_t)ino);
	}
	return 0;
}
