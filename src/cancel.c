/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cancel.c - see cancel.h
 */
#include "cancel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "mountinfo.h"

int cancel_open(struct cancel *cancel)
{
	cancel->mounts = -1;
	if (!cancel->mountpoint)
		return 0;
	cancel->mounts = open(MOUNTINFO_PATH, O_RDONLY | O_CLOEXEC);
	return cancel->mounts < 0 ? -errno : 0;
}

void cancel_close(struct cancel *cancel)
{
	if (cancel->mounts >= 0)
		close(cancel->mounts);
	cancel->mounts = -1;
}

static int give_up(char *why, size_t size, const char *what, const char *reason)
{
	snprintf(why, size, "%s: %s", what, reason);
	return -ECANCELED;
}

static int take_signal(const struct cancel *cancel, char *why, size_t size)
{
	struct signalfd_siginfo signal;

	if (read(cancel->signals, &signal, sizeof(signal)) != sizeof(signal))
		return 0;
	return give_up(why, size, "stopped by a signal",
		       strsignal((int)signal.ssi_signo));
}

int cancel_wait(const struct cancel *cancel, int fd, char *why, size_t size)
{
	struct pollfd events[] = {
		{.fd = cancel->signals, .events = POLLIN},
		/* Of these two, that nobody is at the other end. */
		{.fd = cancel->link},
		{.fd = cancel->starter},
		{.fd = cancel->mounts, .events = POLLPRI},
		{.fd = fd, .events = POLLIN},
	};
	int error;

	do {
		if (poll(events, 5, fd < 0 ? 0 : -1) < 0)
			continue;
		error = events[0].revents ? take_signal(cancel, why, size) : 0;
		if (error)
			return error;
		if (events[1].revents)
			return give_up(why, size, "stopped",
				       "the keeper was killed");
		if (events[2].revents)
			return give_up(why, size, "stopped",
				       "the command that started it was "
				       "killed");
		/* Of mounts that came and went it tells once: always look. */
		if (cancel->mountpoint &&
		    !mountpoint_is_same(cancel->mountpoint))
			return give_up(why, size, cancel->mountpoint->path,
				       "mounted on or moved by another "
				       "meanwhile");
	} while (fd >= 0 && !events[4].revents);
	return 0;
}
