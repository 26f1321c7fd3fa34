/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_daemon.c - what who started the daemon gets to see
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon.h"

/* Seen by all processes. */
static struct shared {
	_Atomic pid_t daemon;
	_Atomic pid_t session;
	atomic_int open; /* descriptors above the standard ones */
	char directory[64];
	char output[64];
	atomic_bool end;
} * shared;

static int set_up(void **state)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED;
}

static int tear_down(void **state)
{
	return munmap(shared, sizeof(*shared));
}

/* Run body in the daemon; the exit status that its starter ends with. */
static int start(void (*body)(void))
{
	int status;
	pid_t starter = fork();

	assert_true(starter >= 0);
	if (starter == 0) {
		/* The starter's messages are not the test's. */
		int null = open("/dev/null", O_WRONLY);

		dup2(null, STDERR_FILENO);
		if (daemon_begin())
			_exit(99);
		body();
		_exit(98);
	}
	assert_int_equal(waitpid(starter, &status, 0), starter);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void fail_with_two(void)
{
	_exit(2);
}

static void end_without_a_word(void)
{
	_exit(0);
}

static void die(void)
{
	raise(SIGKILL);
}

/* But sockets: there is one to syslog where that runs. */
static int count_open(void)
{
	struct stat stat;
	int fd, count = 0;

	for (fd = 3; fd < 1024; fd++)
		count += !fstat(fd, &stat) && !S_ISSOCK(stat.st_mode);
	return count;
}

static void serve(void)
{
	ssize_t length;

	if (daemon_ready())
		_exit(1);
	shared->session = getsid(0);
	shared->open = count_open();
	if (!getcwd(shared->directory, sizeof(shared->directory)))
		_exit(1);
	length = readlink("/proc/self/fd/2", shared->output,
			  sizeof(shared->output) - 1);
	shared->output[length > 0 ? length : 0] = '\0';
	shared->daemon = getpid();
	while (!shared->end)
		usleep(1000);
	_exit(0);
}

static void test_failure_reaches_the_starter(void **state)
{
	assert_int_equal(start(fail_with_two), 2);
}

static void test_an_early_end_is_no_success(void **state)
{
	assert_int_equal(start(end_without_a_word), 1);
}

static void test_death_reaches_the_starter(void **state)
{
	assert_int_equal(start(die), 1);
}

static void test_the_daemon_stays(void **state)
{
	int spare = open("/dev/null", O_RDONLY);

	assert_true(spare >= 0);
	assert_int_equal(start(serve), 0);
	while (!shared->daemon)
		usleep(1000);
	assert_int_equal(kill(shared->daemon, 0), 0);
	assert_int_equal(shared->session, shared->daemon);
	assert_int_equal(shared->open, 0);
	assert_string_equal(shared->directory, "/");
	assert_string_equal(shared->output, "/dev/null");
	shared->end = true;
	close(spare);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failure_reaches_the_starter),
		cmocka_unit_test(test_an_early_end_is_no_success),
		cmocka_unit_test(test_death_reaches_the_starter),
		cmocka_unit_test_setup_teardown(test_the_daemon_stays, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
