/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lz4hc.c - LZ4 blocks from liblz4's high-compression matcher
 *
 * The same format as lz4.c's, read as fast, written much slower. It has a
 * number of its own so that what a page was compressed with can be told.
 */
#include "codec/codec.h"

#include <errno.h>
#include <lz4.h>
#include <lz4hc.h>
#include <stdlib.h>

struct lz4hc_stream {
	int level;
	LZ4_streamHC_t state;
};

static int lz4hc_level_min(void)
{
	return LZ4HC_CLEVEL_MIN;
}

static int lz4hc_level_max(void)
{
	return LZ4HC_CLEVEL_MAX;
}

static void *lz4hc_create(int level, unsigned int use, size_t most)
{
	struct lz4hc_stream *stream =
		malloc(use & CODEC_TO_COMPRESS ? sizeof(*stream) : sizeof(int));

	if (stream)
		stream->level = level;
	return stream;
}

static size_t lz4hc_bytes(const void *stream)
{
	return sizeof(struct lz4hc_stream);
}

static int lz4hc_compress(void *opaque, const void *src, size_t src_len,
			  void *dst, size_t dst_capacity)
{
	struct lz4hc_stream *stream = opaque;
	int capacity = LZ4_compressBound((int)src_len);
	int len;

	if (dst_capacity < (size_t)capacity)
		capacity = (int)dst_capacity;
	len = LZ4_compress_HC_extStateHC(&stream->state, src, dst, (int)src_len,
					 capacity, stream->level);
	return len > 0 ? len : -ENOSPC;
}

static int lz4hc_decompress(void *opaque, const void *src, size_t src_len,
			    void *dst, size_t dst_len)
{
	return codec_lz4.decompress(NULL, src, src_len, dst, dst_len);
}

const struct codec_ops codec_lz4hc = {
	.id = CODEC_LZ4HC,
	.name = "lz4hc",
	.level_name = "level",
	.level_min = lz4hc_level_min,
	.level_max = lz4hc_level_max,
	.level_default = LZ4HC_CLEVEL_DEFAULT,
	.create = lz4hc_create,
	.destroy = free,
	.bytes = lz4hc_bytes,
	.compress = lz4hc_compress,
	.decompress = lz4hc_decompress,
};
