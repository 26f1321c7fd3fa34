/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_awake.c - processors are kept awake in bursts, and only then
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "awake.h"

static char device[] = "/tmp/zramfs-awake.XXXXXX";
static struct awake awake;

/* What was written to the device last. */
static int32_t asked_for(void)
{
	int32_t value = -1;
	int fd = open(device, O_RDONLY);
	off_t end = lseek(fd, 0, SEEK_END);

	assert_true(end >= 4);
	assert_int_equal(pread(fd, &value, 4, end - 4), 4);
	close(fd);
	return value;
}

static void test_asks_for_nothing_when_new(void **state)
{
	assert_int_equal(awake_open(&awake, device), 0);
	assert_false(awake.held);
	assert_int_equal(asked_for(), 2000000000);
	awake_close(&awake);
}

static void test_holds_while_requests_come_fast(void **state)
{
	assert_int_equal(awake_open(&awake, device), 0);
	awake_hold(&awake, 1000);
	assert_true(awake.held);
	assert_int_equal(asked_for(), 0);
	awake_tick(&awake, 1100);
	awake_tick(&awake, 1200);
	assert_int_equal(asked_for(), 0);
	awake_tick(&awake, 1201);
	assert_false(awake.held);
	assert_int_equal(asked_for(), 2000000000);
	awake_hold(&awake, 1300);
	assert_int_equal(asked_for(), 0);
	awake_close(&awake);
}

static void test_does_without_a_device(void **state)
{
	assert_int_equal(awake_open(&awake, "/nonexistent/device"), -ENOENT);
	awake_hold(&awake, 1);
	assert_false(awake.held);
	awake_tick(&awake, 2);
	awake_close(&awake);
}

/* /dev/full can be opened, and takes nothing. */
static void test_a_device_that_fails_is_an_error(void **state)
{
	assert_int_equal(awake_open(&awake, "/dev/full"), -ENOSPC);
	assert_int_equal(awake.fd, -1);
}

static unsigned int bursts(unsigned int requests, long pause_ns)
{
	const struct timespec pause = {.tv_nsec = pause_ns};
	struct awake_pace pace = {0};
	unsigned int found = 0;

	/* The first few say nothing: nobody knows since when. */
	while (requests--) {
		if (pause_ns)
			nanosleep(&pause, NULL);
		found += awake_pace(&pace);
	}
	return found;
}

static void test_quick_requests_are_a_burst(void **state)
{
	assert_true(bursts(100, 0) > 0);
}

static void test_slow_requests_are_none(void **state)
{
	assert_int_equal(bursts(64, 1000 * 1000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_asks_for_nothing_when_new),
		cmocka_unit_test(test_holds_while_requests_come_fast),
		cmocka_unit_test(test_does_without_a_device),
		cmocka_unit_test(test_a_device_that_fails_is_an_error),
		cmocka_unit_test(test_quick_requests_are_a_burst),
		cmocka_unit_test(test_slow_requests_are_none),
	};
	int fd = mkstemp(device), failed;

	if (fd < 0)
		return 1;
	close(fd);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(device);
	return failed;
}
