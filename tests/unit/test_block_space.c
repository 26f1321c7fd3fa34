/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_block_space.c - what block mode does to the filesystem mounted there
 *
 * Without one: the parts to trim, the knob that reserves blocks, which here is
 * a file, and trims of what cannot be trimmed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "block_private.h"
#include "block_space.h"

#define MIB(n) (UINT64_C(n) << 20)
#define GROUP  MIB(128)

/* --- what to trim ------------------------------------------------------ */

/* Stored bytes, in order; at the end, one that is none. */
static off_t next_of(void *context, off_t offset)
{
	const off_t *stored;

	for (stored = context; *stored >= 0; stored++)
		if (*stored >= offset)
			return *stored;
	return -ENXIO;
}

/* Each second group of many. */
static off_t next_second(void *context, off_t offset)
{
	off_t group = (offset + (off_t)GROUP - 1) / (off_t)GROUP;

	group += group % 2;
	return group < *(off_t *)context ? group * (off_t)GROUP : -ENXIO;
}

static void test_ranges(void **state)
{
	struct block_range ranges[BLOCK_RANGES_MAX];
	off_t nothing[] = {-1};
	off_t some[] = {4096, 8192, GROUP + 1, 5 * GROUP - 1, 9 * GROUP, -1};

	assert_int_equal(block_trim_ranges(next_of, nothing, ranges), 0);
	/* Whole groups; neighbours are one. */
	assert_int_equal(block_trim_ranges(next_of, some, ranges), 3);
	assert_int_equal(ranges[0].start, 0);
	assert_int_equal(ranges[0].length, 2 * GROUP);
	assert_int_equal(ranges[1].start, 4 * GROUP);
	assert_int_equal(ranges[1].length, GROUP);
	assert_int_equal(ranges[2].start, 9 * GROUP);
	assert_int_equal(ranges[2].length, GROUP);
}

static void test_too_many_ranges(void **state)
{
	struct block_range ranges[BLOCK_RANGES_MAX];
	const struct block_range *last = &ranges[BLOCK_RANGES_MAX - 1];
	off_t groups = 2 * BLOCK_RANGES_MAX;

	assert_int_equal(block_trim_ranges(next_second, &groups, ranges),
			 BLOCK_RANGES_MAX);
	assert_int_equal(last->length, GROUP);
	/* The last covers the rest, with what is not stored in between. */
	groups = 2 * BLOCK_RANGES_MAX + 10;
	assert_int_equal(block_trim_ranges(next_second, &groups, ranges),
			 BLOCK_RANGES_MAX);
	assert_int_equal(last->start, 2 * (BLOCK_RANGES_MAX - 1) * GROUP);
	assert_int_equal(last->start + last->length, (groups - 1) * GROUP);
}

/* --- trimming ---------------------------------------------------------- */

static const struct block_range all = {0, GROUP};

/* Looking at a mount through one of its own needs root. */
static bool is_root(void)
{
	if (geteuid() == 0)
		return true;
	skip();
	return false;
}

static void test_trim_of_nothing(void **state)
{
	pid_t pid;

	if (!is_root())
		return;
	pid = block_trim_begin("/none", 1, &all, 1, false);
	assert_true(pid > 0);
	block_trim_wait(pid);
	assert_int_equal(block_trim_end(pid), -ENOENT);
}

static void test_trim_of_another(void **state)
{
	struct stat stat_buf;
	pid_t pid;

	if (!is_root())
		return;
	assert_int_equal(stat("/proc", &stat_buf), 0);
	/* Not the device that was mounted there. */
	pid = block_trim_begin("/proc", stat_buf.st_dev + 1, &all, 1, false);
	assert_int_equal(block_trim_end(pid), -ENOENT);
	/* The right one, which cannot be trimmed. */
	pid = block_trim_begin("/proc", stat_buf.st_dev, &all, 1, true);
	assert_int_equal(block_trim_end(pid), -ENOTTY);
	/* Nothing to do. */
	pid = block_trim_begin("/proc", stat_buf.st_dev, &all, 0, true);
	assert_int_equal(block_trim_end(pid), 0);
}

