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
 * Mount, serve, unmount. service has its transport and nothing else yet; argv
 * is what this program was called with. What goes wrong is told. Returns the
 * exit status.
 */
struct mountpoint;
int serve(struct service *service, const struct options *options,
	  const struct mountpoint *mountpoint, char **argv);

/*
 * The same, as the next worker of a keeper that is another program, and has
 * mounted and will unmount.
 */
struct upgrade_descriptors;
int serve_on(struct service *service, const struct options *options,
	     const struct upgrade_descriptors *descriptors);

#endif
