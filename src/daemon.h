/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * daemon.h - go to the background, but not before it works
 *
 * daemon_begin() makes the child that will be the daemon; the parent stays,
 * with the terminal, until the child calls daemon_ready() or dies, and then
 * exits with 0 or with the child's exit status. Nothing that the daemon is to
 * keep (threads, mappings, descriptors) may exist before daemon_begin().
 */
#ifndef ZRAMFS_DAEMON_H
#define ZRAMFS_DAEMON_H

/*
 * Returns in the child only: 0, or -errno in the one process there is when it
 * could not be made. The child has its own session, / as its directory, and of
 * the descriptors inherited only the standard ones.
 */
int daemon_begin(void);

/*
 * Let go of the terminal and log to syslog from now on. -errno when /dev/null
 * cannot be opened.
 */
int daemon_detach(void);

/*
 * The end of the pipe that the parent reads: nobody is there any more when it
 * was killed. -1: nobody waits.
 */
int daemon_starter(void);

/* In a child of the daemon: another will say when it is ready. */
void daemon_disown(void);

/* daemon_detach(), and let the parent exit. Call it in the child that it waits
 * for. */
int daemon_ready(void);

#endif
