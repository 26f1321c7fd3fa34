/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_cancel.c - what ends a start, and what does not
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cancel.h"

/* A directory to mount on, a keeper, a starter; all as they should be. */
static struct world {
	char parent[64];
	char directory[80];
	struct mountpoint mountpoint;
	struct cancel cancel;
	int keeper;  /* its end of the link */
	int starter; /* its end of the pipe */
	int done;    /* what is waited for: an eventfd */
} world;

static char why[256];

static int set_up(void **state)
{
	int link[2], pipes[2];
	sigset_t signals;

	memset(&world, 0, sizeof(world));
	strcpy(world.parent, "/tmp/zramfs-cancel.XXXXXX");
	assert_non_null(mkdtemp(world.parent));
	snprintf(world.directory, sizeof(world.directory), "%s/here",
		 world.parent);
	assert_int_equal(mkdir(world.directory, 0700), 0);
	assert_int_equal(mountpoint_open(&world.mountpoint, world.directory,
					 why, sizeof(why)),
			 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, link), 0);
	assert_int_equal(pipe(pipes), 0);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	world.keeper = link[0];
	world.starter = pipes[0];
	world.done = eventfd(0, EFD_CLOEXEC);
	world.cancel = (struct cancel){
		.signals = signalfd(-1, &signals, SFD_NONBLOCK),
		.link = link[1],
		.starter = pipes[1],
		.mountpoint = &world.mountpoint,
	};
	assert_int_equal(cancel_open(&world.cancel), 0);
	why[0] = '\0';
	return 0;
}

static int tear_down(void **state)
{
	cancel_close(&world.cancel);
	close(world.cancel.signals);
	close(world.cancel.link);
	close(world.cancel.starter);
	if (world.keeper >= 0)
		close(world.keeper);
	if (world.starter >= 0)
		close(world.starter);
	close(world.done);
	rmdir(world.directory);
	strcat(world.directory, "-moved");
	rmdir(world.directory);
	rmdir(world.parent);
	mountpoint_close(&world.mountpoint);
	return 0;
}

static void end_what_is_waited_for(void)
{
	uint64_t one = 1;

	assert_int_equal(write(world.done, &one, sizeof(one)), sizeof(one));
}

static int look(void)
{
	return cancel_wait(&world.cancel, -1, why, sizeof(why));
}

static void test_nothing(void **state)
{
	assert_int_equal(look(), 0);
	end_what_is_waited_for();
	assert_int_equal(
		cancel_wait(&world.cancel, world.done, why, sizeof(why)), 0);
	assert_string_equal(why, "");
}

static void test_nobody_else(void **state)
{
	/* keeper=off, in the foreground, and mounted already. */
	world.cancel.link = world.cancel.starter = -1;
	world.cancel.mountpoint = NULL;
	rmdir(world.directory);
	assert_int_equal(look(), 0);
}

static void test_signal(void **state)
{
	raise(SIGTERM);
	assert_int_equal(
		cancel_wait(&world.cancel, world.done, why, sizeof(why)),
		-ECANCELED);
	assert_string_equal(why, "stopped by a signal: Terminated");
	/* It was taken. */
	assert_int_equal(look(), 0);
}

static void test_keeper(void **state)
{
	/* What it says is for later. */
	assert_int_equal(send(world.keeper, "h", 1, 0), 1);
	assert_int_equal(look(), 0);
	close(world.keeper);
	world.keeper = -1;
	assert_int_equal(
		cancel_wait(&world.cancel, world.done, why, sizeof(why)),
		-ECANCELED);
	assert_string_equal(why, "stopped: the keeper was killed");
}

static void test_starter(void **state)
{
	close(world.starter);
	world.starter = -1;
	assert_int_equal(
		cancel_wait(&world.cancel, world.done, why, sizeof(why)),
		-ECANCELED);
	assert_string_equal(why,
			    "stopped: the command that started it was killed");
}

static void test_done_and_given_up(void **state)
{
	/* Both at once: it is given up. */
	end_what_is_waited_for();
	raise(SIGTERM);
	assert_int_equal(
		cancel_wait(&world.cancel, world.done, why, sizeof(why)),
		-ECANCELED);
}

static void test_moved(void **state)
{
	char elsewhere[100], want[200];

	snprintf(elsewhere, sizeof(elsewhere), "%s-moved", world.directory);
	assert_int_equal(rename(world.directory, elsewhere), 0);
	assert_int_equal(look(), -ECANCELED);
	/* Another in its place is not the same. */
	assert_int_equal(mkdir(world.directory, 0700), 0);
	assert_int_equal(look(), -ECANCELED);
	snprintf(want, sizeof(want),
		 "%s: mounted on or moved by another meanwhile",
		 world.directory);
	assert_string_equal(why, want);
}

static void test_mountpoint(void **state)
{
	struct mountpoint other;
	char path[100], want[200];

	snprintf(path, sizeof(path), "%s/none", world.parent);
	assert_int_equal(mountpoint_open(&other, path, why, sizeof(why)),
			 -ENOENT);
	snprintf(want, sizeof(want), "%s: No such file or directory", path);
	assert_string_equal(why, want);
	assert_int_equal(mountpoint_open(&other, "/dev/null", why, sizeof(why)),
			 -ENOTDIR);
	assert_string_equal(why, "/dev/null: not a directory");
	snprintf(path, sizeof(path), "%s/../here", world.directory);
	assert_int_equal(mountpoint_open(&other, path, why, sizeof(why)), 0);
	assert_string_equal(other.path, world.mountpoint.path);
	mountpoint_close(&other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nothing), TEST(test_nobody_else),
		TEST(test_signal),  TEST(test_keeper),
		TEST(test_starter), TEST(test_done_and_given_up),
		TEST(test_moved),   TEST(test_mountpoint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
