/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * posix_attributes.c - times, owners, modes, permissions, locks, statvfs
 */
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "support/cases.h"

#define USER  1000
#define GROUP 2001

enum {
	ATIME = 1,
	MTIME = 2,
	CTIME = 4
};

/* Which times of path did step() move on? */
static int moved(const char *path, void (*step)(void))
{
	struct stat before, after;
	int which = 0;

	before = stat_of(path);
	tick();
	step();
	after = stat_of(path);
	if (compare_times(&after.st_atim, &before.st_atim) > 0)
		which |= ATIME;
	if (compare_times(&after.st_mtim, &before.st_mtim) > 0)
		which |= MTIME;
	if (compare_times(&after.st_ctim, &before.st_ctim) > 0)
		which |= CTIME;
	return which;
}

static void step_write(void)
{
	int fd = OK(open("f", O_WRONLY));

	write_bytes(fd, 0, 1, 'w');
	close(fd);
}

static void step_truncate(void)
{
	OK(truncate("f", 1));
}

static void step_open_trunc(void)
{
	close(OK(open("f", O_WRONLY | O_TRUNC)));
}

static void step_open(void)
{
	close(OK(open("f", O_RDWR)));
}

static void step_chmod(void)
{
	OK(chmod("f", 0600));
}

static void step_chown(void)
{
	OK(chown("f", USER, -1));
}

static void step_link(void)
{
	OK(link("f", "d/l"));
}

static void step_unlink_link(void)
{
	OK(unlink("d/l"));
}

static void step_rename(void)
{
	OK(rename("f", "d/g"));
	OK(rename("d/g", "f"));
}

static void step_setxattr(void)
{
	OK(setxattr("f", "user.x", "y", 1, 0));
}

static void step_create_in_d(void)
{
	make_file("d/new", "");
}

static void step_unlink_in_d(void)
{
	OK(unlink("d/new"));
}

static void step_mkdir_in_d(void)
{
	OK(mkdir("d/sub", 0755));
}

static void step_nothing_written(void)
{
	int fd = OK(open("f", O_WRONLY));

	EXPECT_EQ(write(fd, "", 0), 0);
	close(fd);
}

CASE(each_call_moves_the_times_it_should)
{
	make_file("f", "content");
	OK(mkdir("d", 0755));
	EXPECT_EQ(moved("f", step_write), MTIME | CTIME);
	EXPECT_EQ(moved("f", step_nothing_written), 0);
	EXPECT_EQ(moved("f", step_open), 0);
	EXPECT_EQ(moved("f", step_truncate), MTIME | CTIME);
	EXPECT_EQ(moved("f", step_open_trunc), MTIME | CTIME);
	EXPECT_EQ(moved("f", step_chmod), CTIME);
	EXPECT_EQ(moved("f", step_chown), CTIME);
	EXPECT_EQ(moved("f", step_setxattr), CTIME);
	EXPECT_EQ(moved("f", step_link), CTIME);
	EXPECT_EQ(moved("f", step_unlink_link), CTIME);
	EXPECT_EQ(moved("f", step_rename), CTIME);
	EXPECT_EQ(moved("d", step_create_in_d), MTIME | CTIME);
	EXPECT_EQ(moved("d", step_unlink_in_d), MTIME | CTIME);
	EXPECT_EQ(moved("d", step_mkdir_in_d), MTIME | CTIME);
	EXPECT_EQ(moved("d", step_link), MTIME | CTIME);
	EXPECT_EQ(moved("d", step_rename), MTIME | CTIME);
	EXPECT_EQ(moved(".", step_chmod), 0);
}

CASE(a_new_file_has_the_time_of_now_and_stamps_its_directory)
{
	struct timespec before, after;
	struct stat st;

	clock_gettime(CLOCK_REALTIME, &before);
	before.tv_sec--; /* file times lag by a tick */
	make_file("f", "");
	clock_gettime(CLOCK_REALTIME, &after);
	st = stat_of("f");
	EXPECT(compare_times(&st.st_mtim, &before) >= 0);
	EXPECT(compare_times(&st.st_mtim, &after) <= 0);
	EXPECT(compare_times(&st.st_atim, &before) >= 0);
	EXPECT(compare_times(&st.st_ctim, &before) >= 0);
	st = stat_of(".");
	EXPECT(compare_times(&st.st_mtim, &before) >= 0);
}

