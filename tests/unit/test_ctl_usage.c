/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_ctl_usage.c - what files cost and size classes, as text
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "codec/codec.h"
#include "ctl_classes.h"
#include "ctl_usage.h"

static char *text;
static size_t text_size;

static FILE *begin(void)
{
	FILE *out = open_memstream(&text, &text_size);

	assert_non_null(out);
	return out;
}

static int free_text(void **state)
{
	free(text);
	text = NULL;
	return 0;
}

static void assert_has(const char *part)
{
	if (!strstr(text, part))
		fail_msg("no '%s' in:\n%s", part, text);
}

/* --- sums ---------------------------------------------------------------- */

static const struct control_usage half = {
	.ino = 77,
	.size = 8192 * 1024,
	.pages = 2048,
	.same_pages = 512,
	.hot_pages = 2,
	.compressed_pages = 1000,
	.huge_pages = 534,
	.shared_pages = 1024,
	.stored_bytes = 3 << 20,
	.share_bytes = 2 << 20,
	.codec_pages = {[CODEC_ZSTD] = 900, [CODEC_LZ4] = 100},
};

static void test_sums_have_every_count(void **state)
{
	struct ctl_usage tree = {0}, all = {0};

	ctl_usage_add_file(&tree, &half);
	ctl_usage_add_file(&tree, &half);
	ctl_usage_add(&all, &tree);
	ctl_usage_add_file(&all, &half);
	assert_int_equal(all.files, 3);
	assert_int_equal(all.cost.size, 3 * half.size);
	assert_int_equal(all.cost.pages, 3 * half.pages);
	assert_int_equal(all.cost.same_pages, 3 * half.same_pages);
	assert_int_equal(all.cost.hot_pages, 3 * half.hot_pages);
	assert_int_equal(all.cost.compressed_pages, 3 * half.compressed_pages);
	assert_int_equal(all.cost.huge_pages, 3 * half.huge_pages);
	assert_int_equal(all.cost.shared_pages, 3 * half.shared_pages);
	assert_int_equal(all.cost.stored_bytes, 3 * half.stored_bytes);
	assert_int_equal(all.cost.share_bytes, 3 * half.share_bytes);
	assert_int_equal(all.cost.codec_pages[CODEC_ZSTD], 2700);
	assert_int_equal(all.cost.codec_pages[CODEC_LZ4], 300);
}

/* --- for people ---------------------------------------------------------- */

static void show(struct ctl_usage_output *output, const char *path,
		 const struct control_usage *cost)
{
	const struct ctl_usage usage = {1, *cost};

	ctl_usage_show(output, path, &usage);
}

static void test_a_line_for_each_path(void **state)
{
	const struct control_usage none = {0};
	struct ctl_usage_output output = {.stream = begin()};

	show(&output, "/m/a", &half);
	show(&output, "/m/b", &none);
	ctl_usage_end(&output);
	fclose(output.stream);
	assert_string_equal(
		text,
		"        SIZE     PAGES       STORED  SAME EQUAL  HUGE   "
		"HOT CODEC   PATH\n"
		"     8388608      2048      2097152   25%   50%   26%    "
		"0% lz4,zstd /m/a\n"
		"           0         0            0     -     -     -     "
		"- -       /m/b\n");
}

static void test_sizes_for_people(void **state)
{
	struct ctl_usage_output output = {.stream = begin(), .human = true};

	show(&output, "a", &half);
	ctl_usage_end(&output);
	fclose(output.stream);
	assert_has("     8.0 MiB      2048      2.0 MiB ");
}

static void test_a_name_stays_in_its_line(void **state)
{
	struct ctl_usage_output output = {.stream = begin()};

	show(&output, "a\nb\033[1m", &half);
	fclose(output.stream);
	assert_has(" a?b?[1m\n");
}

/* --- for programs -------------------------------------------------------- */

