/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * deflate.c - raw DEFLATE (RFC 1951), by libdeflate
 */
#include "codec/codec.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>

/*
 * What a compressor takes. The library does not tell; measured by mallinfo2(3)
 * with 1.14: 205 kB at level 1, 669 from 2 to 9, 9.01 MB above.
 */
static size_t compressor_bytes(int level)
{
	if (level < 2)
		return 256u << 10;
	return level < 10 ? 768u << 10 : 9u << 20;
}

struct deflate_stream {
	int level;
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

static void *deflate_create(int level, unsigned int use, size_t most)
{
	struct deflate_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->level = level;
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

static size_t deflate_bytes(const void *opaque)
{
	const struct deflate_stream *stream = opaque;

	return sizeof(*stream) + compressor_bytes(stream->level);
}

static int deflate_compress(void *opaque, const void *src, size_t src_len,
			    void *dst, size_t dst_capacity)
{
	struct deflate_stream *stream = opaque;
	size_t len = libdeflate_deflate_compress(stream->compressor, src,
						 src_len, dst, dst_capacity);

	return len ? (int)len : -ENOSPC;
}

static int deflate_decompress(void *opaque, const void *src, size_t src_len,
			      void *dst, size_t dst_len)
{
	struct deflate_stream *stream = opaque;
	size_t used;

	/* The library stops at the stream's end, whatever follows. */
	if (libdeflate_deflate_decompress_ex(stream->decompressor, src, src_len,
					     dst, dst_len, &used,
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
	.bytes = deflate_bytes,
	.compress = deflate_compress,
	.decompress = deflate_decompress,
};