CASE(reading_moves_atime_when_it_is_older_than_mtime)
{
	struct timespec old[2] = {{1000, 0}, {2000, 0}};
	char byte;
	int fd;

	make_file("f", "content");
	OK(utimensat(AT_FDCWD, "f", old, 0));
	fd = OK(open("f", O_RDONLY));
	/* A read that the page cache answers is not seen by zramfs. */
	OK(fdatasync(fd));
	EXPECT_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	EXPECT_EQ(read(fd, &byte, 1), 1);
	close(fd);
	EXPECT(stat_of("f").st_atim.tv_sec > 2000);
	EXPECT_EQ(stat_of("f").st_mtim.tv_sec, 2000);
}

CASE(a_mapped_write_moves_mtime)
{
	struct timespec old[2] = {{1000, 0}, {2000, 0}};
	int fd = OK(open("f", O_RDWR | O_CREAT, 0644));
	char *map;

	write_bytes(fd, 0, 4096, 'x');
	OK(futimens(fd, old));
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(map != MAP_FAILED);
	map[0] = 'm';
	OK(msync(map, 4096, MS_SYNC));
	munmap(map, 4096);
	close(fd);
	EXPECT(stat_of("f").st_mtim.tv_sec > 2000);
}

CASE(times_are_set_to_the_nanosecond)
{
	struct timespec times[2] = {{1234567890, 123456789},
				    {987654321, 987654321}};
	struct stat st;

	make_file("f", "");
	OK(utimensat(AT_FDCWD, "f", times, 0));
	st = stat_of("f");
	EXPECT_EQ(st.st_atim.tv_sec, 1234567890);
	EXPECT_EQ(st.st_atim.tv_nsec, 123456789);
	EXPECT_EQ(st.st_mtim.tv_sec, 987654321);
	EXPECT_EQ(st.st_mtim.tv_nsec, 987654321);
	times[0].tv_sec = -12345; /* before 1970 */
	times[1].tv_sec = 1ll << 33;
	OK(utimensat(AT_FDCWD, "f", times, 0));
	st = stat_of("f");
	EXPECT_EQ(st.st_atim.tv_sec, -12345);
	EXPECT_EQ(st.st_mtim.tv_sec, 1ll << 33);
	OK(symlink("f", "s"));
	times[0].tv_sec = 777;
	OK(utimensat(AT_FDCWD, "s", times, AT_SYMLINK_NOFOLLOW));
	EXPECT_EQ(stat_of("s").st_atim.tv_sec, 777);
}

CASE(times_are_set_to_now_or_left)
{
	struct timespec times[2] = {{1000, 1}, {2000, 2}};
	struct stat st;

	make_file("f", "");
	OK(utimensat(AT_FDCWD, "f", times, 0));
	times[0].tv_nsec = UTIME_OMIT;
	times[1].tv_nsec = UTIME_NOW;
	OK(utimensat(AT_FDCWD, "f", times, 0));
	st = stat_of("f");
	EXPECT_EQ(st.st_atim.tv_sec, 1000);
	EXPECT_EQ(st.st_atim.tv_nsec, 1);
	EXPECT(st.st_mtim.tv_sec > 1000000);
	times[0].tv_nsec = UTIME_NOW;
	times[1].tv_nsec = UTIME_OMIT;
	OK(utimensat(AT_FDCWD, "f", times, 0));
	EXPECT(stat_of("f").st_atim.tv_sec > 1000000);
}

