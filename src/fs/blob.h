/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * blob.h - strings of bytes that need not fit in one block
 *
 * A blob is a chain of BLOCKS blocks, each with the number of the next in its
 * first four bytes and bytes in the rest. It is written once, when made, and
 * named by its first block; its length is kept by whoever owns it. A blob of
 * no bytes is SLAB_NONE.
 */
#ifndef ZRAMFS_BLOB_H
#define ZRAMFS_BLOB_H

#include <stddef.h>
#include <stdint.h>

#include "arena/slab.h"

#define BLOB_MAX 65536

struct fs;

/* -ENOSPC: nothing is kept. flags: ARENA_RESERVE or 0. */
int blob_make(struct fs *fs, const void *bytes, size_t size, unsigned int flags,
	      uint32_t *blob);

/* The first size bytes, which must be there. */
void blob_read(const struct fs *fs, uint32_t blob, void *buffer, size_t size);

/* SLAB_NONE is ignored. */
void blob_free(struct fs *fs, uint32_t blob);

/*
 * Claim the blocks of a blob of that length. -EEXIST, -ERANGE; -EINVAL when
 * the chain is shorter or longer.
 */
int blob_claim(const struct fs *fs, uint32_t blob, size_t size,
	       struct slab_map *map);

#endif
