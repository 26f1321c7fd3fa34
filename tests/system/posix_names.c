/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * posix_names.c - names: lookup, create, link, unlink, rename, symlinks
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/cases.h"

CASE(a_missing_name_is_found_once_it_is_made)
{
	int i;

	for (i = 0; i < 3; i++) {
		FAILS(open("file", O_RDONLY), ENOENT);
		FAILS(access("file", F_OK), ENOENT);
		make_file("file", "here");
		EXPECT(file_is("file", "here"));
		OK(unlink("file"));
	}
}

CASE(names_have_up_to_255_bytes)
{
	char name[300];

	memset(name, 'n', sizeof(name));
	name[255] = 0;
	make_file(name, "x");
	EXPECT(file_is(name, "x"));
	OK(mkdir("d", 0755));
	name[0] = 'm';
	OK(mkdir(name, 0755));
	name[0] = 'n';
	OK(unlink(name));
	name[255] = 'n';
	name[256] = 0;
	FAILS(open(name, O_RDWR | O_CREAT, 0644), ENAMETOOLONG);
	FAILS(mkdir(name, 0755), ENAMETOOLONG);
	FAILS(access(name, F_OK), ENAMETOOLONG);
	FAILS(symlink("x", name), ENAMETOOLONG);
	FAILS(rename("d", name), ENAMETOOLONG);
}

CASE(names_are_any_bytes_but_slash_and_nul)
{
	char name[2] = {0};
	int c;

	for (c = 1; c < 256; c++) {
		name[0] = (char)c;
		if (c == '/' || c == '.')
			continue;
		make_file(name, name);
	}
	for (c = 1; c < 256; c++) {
		name[0] = (char)c;
		if (c == '/' || c == '.')
			continue;
		EXPECT(file_is(name, name));
	}
	make_file("..x", "dots");
	make_file("...", "three");
	EXPECT(file_is("..x", "dots"));
	EXPECT(file_is("...", "three"));
}

CASE(a_path_through_a_file_is_ENOTDIR)
{
	make_file("file", "");
	FAILS(open("file/x", O_RDONLY), ENOTDIR);
	FAILS(mkdir("file/x", 0755), ENOTDIR);
	FAILS(open("file", O_RDONLY | O_DIRECTORY), ENOTDIR);
	FAILS(rmdir("file"), ENOTDIR);
	FAILS(open("none/x", O_CREAT | O_WRONLY, 0644), ENOENT);
}

CASE(open_flags_mean_what_they_say)
{
	int fd;

	make_file("file", "content");
	OK(mkdir("dir", 0755));
	OK(symlink("file", "link"));
	OK(symlink("none", "dangling"));
	FAILS(open("file", O_RDWR | O_CREAT | O_EXCL, 0644), EEXIST);
	FAILS(open("dangling", O_RDWR | O_CREAT | O_EXCL, 0644), EEXIST);
	FAILS(open("dir", O_RDWR | O_CREAT, 0644), EISDIR);
	FAILS(open("dir", O_RDWR), EISDIR);
	FAILS(open("link", O_RDWR | O_NOFOLLOW), ELOOP);
	fd = OK(open("link", O_PATH | O_NOFOLLOW));
	close(fd);
	EXPECT(file_is("link", "content"));
	fd = OK(open("file", O_RDWR | O_TRUNC));
	EXPECT_EQ(stat_of("file").st_size, 0);
	close(fd);
	fd = OK(open("dangling", O_RDWR | O_CREAT, 0600));
	close(fd);
	EXPECT(S_ISREG(stat_of("none").st_mode));
}

CASE(a_file_that_cannot_be_written_by_its_mode_can_by_its_creator)
{
	int fd;

	OK(chmod(".", 0777));
	case_become(1000, 1000);
	fd = OK(open("file", O_RDWR | O_CREAT | O_EXCL, 0000));
	EXPECT_EQ(write(fd, "x", 1), 1);
	FAILS(open("file", O_RDONLY), EACCES);
	close(fd);
	case_become(0, 0);
}

CASE(hard_links_are_counted)
{
	ino_t ino;

	make_file("a", "same");
	OK(mkdir("d", 0755));
	ino = stat_of("a").st_ino;
	OK(link("a", "b"));
	OK(link("a", "d/c"));
	EXPECT_EQ(stat_of("a").st_nlink, 3);
	EXPECT_EQ(stat_of("d/c").st_nlink, 3);
	EXPECT_EQ(stat_of("b").st_ino, ino);
	FAILS(link("a", "b"), EEXIST);
	OK(unlink("a"));
	EXPECT_EQ(stat_of("b").st_nlink, 2);
	make_file("b", "changed");
	EXPECT(file_is("d/c", "changed"));
	OK(unlink("b"));
	EXPECT_EQ(stat_of("d/c").st_nlink, 1);
	FAILS(link("d", "e"), EPERM);
	FAILS(link("none", "e"), ENOENT);
}

