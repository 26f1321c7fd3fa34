/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * serve_private.h - what the two files share
 *
 * serve.c has the processes that there are, and what outlives a worker;
 * serve_worker.c is what a worker does from its start to its end.
 */
#ifndef ZRAMFS_SERVE_PRIVATE_H
#define ZRAMFS_SERVE_PRIVATE_H

#include <stdbool.h>

#include "serve.h"

struct block;

struct server {
	struct service *service;
	const struct options *options;
	const char *mountpoint;
	const struct mountpoint *place; /* the same, as it was at the start */
	char **argv;
	struct block *block; /* NULL: not in block mode */
};

/* Until the end; returns the exit status. first: nobody has served before. */
int serve_as_worker(struct server *server, bool first);

#endif
