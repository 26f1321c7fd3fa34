/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * blob.c - strings of bytes as chains of blocks
 *
 * Owns the layout of the chain's blocks and nothing else. Locking is that of
 * the inode the blob belongs to.
 */
#include "fs/blob.h"

#include <errno.h>
#include <string.h>

#include "fs/fs_private.h"

struct blob_block {
	uint32_t next;
	char bytes[];
};

#define BLOB_HEADER offsetof(struct blob_block, bytes)

/*
 * How large a block to take for what is left. Large sizes are far apart, so
 * the largest power of two that is filled comes first, and the rest in a
 * smaller block.
 */
static size_t block_size(size_t left)
{
	size_t size = left + BLOB_HEADER;

	for (size_t large = PAGE_SIZE; large >= 512; large /= 2) {
		if (size >= large)
			return large;
	}
	return size;
}

static struct blob_block *blob_block(const struct fs *fs, uint32_t blob)
{
	return slab_address(fs->blocks, blob);
}

static size_t bytes_in(const struct fs *fs, uint32_t blob, size_t left)
{
	size_t room = slab_size(fs->blocks, blob) - BLOB_HEADER;

	return left < room ? left : room;
}

int blob_make(struct fs *fs, const void *bytes, size_t size, unsigned int flags,
	      uint32_t *blob)
{
	const char *from = bytes;
	uint32_t *link = blob;

	*blob = SLAB_NONE;
	while (size) {
		uint32_t block;
		size_t length;
		int error =
			slab_alloc(fs->blocks, block_size(size), flags, &block);

		if (error) {
			blob_free(fs, *blob);
			*blob = SLAB_NONE;
			return error;
		}
		length = bytes_in(fs, block, size);
		memcpy(blob_block(fs, block)->bytes, from, length);
		*link = block;
		link = &blob_block(fs, block)->next;
		from += length;
		size -= length;
	}
	return 0;
}

void blob_read(const struct fs *fs, uint32_t blob, void *buffer, size_t size)
{
	char *to = buffer;

	while (size) {
		size_t length = bytes_in(fs, blob, size);

		memcpy(to, blob_block(fs, blob)->bytes, length);
		to += length;
		size -= length;
		blob = blob_block(fs, blob)->next;
	}
}

void blob_free(struct fs *fs, uint32_t blob)
{
	while (blob) {
		uint32_t next = blob_block(fs, blob)->next;

		slab_free(fs->blocks, blob);
		blob = next;
	}
}

int blob_claim(const struct fs *fs, uint32_t blob, size_t size,
	       struct slab_map *map)
{
	while (size) {
		int error;

		if (!blob)
			return -EINVAL;
		error = slab_claim(map, blob); /* proves the number, too */
		if (error)
			return error;
		size -= bytes_in(fs, blob, size);
		blob = blob_block(fs, blob)->next;
	}
	return blob ? -EINVAL : 0;
}
