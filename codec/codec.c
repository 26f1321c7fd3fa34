/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * codec.c - the list of codecs, their names as alg= takes them, and a thread's
 * set of streams
 *
 * Owns nothing but the list. Codecs are found here by number and by name; all
 * that is particular to one of them stays in that one's file.
 */
#include "codec/codec.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct codec_ops *const codecs[CODEC_COUNT] = {
	[CODEC_NONE] = &codec_none,   [CODEC_LZ4] = &codec_lz4,
	[CODEC_LZ4HC] = &codec_lz4hc, [CODEC_LZO] = &codec_lzo,
	[CODEC_ZSTD] = &codec_zstd,   [CODEC_DEFLATE] = &codec_deflate,
};

/* The order of messages and help: by speed, as users choose. */
#define CODEC_USE                                                    \
	"use lz4[:acceleration], lz4hc[:level], lzo, zstd[:level], " \
	"deflate[:level] or none"

const struct codec_ops *codec_by_id(unsigned int id)
{
	return id < CODEC_COUNT ? codecs[id] : NULL;
}

const struct codec_ops *codec_by_name(const char *name, size_t len)
{
	for (unsigned int id = 0; id < CODEC_COUNT; id++) {
		if (strlen(codecs[id]->name) == len &&
		    !memcmp(codecs[id]->name, name, len))
			return codecs[id];
	}
	return NULL;
}

static bool has_levels(const struct codec_ops *ops)
{
	return ops->level_min() != ops->level_max();
}

/*
 * strtol() would take spaces, a plus and the start of "3x". Values too large
 * for any level end up at a limit of long, so that they are out of range, not
 * malformed: that is the message which helps.
 */
static bool parse_whole(const char *text, bool sign, long *value)
{
	bool negative = sign && *text == '-';
	long sum = 0;

	text += negative;
	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		if (sum > (LONG_MAX - 9) / 10)
			sum = LONG_MAX / 10 - 1;
		sum = sum * 10 + (*text - '0');
	}
	*value = negative ? -sum : sum;
	return true;
}

static int parse_level(const char *alg, const char *text,
		       struct codec_choice *choice, char *message,
		       size_t message_size)
{
	const struct codec_ops *ops = choice->ops;
	int min = ops->level_min(), max = ops->level_max();
	long level;

	if (!has_levels(ops)) {
		snprintf(message, message_size,
			 "%s has no levels, so alg=%.64s is not possible: use "
			 "alg=%s",
			 ops->name, alg, ops->name);
		return -EINVAL;
	}
	if (!parse_whole(text, min < 0, &level)) {
		snprintf(message, message_size,
			 "'%.64s' in alg=%.64s is not a whole number: use "
			 "%s:%d to %s:%d",
			 text, alg, ops->name, min, ops->name, max);
		return -EINVAL;
	}
	if (level < min || level > max) {
		snprintf(message, message_size,
			 "%s %.64s of %s is out of range: %d to %d",
			 ops->level_name, text, ops->name, min, max);
		return -EINVAL;
	}
	choice->level = (int)level;
	return 0;
}

int codec_parse(const char *text, struct codec_choice *choice, char *message,
		size_t message_size)
{
	size_t len = strcspn(text, ":");
	struct codec_choice parsed = {.ops = codec_by_name(text, len)};

	if (!parsed.ops) {
		snprintf(message, message_size,
			 "unknown codec '%.*s' in alg=%.64s: " CODEC_USE,
			 (int)(len < 64 ? len : 64), text, text);
		return -EINVAL;
	}
	parsed.level = parsed.ops->level_default;
	if (text[len] == ':') {
		int error = parse_level(text, text + len + 1, &parsed, message,
					message_size);

		if (error)
			return error;
	}
	*choice = parsed;
	return 0;
}

void codec_format(const struct codec_choice *choice, char *text, size_t size)
{
	if (has_levels(choice->ops))
		snprintf(text, size, "%s:%d", choice->ops->name, choice->level);
	else
		snprintf(text, size, "%s", choice->ops->name);
}

int codec_streams_init(struct codec_streams *streams,
		       const struct codec_choice *choice, unsigned int use,
		       size_t most)
{
	const struct codec_ops *ops = choice->ops;

	*streams = (struct codec_streams){.choice = *choice, .most = most};
	if (use & CODEC_TO_COMPRESS)
		streams->compressor =
			ops->create(choice->level, CODEC_TO_COMPRESS, most);
	if (use & CODEC_TO_DECOMPRESS)
		streams->decompressor[ops->id] =
			ops->create(choice->level, CODEC_TO_DECOMPRESS, most);
	if ((use & CODEC_TO_COMPRESS && !streams->compressor) ||
	    (use & CODEC_TO_DECOMPRESS && !streams->decompressor[ops->id])) {
		codec_streams_exit(streams);
		return -ENOMEM;
	}
	return 0;
}

int codec_compressor_bytes(const struct codec_choice *choice, size_t most,
			   size_t *bytes)
{
	void *stream =
		choice->ops->create(choice->level, CODEC_TO_COMPRESS, most);

	if (!stream)
		return -ENOMEM;
	*bytes = choice->ops->bytes(stream);
	choice->ops->destroy(stream);
	return 0;
}

void codec_streams_rest(struct codec_streams *streams)
{
	if (streams->compressor)
		streams->choice.ops->destroy(streams->compressor);
	streams->compressor = NULL;
}

void codec_streams_exit(struct codec_streams *streams)
{
	codec_streams_rest(streams);
	for (unsigned int id = 0; id < CODEC_COUNT; id++) {
		if (streams->decompressor[id])
			codecs[id]->destroy(streams->decompressor[id]);
		streams->decompressor[id] = NULL;
	}
}

int codec_compress(struct codec_streams *streams, const void *src,
		   size_t src_len, void *dst, size_t dst_capacity)
{
	const struct codec_ops *ops = streams->choice.ops;

	if (!streams->compressor)
		streams->compressor =
			ops->create(streams->choice.level, CODEC_TO_COMPRESS,
				    streams->most);
	if (!streams->compressor)
		return -ENOMEM;
	return ops->compress(streams->compressor, src, src_len, dst,
			     dst_capacity);
}

int codec_decompress(struct codec_streams *streams, unsigned int id,
		     const void *src, size_t src_len, void *dst, size_t dst_len)
{
	const struct codec_ops *ops = codec_by_id(id);

	if (!ops)
		return -EIO;
	if (!streams->decompressor[id])
		streams->decompressor[id] = ops->create(
			ops->level_default, CODEC_TO_DECOMPRESS, streams->most);
	if (!streams->decompressor[id])
		return -ENOMEM;
	return ops->decompress(streams->decompressor[id], src, src_len, dst,
			       dst_len);
}
