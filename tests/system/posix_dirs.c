/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * posix_dirs.c - listing directories, also while entries come and go
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/cases.h"

#define MANY 10000

static unsigned char seen[MANY];

static void make_many(const char *prefix, int count)
{
	char name[64];
	int i, fd;

	for (i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%s%d", prefix, i);
		fd = OK(open(name, O_CREAT | O_WRONLY | O_EXCL, 0600));
		close(fd);
	}
}

static void remove_many(const char *prefix, int from, int to)
{
	char name[64];
	int i;

	for (i = from; i < to; i++) {
		snprintf(name, sizeof(name), "%s%d", prefix, i);
		OK(unlink(name));
	}
}

/* Note a name "kept-N" as seen; others do not count. */
static void note(const char *name)
{
	int number;

	if (sscanf(name, "kept-%d", &number) == 1)
		seen[number]++;
}

static void expect_all_once(int count)
{
	int i;

	for (i = 0; i < count; i++)
		if (seen[i] != 1)
			case_fail(__LINE__, "kept-%d was listed %d times", i,
				  seen[i]);
}

/* Few entries at a time, so that much happens between two calls. */
struct slow {
	int fd;
	_Alignas(8) char buffer[512];
	long have, at;
};

struct linux_entry {
	uint64_t ino;
	int64_t offset;
	unsigned short length;
	unsigned char type;
	char name[];
};

static struct linux_entry *slow_next(struct slow *slow)
{
	struct linux_entry *entry;

	if (slow->at >= slow->have) {
		slow->have = OK(syscall(SYS_getdents64, slow->fd, slow->buffer,
					sizeof(slow->buffer)));
		slow->at = 0;
		if (slow->have == 0)
			return NULL;
	}
	entry = (struct linux_entry *)(slow->buffer + slow->at);
	slow->at += entry->length;
	return entry;
}

static int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int count = 0;

	EXPECT(dir != NULL);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

CASE(an_empty_directory_lists_itself_and_its_parent)
{
	bool self = false, parent = false;
	struct dirent *entry;
	DIR *dir;

	OK(mkdir("d", 0755));
	dir = opendir("d");
	EXPECT(dir != NULL);
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0) {
			EXPECT_EQ(entry->d_ino, stat_of("d").st_ino);
			self = true;
		} else if (strcmp(entry->d_name, "..") == 0) {
			EXPECT_EQ(entry->d_ino, stat_of(".").st_ino);
			parent = true;
		} else {
			case_fail(__LINE__, "unexpected %s", entry->d_name);
		}
	}
	EXPECT(self && parent);
	closedir(dir);
}

CASE(types_and_inode_numbers_are_listed)
{
	struct dirent *entry;
	int count = 0;
	DIR *dir;

	make_file("file", "");
	OK(mkdir("dir", 0755));
	OK(symlink("x", "link"));
	OK(mkfifo("fifo", 0600));
	dir = opendir(".");
	EXPECT(dir != NULL);
	while ((entry = readdir(dir))) {
		struct stat st = stat_of(entry->d_name);

		EXPECT_EQ(entry->d_ino, st.st_ino);
		EXPECT_EQ(DTTOIF(entry->d_type), st.st_mode & S_IFMT);
		count++;
	}
	EXPECT_EQ(count, 6);
	closedir(dir);
}

CASE(ten_thousand_entries_are_listed_once_each)
{
	struct slow slow = {0};
	struct linux_entry *entry;

	make_many("kept-", MANY);
	slow.fd = OK(open(".", O_RDONLY | O_DIRECTORY));
	while ((entry = slow_next(&slow)))
		note(entry->name);
	expect_all_once(MANY);
	close(slow.fd);
	EXPECT_EQ(count_entries("."), MANY + 2);
}

