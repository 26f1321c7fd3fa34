/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * deflate.c - raw DEFLATE (RFC 1951), by libdeflate
 */
#include "codec/codec.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>

struct deflate_stream {
	struct libdeflate_compressor *compressor;
	struct libdeflate_decompressor *decompressor;
};

/* The library documents these two, but gives them no name. */
static int deflate_level_min(void)
{
	return 0;
}

static int deflate_level_max(void)
{
	return 12;
}

static void deflate_destroy(void *opaque)
{
	struct deflate_stream *stream = opaque;

	/* Both take NULL. */
	libdeflate_free_compressor(stream->compressor);
	libdeflate_free_decompressor(stream->decompressor);
	free(stream);
}

static void *deflate_create(int level, unsigned int use)
{
	struct deflate_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	if (use & CODEC_TO_COMPRESS)
		stream->compressor = libdeflate_alloc_compressor(level);
	if (use & CODEC_TO_DECOMPRESS)
		stream->decompressor = libdeflate_alloc_decompressor();
	if ((use & CODEC_TO_COMPRESS && !stream->compressor) ||
	    (use & CODEC_TO_DECOMPRESS && !stream->decompressor)) {
		deflate_destroy(stream);
		return NULL;
	}
	return stream;
}

static int deflate_compress(void *opaque, const void *page, void *dst,
			    size_t dst_capacity)
{
	struct deflate_stream *stream = opaque;
	size_t len = libdeflate_deflate_compress(
		stream->compressor, page, CODEC_PAGE_SIZE, dst, dst_capacity);

	return len ? (int)len : -ENOSPC;
}

static int deflate_decompress(void *opaque, const void *src, size_t src_len,
			      void *page)
{
	struct deflate_stream *stream = opaque;
	size_t used;

	/* The library stops at the stream's end, whatever follows. */
	if (libdeflate_deflate_decompress_ex(stream->decompressor, src, src_len,
					     page, CODEC_PAGE_SIZE, &used,
					     NULL) != LIBDEFLATE_SUCCESS ||
	    used != src_len)
		return -EIO;
	return 0;
}

const struct codec_ops codec_deflate = {
	.id = CODEC_DEFLATE,
	.name = "deflate",
	.level_name = "level",
	.level_min = deflate_level_min,
	.level_max = deflate_level_max,
	.level_default = 6,
	.create = deflate_create,
	.destroy = deflate_destroy,
	.compress = deflate_compress,
	.decompress = deflate_decompress,
};
