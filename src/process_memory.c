/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * process_memory.c - see process_memory.h
 *
 * The lock guards the kept answer and the highest one; it is a leaf. It is held
 * while the kernel walks: who asks meanwhile gets the fresh answer and does not
 * walk again.
 */
#include "process_memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t kept_bytes;
static uint64_t kept_until; /* ns */
static uint64_t most_bytes;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

/* The bytes on the line that begins with name; 0 without such a line. */
static uint64_t field(const char *text, const char *name)
{
	const char *line = strstr(text, name);

	return line ? strtoull(line + strlen(name), NULL, 10) * 1024 : 0;
}

static uint64_t ask_kernel(void)
{
	int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
	char text[2048];
	ssize_t length;

	if (fd < 0)
		return 0;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return 0;
	text[length] = '\0';
	return field(text, "\nPss_Anon:") + field(text, "\nPss_File:");
}

uint64_t process_memory_bytes(void)
{
	uint64_t start, end, bytes;

	pthread_mutex_lock(&lock);
	start = now_ns();
	if (start >= kept_until) {
		kept_bytes = ask_kernel();
		if (kept_bytes > most_bytes)
			most_bytes = kept_bytes;
		end = now_ns();
		kept_until = end + (end - start) * PROCESS_MEMORY_SHARE;
	}
	bytes = kept_bytes;
	pthread_mutex_unlock(&lock);
	return bytes;
}

uint64_t process_memory_most(void)
{
	uint64_t bytes;

	pthread_mutex_lock(&lock);
	bytes = most_bytes;
	pthread_mutex_unlock(&lock);
	return bytes;
}
