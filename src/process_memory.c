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
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t kept_bytes;
static uint64_t kept_until; /* ns */
static uint64_t most_bytes;
/* Set before there are threads. */
static pid_t other_process;
static int other_memfd = -1;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

/* The bytes on the line that begins with name; 0 without such a line. */
static uint64_t field(const char *text, const char *name)
{
	const char *line = strstr(text, name);

	return line ? strtoull(line + strlen(name), NULL, 10) * 1024 : 0;
}

static uint64_t ask_about(pid_t pid)
{
	char path[64], text[2048];
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return 0;
	text[length] = '\0';
	return field(text, "\nPss_Anon:") + field(text, "\nPss_File:");
}

static uint64_t ask_kernel(void)
{
	uint64_t bytes = ask_about(getpid());
	struct stat stat_buf;

	/* Gone, it does not answer. */
	if (other_process)
		bytes += ask_about(other_process);
	if (other_memfd >= 0 && !fstat(other_memfd, &stat_buf))
		bytes += (uint64_t)stat_buf.st_blocks * 512;
	return bytes;
}

void process_memory_include(pid_t other, int memfd)
{
	other_process = other;
	other_memfd = memfd;
}

uint64_t process_memory_bytes(void)
{
	uint64_t start, cost, bytes;

	pthread_mutex_lock(&lock);
	if (clock_ns(CLOCK_MONOTONIC) >= kept_until) {
		/* What it cost, not how long others kept the CPU meanwhile. */
		start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		kept_bytes = ask_kernel();
		if (kept_bytes > most_bytes)
			most_bytes = kept_bytes;
		cost = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
		kept_until =
			clock_ns(CLOCK_MONOTONIC) + cost * PROCESS_MEMORY_SHARE;
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

void process_memory_reset_most(void)
{
	pthread_mutex_lock(&lock);
	most_bytes = kept_bytes;
	pthread_mutex_unlock(&lock);
}

/* Of one object, what cannot have been written to. */
static int let_object_go(struct dl_phdr_info *object, size_t size,
			 void *context)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	/* The kernel's own, which is in no file. */
	if (!strncmp(object->dlpi_name, "linux-", strlen("linux-")))
		return 0;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		uintptr_t from = object->dlpi_addr + segment->p_vaddr;
		uintptr_t to = from + segment->p_filesz;

		if (segment->p_type != PT_LOAD || segment->p_flags & PF_W)
			continue;
		from &= ~(page - 1);
		/* Locked in memory, it stays; it need not go. */
		madvise((void *)from, to - from, MADV_DONTNEED);
	}
	return 0;
}

void process_memory_let_code_go(void)
{
	dl_iterate_phdr(let_object_go, NULL);
}
