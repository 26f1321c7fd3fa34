/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * codec.h - page compressors: one operations struct, one file for each
 *
 * A codec compresses one 4 KiB page at a time, or up to CODEC_PAGES_MAX of them
 * together: whole pages always, each call for itself. A stream is one thread's
 * working memory for one codec at one level; it is used by one thread at a time
 * and makes no other promise. The formats are the libraries' raw block formats;
 * nothing is added, so how many pages there were is for the caller to know.
 *
 * Decompression is safe on any input: it reads only src[0..src_len), writes
 * only dst[0..dst_len) and fails unless exactly dst_len bytes result.
 */
#ifndef ZRAMFS_CODEC_H
#define ZRAMFS_CODEC_H

#include <stddef.h>
#include <stdint.h>

#define CODEC_PAGE_SIZE 4096
#define CODEC_PAGES_MAX 32
#define CODEC_MOST	(CODEC_PAGES_MAX * CODEC_PAGE_SIZE)

/*
 * Numbers are part of the arena's layout: they say how a stored page was
 * compressed. Never reuse one. They fit in four bits.
 */
enum codec_id {
	CODEC_NONE = 0,
	CODEC_LZ4 = 1,
	CODEC_LZ4HC = 2,
	CODEC_LZO = 3,
	CODEC_ZSTD = 4,
	CODEC_DEFLATE = 5,
	CODEC_COUNT
};

#define CODEC_TO_COMPRESS   (1u << 0)
#define CODEC_TO_DECOMPRESS (1u << 1)

struct codec_ops {
	enum codec_id id;
	const char *name;
	/* What the level is called, in messages: "level", "acceleration". */
	const char *level_name;
	/* As the library accepts them; equal when there is no choice. */
	int (*level_min)(void);
	int (*level_max)(void);
	int level_default;
	/*
	 * Working memory for one or both uses, a set of CODEC_TO_*, of up to
	 * most bytes at a time; NULL when out of memory. With
	 * CODEC_TO_COMPRESS, nothing is allocated later. A stream decompresses
	 * its codec's pages whatever their level.
	 */
	void *(*create)(int level, unsigned int use, size_t most);
	void (*destroy)(void *stream);
	/* Memory that the stream takes, about. */
	size_t (*bytes)(const void *stream);
	/*
	 * Compress src_len bytes, which are whole pages, into at most
	 * dst_capacity bytes. Returns the length, or -ENOSPC when they do not
	 * fit: an answer, no fault.
	 */
	int (*compress)(void *stream, const void *src, size_t src_len,
			void *dst, size_t dst_capacity);
	/* 0, or -EIO when src is not dst_len bytes of this codec's. */
	int (*decompress)(void *stream, const void *src, size_t src_len,
			  void *dst, size_t dst_len);
};

extern const struct codec_ops codec_none;
extern const struct codec_ops codec_lz4;
extern const struct codec_ops codec_lz4hc;
extern const struct codec_ops codec_lzo;
extern const struct codec_ops codec_zstd;
extern const struct codec_ops codec_deflate;

/* NULL if there is none. */
const struct codec_ops *codec_by_id(unsigned int id);
const struct codec_ops *codec_by_name(const char *name, size_t len);

/* A codec at a level, as alg= names it. */
struct codec_choice {
	const struct codec_ops *ops;
	int level;
};

/*
 * Parse "NAME[:LEVEL]". On bad input -EINVAL, and one line in message that
 * names what was wrong and what would be right (no newline).
 */
int codec_parse(const char *text, struct codec_choice *choice, char *message,
		size_t message_size);

/* "zstd:3"; always with the level, unless the codec has none. */
void codec_format(const struct codec_choice *choice, char *text, size_t size);

/*
 * All of one thread's streams. What is not made at once is made when it is
 * first wanted.
 */
struct codec_streams {
	struct codec_choice choice;
	size_t most; /* bytes at a time */
	void *compressor;
	void *decompressor[CODEC_COUNT];
};

/*
 * use: what of the chosen codec is made now, a set of CODEC_TO_*; most: bytes
 * at a time. -ENOMEM.
 */
int codec_streams_init(struct codec_streams *streams,
		       const struct codec_choice *choice, unsigned int use,
		       size_t most);
void codec_streams_exit(struct codec_streams *streams);
/* What compresses takes so much, once it is there; about. -ENOMEM. */
int codec_compressor_bytes(const struct codec_choice *choice, size_t most,
			   size_t *bytes);
/* Free what compresses, until it is wanted again. */
void codec_streams_rest(struct codec_streams *streams);

/*
 * As the operations above. Both give -ENOMEM too, when they first make a
 * stream; codec_decompress() gives -EIO for an id that is no codec's.
 */
int codec_compress(struct codec_streams *streams, const void *src,
		   size_t src_len, void *dst, size_t dst_capacity);
int codec_decompress(struct codec_streams *streams, unsigned int id,
		     const void *src, size_t src_len, void *dst,
		     size_t dst_len);

#endif
