/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * log.h - what the daemon says, one line at a time
 *
 * To standard error while a terminal listens, to syslog (facility daemon) once
 * the process is a daemon. Thread-safe; never fails. A caller that logs in a
 * loop cannot flood the log: beyond LOG_BURST lines in LOG_INTERVAL seconds
 * lines are counted instead, and the count is said later.
 *
 * Knows no other room; every room may use it.
 */
#ifndef ZRAMFS_LOG_H
#define ZRAMFS_LOG_H

#include <stdarg.h>
#include <syslog.h>

#define LOG_BURST    50
#define LOG_INTERVAL 10

/* From now on to syslog. */
void log_to_syslog(void);

/* priority: LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG. No newline in format. */
void log_line(int priority, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void log_vline(int priority, const char *format, va_list arguments);

#endif