CASE(others_may_set_times_to_now_only_if_they_may_write)
{
	struct timespec times[2] = {{1000, 1}, {2000, 2}};

	make_file("f", "");
	OK(chmod("f", 0666));
	case_become(USER, GROUP);
	OK(utimensat(AT_FDCWD, "f", NULL, 0));
	FAILS(utimensat(AT_FDCWD, "f", times, 0), EPERM);
	case_become(0, 0);
	OK(chmod("f", 0644));
	case_become(USER, GROUP);
	FAILS(utimensat(AT_FDCWD, "f", NULL, 0), EACCES);
	case_become(0, 0);
}

CASE(mode_bits_are_set)
{
	mode_t mode;

	make_file("f", "");
	OK(mkdir("d", 0755));
	for (mode = 0; mode <= 07777; mode += 0123) {
		OK(chmod("f", mode));
		EXPECT_EQ(stat_of("f").st_mode, S_IFREG | mode);
		OK(chmod("d", mode));
		EXPECT_EQ(stat_of("d").st_mode, S_IFDIR | mode);
	}
	OK(chmod("d", 0755));
}

CASE(the_umask_is_applied)
{
	umask(027);
	close(OK(open("f", O_CREAT | O_WRONLY, 0666)));
	OK(mkdir("d", 0777));
	OK(mkfifo("p", 0666));
	EXPECT_EQ(stat_of("f").st_mode & 07777, 0640);
	EXPECT_EQ(stat_of("d").st_mode & 07777, 0750);
	EXPECT_EQ(stat_of("p").st_mode & 07777, 0640);
	umask(0);
	OK(mkdir("t", 01777));
	EXPECT_EQ(stat_of("t").st_mode & 07777, 01777);
}

CASE(owners_are_set_and_given_to_new_files)
{
	make_file("f", "");
	OK(chown("f", 123456, 654321));
	EXPECT_EQ(stat_of("f").st_uid, 123456);
	EXPECT_EQ(stat_of("f").st_gid, 654321);
	OK(chown("f", -1, 5));
	EXPECT_EQ(stat_of("f").st_uid, 123456);
	EXPECT_EQ(stat_of("f").st_gid, 5);
	OK(chmod(".", 0777));
	OK(symlink("f", "s"));
	OK(lchown("s", 7, 8));
	EXPECT_EQ(stat_of("s").st_uid, 7);
	EXPECT_EQ(stat_of("f").st_uid, 123456);
	case_become(USER, GROUP);
	make_file("mine", "");
	OK(mkdir("mydir", 0755));
	EXPECT_EQ(stat_of("mine").st_uid, USER);
	EXPECT_EQ(stat_of("mine").st_gid, GROUP);
	EXPECT_EQ(stat_of("mydir").st_uid, USER);
	FAILS(chown("mine", 0, -1), EPERM);
	FAILS(chown("mine", -1, 0), EPERM);
	FAILS(chmod("f", 0777), EPERM);
	case_become(0, 0);
}

CASE(chown_takes_set_id_bits_away)
{
	OK(chmod(".", 0777));
	case_become(USER, GROUP);
	make_file("f", "");
	OK(chmod("f", 06755));
	EXPECT_EQ(stat_of("f").st_mode & 07777, 06755);
	OK(chown("f", USER, GROUP));
	EXPECT_EQ(stat_of("f").st_mode & 07777, 0755);
	case_become(0, 0);
}

CASE(writing_takes_set_id_bits_away)
{
	int fd;

	make_file("f", "content");
	OK(chown("f", USER, GROUP));
	OK(chmod("f", 06777));
	case_become(USER + 1, GROUP + 1);
	fd = OK(open("f", O_WRONLY));
	write_bytes(fd, 0, 1, 'x');
	close(fd);
	case_become(0, 0);
	EXPECT_EQ(stat_of("f").st_mode & 07777, 0777);
	OK(chmod("f", 06777));
	case_become(USER + 1, GROUP + 1);
	OK(truncate("f", 3));
	case_become(0, 0);
	EXPECT_EQ(stat_of("f").st_mode & 07777, 0777);
	OK(chmod("f", 04777));
	case_become(USER + 1, GROUP + 1);
	close(OK(open("f", O_WRONLY | O_TRUNC)));
	case_become(0, 0);
	EXPECT_EQ(stat_of("f").st_mode & 07777, 0777);
}

