/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * none.c - the codec that leaves pages as they are
 *
 * Chosen with alg=none, and the codec of every huge page. It has no working
 * memory: all streams are one and the same constant.
 */
#include "codec/codec.h"

#include <errno.h>
#include <string.h>

static int none_level(void)
{
	return 0;
}

static void *none_create(int level, unsigned int use, size_t most)
{
	static char stream;

	return &stream;
}

static void none_destroy(void *stream)
{
}

static size_t none_bytes(const void *stream)
{
	return 0;
}

static int none_compress(void *stream, const void *src, size_t src_len,
			 void *dst, size_t dst_capacity)
{
	if (dst_capacity < src_len)
		return -ENOSPC;
	memcpy(dst, src, src_len);
	return (int)src_len;
}

static int none_decompress(void *stream, const void *src, size_t src_len,
			   void *dst, size_t dst_len)
{
	if (src_len != dst_len)
		return -EIO;
	memcpy(dst, src, dst_len);
	return 0;
}

const struct codec_ops codec_none = {
	.id = CODEC_NONE,
	.name = "none",
	.level_name = "level",
	.level_min = none_level,
	.level_max = none_level,
	.level_default = 0,
	.create = none_create,
	.destroy = none_destroy,
	.bytes = none_bytes,
	.compress = none_compress,
	.decompress = none_decompress,
};
