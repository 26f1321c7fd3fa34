/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walk.c - list, stat and read a whole tree
 *
 *	walk DIRECTORY [PASSES]
 *
 * Each pass lists all directories, then stats every name, then reads every
 * file, as find(1), ls(1) and grep(1) would. Prints one JSON object: seconds
 * for each of the three and for all together, of the fastest pass, and what
 * was seen.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct names {
	char **name;
	size_t count, room;
};

struct pass {
	double list, stat, read;
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

static void fail(const char *name)
{
	fprintf(stderr, "walk: %s: %s\n", name, strerror(errno));
	exit(1);
}

static char *keep(struct names *names, const char *directory, const char *name)
{
	char *path = NULL;

	if (names->count == names->room) {
		names->room = names->room ? names->room * 2 : 1024;
		names->name = realloc(names->name,
				      names->room * sizeof(*names->name));
	}
	if (!names->name || asprintf(&path, "%s/%s", directory, name) < 0)
		fail(directory);
	return names->name[names->count++] = path;
}

static void list(struct names *names, const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	char *name;

	if (!directory)
		fail(path);
	while ((entry = readdir(directory))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		name = keep(names, path, entry->d_name);
		if (entry->d_type == DT_DIR)
			list(names, name);
	}
	closedir(directory);
}

static void stat_all(const struct names *names, struct stat *stats)
{
	size_t i;

	for (i = 0; i < names->count; i++)
		if (lstat(names->name[i], &stats[i]))
			fail(names->name[i]);
}

static unsigned long long read_all(const struct names *names,
				   const struct stat *stats)
{
	static char buffer[128 * 1024];
	unsigned long long bytes = 0;
	ssize_t got;
	size_t i;
	int fd;

	for (i = 0; i < names->count; i++) {
		if (!S_ISREG(stats[i].st_mode))
			continue;
		fd = open(names->name[i], O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			fail(names->name[i]);
		while ((got = read(fd, buffer, sizeof(buffer))) > 0)
			bytes += got;
		if (got < 0)
			fail(names->name[i]);
		close(fd);
	}
	return bytes;
}

static void forget(struct names *names)
{
	while (names->count)
		free(names->name[--names->count]);
}

static unsigned long long walk(struct names *names, const char *top,
			       struct pass *pass)
{
	unsigned long long bytes;
	struct stat *stats;
	double began = now();

	forget(names);
	list(names, top);
	pass->list = now() - began;
	stats = calloc(names->count + 1, sizeof(*stats));
	if (!stats)
		fail(top);
	began = now();
	stat_all(names, stats);
	pass->stat = now() - began;
	began = now();
	bytes = read_all(names, stats);
	pass->read = now() - began;
	free(stats);
	return bytes;
}

static double total(const struct pass *pass)
{
	return pass->list + pass->stat + pass->read;
}

static void print(const char *name, double seconds, const char *end)
{
	printf("\"%s\": {\"value\": %.6f, \"unit\": \"s\"", name, seconds);
	printf("%s", end);
}

int main(int argc, char **argv)
{
	int passes = argc == 3 ? atoi(argv[2]) : 1;
	struct names names = {0};
	struct pass best, pass;
	unsigned long long bytes = 0;
	int i;

	if (argc < 2 || argc > 3 || passes < 1) {
		fprintf(stderr, "usage: walk DIRECTORY [PASSES]\n");
		return 2;
	}
	for (i = 0; i < passes; i++) {
		bytes = walk(&names, argv[1], &pass);
		if (i == 0 || total(&pass) < total(&best))
			best = pass;
	}
	printf("{");
	print("list", best.list, "}, ");
	print("stat", best.stat, "}, ");
	print("read", best.read, "}, ");
	print("all", total(&best), "");
	printf(", \"names\": %zu, \"bytes\": %llu}}\n", names.count, bytes);
	return 0;
}