CASE(entries_that_stay_are_listed_once_while_others_come_and_go)
{
	struct slow slow = {0};
	struct linux_entry *entry;
	char name[64], other[64];
	int i = 0;

	make_many("gone-", 3000);
	make_many("kept-", MANY);
	make_many("late-", 3000);
	slow.fd = OK(open(".", O_RDONLY | O_DIRECTORY));
	while ((entry = slow_next(&slow))) {
		note(entry->name);
		if (i++ % 4 != 0 || i / 4 >= 3000)
			continue;
		/* One goes, one goes at the other end, one comes, one is
		 * renamed. */
		snprintf(name, sizeof(name), "gone-%d", i / 4);
		OK(unlink(name));
		snprintf(name, sizeof(name), "late-%d", 2999 - i / 4);
		snprintf(other, sizeof(other), "moved-%d", i / 4);
		OK(rename(name, other));
		snprintf(name, sizeof(name), "new-%d", i / 4);
		close(OK(open(name, O_CREAT | O_WRONLY, 0600)));
	}
	expect_all_once(MANY);
	close(slow.fd);
}

CASE(everything_can_be_removed_while_it_is_listed)
{
	int round, left = 2000;

	make_many("f", left);
	for (round = 0; round < 3 && left > 0; round++) {
		DIR *dir = opendir(".");
		struct dirent *entry;

		EXPECT(dir != NULL);
		while ((entry = readdir(dir))) {
			if (entry->d_name[0] != 'f')
				continue;
			OK(unlink(entry->d_name));
			left--;
		}
		closedir(dir);
	}
	EXPECT_EQ(left, 0);
	EXPECT_EQ(round, 1); /* nothing was passed over */
	EXPECT_EQ(count_entries("."), 2);
}

CASE(seekdir_goes_back_to_where_telldir_was)
{
	char name[256];
	struct dirent *entry;
	long place[200];
	int i = 0;
	DIR *dir;

	make_many("kept-", 1000);
	dir = opendir(".");
	EXPECT(dir != NULL);
	for (i = 0; i < 200; i++) {
		place[i] = telldir(dir);
		EXPECT(readdir(dir) != NULL);
	}
	for (i = 199; i >= 0; i -= 7) {
		seekdir(dir, place[i]);
		entry = readdir(dir);
		EXPECT(entry != NULL);
		snprintf(name, sizeof(name), "%s", entry->d_name);
		rewinddir(dir);
		seekdir(dir, place[i]);
		entry = readdir(dir);
		EXPECT(entry && strcmp(name, entry->d_name) == 0);
	}
	seekdir(dir, place[100]);
	for (i = 100; readdir(dir); i++)
		;
	EXPECT_EQ(i, 1002);
	closedir(dir);
}

CASE(a_place_is_good_after_its_entries_are_removed)
{
	struct dirent *entry;
	long place;
	int i;
	DIR *dir;

	make_many("gone-", 500);
	make_many("kept-", 500);
	dir = opendir(".");
	EXPECT(dir != NULL);
	for (i = 0; i < 300; i++) {
		entry = readdir(dir);
		EXPECT(entry != NULL);
		note(entry->d_name);
	}
	place = telldir(dir);
	remove_many("gone-", 0, 500);
	seekdir(dir, place);
	while ((entry = readdir(dir)))
		note(entry->d_name);
	expect_all_once(500);
	closedir(dir);
}

CASE(rewinddir_shows_what_is_new)
{
	int count = 0;
	DIR *dir;

	make_many("a", 10);
	dir = opendir(".");
	EXPECT(dir != NULL);
	while (readdir(dir))
		count++;
	EXPECT_EQ(count, 12);
	make_many("b", 10);
	OK(unlink("a0"));
	rewinddir(dir);
	for (count = 0; readdir(dir); count++)
		;
	EXPECT_EQ(count, 21);
	closedir(dir);
}

CASE(a_removed_directory_lists_nothing)
{
	DIR *dir;

	OK(mkdir("d", 0755));
	dir = opendir("d");
	EXPECT(dir != NULL);
	OK(rmdir("d"));
	EXPECT(readdir(dir) == NULL);
	closedir(dir);
}

