/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ctl.h - what zramfsctl's commands share: asking the daemon, and complaining
 *
 * What goes wrong is told in one line on standard error, by the function that
 * notices it. For a program of one thread.
 */
#ifndef ZRAMFS_CTL_H
#define ZRAMFS_CTL_H

#include <stdint.h>

enum {
	EXIT_WRONG = 1,
	EXIT_USAGE = 2
};

/* A line on standard error. Returns status. */
int ctl_complain(int status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Likewise, about the command line: format has one %s. EXIT_USAGE. */
int ctl_bad_usage(const char *format, const char *argument);

/* 0, or EXIT_WRONG after a line: what was printed must have arrived. */
int ctl_finish_output(void);

/* Says that a path is not in a zramfs. Returns -1. */
int ctl_not_zramfs(const char *path);

/*
 * A descriptor to send ioctls to, or -1 after a line. Only a FUSE filesystem
 * is opened: opening a device or a FIFO elsewhere could do something. Where it
 * is in block mode, sets *device_size.
 */
int ctl_open(const char *path, uint64_t *device_size);

/*
 * Open, send an ioctl of control.h, close. 0, or the errno of the ioctl; -1
 * after a line was printed. ctl_ask_failed() prints the errno's, if it is one,
 * and returns EXIT_WRONG.
 */
int ctl_ask(const char *path, unsigned long command, void *argument);
int ctl_ask_failed(const char *path, int error);

#endif
