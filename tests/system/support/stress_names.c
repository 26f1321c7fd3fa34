/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stress_names.c - names that all threads make, move and remove at once
 *
 * Nobody knows which names are there, but: a file gets a public name only when
 * it is complete, so that whoever can open it finds it complete; and entries
 * that nobody touches are listed exactly once, whatever comes and goes around
 * them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stress.h"

#define NAMES	   40
#define NAMES_KEPT 24
#define NAMES_SIZE 6000
#define NAMES_DIRS 2

static const char *const directories[NAMES_DIRS] = {"names", "names/deep"};

static void name_path(char path[STRESS_PATH], struct rng *rng, char letter)
{
	snprintf(path, STRESS_PATH, "%s/%s/%c-%lu", stress.directory,
		 directories[rng_below(rng, NAMES_DIRS)], letter,
		 rng_below(rng, NAMES));
}

static void allow(struct stress_thread *thread, int result, const char *what,
		  const char *path, const char *other, int e1, int e2)
{
	if (result < 0 && errno != e1 && errno != e2)
		stress_fail(thread, "%s %s %s: %s", what, path, other,
			    strerror(errno));
}

static void publish(struct stress_thread *thread)
{
	char path[STRESS_PATH], public[STRESS_PATH];
	uint64_t seed = rng_next(&thread->rng);
	int fd;

	snprintf(path, sizeof(path), "%s/names/t-%u", stress.directory,
		 thread->number);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		stress_fail(thread, "create %s: %s", path, strerror(errno));
	memcpy(thread->buffer, &seed, sizeof(seed));
	fill(thread->buffer + sizeof(seed), NAMES_SIZE - sizeof(seed), 0,
	     seed % FILL_KINDS, seed);
	stress_write(thread, fd, path, thread->buffer, NAMES_SIZE, 0);
	close(fd);
	name_path(public, &thread->rng, 'n');
	/* A directory may have that name by an exchange: then it stays ours. */
	if (rename(path, public) < 0) {
		allow(thread, -1, "rename", path, public, EISDIR, 0);
		allow(thread, unlink(path), "unlink", path, "", 0, 0);
	}
}

static void consume(struct stress_thread *thread)
{
	char path[STRESS_PATH];
	uint64_t seed;
	size_t got;
	int fd;

	name_path(path, &thread->rng, 'n');
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		allow(thread, -1, "open", path, "", ENOENT, 0);
		return;
	}
	got = stress_read(thread, fd, path, thread->buffer, NAMES_SIZE + 1, 0);
	if (got != NAMES_SIZE)
		stress_fail(thread, "%s: %zu bytes, not %d", path, got,
			    NAMES_SIZE);
	memcpy(&seed, thread->buffer, sizeof(seed));
	memcpy(thread->other, &seed, sizeof(seed));
	fill(thread->other + sizeof(seed), NAMES_SIZE - sizeof(seed), 0,
	     seed % FILL_KINDS, seed);
	got = first_difference(thread->buffer, thread->other, NAMES_SIZE);
	if (got != NAMES_SIZE)
		stress_fail(thread, "%s: wrong at byte %zu", path, got);
	close(fd);
}

static void move(struct stress_thread *thread)
{
	char path[STRESS_PATH], other[STRESS_PATH];

	name_path(path, &thread->rng, 'n');
	name_path(other, &thread->rng, 'n');
	switch (rng_below(&thread->rng, 5)) {
	case 0:
		allow(thread, link(path, other), "link", path, other, ENOENT,
		      EEXIST);
		break;
	case 1:
		allow(thread,
		      renameat2(AT_FDCWD, path, AT_FDCWD, other,
				RENAME_EXCHANGE),
		      "exchange", path, other, ENOENT, 0);
		break;
	case 2:
		allow(thread,
		      renameat2(AT_FDCWD, path, AT_FDCWD, other,
				RENAME_NOREPLACE),
		      "rename noreplace", path, other, ENOENT, EEXIST);
		break;
	default:
		allow(thread, rename(path, other), "rename", path, other,
		      ENOENT, 0);
	}
}

static void folders(struct stress_thread *thread)
{
	char path[STRESS_PATH], other[STRESS_PATH];

	name_path(path, &thread->rng, 'd');
	name_path(other, &thread->rng, 'd');
	switch (rng_below(&thread->rng, 3)) {
	case 0:
		allow(thread, mkdir(path, 0755), "mkdir", path, "", EEXIST, 0);
		break;
	case 1:
		allow(thread, rmdir(path), "rmdir", path, "", ENOENT, 0);
		break;
	default:
		allow(thread, rename(path, other), "rename", path, other,
		      ENOENT, 0);
	}
}

static void list(struct stress_thread *thread)
{
	unsigned int seen[NAMES_KEPT] = {0}, number;
	char path[STRESS_PATH];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s", stress.directory,
		 directories[rng_below(&thread->rng, NAMES_DIRS)]);
	dir = opendir(path);
	if (!dir)
		stress_fail(thread, "opendir %s: %s", path, strerror(errno));
	while ((errno = 0, entry = readdir(dir)))
		if (sscanf(entry->d_name, "kept-%u", &number) == 1 &&
		    number < NAMES_KEPT)
			seen[number]++;
	if (errno)
		stress_fail(thread, "readdir %s: %s", path, strerror(errno));
	closedir(dir);
	for (number = 0; number < NAMES_KEPT; number++)
		if (seen[number] != 1)
			stress_fail(thread, "%s: kept-%u listed %u times", path,
				    number, seen[number]);
}

void names_step(struct stress_thread *thread)
{
	unsigned int chance = rng_below(&thread->rng, 100);
	char path[STRESS_PATH];

	if (chance < 25)
		publish(thread);
	else if (chance < 50)
		consume(thread);
	else if (chance < 75)
		move(thread);
	else if (chance < 85)
		folders(thread);
	else if (chance < 95) {
		name_path(path, &thread->rng, 'n');
		allow(thread, unlink(path), "unlink", path, "", ENOENT, 0);
	} else
		list(thread);
}

void names_create(void)
{
	struct stress_thread nobody = {0};
	char path[STRESS_PATH];
	unsigned int i, j;
	int fd;

	for (i = 0; i < NAMES_DIRS; i++) {
		snprintf(path, sizeof(path), "%s/%s", stress.directory,
			 directories[i]);
		if (mkdir(path, 0755) < 0)
			stress_fail(&nobody, "mkdir %s: %s", path,
				    strerror(errno));
		for (j = 0; j < NAMES_KEPT; j++) {
			snprintf(path, sizeof(path), "%s/%s/kept-%u",
				 stress.directory, directories[i], j);
			fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
			if (fd < 0)
				stress_fail(&nobody, "create %s: %s", path,
					    strerror(errno));
			close(fd);
		}
	}
}
