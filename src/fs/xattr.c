/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xattr.c - the chain of an inode's extended attributes
 *
 * Owns the layout of the chain's blocks. Which names exist, and what setting
 * them does besides, is xattr_access.c's.
 */
#include "fs/xattr.h"

#include <stdatomic.h>
#include <string.h>
#include <errno.h>

#include "fault.h"
#include "fs/blob.h"
#include "fs/fs_private.h"

/*
 * Values that make the block larger than this go into a blob: the slab's sizes
 * are far apart above.
 */
#define XATTR_INLINE_MAX 512

struct xattr {
	_Atomic uint32_t next;
	uint32_t blob; /* SLAB_NONE: the value follows the name */
	uint32_t size; /* of the value */
	uint8_t name_length;
	char name[];
};

#define XATTR_HEADER offsetof(struct xattr, name)

static struct xattr *xattr_block(const struct fs *fs, uint32_t block)
{
	return slab_address(fs->blocks, block);
}

static bool has_name(const struct xattr *xattr, const char *name, size_t length)
{
	return xattr->name_length == length &&
	       memcmp(xattr->name, name, length) == 0;
}

/* The word that names the attribute's block; of the last when there is none. */
static _Atomic uint32_t *find_link(const struct fs *fs, struct inode *inode,
				   const char *name)
{
	size_t length = strlen(name);
	_Atomic uint32_t *link = &inode->xattr;

	while (*link) {
		struct xattr *xattr = xattr_block(fs, *link);

		if (has_name(xattr, name, length))
			break;
		link = &xattr->next;
	}
	return link;
}

uint32_t xattr_find(const struct fs *fs, const struct inode *inode,
		    const char *name)
{
	return *find_link(fs, (struct inode *)inode, name);
}

size_t xattr_size(const struct fs *fs, uint32_t block)
{
	return xattr_block(fs, block)->size;
}

void xattr_read(const struct fs *fs, uint32_t block, void *value)
{
	const struct xattr *xattr = xattr_block(fs, block);

	if (xattr->blob)
		blob_read(fs, xattr->blob, value, xattr->size);
	else if (xattr->size)
		memcpy(value, xattr->name + xattr->name_length, xattr->size);
}

int xattr_make(struct fs *fs, const char *name, const void *value, size_t size,
	       unsigned int flags, uint32_t *block)
{
	size_t length = strlen(name);
	size_t needed = XATTR_HEADER + length + size;
	uint32_t blob = SLAB_NONE;
	struct xattr *xattr;
	int error;

	if (needed > XATTR_INLINE_MAX) {
		error = blob_make(fs, value, size, flags, &blob);
		if (error)
			return error;
		needed -= size;
	}
	error = slab_alloc(fs->blocks, needed, flags, block);
	if (error) {
		blob_free(fs, blob);
		return error;
	}
	xattr = xattr_block(fs, *block);
	xattr->blob = blob;
	xattr->size = size;
	xattr->name_length = length;
	memcpy(xattr->name, name, length);
	if (!blob && size)
		memcpy(xattr->name + length, value, size);
	return 0;
}

void xattr_discard(struct fs *fs, uint32_t block)
{
	if (block == SLAB_NONE)
		return;
	blob_free(fs, xattr_block(fs, block)->blob);
	slab_free(fs->blocks, block);
}

static void set_capable(struct inode *inode, bool capable)
{
	uint32_t mode = inode->mode & ~INODE_CAPABLE;

	inode->mode = capable ? mode | INODE_CAPABLE : mode;
}

void xattr_install(struct fs *fs, struct inode *inode, const char *name,
		   uint32_t block)
{
	_Atomic uint32_t *link = find_link(fs, inode, name);
	uint32_t old = *link;
	uint32_t next = old ? xattr_block(fs, old)->next : SLAB_NONE;

	if (block) {
		atomic_store_explicit(&xattr_block(fs, block)->next, next,
				      memory_order_relaxed);
		next = block;
	}
	fault_point("xattr to be linked");
	/* Release: the block is complete before anything names it. */
	atomic_store_explicit(link, next, memory_order_release);
	fault_point("xattr linked");
	xattr_discard(fs, old);
	if (strcmp(name, XATTR_CAPABILITY) == 0)
		set_capable(inode, block != SLAB_NONE);
}

void xattr_release(struct fs *fs, struct inode *inode)
{
	uint32_t block = inode->xattr;

	inode->xattr = SLAB_NONE;
	while (block) {
		uint32_t next = xattr_block(fs, block)->next;

		xattr_discard(fs, block);
		block = next;
	}
}

bool xattr_is_in(const struct fs *fs, const struct inode *inode, uint32_t block)
{
	uint32_t at = inode->xattr;

	while (at && at != block)
		at = xattr_block(fs, at)->next;
	return at != SLAB_NONE;
}

bool xattr_is_capable(const struct fs *fs, const struct inode *inode)
{
	return xattr_find(fs, inode, XATTR_CAPABILITY) != SLAB_NONE;
}

size_t xattr_list(const struct fs *fs, const struct inode *inode, char *list)
{
	size_t size = 0;

	for (uint32_t block = inode->xattr; block;
	     block = xattr_block(fs, block)->next) {
		const struct xattr *xattr = xattr_block(fs, block);

		if (list) {
			memcpy(list + size, xattr->name, xattr->name_length);
			list[size + xattr->name_length] = '\0';
		}
		size += xattr->name_length + 1;
	}
	return size;
}

static int claim_one(const struct fs *fs, uint32_t block, struct slab_map *map)
{
	const struct xattr *xattr = xattr_block(fs, block);
	size_t needed = XATTR_HEADER;
	int error = slab_claim(map, block);

	if (error)
		return error;
	needed += xattr->name_length;
	if (!xattr->blob)
		needed += xattr->size;
	if (xattr->name_length == 0 || xattr->size > BLOB_MAX ||
	    needed > slab_size(fs->blocks, block))
		return -EINVAL;
	return xattr->blob ? blob_claim(fs, xattr->blob, xattr->size, map) : 0;
}

int xattr_claim(struct fs *fs, struct inode *inode, struct slab_map *map,
		bool cut)
{
	_Atomic uint32_t *link = &inode->xattr;

	while (*link) {
		int error = claim_one(fs, *link, map);

		if (error) {
			if (cut)
				*link = SLAB_NONE;
			return error;
		}
		link = &xattr_block(fs, *link)->next;
	}
	return 0;
}
