/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cancel.h - what ends a start before it is done
 *
 * Making a filesystem can take long, and meanwhile: a signal asks for an end;
 * the keeper dies; the command that is to return once all works is killed, and
 * nobody waits any more; the mount point becomes another's. Each of these ends
 * the start, and what was done is undone.
 */
#ifndef ZRAMFS_CANCEL_H
#define ZRAMFS_CANCEL_H

#include <stddef.h>

#include "mountpoint.h"

struct cancel {
	int signals; /* signalfd(2) of those that ask for an end */
	int link;    /* to the keeper; -1: none */
	int starter; /* as daemon_starter() */
	const struct mountpoint *mountpoint; /* NULL: it does not matter */
	int mounts; /* tells when it may be another's */
};

/* Fills in what changes with the time; negative errno. */
int cancel_open(struct cancel *cancel);
void cancel_close(struct cancel *cancel);

/*
 * Wait until there is something to read from fd, or it is time to give up: 0;
 * or -ECANCELED, with the reason in why. fd -1: look, and do not wait.
 */
int cancel_wait(const struct cancel *cancel, int fd, char *why, size_t size);

#endif
