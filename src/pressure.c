/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pressure.c - see pressure.h
 */
#include "pressure.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "log.h"

/* Since Linux 5.6; not in every header. */
#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

/* 0, or -errno. */
static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int error = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		error = -errno;
	close(fd);
	return error;
}

/* --- the memory cgroup ------------------------------------------------- */

static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (; *list; list += strcspn(list, ",\n"), list += *list == ',')
		if (strcspn(list, ",\n") == length &&
		    !memcmp(list, word, length))
			return true;
	return false;
}

/* Where version 1 has the memory controller, and how to leave a cgroup. */
static bool find_hierarchy(char path[PATH_MAX + 16])
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	while (mounts && !found && getline(&line, &size, mounts) >= 0) {
		const char *dash = strstr(line, " - cgroup ");
		char where[PATH_MAX], options[256];

		if (!dash ||
		    sscanf(line, "%*s %*s %*s %*s %4095s", where) != 1 ||
		    sscanf(dash, " - cgroup %*s %255s", options) != 1 ||
		    !has_word(options, "memory"))
			continue;
		snprintf(path, PATH_MAX + 16, "%s/cgroup.procs", where);
		found = true;
	}
	free(line);
	if (mounts)
		fclose(mounts);
	return found;
}

/*
 * What the kernel's zram takes is in no cgroup either. A cgroup of version 2
 * does not make anybody wait for write-back, so it can stay.
 */
static void leave_cgroup(void)
{
	char path[PATH_MAX + 16];
	int error;

	if (!find_hierarchy(path))
		return;
	error = write_text(path, "0");
	if (error)
		log_line(LOG_WARNING,
			 "while memory is short, writes may hang: there is no "
			 "CAP_SYS_RESOURCE, and the memory cgroup cannot be "
			 "left: %s: %s",
			 path, strerror(-error));
}

void pressure_begin(void)
{
	if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0))
		leave_cgroup();
}

/* --- staying ----------------------------------------------------------- */

void pressure_stay(void)
{
	int error;

	/* As they are touched: the arena has room for more than there is. */
	if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT))
		log_line(LOG_WARNING, "cannot keep all pages in memory: %s",
			 strerror(errno));
	/* The least there is: see proc(5). */
	error = write_text("/proc/self/oom_score_adj", "-1000");
	if (error)
		log_line(LOG_INFO, "the OOM killer may choose this process: %s",
			 strerror(-error));
}
