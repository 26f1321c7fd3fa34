/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scale.c - many files, many levels, many descriptors; how long each takes
 *
 *	scale many DIRECTORY FILES STEP [PID...]
 *	scale deep DIRECTORY LEVELS
 *	scale open DIRECTORY FILES
 *
 * many: makes so many files in one directory, looks at each, lists them,
 * renames and removes them, and prints a line "what: milliseconds of CPU time
 * for each step" (with that of the filesystem's servers, if their numbers are
 * given), and how long it took in all. deep: a directory in a directory, so
 * many levels; walked down, up and removed. open: so many files open at once,
 * each then read by its descriptor; by several processes if need be.
 * Exit status 1, and a line that tells why, when anything is not as it should
 * be.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *format, ...) __attribute__((noreturn));

static void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	exit(1);
}

#define MUST(call)                                               \
	({                                                       \
		__typeof__(call) r_ = (call);                    \
		if (r_ == (__typeof__(r_))-1)                    \
			fail("line %d: %s: %s", __LINE__, #call, \
			     strerror(errno));                   \
		r_;                                              \
	})

static const char *const *servers; /* process numbers; ends with NULL */

static long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Milliseconds of CPU time that a server has used: proc(5). */
static long server_time(const char *pid)
{
	unsigned long user = 0, system = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	file = fopen(path, "r");
	if (!file || fscanf(file,
			    "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u "
			    "%*u %*u %*u %*u %lu %lu",
			    &user, &system) != 2)
		fail("%s: cannot tell the time", path);
	fclose(file);
	return (user + system) * 1000 / sysconf(_SC_CLK_TCK);
}

/*
 * What it costs, whatever else the machine does: the CPU time of this process
 * and the servers.
 */
static long cost(void)
{
	struct timespec time;
	long sum;
	int i;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	sum = time.tv_sec * 1000 + time.tv_nsec / 1000000;
	for (i = 0; servers[i]; i++)
		sum += server_time(servers[i]);
	return sum;
}

/* Do something for each number, and print how long each step took. */
static void each(const char *what, long files, long step,
		 void (*function)(long number))
{
	long i, from = cost(), begin = now();

	printf("%s:", what);
	for (i = 0; i < files; i++) {
		function(i);
		if ((i + 1) % step == 0) {
			printf(" %ld", cost() - from);
			fflush(stdout);
			from = cost();
		}
	}
	printf(" total %ld\n", now() - begin);
}

static const char *name_of(long number)
{
	static char name[32];

	snprintf(name, sizeof(name), "file-%ld", number);
	return name;
}

static void create(long number)
{
	close(MUST(open(name_of(number), O_WRONLY | O_CREAT | O_EXCL, 0644)));
}

static void look(long number)
{
	struct stat st;

	MUST(stat(name_of(number), &st));
	if (st.st_nlink != 1)
		fail("%s has %ld links", name_of(number), (long)st.st_nlink);
}

static void move(long number)
{
	char to[32];

	snprintf(to, sizeof(to), "moved-%ld", number);
	MUST(rename(name_of(number), to));
}

static void delete (long number)
{
	char name[32];

	snprintf(name, sizeof(name), "moved-%ld", number);
	MUST(unlink(name));
}

/* Each name once; in steps of entries as they come. */
static void list(long files, long step)
{
	unsigned char *seen = calloc(1, files);
	long count = 0, number, from = cost(), begin = now();
	struct dirent *entry;
	DIR *dir = opendir(".");

	if (!seen || !dir)
		fail("listing: %s", strerror(errno));
	printf("list:");
	while ((entry = readdir(dir))) {
		if (sscanf(entry->d_name, "file-%ld", &number) != 1)
			continue;
		if (number < 0 || number >= files || seen[number]++)
			fail("%s is listed twice", entry->d_name);
		if (++count % step == 0) {
			printf(" %ld", cost() - from);
			from = cost();
		}
	}
	printf(" total %ld\n", now() - begin);
	if (count != files)
		fail("%ld of %ld files are listed", count, files);
	closedir(dir);
	free(seen);
}

