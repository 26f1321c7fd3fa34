/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lzo.c - LZO1X, by liblzo2
 *
 * liblzo2's compressor takes no bound for its output: it writes as much as
 * the worst case needs. So it writes into the stream, and what fits is copied.
 */
#include "codec/codec.h"

#include <errno.h>
#include <lzo/lzo1x.h>
#include <stdlib.h>
#include <string.h>

/* The worst case, from LZO.FAQ of the library. */
#define LZO_BOUND(len) ((len) + (len) / 16 + 64 + 3)

struct lzo_stream {
	_Alignas(16) unsigned char memory[LZO1X_1_MEM_COMPRESS];
	size_t capacity;
	unsigned char bounce[];
};

static int lzo_level(void)
{
	return 0;
}

static void *lzo_create(int level, unsigned int use, size_t most)
{
	struct lzo_stream *stream;

	/* Checks that types are as large as the library thinks. */
	if (lzo_init() != LZO_E_OK)
		return NULL;
	if (!(use & CODEC_TO_COMPRESS))
		return malloc(1);
	stream = malloc(sizeof(*stream) + LZO_BOUND(most));
	if (stream)
		stream->capacity = LZO_BOUND(most);
	return stream;
}

static size_t lzo_bytes(const void *opaque)
{
	const struct lzo_stream *stream = opaque;

	return sizeof(*stream) + stream->capacity;
}

static int lzo_compress(void *opaque, const void *src, size_t src_len,
			void *dst, size_t dst_capacity)
{
	struct lzo_stream *stream = opaque;
	lzo_uint len = stream->capacity;

	if (len < LZO_BOUND(src_len) ||
	    lzo1x_1_compress(src, src_len, stream->bounce, &len,
			     stream->memory) != LZO_E_OK ||
	    len > dst_capacity)
		return -ENOSPC;
	memcpy(dst, stream->bounce, len);
	return (int)len;
}

static int lzo_decompress(void *opaque, const void *src, size_t src_len,
			  void *dst, size_t dst_len)
{
	lzo_uint len = dst_len;

	if (lzo1x_decompress_safe(src, src_len, dst, &len, NULL) != LZO_E_OK ||
	    len != dst_len)
		return -EIO;
	return 0;
}

const struct codec_ops codec_lzo = {
	.id = CODEC_LZO,
	.name = "lzo",
	.level_name = "level",
	.level_min = lzo_level,
	.level_max = lzo_level,
	.level_default = 0,
	.create = lzo_create,
	.destroy = free,
	.bytes = lzo_bytes,
	.compress = lzo_compress,
	.decompress = lzo_decompress,
};
