/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stress.c - many threads do everything to files at once, and check it
 *
 * stress [-t THREADS] [-s SECONDS] [-r SEED] [-k] DIRECTORY
 *
 * Works in a new directory within DIRECTORY, and removes it at the end unless
 * -k says to keep it. Exits 1, with the seed and what is wrong, as soon as
 * any byte, size, count or name is not what it must be. A seed repeats each
 * thread's operations, not how they interleave.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/stress.h"

struct stress stress;

static struct stress_thread threads[STRESS_THREADS];
static pthread_mutex_t failing = PTHREAD_MUTEX_INITIALIZER;
static double seconds = 5;
static struct timespec started;

void stress_fail(const struct stress_thread *thread, const char *format, ...)
{
	va_list arguments;

	/* Never given back: the first failure is the one that is told. */
	pthread_mutex_lock(&failing);
	fflush(stdout);
	fprintf(stderr,
		"stress: seed %lu thread %u operation %lu: ", stress.seed,
		thread->number, thread->operations);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	_exit(1);
}

void stress_write(struct stress_thread *thread, int fd, const char *path,
		  const void *buffer, size_t length, uint64_t offset)
{
	ssize_t n = pwrite(fd, buffer, length, offset);

	if (n < 0)
		stress_fail(thread, "%s: write %zu at %#lx: %s", path, length,
			    offset, strerror(errno));
	if ((size_t)n != length)
		stress_fail(thread, "%s: wrote %zd of %zu at %#lx", path, n,
			    length, offset);
	thread->bytes += length;
}

size_t stress_read(struct stress_thread *thread, int fd, const char *path,
		   void *buffer, size_t length, uint64_t offset)
{
	ssize_t n = pread(fd, buffer, length, offset);

	if (n < 0)
		stress_fail(thread, "%s: read %zu at %#lx: %s", path, length,
			    offset, strerror(errno));
	thread->bytes += n;
	return n;
}

size_t stress_length(struct rng *rng, size_t most)
{
	size_t length;

	switch (rng_below(rng, 8)) {
	case 0:
		length = 1 + rng_below(rng, 64);
		break;
	case 1:
	case 2:
		length = STRESS_PAGE;
		break;
	case 3:
		length = 1 + rng_below(rng, 2 * STRESS_PAGE);
		break;
	case 4:
		length = STRESS_PAGE * (1 + rng_below(rng, 32));
		break;
	case 5:
		length = 1 + rng_below(rng, 65536);
		break;
	case 6:
		length = STRESS_PAGE - 2 + rng_below(rng, 5);
		break;
	default: /* long ones seldom: they hold everybody up */
		length = 1 + rng_below(rng, rng_below(rng, 4) ? 131072 : most);
	}
	return length < most ? length : most;
}

static double elapsed(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - started.tv_sec +
	       (now.tv_nsec - started.tv_nsec) * 1e-9;
}

static void *run(void *argument)
{
	struct stress_thread *thread = argument;

	while (elapsed() < seconds) {
		unsigned int chance = rng_below(&thread->rng, 10);

		thread->operations++;
		if (chance < 5)
			own_step(thread);
		else if (chance < 9)
			shared_step(thread);
		else
			names_step(thread);
	}
	return NULL;
}

static void start(struct stress_thread *thread, unsigned int number)
{
	thread->number = number;
	rng_seed(&thread->rng, stress.seed + number);
	thread->buffer = aligned_alloc(STRESS_PAGE, STRESS_IO_MAX);
	thread->other = aligned_alloc(STRESS_PAGE, STRESS_IO_MAX);
	if (!thread->buffer || !thread->other)
		stress_fail(thread, "out of memory");
	own_start(thread);
	shared_start(thread);
}

/* What this filesystem can do decides what is asked of it. */
static void probe(const char *directory)
{
	char path[STRESS_PATH + 8];
	void *map;
	int fd;

	snprintf(path, sizeof(path), "%s/probe", directory);
	fd = open(path, O_RDWR | O_CREAT | O_DIRECT, 0600);
	stress.direct = fd >= 0;
	if (fd >= 0)
		stress.strict_direct = pwrite(fd, path, 5, 1) < 0;
	else
		fd = open(path, O_RDWR | O_CREAT, 0600);
	map = mmap(NULL, STRESS_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   0);
	stress.mapped = map != MAP_FAILED;
	if (stress.mapped)
		munmap(map, STRESS_PAGE);
	close(fd);
	unlink(path);
}

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *walk)
{
	if (remove(path) < 0)
		stress_fail(&threads[0], "remove %s: %s", path,
			    strerror(errno));
	return 0;
}

static void usage(void)
{
	fprintf(stderr, "usage: stress [-t THREADS] [-s SECONDS] [-r SEED] "
			"[-k] DIRECTORY\n");
	exit(2);
}

static void run_threads(void)
{
	pthread_t handle[STRESS_THREADS];
	uint64_t operations = 0, bytes = 0;
	unsigned int i;

	for (i = 0; i < stress.threads; i++)
		start(&threads[i], i);
	clock_gettime(CLOCK_MONOTONIC, &started);
	for (i = 0; i < stress.threads; i++)
		if (pthread_create(&handle[i], NULL, run, &threads[i]))
			stress_fail(&threads[i], "no thread");
	for (i = 0; i < stress.threads; i++) {
		pthread_join(handle[i], NULL);
		operations += threads[i].operations;
		bytes += threads[i].bytes;
	}
	for (i = 0; i < stress.threads; i++) {
		own_finish(&threads[i]);
		shared_finish(&threads[i]);
		free(threads[i].buffer);
		free(threads[i].other);
	}
	printf("stress: seed %lu: %u threads, %lu operations, %lu MiB, "
	       "%.1f s%s%s\n",
	       stress.seed, stress.threads, operations, bytes >> 20, elapsed(),
	       stress.direct ? "" : ", no O_DIRECT",
	       stress.mapped ? "" : ", no shared mappings");
}

int main(int argc, char **argv)
{
	char directory[STRESS_PATH];
	bool keep = false;
	int option;

	stress.threads = 8;
	stress.seed = time(NULL) ^ (uint64_t)getpid() << 32;
	while ((option = getopt(argc, argv, "t:s:r:k")) != -1) {
		if (option == 't')
			stress.threads = strtoul(optarg, NULL, 10);
		else if (option == 's')
			seconds = strtod(optarg, NULL);
		else if (option == 'r')
			stress.seed = strtoull(optarg, NULL, 10);
		else if (option == 'k')
			keep = true;
		else
			usage();
	}
	if (optind != argc - 1 || stress.threads < 1 ||
	    stress.threads > STRESS_THREADS ||
	    strlen(argv[optind]) > STRESS_PATH / 2)
		usage();
	snprintf(directory, sizeof(directory), "%s/stress-%d", argv[optind],
		 (int)getpid());
	stress.directory = directory;
	if (mkdir(directory, 0755) < 0)
		stress_fail(&threads[0], "mkdir %s: %s", directory,
			    strerror(errno));
	probe(directory);
	shared_create();
	names_create();
	run_threads();
	if (!keep)
		nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}
