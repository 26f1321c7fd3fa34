/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zstd.c - Zstandard (RFC 8878), by libzstd
 *
 * Of the frame that libzstd makes of a page, only the contents of its one
 * block are kept: magic number, frame header and block header (nine bytes) are
 * the same for all pages, or follow from the length, and are put before it
 * again to decompress.
 *
 * The level alone chooses the parameters. The library fits a level's window
 * and tables to a page when it knows the size beforehand, as it does here.
 */
#include "codec/codec.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/*
 * Section 3.1.1 of the RFC: the magic number 0xFD2FB528, little-endian; a
 * descriptor that says no content size, no checksum, no dictionary; and a
 * window of 4 KiB. 3.1.1.2: in a block's header, bit 0 marks the last block,
 * bits 1 and 2 tell its type, and the rest its size, little-endian.
 */
static const unsigned char frame_header[] = {0x28, 0xb5, 0x2f,
					     0xfd, 0x00, 0x10};

enum block_type {
	BLOCK_RAW = 0,
	BLOCK_RLE = 1,
	BLOCK_COMPRESSED = 2
};

#define BLOCK_HEADER 3
#define HEADERS	     (sizeof(frame_header) + BLOCK_HEADER)

#define FRAME_BOUND ZSTD_COMPRESSBOUND(CODEC_PAGE_SIZE)

struct zstd_stream {
	ZSTD_CCtx *compressor;
	ZSTD_DCtx *decompressor;
	unsigned char frame[FRAME_BOUND];
	unsigned char expected[HEADERS];
};

/*
 * A block of one byte is a repeated byte, and one as long as a page is the
 * page itself: neither is a compressed block's length. The repeated byte is
 * stored twice (no compressed block is that short either), for a page that was
 * cut off after its first byte shall not look like one.
 */
#define RLE_LENGTH 2

static void put_headers(unsigned char *frame, size_t len)
{
	enum block_type type = len == 1			? BLOCK_RLE
			       : len == CODEC_PAGE_SIZE ? BLOCK_RAW
							: BLOCK_COMPRESSED;
	size_t size = type == BLOCK_RLE ? CODEC_PAGE_SIZE : len;
	unsigned int header = 1u | type << 1 | (unsigned int)size << 3;

	memcpy(frame, frame_header, sizeof(frame_header));
	frame += sizeof(frame_header);
	frame[0] = header & 255;
	frame[1] = header >> 8 & 255;
	frame[2] = header >> 16 & 255;
}

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

	if (dst_capacity < capacity - HEADERS)
		capacity = dst_capacity + HEADERS;
	len = ZSTD_compress2(stream->compressor, stream->frame, capacity, page,
			     CODEC_PAGE_SIZE);
	if (ZSTD_isError(len))
		return -ENOSPC;
	len -= HEADERS;
	/* What other headers could mean would be lost: so it does not fit. */
	put_headers(stream->expected, len);
	if (memcmp(stream->frame, stream->expected, HEADERS) != 0)
		return -ENOSPC;
	memcpy(dst, stream->frame + HEADERS, len);
	if (len == 1) {
		if (dst_capacity < RLE_LENGTH)
			return -ENOSPC;
		((unsigned char *)dst)[1] = stream->frame[HEADERS];
		return RLE_LENGTH;
	}
	return (int)len;
}

static bool zstd_prepare(struct zstd_stream *stream, int level)
{
	static const char page[CODEC_PAGE_SIZE];

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

static void *zstd_create(int level, unsigned int use)
{
	struct zstd_stream *stream = malloc(sizeof(*stream));
	bool ok = true;

	if (!stream)
		return NULL;
	stream->compressor = NULL;
	stream->decompressor = NULL;
	if (use & CODEC_TO_COMPRESS) {
		stream->compressor = ZSTD_createCCtx();
		ok = stream->compressor && zstd_prepare(stream, level);
	}
	if (ok && use & CODEC_TO_DECOMPRESS) {
		stream->decompressor = ZSTD_createDCtx();
		ok = stream->decompressor != NULL;
	}
	if (!ok) {
		zstd_destroy(stream);
		return NULL;
	}
	return stream;
}

static int zstd_decompress(void *opaque, const void *src, size_t src_len,
			   void *page)
{
	struct zstd_stream *stream = opaque;
	size_t len;

	if (src_len < RLE_LENGTH || src_len > CODEC_PAGE_SIZE)
		return -EIO;
	if (src_len == RLE_LENGTH) {
		if (((const unsigned char *)src)[0] !=
		    ((const unsigned char *)src)[1])
			return -EIO;
		src_len = 1;
	}
	len = HEADERS + src_len;
	put_headers(stream->frame, src_len);
	memcpy(stream->frame + HEADERS, src, src_len);
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
