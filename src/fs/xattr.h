/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xattr.h - extended attributes: a chain of blocks for each inode
 *
 * A block holds one attribute: its name, and its value or the blob that has
 * it. The chain is short, and searched in order. Changing an attribute makes a
 * new block and puts it into the old one's place by one store, so that after a
 * crash there is the old value or the new.
 *
 * Under the inode's lock: shared to find and read, exclusive to change.
 * Functions here know nothing of what a name means, but for
 * security.capability (see INODE_CAPABLE).
 */
#ifndef ZRAMFS_XATTR_H
#define ZRAMFS_XATTR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "arena/slab.h"

#define XATTR_CAPABILITY "security.capability"

struct fs;
struct inode;

/* SLAB_NONE if there is none. */
uint32_t xattr_find(const struct fs *fs, const struct inode *inode,
		    const char *name);
/* Length of the value. */
size_t xattr_size(const struct fs *fs, uint32_t block);
/* All of the value, xattr_size() bytes. */
void xattr_read(const struct fs *fs, uint32_t block, void *value);

/*
 * A block for an attribute, in no chain yet; xattr_discard() takes it back.
 * -ENOSPC. name: 1 to 255 bytes; size: up to BLOB_MAX. flags: ARENA_RESERVE
 * or 0.
 */
int xattr_make(struct fs *fs, const char *name, const void *value, size_t size,
	       unsigned int flags, uint32_t *block);
void xattr_discard(struct fs *fs, uint32_t block);

/*
 * Put a block that was made for that name into the inode's chain, in place of
 * the attribute of that name if there is one. SLAB_NONE removes. Cannot fail.
 */
void xattr_install(struct fs *fs, struct inode *inode, const char *name,
		   uint32_t block);

/*
 * The names, each with a terminating zero, one after the other; returns their
 * length. list: room for as much, or NULL to ask for the length.
 */
size_t xattr_list(const struct fs *fs, const struct inode *inode, char *list);

/* Free all, of an inode that nobody can reach. */
void xattr_release(struct fs *fs, struct inode *inode);

/* Whether the block is in the inode's chain. */
bool xattr_is_in(const struct fs *fs, const struct inode *inode,
		 uint32_t block);

/* Whether INODE_CAPABLE has to be set. */
bool xattr_is_capable(const struct fs *fs, const struct inode *inode);

/*
 * Claim all blocks of the chain. -EEXIST, -ERANGE, -EINVAL when it is damaged;
 * with cut, the chain then ends before the damage.
 */
int xattr_claim(struct fs *fs, struct inode *inode, struct slab_map *map,
		bool cut);

#endif
