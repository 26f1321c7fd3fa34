/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lz4.c - LZ4 blocks, by liblz4
 *
 * The level is the library's acceleration: 1 compresses best, higher is
 * faster. Format: lz4_Block_format.md of the LZ4 project.
 */
#include "codec/codec.h"

#include <errno.h>
#include <lz4.h>
#include <stdlib.h>

/*
 * LZ4_ACCELERATION_MAX; not in the public header, but documented there, at
 * LZ4_compress_fast(). The library lowers anything above it without a word.
 */
#define ACCELERATION_MAX 65537

struct lz4_stream {
	int acceleration;
	LZ4_stream_t state;
};

static int lz4_level_min(void)
{
	return 1;
}

static int lz4_level_max(void)
{
	return ACCELERATION_MAX;
}

static void *lz4_create(int level, unsigned int use, size_t most)
{
	struct lz4_stream *stream =
		malloc(use & CODEC_TO_COMPRESS ? sizeof(*stream) : sizeof(int));

	if (stream)
		stream->acceleration = level;
	return stream;
}

static size_t lz4_bytes(const void *stream)
{
	return sizeof(struct lz4_stream);
}

static int lz4_compress(void *opaque, const void *src, size_t src_len,
			void *dst, size_t dst_capacity)
{
	struct lz4_stream *stream = opaque;
	int capacity = LZ4_compressBound((int)src_len);
	int len;

	if (dst_capacity < (size_t)capacity)
		capacity = (int)dst_capacity;
	len = LZ4_compress_fast_extState(&stream->state, src, dst, (int)src_len,
					 capacity, stream->acceleration);
	return len > 0 ? len : -ENOSPC;
}

static int lz4_decompress(void *opaque, const void *src, size_t src_len,
			  void *dst, size_t dst_len)
{
	if (src_len > (size_t)LZ4_compressBound((int)dst_len))
		return -EIO;
	if (LZ4_decompress_safe(src, dst, (int)src_len, (int)dst_len) !=
	    (int)dst_len)
		return -EIO;
	return 0;
}

const struct codec_ops codec_lz4 = {
	.id = CODEC_LZ4,
	.name = "lz4",
	.level_name = "acceleration",
	.level_min = lz4_level_min,
	.level_max = lz4_level_max,
	.level_default = 1,
	.create = lz4_create,
	.destroy = free,
	.bytes = lz4_bytes,
	.compress = lz4_compress,
	.decompress = lz4_decompress,
};
