/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * serve.h - from a parsed command line to a mount that is served, to its end
 *
 * Puts the memfds, the mount, the keeper and the workers together. See
 * keeper.h for who does what.
 */
#ifndef ZRAMFS_SERVE_H
#define ZRAMFS_SERVE_H

struct options;
struct service;

/*
 * Mount, serve, unmount. service has its transport and nothing else yet. What
 * goes wrong is told. Returns the exit status.
 */
int serve(struct service *service, const struct options *options,
	  const char *mountpoint);

#endif
