/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * names.c - create, rename and unlink files from several processes at once
 *
 *	names DIRECTORY PROCESSES COUNT
 *
 * Each process makes COUNT empty files in a directory of its own below
 * DIRECTORY, gives each another name, and removes them. All begin each of the
 * three together. Prints one JSON object: files done a second, by all
 * processes together, until the slowest was ready.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	CREATE,
	RENAME,
	UNLINK,
	PHASES
};

#define PROCESSES_MAX 64

/* Shared by all processes. */
struct shared {
	pthread_barrier_t barrier;
	double seconds[PROCESSES_MAX][PHASES];
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

static int create_one(const char *name)
{
	int fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

	return fd < 0 ? -1 : close(fd);
}

static int do_phase(int phase, long count)
{
	char name[32], other[32];
	long i;
	int status = 0;

	for (i = 0; !status && i < count; i++) {
		snprintf(name, sizeof(name), "file-%ld", i);
		snprintf(other, sizeof(other), "renamed-%ld", i);
		if (phase == CREATE)
			status = create_one(name);
		else if (phase == RENAME)
			status = rename(name, other);
		else
			status = unlink(other);
	}
	if (status)
		fprintf(stderr, "names: %s: %s\n", name, strerror(errno));
	return status;
}

static int child_main(struct shared *shared, int number, long count)
{
	char directory[32];
	double began;
	int phase, status = 0;

	snprintf(directory, sizeof(directory), "names-%d", number);
	if (mkdir(directory, 0755) || chdir(directory)) {
		fprintf(stderr, "names: %s: %s\n", directory, strerror(errno));
		status = 1;
	}
	/* A process that failed still comes to the barrier. */
	for (phase = 0; phase < PHASES; phase++) {
		pthread_barrier_wait(&shared->barrier);
		began = now();
		if (!status)
			status = do_phase(phase, count) != 0;
		shared->seconds[number][phase] = now() - began;
	}
	if (!status && (chdir("..") || rmdir(directory)))
		status = 1;
	return status;
}

static struct shared *share(int processes)
{
	struct shared *shared;
	pthread_barrierattr_t attributes;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return NULL;
	pthread_barrierattr_init(&attributes);
	pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	if (pthread_barrier_init(&shared->barrier, &attributes, processes))
		return NULL;
	return shared;
}

static double slowest(const struct shared *shared, int processes, int phase)
{
	double seconds = 0;
	int i;

	for (i = 0; i < processes; i++)
		if (shared->seconds[i][phase] > seconds)
			seconds = shared->seconds[i][phase];
	return seconds;
}

static void print(const struct shared *shared, int processes, long count)
{
	static const char *const phases[] = {"create", "rename", "unlink"};
	int phase;

	for (phase = 0; phase < PHASES; phase++)
		printf("%s\"%s\": {\"value\": %.1f, \"unit\": \"1/s\"}",
		       phase ? ", " : "{", phases[phase],
		       processes * count / slowest(shared, processes, phase));
	printf("}\n");
}

int main(int argc, char **argv)
{
	struct shared *shared;
	int processes = argc == 4 ? atoi(argv[2]) : 0;
	long count = argc == 4 ? atol(argv[3]) : 0;
	int i, status, failed = 0;

	if (processes < 1 || processes > PROCESSES_MAX || count < 1) {
		fprintf(stderr, "usage: names DIRECTORY PROCESSES COUNT\n");
		return 2;
	}
	shared = share(processes);
	if (!shared || chdir(argv[1])) {
		fprintf(stderr, "names: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	for (i = 0; i < processes; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(child_main(shared, i, count));
		if (pid < 0) {
			/* The others would wait for it at the barrier. */
			fprintf(stderr, "names: fork: %s\n", strerror(errno));
			kill(0, SIGKILL);
		}
	}
	while (wait(&status) > 0)
		failed |= status;
	if (failed)
		return 1;
	print(shared, processes, count);
	return 0;
}
