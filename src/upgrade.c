/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * upgrade.c - see upgrade.h
 */
#include "upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena/arena.h"
#include "fs/fs.h"
#include "ledger.h"

#define ANSWER_MS 2000

extern char **environ;

#define TEXT_OF(number) #number
#define TEXT(number)	TEXT_OF(number)

const char *upgrade_layout(void)
{
	return TEXT(ARENA_VERSION) "." TEXT(LEDGER_VERSION) "." TEXT(
		FS_VERSION);
}

/* --- asking ------------------------------------------------------------ */

static int explain(int error, char *message, size_t size, const char *path,
		   const char *why)
{
	snprintf(message, size, "%s: %s", path, why);
	return error;
}

/* Started with its output in a pipe, whose other end is *output. */
static int ask(const char *path, pid_t *child, int *output)
{
	char *const argv[] = {(char *)path, UPGRADE_OPTION, NULL};
	posix_spawn_file_actions_t actions;
	int fds[2];
	int error;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	error = posix_spawn_file_actions_init(&actions);
	if (!error) {
		error = posix_spawn_file_actions_adddup2(&actions, fds[1],
							 STDOUT_FILENO);
		if (!error)
			error = posix_spawn(child, path, &actions, NULL, argv,
					    environ);
		posix_spawn_file_actions_destroy(&actions);
	}
	close(fds[1]);
	if (error)
		close(fds[0]);
	else
		*output = fds[0];
	return -error;
}

/* Up to a newline; the length, 0 when none comes in time. */
static size_t read_answer(int output, char *answer, size_t size)
{
	struct pollfd event = {.fd = output, .events = POLLIN};
	size_t used = 0;
	ssize_t length;

	while (used < size - 1 && poll(&event, 1, ANSWER_MS) > 0) {
		length = read(output, answer + used, size - 1 - used);
		if (length <= 0)
			break;
		used += (size_t)length;
		if (memchr(answer, '\n', used))
			break;
	}
	answer[used] = '\0';
	answer[strcspn(answer, "\n")] = '\0';
	return strlen(answer);
}

int upgrade_check(const char *path, char *message, size_t size)
{
	char answer[64];
	size_t length;
	pid_t child;
	int output = -1;
	int error;

	error = ask(path, &child, &output);
	if (error)
		return explain(error, message, size, path, strerror(-error));
	length = read_answer(output, answer, sizeof(answer));
	close(output);
	kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	if (!length)
		return explain(-ENOEXEC, message, size, path,
			       "does not tell its layout version: no zramfs");
	if (strcmp(answer, upgrade_layout())) {
		snprintf(message, size,
			 "%s: its layout version is %.32s, not %s", path,
			 answer, upgrade_layout());
		return -EPROTO;
	}
	return 0;
}

/* --- handing over ------------------------------------------------------ */

int upgrade_become(int program, char **argv,
		   const struct upgrade_descriptors *descriptors)
{
	const int inherited[] = {descriptors->fuse, descriptors->arena,
				 descriptors->ledger, descriptors->pipe[0],
				 descriptors->pipe[1], descriptors->link,
				 descriptors->block_root};
	char *value;
	size_t i;

	for (i = 0; i < sizeof(inherited) / sizeof(inherited[0]); i++)
		if (inherited[i] >= 0 && fcntl(inherited[i], F_SETFD, 0))
			return -errno;
	if (asprintf(&value, "%d %d %d %d %d %d %d %s", descriptors->fuse,
		     descriptors->arena, descriptors->ledger,
		     descriptors->pipe[0], descriptors->pipe[1],
		     descriptors->link, descriptors->block_root,
		     descriptors->mountpoint) < 0)
		return -ENOMEM;
	if (setenv(UPGRADE_ENVIRONMENT, value, 1))
		return -ENOMEM;
	free(value);
	syscall(SYS_execveat, program, "", argv, environ, AT_EMPTY_PATH);
	unsetenv(UPGRADE_ENVIRONMENT);
	return -errno;
}

bool upgrade_inherited(struct upgrade_descriptors *descriptors)
{
	static char mountpoint[PATH_MAX]; /* for as long as the process */
	const char *value = getenv(UPGRADE_ENVIRONMENT);
	int *fds[] = {&descriptors->fuse, &descriptors->arena,
		      &descriptors->ledger, &descriptors->pipe[0],
		      &descriptors->pipe[1], &descriptors->link,
		      &descriptors->block_root};
	int used = 0;
	size_t i;

	if (!value ||
	    sscanf(value, "%d %d %d %d %d %d %d %n", fds[0], fds[1], fds[2],
		   fds[3], fds[4], fds[5], fds[6], &used) != 7)
		return false;
	for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (*fds[i] >= 0 && fcntl(*fds[i], F_SETFD, FD_CLOEXEC))
			return false;
	if (strlen(value + used) >= sizeof(mountpoint))
		return false;
	strcpy(mountpoint, value + used);
	descriptors->mountpoint = mountpoint;
	unsetenv(UPGRADE_ENVIRONMENT);
	return true;
}
