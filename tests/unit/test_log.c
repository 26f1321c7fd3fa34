/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_log.c - lines arrive whole, and not too many of them
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "log.h"

static char output[128 * 1024];

/* What log_line() wrote to standard error since capture_begin(). */
static int capture_fd, kept_fd;

static void capture_begin(void)
{
	kept_fd = dup(STDERR_FILENO);
	capture_fd = memfd_create("log", 0);
	assert_true(kept_fd >= 0 && capture_fd >= 0);
	assert_true(dup2(capture_fd, STDERR_FILENO) >= 0);
}

static void capture_end(void)
{
	ssize_t length = pread(capture_fd, output, sizeof(output) - 1, 0);

	assert_true(dup2(kept_fd, STDERR_FILENO) >= 0);
	close(kept_fd);
	close(capture_fd);
	assert_true(length >= 0);
	output[length] = '\0';
}

static void test_says_who_speaks(void **state)
{
	capture_begin();
	log_line(LOG_ERR, "%s: %d", "number", 7);
	capture_end();
	assert_string_equal(output, "zramfs: number: 7\n");
}

static void test_cuts_endless_lines(void **state)
{
	static char long_text[4096];

	memset(long_text, 'x', sizeof(long_text) - 1);
	capture_begin();
	log_line(LOG_ERR, "%s", long_text);
	capture_end();
	assert_in_range(strlen(output), 400, 600);
	assert_int_equal(output[strlen(output) - 1], '\n');
}

static void test_holds_a_flood_back(void **state)
{
	unsigned int lines = 0, i;
	const char *at;

	capture_begin();
	for (i = 0; i < 10 * LOG_BURST; i++)
		log_line(LOG_WARNING, "page %u is damaged", i);
	capture_end();
	for (at = output; (at = strchr(at, '\n')); at++)
		lines++;
	assert_in_range(lines, 1, LOG_BURST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_says_who_speaks),
		cmocka_unit_test(test_cuts_endless_lines),
		cmocka_unit_test(test_holds_a_flood_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