static atomic_bool stop;

static void *churn(void *argument)
{
	unsigned int number = (uintptr_t)argument, i;
	char name[64], other[64];

	for (i = 0; !atomic_load(&stop); i++) {
		snprintf(name, sizeof(name), "t%u-%u", number, i % 300);
		snprintf(other, sizeof(other), "r%u-%u", number, i % 300);
		close(OK(open(name, O_CREAT | O_WRONLY, 0600)));
		OK(rename(name, other));
		if (i % 3)
			OK(unlink(other));
	}
	return NULL;
}

CASE(entries_that_stay_are_listed_once_under_load)
{
	pthread_t thread[3];
	struct linux_entry *entry;
	uintptr_t i;
	int round;

	make_many("kept-", 2000);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(pthread_create(&thread[i], NULL, churn, (void *)i),
			  0);
	for (round = 0; round < 20; round++) {
		struct slow slow = {0};

		memset(seen, 0, sizeof(seen));
		slow.fd = OK(open(".", O_RDONLY | O_DIRECTORY));
		while ((entry = slow_next(&slow)))
			note(entry->name);
		expect_all_once(2000);
		close(slow.fd);
	}
	atomic_store(&stop, true);
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
}

/* The name stays, though what it names changes. */
static void *replace(void *argument)
{
	unsigned int number = (uintptr_t)argument, i;
	char name[64], other[64];

	snprintf(other, sizeof(other), "new-%u", number);
	for (i = number; !atomic_load(&stop); i += 7) {
		snprintf(name, sizeof(name), "kept-%u", i % 2000);
		close(OK(open(other, O_CREAT | O_WRONLY, 0600)));
		OK(rename(other, name));
	}
	return NULL;
}

struct listing {
	pthread_t thread;
	size_t room; /* for entries, in one call */
	unsigned char seen[2000];
};

/* Lists again and again, by one descriptor and by new ones. */
static void *list_all(void *argument)
{
	struct listing *listing = argument;
	char *buffer = malloc(listing->room);
	int fd = OK(open(".", O_RDONLY | O_DIRECTORY)), round, number;
	long at, have;

	EXPECT(buffer != NULL);
	for (round = 0; round < 20; round++) {
		memset(listing->seen, 0, sizeof(listing->seen));
		if (round % 2) {
			close(fd);
			fd = OK(open(".", O_RDONLY | O_DIRECTORY));
		}
		OK(lseek(fd, 0, SEEK_SET));
		while ((have = OK(syscall(SYS_getdents64, fd, buffer,
					  listing->room))) > 0) {
			for (at = 0; at < have;) {
				struct linux_entry *entry =
					(struct linux_entry *)(buffer + at);

				at += entry->length;
				if (sscanf(entry->name, "kept-%d", &number) ==
				    1)
					listing->seen[number]++;
			}
		}
		for (number = 0; number < 2000; number++)
			if (listing->seen[number] != 1)
				case_fail(__LINE__,
					  "round %d: kept-%d was listed %d "
					  "times",
					  round, number, listing->seen[number]);
	}
	close(fd);
	free(buffer);
	return NULL;
}

CASE(entries_that_stay_are_listed_once_by_all_who_list)
{
	static struct listing listing[3] = {
		{.room = 512}, {.room = 4096}, {.room = 65536}};
	pthread_t thread[4];
	uintptr_t i;

	make_many("kept-", 2000);
	/* tmpfs passes over names whose file is replaced meanwhile. */
	for (i = 0; i < 4; i++)
		EXPECT_EQ(pthread_create(&thread[i], NULL,
					 i < 2 || !case_on_fuse() ? churn
								  : replace,
					 (void *)i),
			  0);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(pthread_create(&listing[i].thread, NULL, list_all,
					 &listing[i]),
			  0);
	for (i = 0; i < 3; i++)
		pthread_join(listing[i].thread, NULL);
	atomic_store(&stop, true);
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}