CASE(chmod_by_one_outside_the_group_drops_set_group_id)
{
	make_file("f", "");
	OK(chown("f", USER, GROUP));
	case_become(USER, USER);
	OK(chmod("f", 02755));
	case_become(0, 0);
	EXPECT_EQ(stat_of("f").st_mode & 07777, 0755);
}

CASE(a_set_group_id_directory_passes_its_group_on)
{
	struct stat unnamed;
	int fd;

	OK(chmod(".", 0777));
	OK(mkdir("d", 0755));
	OK(chown("d", 0, GROUP));
	OK(chmod("d", 02777));
	case_become(USER, USER);
	make_file("d/f", "");
	OK(mkdir("d/sub", 0755));
	OK(symlink("x", "d/s"));
	OK(mkfifo("d/p", 0644));
	fd = OK(open("d", O_TMPFILE | O_RDWR, 0644));
	OK(fstat(fd, &unnamed));
	EXPECT_EQ(unnamed.st_gid, GROUP);
	close(fd);
	make_file("f", "");
	OK(rename("f", "d/moved"));
	case_become(0, 0);
	EXPECT_EQ(stat_of("d/p").st_gid, GROUP);
	EXPECT_EQ(stat_of("d/moved").st_gid, USER);
	EXPECT_EQ(stat_of("d/f").st_gid, GROUP);
	EXPECT_EQ(stat_of("d/f").st_mode & 07777, 0644);
	EXPECT_EQ(stat_of("d/sub").st_gid, GROUP);
	EXPECT_EQ(stat_of("d/sub").st_mode & 07777, 02755);
	EXPECT_EQ(stat_of("d/s").st_gid, GROUP);
}

CASE(a_sticky_directory_protects_others_files)
{
	OK(mkdir("d", 0755));
	OK(chmod("d", 01777));
	make_file("d/root", "");
	case_become(USER, GROUP);
	make_file("d/mine", "");
	FAILS(unlink("d/root"), EPERM);
	FAILS(rename("d/root", "d/x"), EPERM);
	FAILS(rename("d/mine", "d/root"), EPERM);
	case_become(USER + 1, GROUP);
	FAILS(unlink("d/mine"), EPERM);
	case_become(USER, GROUP);
	OK(unlink("d/mine"));
	case_become(0, 0);
}

CASE(permissions_are_checked)
{
	make_file("f", "secret");
	OK(chmod("f", 0640));
	OK(chown("f", USER, GROUP));
	OK(mkdir("d", 0700));
	make_file("d/f", "");
	case_become(USER, USER);
	close(OK(open("f", O_RDWR)));
	case_become(USER + 1, GROUP);
	close(OK(open("f", O_RDONLY)));
	FAILS(open("f", O_WRONLY), EACCES);
	case_become(USER + 1, USER + 1);
	FAILS(open("f", O_RDONLY), EACCES);
	FAILS(open("d/f", O_RDONLY), EACCES);
	FAILS(open("d", O_RDONLY), EACCES);
	FAILS(chdir("d"), EACCES);
	FAILS(unlink("f"), EACCES);
	FAILS(mkdir("new", 0755), EACCES);
	FAILS(rename("f", "g"), EACCES);
	FAILS(truncate("f", 0), EACCES);
	case_become(0, 0);
	EXPECT_EQ(stat_of("f").st_size, 6);
}

CASE(supplementary_groups_count)
{
	gid_t groups[2] = {5000, GROUP};

	make_file("f", "x");
	OK(chown("f", 0, GROUP));
	OK(chmod("f", 0640));
	OK(setegid(USER));
	OK(setgroups(2, groups));
	OK(seteuid(USER));
	close(OK(open("f", O_RDONLY)));
	case_become(0, 0);
}