static void many(long files, long step)
{
	struct stat st;

	each("create", files, step, create);
	each("stat", files, step, look);
	list(files, step);
	each("rename", files, step, move);
	each("delete", files, step, delete);
	MUST(stat(".", &st));
	if (st.st_nlink != 2)
		fail("the directory has %ld links", (long)st.st_nlink);
}

static void deep(long levels)
{
	long i, from = now();
	struct stat st;
	int fd;

	for (i = 0; i < levels; i++) {
		MUST(mkdir("level", 0755));
		MUST(chdir("level"));
	}
	fd = MUST(open("bottom", O_WRONLY | O_CREAT, 0644));
	if (write(fd, "deep", 4) != 4)
		fail("write: %s", strerror(errno));
	close(fd);
	for (i = 0; i < levels; i++)
		MUST(chdir(".."));
	for (i = 0; i < levels; i++)
		MUST(chdir("level"));
	MUST(stat("bottom", &st));
	if (st.st_size != 4)
		fail("the bottom has %ld bytes", (long)st.st_size);
	MUST(unlink("bottom"));
	for (i = 0; i < levels; i++) {
		MUST(chdir(".."));
		MUST(rmdir("level"));
	}
	printf("deep: total %ld\n", now() - from);
}

static void read_all(const int *fd, long first, long files)
{
	long i, number;

	for (i = 0; i < files; i++)
		if (pread(fd[i], &number, sizeof(number), 0) !=
			    sizeof(number) ||
		    number != first + i)
			fail("file %ld has what is another's", first + i);
}

/* One process of open_many(); all wait for all others between their steps. */
static void hold(long first, long files, pthread_barrier_t *barrier)
{
	int *fd = calloc(files, sizeof(*fd));
	long i, number;

	if (!fd)
		fail("out of memory");
	for (i = 0; i < files; i++) {
		number = first + i;
		fd[i] = MUST(
			open(name_of(number), O_RDWR | O_CREAT | O_EXCL, 0644));
		if (pwrite(fd[i], &number, sizeof(number), 0) != sizeof(number))
			fail("write: %s", strerror(errno));
	}
	pthread_barrier_wait(barrier);
	/* Half of them have no name any more. */
	for (i = 0; i < files; i += 2)
		MUST(unlink(name_of(first + i)));
	pthread_barrier_wait(barrier);
	read_all(fd, first, files);
	pthread_barrier_wait(barrier);
	for (i = 0; i < files; i++)
		close(fd[i]);
	for (i = 1; i < files; i += 2)
		MUST(unlink(name_of(first + i)));
}

/* As many processes as the limit of descriptors for one makes it take. */
static void open_many(long files)
{
	pthread_barrierattr_t attributes;
	pthread_barrier_t *barrier;
	struct rlimit limit;
	long first, part, begin = now();
	int status, processes;

	MUST(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	MUST(setrlimit(RLIMIT_NOFILE, &limit));
	part = limit.rlim_max < 1000000 ? (long)limit.rlim_max - 50 : 1000000;
	processes = (files + part - 1) / part;
	barrier = mmap(NULL, sizeof(*barrier), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (barrier == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	pthread_barrierattr_init(&attributes);
	pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(barrier, &attributes, processes);
	for (first = 0; first < files; first += part) {
		if (MUST(fork()))
			continue;
		hold(first, files - first < part ? files - first : part,
		     barrier);
		exit(0);
	}
	while (processes-- > 0)
		if (wait(&status) < 0 || status)
			fail("a process has failed");
	printf("open: total %ld\n", now() - begin);
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: %s many|deep|open DIRECTORY ...\n",
			argv[0]);
		return 2;
	}
	MUST(chdir(argv[2]));
	servers = (const char *const *)argv + (argc < 5 ? argc : 5);
	if (!strcmp(argv[1], "many") && argc >= 5)
		many(atol(argv[3]), atol(argv[4]));
	else if (!strcmp(argv[1], "deep"))
		deep(atol(argv[3]));
	else if (!strcmp(argv[1], "open"))
		open_many(atol(argv[3]));
	else
		return 2;
	return 0;
}