CASE(a_hard_link_to_a_symlink_is_a_link_to_itself)
{
	OK(symlink("target", "s"));
	OK(link("s", "t"));
	EXPECT_EQ(stat_of("s").st_nlink, 2);
	EXPECT_EQ(stat_of("s").st_ino, stat_of("t").st_ino);
	EXPECT(S_ISLNK(stat_of("t").st_mode));
}

CASE(a_directory_counts_its_subdirectories)
{
	nlink_t before = stat_of(".").st_nlink;

	OK(mkdir("a", 0755));
	OK(mkdir("a/b", 0755));
	OK(mkdir("a/c", 0755));
	make_file("a/file", "");
	EXPECT_EQ(stat_of(".").st_nlink, before + 1);
	EXPECT_EQ(stat_of("a").st_nlink, 4);
	EXPECT_EQ(stat_of("a/b").st_nlink, 2);
	OK(rename("a/b", "b"));
	EXPECT_EQ(stat_of("a").st_nlink, 3);
	EXPECT_EQ(stat_of(".").st_nlink, before + 2);
	EXPECT_EQ(stat_of("b/..").st_ino, stat_of(".").st_ino);
	OK(rmdir("a/c"));
	EXPECT_EQ(stat_of("a").st_nlink, 2);
	OK(rename("b", "a/b"));
	OK(mkdir("e", 0755));
	OK(rename("a/b", "e")); /* over an empty one */
	EXPECT_EQ(stat_of("a").st_nlink, 2);
	EXPECT_EQ(stat_of(".").st_nlink, before + 2);
	EXPECT_EQ(stat_of("e").st_nlink, 2);
	EXPECT_EQ(stat_of("e/..").st_ino, stat_of(".").st_ino);
}

CASE(an_unlinked_file_lives_while_it_is_open)
{
	struct stat st;
	char byte;
	int fd = OK(open("file", O_RDWR | O_CREAT, 0644));

	OK(unlink("file"));
	EXPECT(!exists("file"));
	write_bytes(fd, 0, 100000, 'u');
	OK(fstat(fd, &st));
	EXPECT_EQ(st.st_nlink, 0);
	EXPECT_EQ(st.st_size, 100000);
	EXPECT(bytes_are(fd, 0, 100000, 'u'));
	OK(fchmod(fd, 0600));
	OK(ftruncate(fd, 10));
	EXPECT_EQ(pread(fd, &byte, 1, 10), 0);
	make_file("file", "another");
	EXPECT(bytes_are(fd, 0, 10, 'u'));
	EXPECT(file_is("file", "another"));
	close(fd);
}

CASE(a_file_replaced_by_rename_lives_while_it_is_open)
{
	struct stat st;
	int fd;

	make_file("old", "old");
	make_file("new", "new");
	fd = OK(open("old", O_RDWR));
	OK(rename("new", "old"));
	EXPECT(file_is("old", "new"));
	EXPECT(!exists("new"));
	OK(fstat(fd, &st));
	EXPECT_EQ(st.st_nlink, 0);
	EXPECT(bytes_are(fd, 0, 1, 'o'));
	close(fd);
}

CASE(unlink_and_rmdir_know_what_is_a_directory)
{
	OK(mkdir("d", 0755));
	make_file("d/f", "");
	FAILS(unlink("d"), EISDIR);
	FAILS(rmdir("d"), ENOTEMPTY);
	FAILS(rmdir("d/f"), ENOTDIR);
	FAILS(rmdir("d/."), EINVAL);
	FAILS(rmdir("d/.."), ENOTEMPTY);
	OK(unlink("d/f"));
	OK(rmdir("d"));
	FAILS(rmdir("d"), ENOENT);
	FAILS(unlink("d"), ENOENT);
	FAILS(mkdir("d/e", 0755), ENOENT);
	OK(mkdir("d", 0755));
	FAILS(mkdir("d", 0755), EEXIST);
}

