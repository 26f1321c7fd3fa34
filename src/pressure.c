/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pressure.c - see pressure.h
 */
#include "pressure.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "log.h"

/* Since Linux 5.6; not in every header. */
#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

/* The least there is: see proc(5), oom_score_adj. */
static const char never[] = "-1000";

void pressure_begin(void)
{
	/*
	 * Also saves us from the kernel's throttling of those who make pages
	 * dirty: it would make us wait for ourselves. Users may not have it,
	 * and have no devices either.
	 */
	if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) && errno != EPERM &&
	    errno != EINVAL)
		log_line(LOG_WARNING, "PR_SET_IO_FLUSHER: %s", strerror(errno));
}

static void be_spared(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	ssize_t written = -1;

	if (fd >= 0) {
		written = write(fd, never, strlen(never));
		if (written < 0)
			log_line(LOG_WARNING, "oom_score_adj: %s",
				 strerror(errno));
		close(fd);
	} else {
		log_line(LOG_WARNING, "oom_score_adj: %s", strerror(errno));
	}
}

void pressure_stay(void)
{
	/* As they are touched: the arena has room for more than there is. */
	if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT))
		log_line(LOG_WARNING, "cannot keep all pages in memory: %s",
			 strerror(errno));
	be_spared();
}
