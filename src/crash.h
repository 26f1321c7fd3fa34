/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * crash.h - last words of a process that dies of a fault of its own
 *
 * One line for the log, before the signal does what it always does: which
 * signal and address, which thread, which request it was serving, and where in
 * the program it was. Addresses in the program are given as offsets, as
 * addr2line(1) and gdb take them.
 *
 * Sanitizers have reports of their own: there, nothing is done.
 */
#ifndef ZRAMFS_CRASH_H
#define ZRAMFS_CRASH_H

#include <stddef.h>

/*
 * For the whole process: say is given the line, fault is told that the calling
 * thread is the one that has crashed. Both run in a signal handler.
 */
struct crash_config {
	void (*say)(void *context, const char *line, size_t length);
	void (*fault)(void *context);
	void *context;
};
void crash_install(const struct crash_config *config);

/*
 * For each thread: a stack to report on when its own has overflown. Without
 * memory for it there will be no report of that.
 */
void crash_begin_thread(void);
void crash_end_thread(void);

#endif
