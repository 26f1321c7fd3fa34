/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zstd.c - Zstandard frames (RFC 8878), by libzstd
 *
 * One frame a page, without what would be the same in all of them or is known
 * better elsewhere: the magic number that it starts with (left off here, and
 * put before it again to decompress), the content size, and the checksum.
 *
 * The level alone chooses the parameters. The library fits a level's window
 * and tables to a page when it knows the size beforehand, as it does here.
 */
#include "codec/codec.h"

#include <errno.h>
#include <stdbool.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* Section 3.1.1 of the RFC: little-endian 0xFD2FB528. */
static const unsigned char magic[] = {0x28, 0xb5, 0x2f, 0xfd};

#define FRAME_BOUND ZSTD_COMPRESSBOUND(CODEC_PAGE_SIZE)

struct zstd_stream {
	ZSTD_CCtx *compressor;
	ZSTD_DCtx *decompressor;
	unsigned char frame[FRAME_BOUND];
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
	size_t capacity = FRAME_BOUND, len;

	if (dst_capacity < capacity - sizeof(magic))
		capacity = dst_capacity + sizeof(magic);
	len = ZSTD_compress2(stream->compressor, stream->frame, capacity, page,
			     CODEC_PAGE_SIZE);
	if (ZSTD_isError(len))
		return -ENOSPC;
	len -= sizeof(magic);
	memcpy(dst, stream->frame + sizeof(magic), len);
	return (int)len;
}

static bool zstd_prepare(struct zstd_stream *stream, int level)
{
	static const char page[CODEC_PAGE_SIZE];

	if (!stream->compressor || !stream->decompressor)
		return false;
	if (ZSTD_isError(ZSTD_CCtx_setParameter(
		    stream->compressor, ZSTD_c_compressionLevel, level)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(stream->compressor,
						ZSTD_c_contentSizeFlag, 0)))
		return false;
	/*
	 * The library allocates its tables at the first compression. Do that
	 * now: later there is nobody who could be told that memory is short.
	 */
	return !ZSTD_isError(ZSTD_compress2(stream->compressor, stream->frame,
					    FRAME_BOUND, page, sizeof(page)));
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
	size_t len = sizeof(magic) + src_len;

	if (src_len > FRAME_BOUND - sizeof(magic))
		return -EIO;
	memcpy(stream->frame, magic, sizeof(magic));
	memcpy(stream->frame + sizeof(magic), src, src_len);
	/*
	 * One frame and nothing behind it: the library would go on to
	 * skippable frames, and to formats from before 1.0 with their
	 * decoders that nobody has looked at since.
	 */
	if (ZSTD_findFrameCompressedSize(stream->frame, len) != len ||
	    ZSTD_decompressDCtx(stream->decompressor, page, CODEC_PAGE_SIZE,
				stream->frame, len) != CODEC_PAGE_SIZE)
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
