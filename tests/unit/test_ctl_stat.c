/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_ctl_stat.c - statistics as text, for people and for programs
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "ctl_stat.h"

static struct control_stat stat_data = {
	.pid = 12,
	.codec = "zstd:3",
	.pool = "zsmalloc",
	.orig_data_size = 1,
	.compr_data_size = 2,
	.mem_used_total = 3,
	.mem_limit = 4,
	.mem_used_max = 5,
	.same_pages = 6,
	.pages_compacted = 7,
	.huge_pages = 8,
	.huge_pages_since = 9,
	.dedup_pages = UINT64_MAX,
	.requests = {[0] = 1, [1] = 21, [15] = 22, [60] = 2},
};

static char *text;

static FILE *begin(size_t *size)
{
	FILE *out = open_memstream(&text, size);

	assert_non_null(out);
	return out;
}

static int free_text(void **state)
{
	free(text);
	text = NULL;
	return 0;
}

static void test_mm_stat_is_the_kernels_line(void **state)
{
	size_t size;
	FILE *out = begin(&size);

	ctl_stat_mm_stat(out, &stat_data);
	fclose(out);
	/* As drivers/block/zram prints it: nine columns, eight wide. */
	assert_string_equal(text, "       1        2        3        4        "
				  "5        6        7        8        9\n");
}

static void test_json_names_everything(void **state)
{
	static const char *const parts[] = {
		"\"codec\": \"zstd:3\"",
		"\"pool\": \"zsmalloc\"",
		"\"pid\": 12",
		"\"orig_data_size\": 1,",
		"\"huge_pages_since\": 9,",
		"\"dedup_pages\": 18446744073709551615,",
		"\"requests\": {\n    \"lookup\": 21,\n    \"read\": 22,\n    "
		"\"other\": 3\n  }\n}\n",
	};
	size_t size, i;
	FILE *out = begin(&size);

	ctl_stat_json(out, &stat_data);
	fclose(out);
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strstr(text, parts[i]))
			fail_msg("no %s in %s", parts[i], text);
}

static void test_json_without_requests(void **state)
{
	struct control_stat none = {0};
	size_t size;
	FILE *out = begin(&size);

	ctl_stat_json(out, &none);
	fclose(out);
	assert_non_null(strstr(text, "\"requests\": {\n  }\n}\n"));
}

static void test_json_escapes(void **state)
{
	struct control_stat odd = {.codec = "a\"b\\c\n"};
	size_t size;
	FILE *out = begin(&size);

	ctl_stat_json(out, &odd);
	fclose(out);
	assert_non_null(strstr(text, "\"codec\": \"a\\\"b\\\\c\""));
}

static void test_prometheus_escapes_labels(void **state)
{
	size_t size;
	FILE *out = begin(&size);

	ctl_stat_prometheus(out, &stat_data, "/m\"\n");
	fclose(out);
	assert_non_null(strstr(
		text, "zramfs_orig_data_size{mountpoint=\"/m\\\"\\n\"} 1\n"));
	assert_non_null(strstr(text, "# TYPE zramfs_pages_compacted_total "
				     "counter\nzramfs_pages_compacted_total{"));
	assert_non_null(strstr(text, ",opcode=\"read\"} 22\n"));
}

static void test_sizes_are_short(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{0, "0 B"},
		{1023, "1023 B"},
		{1024, "1.0 KiB"},
		{1536, "1.5 KiB"},
		{(1 << 20) - 1, "1.0 MiB"},
		{1 << 20, "1.0 MiB"},
		{UINT64_C(5) << 40, "5.0 TiB"},
		{UINT64_MAX, "16.0 EiB"},
	};
	char size[16];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ctl_format_size(size, sizeof(size), cases[i].bytes);
		assert_string_equal(size, cases[i].text);
	}
}

static void test_table_has_a_ratio(void **state)
{
	struct control_stat half = {
		.orig_data_size = 4096,
		.mem_used_total = 2048,
	};
	size_t size;
	FILE *out = begin(&size);

	ctl_stat_table(out, &half);
	fclose(out);
	assert_non_null(strstr(text, " 2.00\n"));
}

/* What is hot makes the ratio look bad: it is told right below. */
static void test_table_tells_what_is_not_compressed_yet(void **state)
{
	struct control_stat hot = {
		.orig_data_size = 8 << 20,
		.mem_used_total = 8 << 20,
		.hot_pages = 1536,
	};
	size_t size;
	FILE *out = begin(&size);

	ctl_stat_table(out, &hot);
	fclose(out);
	assert_non_null(strstr(text,
			       "  ratio data / memory            1.00\n"
			       "    not compressed yet        6.0 MiB\n"));
}

static void test_table_is_silent_when_all_is_compressed(void **state)
{
	struct control_stat cold = {
		.orig_data_size = 8 << 20,
		.mem_used_total = 4 << 20,
	};
	size_t size;
	FILE *out = begin(&size);

	ctl_stat_table(out, &cold);
	fclose(out);
	assert_null(strstr(text, "not compressed yet"));
}

static void test_opcodes_have_names(void **state)
{
	assert_string_equal(ctl_opcode_name(47), "copy_file_range");
	assert_string_equal(ctl_opcode_name(0), "other");
	assert_string_equal(ctl_opcode_name(1000), "other");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_mm_stat_is_the_kernels_line,
					  free_text),
		cmocka_unit_test_teardown(test_json_names_everything,
					  free_text),
		cmocka_unit_test_teardown(test_json_without_requests,
					  free_text),
		cmocka_unit_test_teardown(test_json_escapes, free_text),
		cmocka_unit_test_teardown(test_prometheus_escapes_labels,
					  free_text),
		cmocka_unit_test(test_sizes_are_short),
		cmocka_unit_test_teardown(test_table_has_a_ratio, free_text),
		cmocka_unit_test_teardown(
			test_table_tells_what_is_not_compressed_yet, free_text),
		cmocka_unit_test_teardown(
			test_table_is_silent_when_all_is_compressed, free_text),
		cmocka_unit_test(test_opcodes_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
