/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zstd.c - Zstandard (RFC 8878), by libzstd
 *
 * Of the frame that libzstd makes, only the contents of its one block are
 * kept: magic number, frame header and block header (nine bytes) follow from
 * the lengths, and are put before it again to decompress.
 *
 * The level alone chooses the parameters. The library fits a level's window
 * and tables to the data when it knows the size beforehand, as it does here.
 */
#include "codec/codec.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/*
 * Section 3.1.1 of the RFC: the magic number 0xFD2FB528, little-endian; a
 * descriptor that says no content size, no checksum, no dictionary; and the
 * window, whose size is 1 KiB to the power in the five bits from bit 3: the
 * least that holds the data. 3.1.1.2: in a block's header, bit 0 marks the last
 * block, bits 1 and 2 tell its type, and the rest its size, little-endian. A
 * block may have 128 KiB, and CODEC_MOST is no more.
 */
static const unsigned char frame_header[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00};

#define WINDOW_MIN_SHIFT 10
#define WINDOW_BIT	 3

enum block_type {
	BLOCK_RAW = 0,
	BLOCK_RLE = 1,
	BLOCK_COMPRESSED = 2
};

#define BLOCK_HEADER 3
#define HEADERS	     (sizeof(frame_header) + 1 + BLOCK_HEADER)

struct zstd_stream {
	ZSTD_CCtx *compressor;
	ZSTD_DCtx *decompressor;
	size_t capacity; /* of frame */
	unsigned char expected[HEADERS];
	unsigned char frame[];
};

/*
 * A block of one byte is a repeated byte, and one as long as the data is the
 * data itself: neither is a compressed block's length. The repeated byte is
 * stored twice (no compressed block is that short either), for data that was
 * cut off after its first byte shall not look like one.
 */
#define RLE_LENGTH 2

static unsigned int window_shift(size_t data_len)
{
	unsigned int shift = WINDOW_MIN_SHIFT;

	while (data_len > (size_t)1 << shift)
		shift++;
	return shift;
}

/* Of len bytes that data_len bytes were made into. */
static void put_headers(unsigned char *frame, size_t len, size_t data_len)
{
	enum block_type type = len == 1		 ? BLOCK_RLE
			       : len == data_len ? BLOCK_RAW
						 : BLOCK_COMPRESSED;
	size_t size = type == BLOCK_RLE ? data_len : len;
	unsigned int header = 1u | type << 1 | (unsigned int)size << 3;

	memcpy(frame, frame_header, sizeof(frame_header));
	frame += sizeof(frame_header);
	*frame++ = (window_shift(data_len) - WINDOW_MIN_SHIFT) << WINDOW_BIT;
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

static size_t zstd_bytes(const void *opaque)
{
	const struct zstd_stream *stream = opaque;

	/* Both take NULL. */
	return sizeof(*stream) + stream->capacity +
	       ZSTD_sizeof_CCtx(stream->compressor) +
	       ZSTD_sizeof_DCtx(stream->decompressor);
}

static int zstd_compress(void *opaque, const void *src, size_t src_len,
			 void *dst, size_t dst_capacity)
{
	struct zstd_stream *stream = opaque;
	size_t capacity = stream->capacity, len;

	if (dst_capacity < capacity - HEADERS)
		capacity = dst_capacity + HEADERS;
	len = ZSTD_compress2(stream->compressor, stream->frame, capacity, src,
			     src_len);
	if (ZSTD_isError(len))
		return -ENOSPC;
	len -= HEADERS;
	/* What other headers could mean would be lost: so it does not fit. */
	put_headers(stream->expected, len, src_len);
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

static bool zstd_prepare(struct zstd_stream *stream, int level, size_t most)
{
	/* Not constant, so that it takes no place in the program's file. */
	static char zeros[CODEC_MOST];

	if (ZSTD_isError(ZSTD_CCtx_setParameter(
		    stream->compressor, ZSTD_c_compressionLevel, level)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(stream->compressor,
						ZSTD_c_contentSizeFlag, 0)))
		return false;
	/*
	 * The library allocates its tables at the first compression. Do that
	 * now: later there is nobody who could be told that memory is short.
	 * (It may give up what it has not needed for long; then, if memory is
	 * short, what is compressed together "does not fit".)
	 */
	return !ZSTD_isError(ZSTD_compress2(stream->compressor, stream->frame,
					    stream->capacity, zeros, most));
}

static void *zstd_create(int level, unsigned int use, size_t most)
{
	size_t capacity = ZSTD_compressBound(most);
	struct zstd_stream *stream = malloc(sizeof(*stream) + capacity);
	bool ok = true;

	if (!stream)
		return NULL;
	stream->capacity = capacity;
	stream->compressor = NULL;
	stream->decompressor = NULL;
	if (use & CODEC_TO_COMPRESS) {
		stream->compressor = ZSTD_createCCtx();
		ok = stream->compressor && zstd_prepare(stream, level, most);
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
			   void *dst, size_t dst_len)
{
	struct zstd_stream *stream = opaque;
	size_t len;

	if (src_len < RLE_LENGTH || src_len > dst_len ||
	    src_len > stream->capacity - HEADERS)
		return -EIO;
	if (src_len == RLE_LENGTH) {
		if (((const unsigned char *)src)[0] !=
		    ((const unsigned char *)src)[1])
			return -EIO;
		src_len = 1;
	}
	len = HEADERS + src_len;
	put_headers(stream->frame, src_len, dst_len);
	memcpy(stream->frame + HEADERS, src, src_len);
	/*
	 * One frame and nothing behind it: the library would go on to
	 * skippable frames, and to formats from before 1.0 with their
	 * decoders that nobody has looked at since.
	 */
	if (ZSTD_findFrameCompressedSize(stream->frame, len) != len ||
	    ZSTD_decompressDCtx(stream->decompressor, dst, dst_len,
				stream->frame, len) != dst_len)
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
	.bytes = zstd_bytes,
	.compress = zstd_compress,
	.decompress = zstd_decompress,
};