CASE(statvfs_tells_what_is_used)
{
	struct statvfs before, after;
	int fd, i;

	/* FUSE tells late that what was deleted is used no more. */
	do {
		OK(statvfs(".", &after));
		tick();
		tick();
		OK(statvfs(".", &before));
	} while (before.f_ffree != after.f_ffree);
	EXPECT_EQ(before.f_namemax, 255);
	EXPECT_EQ(before.f_frsize, 4096);
	EXPECT(before.f_bfree <= before.f_blocks);
	fd = OK(open("f", O_RDWR | O_CREAT, 0644));
	write_bytes(fd, 0, 100 * 4096, 'x');
	OK(fsync(fd));
	OK(ftruncate(fd, 1 << 30));
	OK(statvfs(".", &after));
	EXPECT_EQ(before.f_bfree - after.f_bfree, 100);
	EXPECT_EQ(before.f_ffree - after.f_ffree, 1);
	close(fd);
	OK(unlink("f"));
	/* A FUSE kernel tells the daemon soon, not at once, to let go. */
	for (i = 0; i < 100; i++) {
		OK(statvfs(".", &after));
		if (before.f_bfree == after.f_bfree &&
		    before.f_ffree == after.f_ffree)
			break;
		tick();
	}
	EXPECT_EQ(before.f_bfree, after.f_bfree);
	EXPECT_EQ(before.f_ffree, after.f_ffree);
}

CASE(inode_numbers_tell_files_apart)
{
	struct stat here = stat_of("."), a, b;

	make_file("a", "");
	make_file("b", "");
	a = stat_of("a");
	b = stat_of("b");
	EXPECT(a.st_ino != b.st_ino);
	EXPECT(a.st_ino != here.st_ino);
	EXPECT_EQ(a.st_dev, here.st_dev);
	EXPECT_EQ(a.st_blksize, 4096);
	OK(rename("a", "c"));
	EXPECT_EQ(stat_of("c").st_ino, a.st_ino);
}

CASE(flock_excludes)
{
	int a, b;

	make_file("f", "");
	a = OK(open("f", O_RDWR));
	b = OK(open("f", O_RDWR));
	OK(flock(a, LOCK_SH));
	OK(flock(b, LOCK_SH | LOCK_NB));
	FAILS(flock(b, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	close(a);
	OK(flock(b, LOCK_EX | LOCK_NB));
	a = OK(open("f", O_RDWR));
	FAILS(flock(a, LOCK_SH | LOCK_NB), EWOULDBLOCK);
	close(b);
	OK(flock(a, LOCK_EX | LOCK_NB));
}

static int lock_range(int fd, int command, short type, off_t start,
		      off_t length)
{
	struct flock lock = {.l_type = type,
			     .l_whence = SEEK_SET,
			     .l_start = start,
			     .l_len = length};

	return fcntl(fd, command, &lock);
}

CASE(record_locks_exclude_other_processes)
{
	pid_t child;
	int fd;

	make_file("f", "");
	fd = OK(open("f", O_RDWR));
	OK(lock_range(fd, F_SETLK, F_WRLCK, 10, 10));
	child = OK(fork());
	if (child == 0) {
		struct flock lock = {
			.l_type = F_WRLCK, .l_start = 15, .l_len = 1};

		FAILS(lock_range(fd, F_SETLK, F_RDLCK, 19, 5), EAGAIN);
		OK(lock_range(fd, F_SETLK, F_WRLCK, 20, 5));
		OK(fcntl(fd, F_GETLK, &lock));
		EXPECT_EQ(lock.l_type, F_WRLCK);
		EXPECT_EQ(lock.l_pid, getppid());
		_exit(0);
	}
	reap(child);
	OK(lock_range(fd, F_SETLK, F_UNLCK, 10, 10));
	OK(lock_range(fd, F_OFD_SETLK, F_WRLCK, 0, 0));
	FAILS(lock_range(OK(open("f", O_RDWR)), F_OFD_SETLK, F_RDLCK, 0, 1),
	      EAGAIN);
}
