/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_codec.c - codec.h, as a specification that runs
 *
 * Source and destination end right before a page that may not be touched, so
 * that one byte too far ends the program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/codec.h"

#define BOTH (CODEC_TO_COMPRESS | CODEC_TO_DECOMPRESS)

/* More than any codec makes of one page. */
#define BOUND 8192

/* len bytes that end at a guard page; more before them, but untouched. */
static unsigned char *guarded(size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t room = (len + page - 1) / page * page + page;
	unsigned char *area = mmap(NULL, room + page, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(area, MAP_FAILED);
	assert_int_equal(mprotect(area + room, page, PROT_NONE), 0);
	return area + room - len;
}

static void guarded_free(unsigned char *area, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t room = (len + page - 1) / page * page + page;

	assert_int_equal(munmap(area + len - room, room + page), 0);
}

/* xorshift64 (Marsaglia 2003): the same pages in every run. */
static uint64_t random_state = 88172645463325252;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

enum kind {
	ZERO,
	SAME_BYTE,
	TEXT,
	RANDOM,
	HALF_RANDOM,
	COUNTING,
	LAST_BYTE_DIFFERS,
	KINDS
};

static void fill_text(unsigned char *page)
{
	static const char *const words[] = {
		"page ",   "zspage ", "of the ",    "size class ", "is ",
		"handle ", "stored ", "in memory ", "twice.\n",	   "a ",
	};
	size_t at = 0;

	while (at < CODEC_PAGE_SIZE) {
		const char *word = words[random_next() % 10];

		while (*word && at < CODEC_PAGE_SIZE)
			page[at++] = (unsigned char)*word++;
	}
}

static void fill(unsigned char *page, enum kind kind)
{
	memset(page, kind == SAME_BYTE ? 0xa5 : 0, CODEC_PAGE_SIZE);
	if (kind == TEXT)
		fill_text(page);
	if (kind == LAST_BYTE_DIFFERS)
		page[CODEC_PAGE_SIZE - 1] = 1;
	for (size_t i = 0; i < CODEC_PAGE_SIZE; i++) {
		if (kind == RANDOM ||
		    (kind == HALF_RANDOM && i < CODEC_PAGE_SIZE / 2))
			page[i] = (unsigned char)random_next();
		if (kind == COUNTING)
			page[i] = (unsigned char)(i * 7 >> 3);
	}
}

static void levels_of(const struct codec_ops *ops, int level[5])
{
	level[0] = ops->level_min();
	level[1] = ops->level_default;
	level[2] = ops->level_max();
	level[3] = (ops->level_default + ops->level_max()) / 2;
	level[4] = (ops->level_min() + ops->level_default) / 2;
}

static void round_trip(const struct codec_ops *ops, int level)
{
	void *stream = ops->create(level, BOTH, CODEC_PAGE_SIZE);
	unsigned char *page = guarded(CODEC_PAGE_SIZE);
	unsigned char *back = guarded(CODEC_PAGE_SIZE);
	unsigned char *large = guarded(BOUND);

	assert_non_null(stream);
	for (int kind = 0; kind < KINDS; kind++) {
		unsigned char *exact;
		int len;

		fill(page, kind);
		len = ops->compress(stream, page, CODEC_PAGE_SIZE, large,
				    BOUND);
		assert_in_range(len, 1, BOUND);
		exact = guarded((size_t)len);
		memcpy(exact, large, (size_t)len);
		memset(back, 0x55, CODEC_PAGE_SIZE);
		assert_int_equal(ops->decompress(stream, exact, (size_t)len,
						 back, CODEC_PAGE_SIZE),
				 0);
		assert_memory_equal(page, back, CODEC_PAGE_SIZE);
		guarded_free(exact, (size_t)len);
	}
	guarded_free(page, CODEC_PAGE_SIZE);
	guarded_free(back, CODEC_PAGE_SIZE);
	guarded_free(large, BOUND);
	ops->destroy(stream);
}

static void test_pages_survive_at_every_level(void **state)
{
	for (unsigned int id = 0; id < CODEC_COUNT; id++) {
		const struct codec_ops *ops = codec_by_id(id);
		int level[5];

		levels_of(ops, level);
		for (int i = 0; i < 5; i++)
			round_trip(ops, level[i]);
	}
}

/* Pages are of all kinds, in turns: so some of them are alike. */
static void together(const struct codec_ops *ops, void *stream, size_t pages)
{
	size_t data_len = pages * CODEC_PAGE_SIZE;
	unsigned char *data = guarded(data_len), *back = guarded(data_len);
	unsigned char *packed = guarded(2 * data_len);
	int len;

	for (size_t i = 0; i < pages; i++)
		fill(data + i * CODEC_PAGE_SIZE, (int)(i % KINDS));
	len = ops->compress(stream, data, data_len, packed, 2 * data_len);
	assert_in_range(len, 1, 2 * data_len);
	memset(back, 0x55, data_len);
	assert_int_equal(
		ops->decompress(stream, packed, (size_t)len, back, data_len),
		0);
	assert_memory_equal(data, back, data_len);
	/* How many there were has to be known. */
	if (pages > 1)
		assert_int_equal(ops->decompress(stream, packed, (size_t)len,
						 back,
						 data_len - CODEC_PAGE_SIZE),
				 -EIO);
	guarded_free(packed, 2 * data_len);
	guarded_free(back, data_len);
	guarded_free(data, data_len);
}

static void test_pages_survive_together(void **state)
{
	for (unsigned int id = 0; id < CODEC_COUNT; id++) {
		const struct codec_ops *ops = codec_by_id(id);
		void *stream =
			ops->create(ops->level_default, BOTH, CODEC_MOST);

		assert_non_null(stream);
		for (size_t pages = 1; pages <= CODEC_PAGES_MAX; pages++)
			together(ops, stream, pages);
		ops->destroy(stream);
	}
}

static void test_text_becomes_smaller_and_random_fits_nowhere(void **state)
{
	unsigned char page[CODEC_PAGE_SIZE], dst[CODEC_PAGE_SIZE];

	for (unsigned int id = CODEC_NONE + 1; id < CODEC_COUNT; id++) {
		const struct codec_ops *ops = codec_by_id(id);
		void *stream =
			ops->create(ops->level_default, BOTH, CODEC_PAGE_SIZE);

		fill(page, TEXT);
		assert_in_range(ops->compress(stream, page, CODEC_PAGE_SIZE,
					      dst, sizeof(dst)),
				1, CODEC_PAGE_SIZE / 2);
		fill(page, ZERO);
		assert_in_range(ops->compress(stream, page, CODEC_PAGE_SIZE,
					      dst, sizeof(dst)),
				1, 64);
		fill(page, RANDOM);
		assert_int_equal(ops->compress(stream, page, CODEC_PAGE_SIZE,
					       dst, sizeof(dst) - 1),
				 -ENOSPC);
		ops->destroy(stream);
	}
}

static void test_none_fits_only_a_whole_page(void **state)
{
	unsigned char page[CODEC_PAGE_SIZE], dst[CODEC_PAGE_SIZE];
	void *stream = codec_none.create(0, BOTH, CODEC_PAGE_SIZE);

	fill(page, RANDOM);
	assert_int_equal(
		codec_none.compress(stream, page, CODEC_PAGE_SIZE, dst, 4095),
		-ENOSPC);
	assert_int_equal(
		codec_none.compress(stream, page, CODEC_PAGE_SIZE, dst, 4096),
		4096);
	assert_memory_equal(page, dst, 4096);
	assert_int_equal(
		codec_none.decompress(stream, dst, 4095, page, CODEC_PAGE_SIZE),
		-EIO);
}

/* One capacity: an answer that decompresses, or -ENOSPC. */
static bool fits(const struct codec_ops *ops, void *stream,
		 const unsigned char *page, size_t capacity)
{
	unsigned char back[CODEC_PAGE_SIZE];
	unsigned char *dst = guarded(capacity);
	int len = ops->compress(stream, page, CODEC_PAGE_SIZE, dst, capacity);

	if (len >= 0) {
		assert_in_range(len, 1, capacity);
		assert_int_equal(ops->decompress(stream, dst, (size_t)len, back,
						 CODEC_PAGE_SIZE),
				 0);
		assert_memory_equal(page, back, CODEC_PAGE_SIZE);
	} else {
		assert_int_equal(len, -ENOSPC);
	}
	guarded_free(dst, capacity);
	return len >= 0;
}

static void capacities(const struct codec_ops *ops, int level, enum kind kind)
{
	unsigned char page[CODEC_PAGE_SIZE], dst[BOUND];
	void *stream = ops->create(level, BOTH, CODEC_PAGE_SIZE);
	size_t len, step;

	fill(page, kind);
	len = (size_t)ops->compress(stream, page, CODEC_PAGE_SIZE, dst, BOUND);
	step = len / 60 + 1;
	assert_false(fits(ops, stream, page, 0));
	for (size_t capacity = 1; capacity < len; capacity += step)
		assert_false(fits(ops, stream, page, capacity));
	for (size_t less = 1; less < 10 && less < len; less++)
		assert_false(fits(ops, stream, page, len - less));
	/* Near the exact length a library may give up; not far from it. */
	for (size_t more = 0; more < 32; more++)
		fits(ops, stream, page, len + more);
	assert_true(fits(ops, stream, page, len + 32));
	/* It is as good as new after its failures. */
	assert_int_equal(
		ops->compress(stream, page, CODEC_PAGE_SIZE, dst, BOUND), len);
	ops->destroy(stream);
}

static void test_small_capacity_is_an_answer(void **state)
{
	for (unsigned int id = 0; id < CODEC_COUNT; id++) {
		const struct codec_ops *ops = codec_by_id(id);
		int level[5];

		levels_of(ops, level);
		for (int i = 0; i < 3; i++) {
			capacities(ops, level[i], TEXT);
			capacities(ops, level[i], HALF_RANDOM);
			capacities(ops, level[i], RANDOM);
		}
	}
}

/* A damaged source gives -EIO or some page, and touches nothing else. */
static void decompress_damaged(const struct codec_ops *ops, void *stream,
			       unsigned char *src, size_t len,
			       unsigned char *back)
{
	int error = ops->decompress(stream, src, len, back, CODEC_PAGE_SIZE);

	assert_true(error == 0 || error == -EIO);
}

static void damage(const struct codec_ops *ops, enum kind kind)
{
	unsigned char page[CODEC_PAGE_SIZE], dst[BOUND];
	unsigned char *back = guarded(CODEC_PAGE_SIZE);
	void *stream = ops->create(ops->level_default, BOTH, CODEC_PAGE_SIZE);
	unsigned char *src;
	size_t len;

	fill(page, kind);
	len = (size_t)ops->compress(stream, page, CODEC_PAGE_SIZE, dst, BOUND);
	for (size_t cut = 0; cut < len; cut += len / 200 + 1) {
		src = guarded(cut);
		memcpy(src, dst, cut);
		assert_int_equal(ops->decompress(stream, src, cut, back,
						 CODEC_PAGE_SIZE),
				 -EIO);
		guarded_free(src, cut);
	}
	src = guarded(len);
	for (int i = 0; i < 4000; i++) {
		memcpy(src, dst, len);
		for (uint64_t flips = random_next() % 4 + 1; flips; flips--) {
			uint64_t bit = random_next() % (len * 8);

			src[bit / 8] ^= (unsigned char)(1 << bit % 8);
		}
		decompress_damaged(ops, stream, src, len, back);
	}
	/* And the stream still works. */
	assert_int_equal(
		ops->decompress(stream, dst, len, back, CODEC_PAGE_SIZE), 0);
	assert_memory_equal(page, back, CODEC_PAGE_SIZE);
	guarded_free(src, len);
	guarded_free(back, CODEC_PAGE_SIZE);
	ops->destroy(stream);
}

static void test_damaged_pages_touch_nothing_else(void **state)
{
	for (unsigned int id = 0; id < CODEC_COUNT; id++) {
		for (int kind = 0; kind < KINDS; kind++)
			damage(codec_by_id(id), kind);
	}
}

static void test_only_exactly_one_page_is_a_page(void **state)
{
	unsigned char page[CODEC_PAGE_SIZE], back[CODEC_PAGE_SIZE];
	unsigned char dst[2 * BOUND];

	for (unsigned int id = 0; id < CODEC_COUNT; id++) {
		const struct codec_ops *ops = codec_by_id(id);
		void *stream =
			ops->create(ops->level_default, BOTH, CODEC_PAGE_SIZE);
		size_t len;

		fill(page, TEXT);
		len = (size_t)ops->compress(stream, page, CODEC_PAGE_SIZE, dst,
					    BOUND);
		assert_int_equal(
			ops->decompress(stream, dst, 0, back, CODEC_PAGE_SIZE),
			-EIO);
		/* Something behind it. */
		dst[len] = 0;
		assert_int_equal(ops->decompress(stream, dst, len + 1, back,
						 CODEC_PAGE_SIZE),
				 -EIO);
		/* Twice the page: two would result. */
		memmove(dst + len, dst, len);
		assert_int_equal(ops->decompress(stream, dst, 2 * len, back,
						 CODEC_PAGE_SIZE),
				 -EIO);
		/* Longer than a page can become. */
		assert_int_equal(ops->decompress(stream, dst, sizeof(dst), back,
						 CODEC_PAGE_SIZE),
				 -EIO);
		ops->destroy(stream);
	}
}

static void test_any_level_reads_every_level(void **state)
{
	unsigned char page[CODEC_PAGE_SIZE], back[CODEC_PAGE_SIZE], dst[BOUND];

	fill(page, TEXT);
	for (unsigned int id = 0; id < CODEC_COUNT; id++) {
		const struct codec_ops *ops = codec_by_id(id);
		void *reader =
			ops->create(ops->level_min(), BOTH, CODEC_PAGE_SIZE);
		int level[5];

		levels_of(ops, level);
		for (int i = 0; i < 5; i++) {
			void *writer =
				ops->create(level[i], BOTH, CODEC_PAGE_SIZE);
			int len = ops->compress(writer, page, CODEC_PAGE_SIZE,
						dst, BOUND);

			ops->destroy(writer);
			assert_int_equal(ops->decompress(reader, dst, len, back,
							 CODEC_PAGE_SIZE),
					 0);
			assert_memory_equal(page, back, CODEC_PAGE_SIZE);
		}
		ops->destroy(reader);
	}
}

static void test_streams_read_pages_of_all_codecs(void **state)
{
	unsigned char page[CODEC_PAGE_SIZE], back[CODEC_PAGE_SIZE], dst[BOUND];
	struct codec_streams streams, other;
	struct codec_choice choice;

	choice = (struct codec_choice){&codec_zstd, 5};
	assert_int_equal(
		codec_streams_init(&streams, &choice, BOTH, CODEC_PAGE_SIZE),
		0);
	fill(page, TEXT);
	for (unsigned int id = 0; id < CODEC_COUNT; id++) {
		int len;

		choice = (struct codec_choice){codec_by_id(id),
					       codec_by_id(id)->level_default};
		assert_int_equal(codec_streams_init(&other, &choice, BOTH,
						    CODEC_PAGE_SIZE),
				 0);
		len = codec_compress(&other, page, CODEC_PAGE_SIZE, dst, BOUND);
		assert_true(len > 0);
		codec_streams_exit(&other);
		memset(back, 0, sizeof(back));
		assert_int_equal(codec_decompress(&streams, id, dst,
						  (size_t)len, back,
						  CODEC_PAGE_SIZE),
				 0);
		assert_memory_equal(page, back, CODEC_PAGE_SIZE);
	}
	assert_int_equal(codec_decompress(&streams, CODEC_COUNT, dst, 9, back,
					  CODEC_PAGE_SIZE),
			 -EIO);
	assert_int_equal(
		codec_compress(&streams, page, CODEC_PAGE_SIZE, dst, 0),
		-ENOSPC);
	codec_streams_exit(&streams);
	/* Again does no harm. */
	codec_streams_exit(&streams);
}

static void test_numbers_and_names_are_stable(void **state)
{
	static const char *const names[] = {"none", "lz4",  "lz4hc",
					    "lzo",  "zstd", "deflate"};

	assert_int_equal(CODEC_COUNT, 6);
	for (unsigned int id = 0; id < CODEC_COUNT; id++) {
		assert_int_equal(codec_by_id(id)->id, id);
		assert_string_equal(codec_by_id(id)->name, names[id]);
		assert_ptr_equal(codec_by_name(names[id], strlen(names[id])),
				 codec_by_id(id));
	}
	assert_null(codec_by_id(CODEC_COUNT));
	assert_null(codec_by_name("lz", 2));
	assert_null(codec_by_name("", 0));
	assert_ptr_equal(codec_by_name("lz4hc", 3), &codec_lz4);
}

static void accepts(const char *text, const struct codec_ops *ops, int level,
		    const char *formatted)
{
	struct codec_choice choice;
	char message[256], again[32];

	assert_int_equal(codec_parse(text, &choice, message, sizeof(message)),
			 0);
	assert_ptr_equal(choice.ops, ops);
	assert_int_equal(choice.level, level);
	codec_format(&choice, again, sizeof(again));
	assert_string_equal(again, formatted);
}

static void test_parse_accepts(void **state)
{
	accepts("lz4", &codec_lz4, 1, "lz4:1");
	accepts("lz4:65537", &codec_lz4, 65537, "lz4:65537");
	accepts("lz4hc", &codec_lz4hc, 9, "lz4hc:9");
	accepts("lz4hc:12", &codec_lz4hc, 12, "lz4hc:12");
	accepts("lzo", &codec_lzo, 0, "lzo");
	accepts("zstd", &codec_zstd, 3, "zstd:3");
	accepts("zstd:22", &codec_zstd, 22, "zstd:22");
	accepts("zstd:-131072", &codec_zstd, -131072, "zstd:-131072");
	accepts("deflate", &codec_deflate, 6, "deflate:6");
	accepts("deflate:012", &codec_deflate, 12, "deflate:12");
	accepts("none", &codec_none, 0, "none");
}

static void rejects(const char *text, const char *expected)
{
	struct codec_choice choice = {&codec_lzo, 77};
	char message[256] = "";

	assert_int_equal(codec_parse(text, &choice, message, sizeof(message)),
			 -EINVAL);
	assert_string_equal(message, expected);
	/* Nothing was chosen. */
	assert_ptr_equal(choice.ops, &codec_lzo);
	assert_int_equal(choice.level, 77);
}

#define USE                                                          \
	"use lz4[:acceleration], lz4hc[:level], lzo, zstd[:level], " \
	"deflate[:level] or none"

static void test_parse_says_what_is_wrong(void **state)
{
	rejects("foo", "unknown codec 'foo' in alg=foo: " USE);
	rejects("", "unknown codec '' in alg=: " USE);
	rejects(":3", "unknown codec '' in alg=:3: " USE);
	rejects("ZSTD", "unknown codec 'ZSTD' in alg=ZSTD: " USE);
	rejects("zstd:99", "level 99 of zstd is out of range: -131072 to 22");
	rejects("zstd:99999999999999999999",
		"level 99999999999999999999 of zstd is out of range: "
		"-131072 to 22");
	rejects("zstd:-99999999999999999999",
		"level -99999999999999999999 of zstd is out of range: "
		"-131072 to 22");
	rejects("lz4:0", "acceleration 0 of lz4 is out of range: 1 to 65537");
	rejects("lz4:-1", "'-1' in alg=lz4:-1 is not a whole number: use "
			  "lz4:1 to lz4:65537");
	rejects("zstd:", "'' in alg=zstd: is not a whole number: use "
			 "zstd:-131072 to zstd:22");
	rejects("zstd:-", "'-' in alg=zstd:- is not a whole number: use "
			  "zstd:-131072 to zstd:22");
	rejects("zstd:3x", "'3x' in alg=zstd:3x is not a whole number: use "
			   "zstd:-131072 to zstd:22");
	rejects("zstd: 3", "' 3' in alg=zstd: 3 is not a whole number: use "
			   "zstd:-131072 to zstd:22");
	rejects("deflate:1:2", "'1:2' in alg=deflate:1:2 is not a whole "
			       "number: use deflate:0 to deflate:12");
	rejects("lzo:1", "lzo has no levels, so alg=lzo:1 is not possible: "
			 "use alg=lzo");
	rejects("none:0", "none has no levels, so alg=none:0 is not possible: "
			  "use alg=none");
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* The sanitizers' own shadow memory cannot live under a limit. */
#define CAN_LIMIT_MEMORY false
#else
#define CAN_LIMIT_MEMORY true
#endif

/*
 * In a child with little address space left: streams until there are no more.
 * The last must be refused in good order, and what was made must still work.
 */
static int exhaust(const struct codec_ops *ops)
{
	enum {
		MOST = 1 << 14
	};
	static void *stream[MOST];
	static unsigned char page[CODEC_PAGE_SIZE], dst[BOUND];
	struct codec_choice choice = {ops, ops->level_default};
	struct codec_streams streams;
	struct rlimit limit = {128 << 20, 128 << 20};
	int n = 0;

	fill(page, TEXT);
	if (setrlimit(RLIMIT_AS, &limit))
		return 2;
	while (n < MOST && (stream[n] = ops->create(ops->level_default, BOTH,
						    CODEC_PAGE_SIZE)))
		n++;
	if (n == 0 || n == MOST)
		return 3;
	if (codec_streams_init(&streams, &choice, BOTH, CODEC_PAGE_SIZE) !=
	    -ENOMEM)
		return 4;
	/* Compressing and decompressing need no more memory. */
	for (int i = 0; i < n; i++) {
		int len = ops->compress(stream[i], page, CODEC_PAGE_SIZE, dst,
					BOUND);

		if (len <= 0 ||
		    ops->decompress(stream[i], dst, (size_t)len, page,
				    CODEC_PAGE_SIZE))
			return 5;
	}
	while (n > 0)
		ops->destroy(stream[--n]);
	stream[0] = ops->create(ops->level_default, BOTH, CODEC_PAGE_SIZE);
	if (!stream[0])
		return 6;
	ops->destroy(stream[0]);
	return 0;
}

static void test_no_memory_for_a_stream(void **state)
{
	if (!CAN_LIMIT_MEMORY)
		skip();
	for (unsigned int id = CODEC_NONE + 1; id < CODEC_COUNT; id++) {
		int status;
		pid_t child = fork();

		assert_true(child >= 0);
		if (child == 0)
			_exit(exhaust(codec_by_id(id)));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages_survive_at_every_level),
		cmocka_unit_test(test_pages_survive_together),
		cmocka_unit_test(
			test_text_becomes_smaller_and_random_fits_nowhere),
		cmocka_unit_test(test_none_fits_only_a_whole_page),
		cmocka_unit_test(test_small_capacity_is_an_answer),
		cmocka_unit_test(test_damaged_pages_touch_nothing_else),
		cmocka_unit_test(test_only_exactly_one_page_is_a_page),
		cmocka_unit_test(test_any_level_reads_every_level),
		cmocka_unit_test(test_streams_read_pages_of_all_codecs),
		cmocka_unit_test(test_numbers_and_names_are_stable),
		cmocka_unit_test(test_parse_accepts),
		cmocka_unit_test(test_parse_says_what_is_wrong),
		cmocka_unit_test(test_no_memory_for_a_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
