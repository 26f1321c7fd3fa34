/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * daemon.c - see daemon.h
 */
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"

/* The child's end of the pipe, moved where close_range() can spare it. */
#define REPORT_FD 3

static bool reports; /* a parent waits at the other end */

/* Wait until the child is ready or dead, and end as it did. */
static void parent(pid_t child, int report)
{
	ssize_t length;
	int status;
	char byte;

	do
		length = read(report, &byte, 1);
	while (length < 0 && errno == EINTR);
	if (length == 1)
		_exit(0);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			_exit(1);
	if (WIFSIGNALED(status)) {
		log_line(LOG_ERR, "the daemon was killed while starting: %s",
			 strsignal(WTERMSIG(status)));
		_exit(1);
	}
	_exit(WEXITSTATUS(status) ? WEXITSTATUS(status) : 1);
}

int daemon_begin(void)
{
	int fds[2];
	pid_t child;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	child = fork();
	if (child < 0) {
		int error = errno;

		close(fds[0]);
		close(fds[1]);
		return -error;
	}
	if (child > 0) {
		close(fds[1]);
		parent(child, fds[0]);
	}

	/* A group leader was the parent, if anybody: setsid() cannot fail. */
	setsid();
	if (chdir("/"))
		return -errno;
	if (fds[1] != REPORT_FD && dup3(fds[1], REPORT_FD, O_CLOEXEC) < 0)
		return -errno;
	reports = true;
	if (close_range(REPORT_FD + 1, ~0U, 0))
		return -errno;
	return 0;
}

int daemon_starter(void)
{
	return reports ? REPORT_FD : -1;
}

void daemon_disown(void)
{
	if (reports)
		close(REPORT_FD);
	reports = false;
}

int daemon_detach(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fd;

	if (null < 0)
		return -errno;
	log_to_syslog();
	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (dup2(null, fd) < 0)
			return -errno;
	close(null);
	return 0;
}

int daemon_ready(void)
{
	int error = daemon_detach();

	if (error)
		return error;
	/* The parent may have been killed: then nobody listens, and that's it.
	 */
	if (write(REPORT_FD, "", 1) != 1)
		log_line(LOG_WARNING, "nobody waited for the mount");
	daemon_disown();
	return 0;
}