CASE(nothing_is_made_in_a_removed_directory)
{
	struct stat st;
	int d;

	OK(mkdir("d", 0755));
	make_file("f", "");
	d = OK(open("d", O_RDONLY | O_DIRECTORY));
	OK(rmdir("d"));
	OK(fstat(d, &st));
	EXPECT_EQ(st.st_nlink, 0);
	FAILS(openat(d, "x", O_CREAT | O_WRONLY, 0644), ENOENT);
	FAILS(mkdirat(d, "x", 0755), ENOENT);
	FAILS(symlinkat("t", d, "x"), ENOENT);
	FAILS(linkat(AT_FDCWD, "f", d, "x", 0), ENOENT);
	FAILS(renameat(AT_FDCWD, "f", d, "x"), ENOENT);
	EXPECT(exists("f"));
	close(d);
}

CASE(rename_moves_and_replaces)
{
	ino_t a, d;

	make_file("a", "a");
	make_file("b", "b");
	OK(mkdir("d", 0755));
	a = stat_of("a").st_ino;
	d = stat_of("d").st_ino;
	OK(rename("a", "d/a"));
	EXPECT(!exists("a"));
	EXPECT_EQ(stat_of("d/a").st_ino, a);
	OK(rename("d/a", "b"));
	EXPECT_EQ(stat_of("b").st_ino, a);
	EXPECT(file_is("b", "a"));
	OK(rename("b", "b"));
	OK(rename("d", "e"));
	EXPECT_EQ(stat_of("e").st_ino, d);
	FAILS(rename("none", "x"), ENOENT);
	FAILS(rename("b", "none/x"), ENOENT);
}

CASE(rename_between_links_of_one_file_does_nothing)
{
	make_file("a", "a");
	OK(link("a", "b"));
	OK(rename("a", "b"));
	EXPECT(exists("a"));
	EXPECT(exists("b"));
	EXPECT_EQ(stat_of("a").st_nlink, 2);
}

CASE(rename_replaces_only_what_is_like_it)
{
	make_file("file", "");
	OK(mkdir("empty", 0755));
	OK(mkdir("full", 0755));
	OK(mkdir("full/sub", 0755));
	OK(mkdir("dir", 0755));
	make_file("dir/x", "x");
	FAILS(rename("file", "empty"), EISDIR);
	FAILS(rename("dir", "file"), ENOTDIR);
	FAILS(rename("dir", "full"), ENOTEMPTY);
	FAILS(rename("full", "full/sub/x"), EINVAL);
	FAILS(rename("full/sub", "full"), ENOTEMPTY);
	OK(rename("dir", "empty"));
	EXPECT(file_is("empty/x", "x"));
	EXPECT(!exists("dir"));
	EXPECT(exists("file"));
	EXPECT(exists("full/sub"));
}

CASE(rename_noreplace_keeps_what_is_there)
{
	make_file("a", "a");
	make_file("b", "b");
	FAILS(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_NOREPLACE),
	      EEXIST);
	EXPECT(file_is("b", "b"));
	OK(renameat2(AT_FDCWD, "a", AT_FDCWD, "c", RENAME_NOREPLACE));
	EXPECT(file_is("c", "a"));
	FAILS(renameat2(AT_FDCWD, "b", AT_FDCWD, "c",
			RENAME_NOREPLACE | RENAME_EXCHANGE),
	      EINVAL);
}

CASE(rename_exchange_swaps_anything)
{
	nlink_t here = stat_of(".").st_nlink;

	make_file("a", "a");
	make_file("b", "b");
	OK(mkdir("d", 0755));
	OK(mkdir("d/sub", 0755));
	FAILS(renameat2(AT_FDCWD, "a", AT_FDCWD, "none", RENAME_EXCHANGE),
	      ENOENT);
	OK(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE));
	EXPECT(file_is("a", "b"));
	EXPECT(file_is("b", "a"));
	OK(renameat2(AT_FDCWD, "a", AT_FDCWD, "d/sub", RENAME_EXCHANGE));
	EXPECT(S_ISDIR(stat_of("a").st_mode));
	EXPECT(file_is("d/sub", "b"));
	EXPECT_EQ(stat_of("a/..").st_ino, stat_of(".").st_ino);
	EXPECT_EQ(stat_of(".").st_nlink, here + 2);
	EXPECT_EQ(stat_of("d").st_nlink, 2);
	FAILS(renameat2(AT_FDCWD, "d", AT_FDCWD, "d/sub", RENAME_EXCHANGE),
	      EINVAL);
}

CASE(rename_whiteout_leaves_one)
{
	struct stat st;

	make_file("a", "a");
	OK(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_WHITEOUT));
	EXPECT(file_is("b", "a"));
	st = stat_of("a");
	EXPECT(S_ISCHR(st.st_mode));
	EXPECT_EQ(st.st_rdev, 0);
}