/* --- the knob ---------------------------------------------------------- */

static struct block_room room;

static int make_knob(void **state)
{
	int fd;

	/* No device has this number. */
	room = (struct block_room){.device = (dev_t)-1, .usual = 7};
	room.reserved = room.usual;
	strcpy(room.path, "/tmp/zramfs-knob.XXXXXX");
	fd = mkstemp(room.path);
	return fd < 0 || close(fd);
}

static int remove_knob(void **state)
{
	return unlink(room.path);
}

/* What was written last; -1: nothing since. */
static long reserved(void)
{
	char text[32] = "";
	int fd = open(room.path, O_RDWR);
	ssize_t length = read(fd, text, sizeof(text) - 1);

	assert_true(length >= 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	close(fd);
	return length ? atol(text) : -1;
}

static void test_room(void **state)
{
	/* More than is free: as usual. */
	block_room_set(&room, MIB(800), MIB(500), MIB(400), 4096);
	assert_int_equal(reserved(), -1);
	/* Of 400 MiB that are free, 100 may be taken. */
	block_room_set(&room, MIB(800), MIB(100), MIB(400), 4096);
	assert_int_equal(reserved(), MIB(300) / 4096);
	/* It is written when it has changed. */
	block_room_set(&room, MIB(800), MIB(100), MIB(400), 4096);
	assert_int_equal(reserved(), -1);
	block_room_set(&room, MIB(800), 0, MIB(400), 1024);
	assert_int_equal(reserved(), MIB(400) / 1024);
	/* There is room, or no limit: as usual. */
	block_room_set(&room, MIB(800), MIB(400), MIB(400), 4096);
	assert_int_equal(reserved(), 7);
	block_room_set(&room, MIB(800), 0, MIB(400), 4096);
	assert_int_equal(reserved(), MIB(400) / 4096);
	block_room_set(&room, 0, 0, MIB(400), 4096);
	assert_int_equal(reserved(), 7);
}

static void test_room_is_not_less_than_usual(void **state)
{
	block_room_set(&room, MIB(800), MIB(400) - 3 * 4096, MIB(400), 4096);
	assert_int_equal(reserved(), -1);
}

static void test_room_of_others(void **state)
{
	struct block_room none = {0};

	/* Nothing to set, and no device: nothing happens. */
	block_room_open(&none, (dev_t)-1, true);
	block_room_set(&none, MIB(800), 0, MIB(400), 4096);
	block_room_set(&none, 0, 0, MIB(400), 4096);
	block_room_close(&none);
	assert_string_equal(none.path, "");
}

/* --- the thread -------------------------------------------------------- */

static atomic_int attached, detached;

static int attach(void *context)
{
	atomic_fetch_add(&attached, 1);
	return 0;
}

static void detach(void *context)
{
	atomic_fetch_add(&detached, 1);
}

static uint64_t stored(void *context)
{
	fail();
	return 0;
}

static uint64_t limit(void *context, uint64_t *left)
{
	fail();
	return 0;
}

/* What is mounted there is another's: it is not asked for anything. */
static void test_thread(void **state)
{
	const struct block_space_config config = {
		.mountpoint = "/proc",
		.device = (dev_t)-1,
		.trims = true,
		.begin_with_trim = true,
		.attach = attach,
		.detach = detach,
		.stored = stored,
		.limit = limit,
	};
	struct block_space *space;

	assert_int_equal(block_space_start(&space, &config), 0);
	block_space_stop(space);
	assert_int_equal(attached, 1);
	assert_int_equal(detached, 1);
	block_space_stop(NULL);
}

#define KNOB(test) cmocka_unit_test_setup_teardown(test, make_knob, remove_knob)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_too_many_ranges),
		cmocka_unit_test(test_trim_of_nothing),
		cmocka_unit_test(test_trim_of_another),
		KNOB(test_room),
		KNOB(test_room_is_not_less_than_usual),
		cmocka_unit_test(test_room_of_others),
		cmocka_unit_test(test_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
