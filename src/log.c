/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * log.c - see log.h
 *
 * The lock guards the budget of lines and keeps lines whole. It is a leaf.
 */
#include "log.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool use_syslog;
static time_t interval_start;
static unsigned int lines_said;
static unsigned int lines_held_back;

void log_to_syslog(void)
{
	pthread_mutex_lock(&lock);
	openlog("zramfs", LOG_PID | LOG_NDELAY, LOG_DAEMON);
	use_syslog = true;
	pthread_mutex_unlock(&lock);
}

static void say(int priority, const char *line)
{
	if (use_syslog)
		syslog(priority, "%s", line);
	else
		fprintf(stderr, "zramfs: %s\n", line);
}

/* Whether one more line may be said now. */
static bool within_budget(void)
{
	struct timespec now;
	char line[64];

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (now.tv_sec - interval_start >= LOG_INTERVAL) {
		interval_start = now.tv_sec;
		lines_said = 0;
		if (lines_held_back) {
			snprintf(line, sizeof(line), "%u lines held back",
				 lines_held_back);
			lines_held_back = 0;
			say(LOG_WARNING, line);
		}
	}
	if (lines_said < LOG_BURST) {
		lines_said++;
		return true;
	}
	lines_held_back++;
	return false;
}

void log_vline(int priority, const char *format, va_list arguments)
{
	char line[512];

	vsnprintf(line, sizeof(line), format, arguments);
	pthread_mutex_lock(&lock);
	if (priority == LOG_DEBUG || within_budget())
		say(priority, line);
	pthread_mutex_unlock(&lock);
}

void log_line(int priority, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_vline(priority, format, arguments);
	va_end(arguments);
}