CASE(symlinks_hold_up_to_4095_bytes)
{
	char target[5000], got[5000];

	memset(target, 't', sizeof(target));
	target[4095] = 0;
	OK(symlink(target, "s"));
	EXPECT_EQ(readlink("s", got, sizeof(got)), 4095);
	EXPECT(memcmp(target, got, 4095) == 0);
	EXPECT_EQ(stat_of("s").st_size, 4095);
	EXPECT_EQ(stat_of("s").st_mode, S_IFLNK | 0777);
	EXPECT_EQ(readlink("s", got, 7), 7);
	target[4095] = 't';
	target[4096] = 0;
	FAILS(symlink(target, "t"), ENAMETOOLONG);
	FAILS(symlink("", "t"), ENOENT);
	FAILS(symlink("x", "s"), EEXIST);
}

CASE(symlinks_are_followed)
{
	OK(mkdir("d", 0755));
	make_file("d/f", "f");
	OK(symlink("d", "s"));
	OK(symlink("s/f", "t"));
	OK(symlink("loop", "loop"));
	EXPECT(file_is("t", "f"));
	EXPECT(file_is("s/f", "f"));
	FAILS(open("loop", O_RDONLY), ELOOP);
	FAILS(readlink("d", (char[8]){0}, 8), EINVAL);
	OK(unlink("s"));
	FAILS(open("t", O_RDONLY), ENOENT);
	OK(symlink("none", "s"));
	FAILS(open("t", O_RDONLY), ENOENT);
}

CASE(fifos_sockets_and_devices_are_made)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "socket"};
	struct stat st;
	int r, w, s, c;
	char byte;

	OK(mkfifo("fifo", 0644));
	EXPECT(S_ISFIFO(stat_of("fifo").st_mode));
	r = OK(open("fifo", O_RDONLY | O_NONBLOCK));
	w = OK(open("fifo", O_WRONLY));
	EXPECT_EQ(write(w, "x", 1), 1);
	EXPECT_EQ(read(r, &byte, 1), 1);
	s = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	OK(bind(s, (struct sockaddr *)&name, sizeof(name)));
	OK(listen(s, 1));
	c = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	OK(connect(c, (struct sockaddr *)&name, sizeof(name)));
	EXPECT(S_ISSOCK(stat_of("socket").st_mode));
	OK(mknod("chr", S_IFCHR | 0600, makedev(1, 3)));
	OK(mknod("blk", S_IFBLK | 0640, makedev(259, 70000)));
	st = stat_of("chr");
	EXPECT(S_ISCHR(st.st_mode));
	EXPECT_EQ(st.st_rdev, makedev(1, 3));
	st = stat_of("blk");
	EXPECT_EQ(st.st_mode, S_IFBLK | 0640);
	EXPECT_EQ(st.st_rdev, makedev(259, 70000));
	OK(mknod("reg", S_IFREG | 0600, 0));
	EXPECT(S_ISREG(stat_of("reg").st_mode));
	FAILS(mknod("reg", S_IFREG | 0600, 0), EEXIST);
}

CASE(an_unnamed_file_can_be_given_a_name)
{
	char path[64];
	struct stat st;
	int fd = OK(open(".", O_TMPFILE | O_RDWR, 0640));

	EXPECT_EQ(write(fd, "tmp", 3), 3);
	OK(fstat(fd, &st));
	EXPECT_EQ(st.st_nlink, 0);
	EXPECT_EQ(st.st_mode, S_IFREG | 0640);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	OK(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
	OK(fstat(fd, &st));
	EXPECT_EQ(st.st_nlink, 1);
	close(fd);
	EXPECT(file_is("named", "tmp"));
	fd = OK(open(".", O_TMPFILE | O_RDWR | O_EXCL, 0600));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	FAILS(linkat(AT_FDCWD, path, AT_FDCWD, "x", AT_SYMLINK_FOLLOW), ENOENT);
	close(fd);
}

CASE(deep_paths_work)
{
	char name[24];
	int i;

	for (i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "level-%d", i);
		OK(mkdir(name, 0755));
		OK(chdir(name));
	}
	make_file("bottom", "deep");
	for (i = 0; i < 300; i++)
		OK(chdir(".."));
	EXPECT(exists("level-0/level-1/level-2/level-3"));
	for (i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "level-%d", i);
		OK(chdir(name));
	}
	OK(unlink("bottom"));
	for (i = 299; i >= 0; i--) {
		snprintf(name, sizeof(name), "level-%d", i);
		OK(chdir(".."));
		OK(rmdir(name));
	}
}
