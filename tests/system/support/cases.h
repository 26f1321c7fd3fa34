/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cases.h - many small named tests in one program
 *
 *	CASE(a_file_has_a_name)
 *	{
 *		EXPECT(...);
 *	}
 *
 * The program takes a directory, and optionally a part of the names of the
 * cases to run. Each case runs in a process of its own, in an empty directory
 * of its own, as root and with umask 022; what it expects in vain ends it. The
 * results are printed as TAP. Expectations are those of tmpfs, and the cases
 * are run on tmpfs to show it; where zramfs differs, the case says why.
 */
#ifndef ZRAMFS_TESTS_CASES_H
#define ZRAMFS_TESTS_CASES_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define CASE(name)                                                \
	static void name(void);                                   \
	__attribute__((constructor)) static void add_##name(void) \
	{                                                         \
		case_add(#name, name);                            \
	}                                                         \
	static void name(void)

void case_add(const char *name, void (*function)(void));
void case_fail(int line, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));
void case_skip(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));

#define EXPECT(condition)                                                \
	do {                                                             \
		if (!(condition))                                        \
			case_fail(__LINE__, "%s is not so", #condition); \
	} while (0)

#define EXPECT_EQ(got, want)                                                \
	do {                                                                \
		long long got_ = (long long)(got);                          \
		long long want_ = (long long)(want);                        \
		if (got_ != want_)                                          \
			case_fail(__LINE__, "%s is %lld (%#llx), not %lld", \
				  #got, got_, got_, want_);                 \
	} while (0)

/* A call that returns -1 when it fails; the value is its result. */
#define OK(call)                                             \
	({                                                   \
		__typeof__(call) result_ = (call);           \
		if (result_ == (__typeof__(result_))-1)      \
			case_fail(__LINE__, "%s: %s", #call, \
				  case_error(errno));        \
		result_;                                     \
	})

#define FAILS(call, error)                                                     \
	do {                                                                   \
		errno = 0;                                                     \
		if ((long long)(call) != -1)                                   \
			case_fail(__LINE__, "%s does not fail with %s", #call, \
				  #error);                                     \
		if (errno != (error))                                          \
			case_fail(__LINE__, "%s fails with %s, not %s", #call, \
				  case_error(errno), #error);                  \
	} while (0)

const char *case_error(int error);

/* Run as this user and group alone, until case_become(0, 0). */
void case_become(uid_t uid, gid_t gid);
bool case_on_fuse(void);

/* What most cases need. */
void make_file(const char *path, const char *content);
/* Does the whole file have exactly this content? */
bool file_is(const char *path, const char *content);
struct stat stat_of(const char *path); /* lstat */
bool exists(const char *path);
/* Length bytes at offset are all value. */
bool bytes_are(int fd, off_t offset, size_t length, int value);
void write_bytes(int fd, off_t offset, size_t length, int value);
/* Wait for a child, which must exit with 0. */
void reap(pid_t child);
/* So that the next time stamp differs: the clock has ticks of up to 10 ms. */
void tick(void);
int compare_times(const struct timespec *a, const struct timespec *b);

#endif
