/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cases.c - many small named tests in one program: its main()
 */
#include "cases.h"

#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CASES_MAX     256
#define CASE_SECONDS  300
#define STATUS_FAILED 1
#define STATUS_SKIP   77
#define FUSE_MAGIC    0x65735546

static struct {
	const char *name;
	void (*function)(void);
} cases[CASES_MAX];
static unsigned int case_count;

void case_add(const char *name, void (*function)(void))
{
	if (case_count == CASES_MAX)
		abort();
	cases[case_count].name = name;
	cases[case_count++].function = function;
}

/* What a case has to say goes out after its result line, through a pipe. */
static int say;

static void tell(const char *format, va_list arguments)
{
	char text[1024];
	int n = vsnprintf(text, sizeof(text), format, arguments);

	if (n >= (int)sizeof(text))
		n = sizeof(text) - 1;
	if (n < 0 || write(say, text, n) < 0)
		abort();
}

static void tell_line(int line)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "line %d: ", line);

	if (write(say, text, n) < 0)
		abort();
}

void case_fail(int line, const char *format, ...)
{
	va_list arguments;

	tell_line(line);
	va_start(arguments, format);
	tell(format, arguments);
	va_end(arguments);
	_exit(STATUS_FAILED);
}

void case_skip(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	tell(format, arguments);
	va_end(arguments);
	_exit(STATUS_SKIP);
}

const char *case_error(int error)
{
	const char *name = strerrorname_np(error);

	return name ? name : "no error";
}

void case_become(uid_t uid, gid_t gid)
{
	OK(seteuid(0));
	OK(setegid(gid));
	OK(setgroups(0, NULL));
	OK(seteuid(uid));
}

bool case_on_fuse(void)
{
	struct statfs fs;

	OK(statfs(".", &fs));
	return fs.f_type == FUSE_MAGIC;
}

void make_file(const char *path, const char *content)
{
	int fd = OK(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));

	EXPECT_EQ(write(fd, content, strlen(content)), strlen(content));
	OK(close(fd));
}

bool file_is(const char *path, const char *content)
{
	char buffer[4096];
	int fd = OK(open(path, O_RDONLY | O_CLOEXEC));
	ssize_t n = OK(read(fd, buffer, sizeof(buffer)));

	OK(close(fd));
	return (size_t)n == strlen(content) && memcmp(buffer, content, n) == 0;
}

struct stat stat_of(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		case_fail(__LINE__, "stat %s: %s", path, case_error(errno));
	return st;
}

bool exists(const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0)
		return true;
	if (errno != ENOENT)
		case_fail(__LINE__, "stat %s: %s", path, case_error(errno));
	return false;
}

bool bytes_are(int fd, off_t offset, size_t length, int value)
{
	unsigned char buffer[65536];
	ssize_t i, n;

	while (length > 0) {
		n = pread(fd, buffer,
			  length < sizeof(buffer) ? length : sizeof(buffer),
			  offset);
		if (n <= 0)
			return false;
		for (i = 0; i < n; i++)
			if (buffer[i] != (unsigned char)value)
				return false;
		offset += n;
		length -= n;
	}
	return true;
}

void write_bytes(int fd, off_t offset, size_t length, int value)
{
	char buffer[65536];

	memset(buffer, value, sizeof(buffer));
	while (length > 0) {
		size_t n = length < sizeof(buffer) ? length : sizeof(buffer);

		EXPECT_EQ(pwrite(fd, buffer, n, offset), n);
		offset += n;
		length -= n;
	}
}

void reap(pid_t child)
{
	int status;
	pid_t ended;

	/* Under a sanitizer, signal(2) does not have it go on by itself. */
	do
		ended = waitpid(child, &status, 0);
	while (ended < 0 && errno == EINTR);
	EXPECT_EQ(ended, child);
	EXPECT(WIFEXITED(status));
	EXPECT_EQ(WEXITSTATUS(status), 0);
}

void tick(void)
{
	const struct timespec nap = {0, 20 * 1000 * 1000};

	nanosleep(&nap, NULL);
}

int compare_times(const struct timespec *a, const struct timespec *b)
{
	if (a->tv_sec != b->tv_sec)
		return a->tv_sec < b->tv_sec ? -1 : 1;
	return a->tv_nsec < b->tv_nsec ? -1 : a->tv_nsec > b->tv_nsec;
}

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *walk)
{
	return remove(path);
}

static int run_in_child(unsigned int number, const char *directory, int out)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		say = out;
		alarm(CASE_SECONDS);
		umask(022);
		if (chdir(directory) < 0)
			case_fail(__LINE__, "chdir: %s", case_error(errno));
		cases[number].function();
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return -1;
	return status;
}

/* Returns whether it did not fail. */
static bool run_case(unsigned int number, unsigned int count, const char *base)
{
	char directory[4096], text[2048], name[128], *letter;
	int out[2], status;
	ssize_t n;

	snprintf(name, sizeof(name), "%s", cases[number].name);
	for (letter = name; *letter; letter++)
		if (*letter == '_')
			*letter = ' ';
	snprintf(directory, sizeof(directory), "%s/%s", base,
		 cases[number].name);
	if (mkdir(directory, 0755) < 0 || pipe2(out, O_CLOEXEC) < 0) {
		printf("not ok %u - %s\n# mkdir: %s\n", count, name,
		       strerror(errno));
		return false;
	}
	status = run_in_child(number, directory, out[1]);
	close(out[1]);
	n = read(out[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	close(out[0]);
	if (nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS) < 0 &&
	    status == 0) {
		snprintf(text, sizeof(text), "removing what it left: %s",
			 strerror(errno));
		status = -1;
	}
	if (status == 0) {
		printf("ok %u - %s\n", count, name);
	} else if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_SKIP) {
		printf("ok %u - %s # SKIP %s\n", count, name, text);
		status = 0;
	} else if (status != -1 && WIFSIGNALED(status)) {
		printf("not ok %u - %s\n# signal %d (%s)\n", count, name,
		       WTERMSIG(status), strsignal(WTERMSIG(status)));
	} else {
		printf("not ok %u - %s\n# %s\n", count, name, text);
	}
	fflush(stdout);
	return status == 0;
}

int main(int argc, char **argv)
{
	unsigned int i, count = 0, failed = 0;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: %s DIRECTORY [PART-OF-A-NAME]\n",
			argv[0]);
		return 2;
	}
	for (i = 0; i < case_count; i++) {
		if (argc == 3 && !strstr(cases[i].name, argv[2]))
			continue;
		if (!run_case(i, ++count, argv[1]))
			failed++;
	}
	return failed > 0;
}