static void test_json_is_an_array(void **state)
{
	struct ctl_usage_output output = {.stream = begin(), .json = true};

	show(&output, "a", &half);
	show(&output, "b", &half);
	ctl_usage_end(&output);
	fclose(output.stream);
	assert_int_equal(strncmp(text, "[\n  {\n", 6), 0);
	assert_has("\"path\": \"a\",\n    \"files\": 1,\n"
		   "    \"size\": 8388608,\n    \"pages\": 2048,\n"
		   "    \"same_pages\": 512,\n    \"shared_pages\": 1024,\n"
		   "    \"huge_pages\": 534,\n    \"hot_pages\": 2,\n"
		   "    \"compressed_pages\": 1000,\n"
		   "    \"stored_bytes\": 3145728,\n"
		   "    \"share_bytes\": 2097152,\n"
		   "    \"codec_pages\": {\"lz4\": 100, \"zstd\": 900}\n"
		   "  },\n  {\n    \"path\": \"b\",");
	assert_string_equal(text + text_size - 6, "  }\n]\n");
}

static void test_json_of_nothing(void **state)
{
	struct ctl_usage_output output = {.stream = begin(), .json = true};

	ctl_usage_end(&output);
	fclose(output.stream);
	assert_string_equal(text, "[\n]\n");
}

/* Names are bytes: what is no UTF-8 can be told apart, and is valid JSON. */
static void test_json_names(void **state)
{
	static const struct {
		const char *name, *want;
	} cases[] = {
		{"a\"b\\", "\"a\\\"b\\\\\""},
		{"\n\001", "\"\\u000a\\u0001\""},
		{"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
		 "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\""},
		{"\xff"
		 "a",
		 "\"\\udcffa\""},
		{"\xc3", "\"\\udcc3\""},
		{"\xe2\x82", "\"\\udce2\\udc82\""},
		{"\xc0\xaf", "\"\\udcc0\\udcaf\""},	       /* overlong */
		{"\xed\xa0\x80", "\"\\udced\\udca0\\udc80\""}, /* surrogate */
		{"\xf4\x90\x80\x80", "\"\\udcf4\\udc90\\udc80\\udc80\""},
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ctl_usage_output output = {.stream = begin(),
						  .json = true};

		show(&output, cases[i].name, &half);
		fclose(output.stream);
		assert_has(cases[i].want);
		free_text(NULL);
	}
}

/* --- size classes -------------------------------------------------------- */

static void test_classes_have_the_kernels_columns(void **state)
{
	const struct control_class class = {
		.size = 256,
		.pages_per_zspage = 3,
		.objects_per_zspage = 48,
		.zspages = {0, 1, 2, 3, 4},
		.objects_allocated = 480,
		.objects_used = 400,
		.pages_used = 30,
		.pages_freeable = 3,
	};
	struct control_class sum = {0};
	FILE *out = begin();

	ctl_classes_row(out, &class);
	ctl_classes_add(&sum, &class);
	ctl_classes_add(&sum, &class);
	ctl_classes_sum(out, &sum);
	fclose(out);
	assert_string_equal(
		text,
		"  256        0        1        2        3        4        480 "
		"       400        30          3         3\n"
		"  all        0        2        4        6        8        960 "
		"       800        60          -         6\n");
}

static void test_headings_fit_the_columns(void **state)
{
	const struct control_class class = {.size = 32};
	FILE *out = begin();
	size_t width;

	ctl_classes_row(out, &class);
	fflush(out);
	width = text_size;
	ctl_classes_head(out);
	fclose(out);
	assert_int_equal(text_size, 3 * width);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums_have_every_count),
		cmocka_unit_test_teardown(test_a_line_for_each_path, free_text),
		cmocka_unit_test_teardown(test_sizes_for_people, free_text),
		cmocka_unit_test_teardown(test_a_name_stays_in_its_line,
					  free_text),
		cmocka_unit_test_teardown(test_json_is_an_array, free_text),
		cmocka_unit_test_teardown(test_json_of_nothing, free_text),
		cmocka_unit_test_teardown(test_json_names, free_text),
		cmocka_unit_test_teardown(test_classes_have_the_kernels_columns,
					  free_text),
		cmocka_unit_test_teardown(test_headings_fit_the_columns,
					  free_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
