/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zstd.c - Zstandard frames (RFC 8878), by libzstd
 *
 * One frame a page, without the checksum (the store has its own) and without
 * the content size (it is always a page).
 */
#include "codec/codec.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <zstd.h>

struct zstd_stream {
	ZSTD_CCtx *compressor;
	ZSTD_DCtx *decompressor;
};

static void zstd_destroy(void *opaque)
{
	struct zstd_stream *stream = opaque;

	/* Both take NULL. */
	ZSTD_freeCCtx(stream->compressor);
	ZSTD_freeDCtx(stream->decompressor);
	free(stream);
}

static int zstd_compress(void *opaque, const void *page, void *dst,
			 size_t dst_capacity)
{
	struct zstd_stream *stream = opaque;
	size_t len = ZSTD_compress2(stream->compressor, dst, dst_capacity, page,
				    CODEC_PAGE_SIZE);

	return ZSTD_isError(len) ? -ENOSPC : (int)len;
}

static bool zstd_prepare(struct zstd_stream *stream, int level)
{
	static const char page[CODEC_PAGE_SIZE];
	char dst[64];

	if (!stream->compressor || !stream->decompressor)
		return false;
	if (ZSTD_isError(ZSTD_CCtx_setParameter(stream->compressor,
						ZSTD_c_compressionLevel,
						level)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(stream->compressor,
						ZSTD_c_contentSizeFlag, 0)))
		return false;
	/*
	 * The library allocates its tables at the first compression. Do that
	 * now: later there is nobody who could be told that memory is short.
	 */
	return zstd_compress(stream, page, dst, sizeof(dst)) > 0;
}

static void *zstd_create(int level)
{
	struct zstd_stream *stream = malloc(sizeof(*stream));

	if (!stream)
		return NULL;
	stream->compressor = ZSTD_createCCtx();
	stream->decompressor = ZSTD_createDCtx();
	if (!zstd_prepare(stream, level)) {
		zstd_destroy(stream);
		return NULL;
	}
	return stream;
}

static int zstd_decompress(void *opaque, const void *src, size_t src_len,
			   void *page)
{
	struct zstd_stream *stream = opaque;

	/*
	 * The library would also take several frames, skippable ones, and the
	 * formats of its versions before 0.8, with decoders nobody uses.
	 */
	if (ZSTD_findFrameCompressedSize(src, src_len) != src_len ||
	    ZSTD_decompressDCtx(stream->decompressor, page, CODEC_PAGE_SIZE,
				src, src_len) != CODEC_PAGE_SIZE)
		return -EIO;
	return 0;
}

const struct codec_ops codec_zstd = {
	.id = CODEC_ZSTD,
	.name = "zstd",
	.level_name = "level",
	.level_min = ZSTD_minCLevel,
	.level_max = ZSTD_maxCLevel,
	.level_default = ZSTD_CLEVEL_DEFAULT,
	.create = zstd_create,
	.destroy = zstd_destroy,
	.compress = zstd_compress,
	.decompress = zstd_decompress,
};
