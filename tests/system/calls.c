/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * calls.c - make many calls in a directory, and print what each has done
 *
 * For each call: its result or error, and for the files that are watched which
 * times moved and which attributes changed. Nothing that may differ between
 * two runs is printed, so the output for one filesystem can be compared with
 * that for another, line by line.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define WATCHED 4
#define PAGE	4096
#define OWNER	1000
#define OTHER	1001
#define GROUP	2001

static const char *watched[WATCHED];
static struct statx before[WATCHED];
static const char *user = "";
static bool without_atime; /* where mmap() moves it, or the first look does */

static bool look(const char *path, struct statx *st)
{
	memset(st, 0, sizeof(*st));
	return path &&
	       !statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC,
		      STATX_BASIC_STATS, st);
}

static void watch(const char *a, const char *b, const char *c)
{
	watched[0] = a;
	watched[1] = b;
	watched[2] = c;
}

static int compare(const struct statx_timestamp *a,
		   const struct statx_timestamp *b)
{
	if (a->tv_sec != b->tv_sec)
		return a->tv_sec < b->tv_sec ? -1 : 1;
	return a->tv_nsec < b->tv_nsec ? -1 : a->tv_nsec > b->tv_nsec;
}

/* As root, whoever makes the calls. */
static void privileged(bool on)
{
	static uid_t uid;

	if (on) {
		uid = geteuid();
		if (seteuid(0))
			abort();
	} else if (seteuid(uid)) {
		abort();
	}
}

static void begin(void)
{
	const struct timespec nap = {0, 12 * 1000 * 1000};
	int i;

	privileged(true);
	for (i = 0; i < WATCHED; i++)
		look(watched[i], &before[i]);
	privileged(false);
	nanosleep(&nap, NULL);
	errno = 0;
}

static void changed(const char *what, unsigned long long a,
		    unsigned long long b, const char *format)
{
	if (a == b)
		return;
	printf(" %s ", what);
	printf(format, a);
	printf("->");
	printf(format, b);
}

static void show(const char *path, const struct statx *a, const struct statx *b)
{
	char times[8] = "";

	if (a->stx_ino != b->stx_ino) {
		printf("; %s another inode", path);
		return;
	}
	if (!without_atime && compare(&a->stx_atime, &b->stx_atime))
		strcat(times, "a");
	if (compare(&a->stx_mtime, &b->stx_mtime))
		strcat(times, "m");
	if (compare(&a->stx_ctime, &b->stx_ctime))
		strcat(times, "c");
	if (!a->stx_mask || !b->stx_mask) {
		if (a->stx_mask || b->stx_mask)
			printf("; %s %s", path,
			       b->stx_mask ? "appears" : "disappears");
		if (b->stx_mask)
			printf(" mode %o nlink %u size %llu blocks %llu uid %u "
			       "gid %u rdev %u,%u",
			       b->stx_mode, b->stx_nlink, b->stx_size,
			       b->stx_blocks, b->stx_uid, b->stx_gid,
			       b->stx_rdev_major, b->stx_rdev_minor);
		return;
	}
	printf("; %s", path);
	if (times[0])
		printf(" %s", times);
	changed("mode", a->stx_mode, b->stx_mode, "%llo");
	changed("nlink", a->stx_nlink, b->stx_nlink, "%llu");
	changed("size", a->stx_size, b->stx_size, "%llu");
	changed("blocks", a->stx_blocks, b->stx_blocks, "%llu");
	changed("uid", a->stx_uid, b->stx_uid, "%llu");
	changed("gid", a->stx_gid, b->stx_gid, "%llu");
}

static long end(const char *call, long result, bool is_fd)
{
	int error = errno, i;
	struct statx after;

	printf("%s%s = ", user, call);
	if (result == -1)
		printf("%s", error ? strerrorname_np(error) : "-1");
	else if (is_fd)
		printf("fd");
	else
		printf("%ld", result);
	privileged(true);
	for (i = 0; i < WATCHED; i++) {
		look(watched[i], &after);
		if (watched[i])
			show(watched[i], &before[i], &after);
	}
	privileged(false);
	printf("\n");
	errno = error;
	return result;
}

#define DO(call)                                 \
	({                                       \
		begin();                         \
		end(#call, (long)(call), false); \
	})
#define FD(call)                                     \
	({                                           \
		begin();                             \
		(int)end(#call, (long)(call), true); \
	})

/* Without a line of output. */
#define MUST(call)                                                  \
	({                                                          \
		__typeof__(call) r_ = (call);                       \
		if (r_ == (__typeof__(r_))-1) {                     \
			printf("%s: %s\n", #call, strerror(errno)); \
			exit(1);                                    \
		}                                                   \
		r_;                                                 \
	})

static void become(uid_t uid, gid_t gid, const char *name)
{
	MUST(seteuid(0));
	MUST(setegid(gid));
	MUST(setgroups(0, NULL));
	MUST(seteuid(uid));
	user = name;
}

static void root(void)
{
	become(0, 0, "");
}

static void make(const char *path, mode_t mode, size_t length)
{
	static char data[64 * 1024];
	int fd = MUST(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644));

	memset(data, 'x', sizeof(data));
	if (length && write(fd, data, length) != (ssize_t)length)
		abort();
	MUST(fchmod(fd, mode));
	close(fd);
}

static void section(const char *name)
{
	printf("# %s\n", name);
	root();
	watch(NULL, NULL, NULL);
	if (system("rm -rf ./* && chmod 777 . && chown 0:0 ."))
		abort();
}

static char buffer[64 * 1024 + PAGE] __attribute__((aligned(PAGE)));

static long list(const char *path)
{
	DIR *dir = opendir(path);
	long count = 0;

	if (!dir)
		return -1;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void creating(void)
{
	int fd, s = MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "sock"};

	section("creating");
	watch("f", ".", NULL);
	fd = FD(open("f", O_RDWR | O_CREAT, 0640));
	close(fd);
	fd = FD(open("f", O_RDWR | O_CREAT, 0600));
	close(fd);
	DO(open("f", O_RDWR | O_CREAT | O_EXCL, 0600));
	DO(open("f", O_RDONLY | O_DIRECTORY));
	DO(open(".", O_RDWR));
	DO(open(".", O_CREAT | O_RDWR, 0600));
	DO(open("f/x", O_CREAT | O_RDWR, 0600));
	DO(open("none/x", O_CREAT | O_RDWR, 0600));
	DO(open("none", O_RDONLY));
	DO(open("f", O_RDONLY | O_NOFOLLOW) < 0);
	DO(creat("f", 0600) < 0);
	watch("d", ".", NULL);
	DO(mkdir("d", 0755));
	DO(mkdir("d", 0755));
	DO(mkdir("d/", 0755));
	DO(mkdir("f", 0755));
	watch("e", ".", NULL);
	DO(mkdir("e/", 02777));
	DO(mkdir("e/s", 0777));
	watch("l", ".", "f");
	DO(link("f", "l"));
	DO(link("f", "l"));
	DO(link("d", "m"));
	DO(link("none", "m"));
	DO(symlink("f", "l"));
	watch("s", ".", "f");
	DO(symlink("f", "s"));
	DO(link("s", "s2"));
	DO(linkat(AT_FDCWD, "s", AT_FDCWD, "s3", AT_SYMLINK_FOLLOW));
	DO(open("s", O_RDONLY | O_NOFOLLOW));
	DO(open("s", O_RDONLY | O_CREAT | O_EXCL, 0600));
	watch("p", ".", NULL);
	DO(mkfifo("p", 0666));
	watch("c", ".", NULL);
	DO(mknod("c", S_IFCHR | 0666, makedev(1, 3)));
	watch("b", ".", NULL);
	DO(mknod("b", S_IFBLK | 0666, makedev(4095, 1048575)));
	watch("r", ".", NULL);
	DO(mknod("r", S_IFREG | 06755, 0));
	DO(mknod("r2", S_IFDIR | 0755, 0));
	DO(mknod("r2", 0644, 0));
	watch("sock", ".", NULL);
	DO(bind(s, (struct sockaddr *)&name, sizeof(name)));
	DO(bind(s, (struct sockaddr *)&name, sizeof(name)));
	close(s);
	watch(".", NULL, NULL);
	fd = FD(open(".", O_TMPFILE | O_RDWR, 0644));
	DO(write(fd, "x", 1));
	DO(linkat(fd, "", AT_FDCWD, "from-fd", AT_EMPTY_PATH));
	DO(linkat(fd, "", AT_FDCWD, "from-fd", AT_EMPTY_PATH));
	close(fd);
	DO(open(".", O_TMPFILE | O_RDONLY, 0644));
	DO(open("f", O_TMPFILE | O_RDWR, 0644));
	watch("c", NULL, NULL);
	fd = FD(open("c", O_RDWR)); /* /dev/null */
	DO(write(fd, "x", 1));
	DO(read(fd, buffer, 1));
	close(fd);
	DO(open("b", O_RDONLY));
	DO(open("sock", O_RDWR));
	DO(open("p", O_WRONLY | O_NONBLOCK));
	DO(truncate("p", 0));
	DO(truncate("c", 0));
	DO(truncate("d", 0));
	become(OTHER, OTHER, "other: ");
	DO(mknod("c2", S_IFCHR | 0666, makedev(1, 3)));
	DO(mknod("wh", S_IFCHR | 0666, makedev(0, 0)));
	DO(mkfifo("p2", 0666));
}

static void reading(void)
{
	const struct timespec old[2] = {{1000000, 0}, {2000000, 0}};
	off_t at;
	int fd, p[2], null = MUST(open("/dev/null", O_WRONLY));
	char *map;

	section("reading");
	make("f", 0644, 3 * PAGE);
	MUST(pipe(p));
	watch("f", ".", NULL);
	MUST(utimensat(AT_FDCWD, "f", old, 0));
	fd = FD(open("f", O_RDONLY));
	DO(read(fd, buffer, 100));
	DO(read(fd, buffer, 100));
	close(fd);
	MUST(utimensat(AT_FDCWD, "f", old, 0));
	fd = FD(open("f", O_RDONLY | O_NOATIME));
	DO(read(fd, buffer, 100));
	close(fd);
	MUST(utimensat(AT_FDCWD, "f", old, 0));
	fd = FD(open("f", O_RDONLY));
	at = 0;
	DO(sendfile(null, fd, &at, 100));
	close(fd);
	MUST(utimensat(AT_FDCWD, "f", old, 0));
	fd = FD(open("f", O_RDONLY));
	at = 0;
	DO(splice(fd, &at, p[1], NULL, 100, 0));
	close(fd);
	MUST(utimensat(AT_FDCWD, "f", old, 0));
	fd = FD(open("f", O_RDONLY));
	begin();
	map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	end("mmap and look", map[0], false);
	munmap(map, PAGE);
	close(fd);
	MUST(utimensat(AT_FDCWD, "f", old, 0));
	fd = FD(open("f", O_RDONLY | O_DIRECT));
	DO(read(fd, buffer, PAGE));
	close(fd);
	MUST(utimensat(AT_FDCWD, "f", old, 0));
	fd = FD(open("f", O_RDONLY));
	DO(lseek(fd, 0, SEEK_DATA));
	DO(lseek(fd, 0, SEEK_HOLE));
	DO(lseek(fd, 3 * PAGE, SEEK_HOLE));
	DO(lseek(fd, -1, SEEK_DATA));
	DO(lseek(fd, -1, SEEK_SET));
	DO(lseek(fd, 1, 77));
	DO(write(fd, "x", 1));
	close(fd);
	MUST(mkdir("d", 0755));
	make("d/x", 0644, 0);
	watch("d", ".", NULL);
	MUST(utimensat(AT_FDCWD, "d", old, 0));
	DO(list("d"));
	DO(list("d"));
	fd = FD(open("d", O_RDONLY | O_DIRECTORY));
	DO(read(fd, buffer, 10));
	DO(lseek(fd, 0, SEEK_SET));
	DO(fsync(fd));
	DO(ftruncate(fd, 0));
	close(fd);
	MUST(symlink("f", "s"));
	watch("s", "f", NULL);
	MUST(utimensat(AT_FDCWD, "s", old, AT_SYMLINK_NOFOLLOW));
	DO(readlink("s", buffer, sizeof(buffer)));
	DO(readlink("s", buffer, sizeof(buffer)));
	DO(readlink("f", buffer, sizeof(buffer)));
	DO(readlink("s", buffer, 0));
	close(p[0]);
	close(p[1]);
	close(null);
}

/* The file is closed and opened again before each read. */
static void reading_after(void)
{
	int fd;

	section("reading after a change");
	make("f", 0644, PAGE);
	watch("f", NULL, NULL);
#define READ_ONCE()                           \
	do {                                  \
		fd = FD(open("f", O_RDONLY)); \
		DO(read(fd, buffer, 10));     \
		close(fd);                    \
	} while (0)
	READ_ONCE();
	READ_ONCE();
	DO(chmod("f", 0600));
	READ_ONCE();
	fd = FD(open("f", O_RDWR));
	DO(pwrite(fd, "y", 1, 5));
	close(fd);
	READ_ONCE();
	DO(truncate("f", 100));
	READ_ONCE();
	DO(truncate("f", 0));
	DO(rename("f", "g"));
	DO(rename("g", "f"));
}

static void writing(void)
{
	int fd, other, p[2];
	off_t at, to;
	struct iovec vector[2] = {{buffer, 10}, {buffer, 20}};
	char *map;

	section("writing");
	MUST(pipe(p));
	make("f", 0644, PAGE);
	make("g", 0644, 2 * PAGE);
	watch("f", ".", NULL);
	fd = FD(open("f", O_RDWR));
	DO(write(fd, buffer, 100));
	DO(write(fd, buffer, 0));
	DO(pwrite(fd, buffer, 100, 10 * PAGE));
	DO(pwrite(fd, buffer, 1, -1));
	DO(pwrite(fd, buffer, 1, INT64_MAX));
	DO(pwritev(fd, vector, 2, 0));
	DO(pwritev2(fd, vector, 2, 0, RWF_APPEND));
	DO(pwritev2(fd, vector, 2, 0, RWF_DSYNC));
	DO(ftruncate(fd, 10 * PAGE + 130));
	DO(ftruncate(fd, 5 * PAGE));
	DO(ftruncate(fd, 5 * PAGE));
	DO(ftruncate(fd, 50 * PAGE));
	DO(ftruncate(fd, -1));
	DO(truncate("f", 3));
	DO(truncate("f", 3));
	DO(truncate("none", 3));
	DO(truncate("f", 0));
	DO(truncate("f", 0));
	close(FD(open("f", O_WRONLY | O_TRUNC)));
	MUST(ftruncate(fd, 100));
	close(FD(open("f", O_RDONLY | O_TRUNC)));
	close(FD(open("f", O_WRONLY | O_CREAT | O_TRUNC, 0777)));
	DO(fallocate(fd, 0, 0, 100));
	DO(fallocate(fd, 0, 0, 100));
	DO(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 3 * PAGE));
	DO(fallocate(fd, 0, 2 * PAGE, PAGE + 5));
	DO(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
	DO(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 10, 20));
	DO(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE + 10,
		     20));
	DO(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 90 * PAGE,
		     PAGE));
	DO(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, PAGE));
	DO(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, PAGE));
	DO(fallocate(fd, FALLOC_FL_INSERT_RANGE, 0, PAGE));
	DO(fallocate(fd, 0x4000, 0, PAGE));
	DO(fallocate(fd, 0, -1, PAGE));
	DO(fallocate(fd, 0, 0, 0));
	DO(fallocate(fd, 0, INT64_MAX, 1));
	DO(posix_fallocate(fd, 0, 10));
	DO(fsync(fd));
	DO(fdatasync(fd));
	other = MUST(open("g", O_RDWR));
	watch("f", "g", NULL);
	at = to = 0;
	DO(copy_file_range(other, &at, fd, &to, PAGE + 3, 0));
	at = 2 * PAGE;
	DO(copy_file_range(other, &at, fd, &to, PAGE, 0));
	at = to = 0;
	DO(copy_file_range(other, &at, fd, &to, 0, 0));
	DO(copy_file_range(other, &at, fd, &to, PAGE, 1));
	at = 0, to = 10;
	DO(copy_file_range(fd, &at, fd, &to, 100, 0));
	at = 0, to = 20 * PAGE;
	DO(copy_file_range(fd, &at, fd, &to, 100, 0));
	at = 0;
	lseek(fd, 0, SEEK_SET);
	DO(sendfile(fd, other, &at, 100));
	MUST(write(p[1], buffer, 100));
	at = 0;
	DO(splice(p[0], NULL, fd, &at, 100, 0));
	DO(ioctl(fd, FICLONE, other));
	without_atime = true;
	begin();
	map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	end("mmap", map == MAP_FAILED, false);
	begin();
	map[0] = 1;
	msync(map, PAGE, MS_SYNC);
	end("write to the mapping and msync", 0, false);
	without_atime = false;
	munmap(map, PAGE);
	close(other);
	close(fd);
	fd = FD(open("f", O_RDWR | O_DIRECT));
	DO(write(fd, buffer, PAGE));
	DO(pwrite(fd, buffer, 2 * PAGE, 30 * PAGE));
	DO(fallocate(fd, 0, 0, PAGE));
	close(fd);
	fd = FD(open("f", O_WRONLY | O_APPEND));
	DO(write(fd, buffer, 10));
	DO(lseek(fd, 0, SEEK_CUR));
	DO(pwrite(fd, buffer, 10, 0));
	DO(read(fd, buffer, 1));
	DO(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
	close(fd);
	fd = FD(open("f", O_RDONLY));
	DO(fallocate(fd, 0, 0, 100));
	DO(ftruncate(fd, 0));
	DO(unlink("f"));
	DO(fsync(fd));
	close(fd);
	close(p[0]);
	close(p[1]);
}

/* suid, sgid: who changes what when. */
static void clearing(void)
{
	static const struct {
		uid_t uid;
		const char *name;
	} users[] = {{0, ""}, {OWNER, "owner: "}, {OTHER, "other: "}};
	static const mode_t modes[] = {04777, 02777, 06777, 02767, 06767};
	int fd, from, j;
	off_t at, to;
	unsigned int i, k;
	char *map;

	section("set-id bits");
	make("g", 0666, 2 * PAGE);
#define SETUP()                                                            \
	do {                                                               \
		root();                                                    \
		make("f", 0666, 2 * PAGE);                                 \
		MUST(chown("f", OWNER, GROUP));                            \
		MUST(chmod("f", modes[k]));                                \
		if (users[i].uid == OWNER)                                 \
			become(OWNER, GROUP, users[i].name);               \
		else if (users[i].uid)                                     \
			become(users[i].uid, users[i].uid, users[i].name); \
	} while (0)
	watch("f", NULL, NULL);
	for (i = 0; i < 3; i++) {
		for (k = 0; k < 5; k++) {
			printf("mode %o\n", modes[k]);
			SETUP();
			fd = MUST(open("f", O_RDWR));
			DO(write(fd, "x", 1));
			DO(write(fd, "x", 1));
			close(fd);
			SETUP();
			fd = MUST(open("f", O_RDWR));
			DO(write(fd, "x", 0));
			DO(ftruncate(fd, 5));
			close(fd);
			SETUP();
			DO(truncate("f", 2 * PAGE));
			SETUP();
			DO(truncate("f", 3 * PAGE));
			SETUP();
			close(FD(open("f", O_RDWR | O_TRUNC)));
			SETUP();
			close(FD(open("f", O_RDWR)));
			DO(chmod("f", 06777));
			SETUP();
			if (users[i].uid != OTHER)
				DO(chown("f", -1, -1));
			SETUP();
			DO(chown("f", OWNER, -1));
			SETUP();
			DO(chown("f", -1, GROUP));
			SETUP();
			DO(chown("f", OTHER, GROUP));
			SETUP();
			DO(utimensat(AT_FDCWD, "f", NULL, 0));
			SETUP();
			fd = MUST(open("f", O_RDWR));
			DO(fallocate(fd, 0, 0, 100));
			SETUP();
			DO(fallocate(fd, 0, 0, 4 * PAGE));
			SETUP();
			DO(fallocate(fd,
				     FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				     0, 100));
			SETUP();
			from = MUST(open("g", O_RDONLY));
			at = to = 0;
			DO(copy_file_range(from, &at, fd, &to, PAGE, 0));
			SETUP();
			at = 0;
			lseek(fd, 0, SEEK_SET);
			DO(sendfile(fd, from, &at, 10));
			SETUP();
			map = MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
					MAP_SHARED, fd, 0));
			without_atime = true;
			begin();
			map[0] = 1;
			msync(map, PAGE, MS_SYNC);
			end("write to a mapping", 0, false);
			without_atime = false;
			munmap(map, PAGE);
			close(fd);
			close(from);
			SETUP();
			fd = MUST(open("f", O_RDWR | O_DIRECT));
			DO(pwrite(fd, buffer, PAGE, 0));
			close(fd);
			SETUP();
			fd = MUST(open("f", O_RDWR | O_APPEND));
			DO(write(fd, "x", 1));
			close(fd);
			SETUP();
			DO(link("f", "f2"));
			DO(unlink("f2"));
			SETUP();
			DO(setxattr("f", "user.x", "x", 1, 0));
		}
	}
	root();
	watch("d", NULL, NULL);
	for (j = 0; j < 2; j++) {
		MUST(mkdir("d", 0777));
		MUST(chmod("d", 07777));
		DO(chown("d", OWNER, GROUP));
		become(OWNER, GROUP, "owner: ");
		DO(chown("d", OWNER, GROUP));
		DO(chmod("d", 07777));
		become(OWNER, OWNER, "owner, not in the group: ");
		DO(chmod("d", 07777));
		root();
		MUST(rmdir("d"));
	}
}

static void names(void)
{
	section("names");
	MUST(mkdir("d", 0755));
	MUST(mkdir("e", 0755));
	make("d/f", 0644, 10);
	make("d/g", 0644, 10);
	watch("d", "e", "d/f");
	DO(rename("d/f", "e/f"));
	DO(rename("e/f", "d/f"));
	DO(rename("d/f", "d/f"));
	DO(rename("d/f", "d/g"));
	watch("d", "d/g", "d/h");
	DO(rename("d/g", "d/h"));
	DO(link("d/h", "d/g"));
	DO(rename("d/h", "d/g"));
	DO(unlink("d/h"));
	make("d/h", 0644, 5);
	DO(renameat2(AT_FDCWD, "d/h", AT_FDCWD, "d/g", RENAME_NOREPLACE));
	DO(renameat2(AT_FDCWD, "d/h", AT_FDCWD, "d/g", RENAME_EXCHANGE));
	DO(renameat2(AT_FDCWD, "d/h", AT_FDCWD, "e/g", RENAME_EXCHANGE));
	DO(renameat2(AT_FDCWD, "d/h", AT_FDCWD, "d/g",
		     RENAME_EXCHANGE | RENAME_NOREPLACE));
	DO(renameat2(AT_FDCWD, "d/h", AT_FDCWD, "d/g", 64));
	DO(renameat2(AT_FDCWD, "d/h", AT_FDCWD, "d/g", RENAME_WHITEOUT));
	DO(renameat2(AT_FDCWD, "d/h", AT_FDCWD, "d/g",
		     RENAME_WHITEOUT | RENAME_EXCHANGE));
	DO(renameat2(AT_FDCWD, "d/g", AT_FDCWD, "d/i",
		     RENAME_WHITEOUT | RENAME_NOREPLACE));
	watch("d", "e", "d/s");
	MUST(mkdir("d/s", 0755));
	MUST(mkdir("d/s/t", 0755));
	DO(rename("d/s", "e/s"));
	DO(rename("e/s", "d/s"));
	DO(rename("d/s", "d/s/t/u"));
	DO(rename("d", "d/s/u"));
	DO(rename("d/s", "d/i"));
	DO(rename("d/i", "d/s"));
	DO(rename("d/s", "e"));
	DO(rename("e", "d/s"));
	DO(rename("none", "x"));
	DO(rename("d/s/", "d/z/"));
	DO(rename("d/z", "d/s"));
	DO(rename("d/i", "d/j/"));
	DO(rename("d/.", "x"));
	DO(rename("d", "x/.."));
	DO(unlink("d/s"));
	DO(rmdir("d/i"));
	DO(rmdir("d"));
	DO(rmdir("d/."));
	DO(rmdir("d/s/t/.."));
	DO(rmdir("none"));
	DO(unlink("d/i/"));
	DO(unlink("none"));
	DO(rmdir("d/s/t"));
	DO(rmdir("d/s"));
	DO(unlink("d/i"));
	make("d/a", 0644, 10);
	MUST(link("d/a", "d/b"));
	watch("d", "d/a", "d/b");
	DO(unlink("d/a"));
	DO(unlink("d/b"));
	MUST(mkdir("d/x", 0755));
	MUST(mkdir("d/y", 0755));
	watch("d", "d/x", "d/y");
	DO(rename("d/x", "d/y"));
	DO(renameat2(AT_FDCWD, "d/y", AT_FDCWD, "e", RENAME_EXCHANGE));
	DO(renameat2(AT_FDCWD, "d/y", AT_FDCWD, "d", RENAME_EXCHANGE));
}

static void attributes(void)
{
	struct timespec times[2] = {{100, 1}, {200, 2}};
	int fd;

	section("attributes");
	make("f", 0644, 10);
	MUST(mkdir("d", 0755));
	watch("f", ".", NULL);
	DO(chmod("f", 0644));
	DO(chmod("f", 0600));
	DO(chmod("none", 0600));
	DO(chmod("f", 0170000 | 0644));
	DO(chown("f", 0, 0));
	DO(chown("f", -1, -1));
	DO(chown("f", OWNER, GROUP));
	DO(utimensat(AT_FDCWD, "f", times, 0));
	DO(utimensat(AT_FDCWD, "f", times, 0));
	DO(utimensat(AT_FDCWD, "f", NULL, 0));
	times[0].tv_nsec = UTIME_OMIT;
	DO(utimensat(AT_FDCWD, "f", times, 0));
	times[1].tv_nsec = UTIME_OMIT;
	DO(utimensat(AT_FDCWD, "f", times, 0));
	DO(utimensat(AT_FDCWD, "none", times, 0));
	times[0].tv_nsec = UTIME_NOW;
	DO(utimensat(AT_FDCWD, "f", times, 0));
	times[0].tv_nsec = UTIME_OMIT;
	times[1].tv_nsec = UTIME_NOW;
	DO(utimensat(AT_FDCWD, "f", times, 0));
	times[0].tv_nsec = 1000000000;
	DO(utimensat(AT_FDCWD, "f", times, 0));
	DO(setxattr("f", "user.a", "1", 1, 0));
	DO(setxattr("f", "user.a", "1", 1, XATTR_CREATE));
	DO(setxattr("f", "user.a", "12", 2, XATTR_REPLACE));
	DO(setxattr("f", "user.b", "12", 2, XATTR_REPLACE));
	DO(setxattr("f", "user.b", "12", 2, 77));
	DO(setxattr("f", "user.b", "", 0, 0));
	DO(getxattr("f", "user.a", buffer, 1));
	DO(getxattr("f", "user.a", buffer, 10));
	DO(getxattr("f", "user.a", buffer, 0));
	DO(getxattr("f", "user.none", buffer, 10));
	DO(getxattr("f", "user.", buffer, 10));
	DO(getxattr("f", "user", buffer, 10));
	DO(getxattr("f", "", buffer, 10));
	DO(setxattr("f", "user.", "x", 1, 0));
	DO(setxattr("f", "user", "x", 1, 0));
	DO(setxattr("f", "", "x", 1, 0));
	DO(setxattr("f", "other.x", "x", 1, 0));
	DO(setxattr("f", "system.x", "x", 1, 0));
	DO(getxattr("f", "system.x", buffer, 1));
	DO(removexattr("f", "system.x"));
	DO(setxattr("f", "trusted.x", "x", 1, 0));
	DO(setxattr("f", "security.x", "x", 1, 0));
	DO(setxattr("f", "trusted.", "x", 1, 0));
	DO(setxattr("f", "security.", "x", 1, 0));
	DO(listxattr("f", buffer, sizeof(buffer)));
	DO(listxattr("f", buffer, 3));
	DO(listxattr("f", NULL, 0));
	become(OTHER, OTHER, "other: ");
	DO(listxattr("f", buffer, sizeof(buffer)));
	DO(listxattr("f", NULL, 0));
	DO(getxattr("f", "trusted.x", buffer, 10));
	DO(getxattr("f", "security.x", buffer, 10));
	DO(getxattr("f", "user.a", buffer, 10));
	DO(setxattr("f", "user.a", "x", 1, 0));
	DO(setxattr("f", "security.x", "x", 1, 0));
	DO(setxattr("f", "trusted.x", "x", 1, 0));
	DO(removexattr("f", "user.a"));
	DO(chmod("f", 0777));
	DO(chown("f", OTHER, -1));
	DO(utimensat(AT_FDCWD, "f", NULL, 0));
	become(OWNER, GROUP, "owner: ");
	DO(chown("f", OTHER, -1));
	DO(chown("f", -1, OTHER));
	DO(chown("f", OWNER, GROUP));
	DO(setxattr("f", "user.a", "x", 1, 0));
	DO(chmod("f", 0));
	DO(getxattr("f", "user.a", buffer, 10));
	DO(open("f", O_RDONLY));
	DO(access("f", F_OK));
	DO(access("f", R_OK));
	root();
	DO(removexattr("f", "user.a"));
	DO(removexattr("f", "user.a"));
	DO(setxattr("f", "security.capability", "x", 1, 0));
	DO(removexattr("f", "security.capability"));
	memset(buffer, 'n', 300);
	memcpy(buffer, "user.", 5);
	buffer[255] = 0;
	DO(setxattr("f", buffer, "v", 1, 0));
	DO(removexattr("f", buffer));
	buffer[255] = 'n';
	buffer[256] = 0;
	DO(setxattr("f", buffer, "v", 1, 0));
	DO(getxattr("f", buffer, buffer + 300, 1));
	memset(buffer, 'n', sizeof(buffer));
	DO(setxattr("f", "trusted.big", buffer, 65536, 0));
	DO(setxattr("f", "trusted.big", buffer, 65537, 0));
	DO(getxattr("f", "trusted.big", buffer, 100));
	MUST(symlink("f", "s"));
	watch("s", "f", NULL);
	DO(lsetxattr("s", "user.x", "x", 1, 0));
	DO(lsetxattr("s", "trusted.x", "x", 1, 0));
	DO(lsetxattr("s", "security.x", "x", 1, 0));
	DO(lgetxattr("s", "user.x", buffer, 10));
	DO(llistxattr("s", buffer, 100));
	DO(lchown("s", OWNER, GROUP));
	DO(fchmodat(AT_FDCWD, "s", 0600, AT_SYMLINK_NOFOLLOW));
	DO(chmod("s", 0640));
	watch("d", ".", NULL);
	DO(setxattr("d", "user.x", "x", 1, 0));
	DO(chmod("d", 01777));
	become(OTHER, OTHER, "other: ");
	DO(setxattr("d", "user.x", "x", 1, 0));
	root();
	MUST(mkfifo("p", 0666));
	DO(setxattr("p", "user.x", "x", 1, 0));
	DO(getxattr("p", "user.x", buffer, 1));
	DO(setxattr("p", "trusted.x", "x", 1, 0));
	fd = MUST(open("f", O_RDONLY));
	DO(ioctl(fd, FS_IOC_GETVERSION, buffer) < 0);
	DO(ioctl(fd, 0x12345678, buffer));
	DO(ioctl(fd, FIGETBSZ, buffer) < 0);
	close(fd);
}

static void files_without_names(void)
{
	char path[64];
	int fd, dir;

	section("without names");
	make("f", 0644, 10);
	fd = MUST(open("f", O_RDWR));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	watch(".", NULL, NULL);
	DO(unlink("f"));
	DO(fchmod(fd, 0600));
	DO(fsetxattr(fd, "user.x", "x", 1, 0));
	DO(ftruncate(fd, 5));
	DO(linkat(AT_FDCWD, path, AT_FDCWD, "g", AT_SYMLINK_FOLLOW));
	DO(linkat(fd, "", AT_FDCWD, "g", AT_EMPTY_PATH));
	DO(open(path, O_RDONLY) < 0);
	DO(truncate(path, 3));
	DO(chmod(path, 0640));
	DO(chown(path, OWNER, GROUP));
	DO(utimensat(AT_FDCWD, path, NULL, 0));
	close(fd);
	MUST(mkdir("d", 0755));
	dir = MUST(open("d", O_RDONLY));
	MUST(rmdir("d"));
	watch(".", NULL, NULL);
	DO(openat(dir, "x", O_CREAT | O_RDWR, 0600));
	DO(openat(dir, ".", O_RDONLY) < 0);
	DO(openat(dir, "..", O_RDONLY) < 0);
	DO(mkdirat(dir, "x", 0700));
	DO(openat(dir, ".", O_TMPFILE | O_RDWR, 0600) < 0);
	DO(fchmod(dir, 0700));
	DO(fsync(dir));
	MUST(mkdir("d", 0755));
	make("f", 0644, 0);
	DO(linkat(AT_FDCWD, "f", dir, "x", 0));
	DO(renameat(AT_FDCWD, "f", dir, "x"));
	DO(symlinkat("x", dir, "x"));
	DO(mknodat(dir, "x", S_IFIFO | 0600, 0));
	close(dir);
}

static void permissions(void)
{
	int fd;

	section("permissions");
	MUST(mkdir("d", 0777));
	MUST(chmod("d", 02777));
	MUST(chown("d", OWNER, GROUP));
	MUST(chmod("d", 02777));
	become(OTHER, OTHER, "other: ");
	watch("d/f", "d", NULL);
	close(FD(open("d/f", O_CREAT | O_RDWR, 02775)));
	watch("d/s", "d", NULL);
	DO(mkdir("d/s", 0755));
	watch("d/p", "d", NULL);
	DO(mkfifo("d/p", 0666));
	fd = FD(open("d", O_TMPFILE | O_RDWR, 02775));
	DO(linkat(AT_FDCWD, ({
			  static char p[64];
			  sprintf(p, "/proc/self/fd/%d", fd);
			  p;
		  }),
		  AT_FDCWD, "d/t", AT_SYMLINK_FOLLOW));
	watch("d/t", NULL, NULL);
	DO(chmod("d/t", 02775));
	root();
	MUST(chmod("d", 01777));
	become(OWNER, OWNER, "owner of the directory: ");
	watch("d", NULL, NULL);
	DO(unlink("d/t"));
	DO(rename("d/p", "d/q"));
	become(OWNER + 7, OWNER, "third: ");
	DO(unlink("d/f"));
	DO(rename("d/f", "d/g"));
	DO(rmdir("d/s"));
	DO(renameat2(AT_FDCWD, "d/f", AT_FDCWD, "d/q", RENAME_EXCHANGE));
	DO(link("d/f", "d/own"));
	DO(open("d/f", O_WRONLY | O_CREAT | O_TRUNC, 0666));
	root();
	MUST(chmod("d", 0555));
	become(OTHER, OTHER, "other: ");
	DO(unlink("d/f"));
	DO(open("d/new", O_CREAT | O_RDWR, 0600));
	DO(open("d", O_TMPFILE | O_RDWR, 0600));
	root();
	MUST(chmod("d", 0700));
	become(OTHER, OTHER, "other: ");
	DO(open("d/f", O_RDONLY));
	DO(list("d"));
	DO(access("d/none", F_OK));
}

static int set_flags(const char *path, int flags)
{
	int fd, result, error;

	privileged(true);
	fd = open(path, O_RDONLY);
	result = fd < 0 ? -1 : ioctl(fd, FS_IOC_SETFLAGS, &flags);
	error = errno;
	close(fd);
	privileged(false);
	errno = error;
	return result;
}

static int get_flags(const char *path)
{
	int fd = MUST(open(path, O_RDONLY)), flags = 0;
	int result = ioctl(fd, FS_IOC_GETFLAGS, &flags);

	close(fd);
	return result < 0 ? -1 : flags;
}

/* Whatever may be done to a file, or in a directory. */
static void try_all(void)
{
	int fd;

	DO(get_flags("d/f"));
	DO(open("d/f", O_RDONLY) < 0);
	DO(open("d/f", O_WRONLY) < 0);
	DO(open("d/f", O_WRONLY | O_APPEND) < 0);
	DO(open("d/f", O_WRONLY | O_APPEND | O_TRUNC) < 0);
	DO(open("d/f", O_RDONLY | O_TRUNC) < 0);
	DO(truncate("d/f", 5));
	DO(chmod("d/f", 0600));
	DO(chown("d/f", 1, 1));
	DO(utimensat(AT_FDCWD, "d/f", NULL, 0));
	DO(utimensat(AT_FDCWD, "d/f", (struct timespec[]){{1, 1}, {2, 2}}, 0));
	DO(setxattr("d/f", "user.x", "x", 1, 0));
	DO(removexattr("d/f", "user.x"));
	DO(link("d/f", "d/l"));
	DO(rename("d/f", "d/g"));
	DO(rename("d/g", "d/f"));
	DO(renameat2(AT_FDCWD, "d/f", AT_FDCWD, "d/h", RENAME_EXCHANGE));
	DO(renameat2(AT_FDCWD, "d/f", AT_FDCWD, "d/h", RENAME_EXCHANGE));
	DO(rename("n", "d/f"));
	make("n", 0644, 1);
	DO(rename("d/h", "x"));
	DO(unlink("d/f"));
	DO(unlink("d/l"));
	DO(mkdir("d/s", 0755));
	DO(rmdir("d/s"));
	DO(symlink("x", "d/y"));
	DO(unlink("d/y"));
	DO(open("d/new", O_CREAT | O_WRONLY, 0600) < 0);
	fd = FD(open("d", O_TMPFILE | O_RDWR, 0600));
	close(fd);
}

static void flags(void)
{
	static const struct {
		const char *path;
		int flags;
	} tries[] = {
		{"d/f", FS_IMMUTABLE_FL}, {"d/f", FS_APPEND_FL},
		{"d", FS_IMMUTABLE_FL},	  {"d", FS_APPEND_FL},
		{"d/f", FS_NODUMP_FL},	  {"d", FS_NODUMP_FL},
	};
	unsigned int i;
	int fd;

	for (i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		section("flags");
		MUST(mkdir("d", 0755));
		make("d/f", 0644, 10);
		make("d/h", 0644, 20);
		make("n", 0644, 20);
		printf("%s: %#x\n", tries[i].path, tries[i].flags);
		fd = MUST(open("d/f", O_RDWR));
		watch("d/f", "d", "d/h");
		DO(set_flags(tries[i].path, tries[i].flags));
		DO(get_flags(tries[i].path));
		DO(pwrite(fd, "x", 1, 0));
		DO(fallocate(fd, 0, 0, PAGE));
		DO(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			     5));
		DO(ftruncate(fd, 8));
		DO(fchmod(fd, 0640));
		close(fd);
		try_all();
		DO(set_flags(tries[i].path, 0));
		DO(set_flags(tries[i].path, FS_COMPR_FL));
	}
	section("flags that are passed on");
	MUST(mkdir("d", 0777));
	DO(set_flags("d", FS_NODUMP_FL | FS_NOATIME_FL));
	make("d/f", 0644, 10);
	MUST(mkdir("d/s", 0755));
	DO(get_flags("d/f"));
	DO(get_flags("d/s"));
	watch("d/f", NULL, NULL);
	fd = MUST(open("d/f", O_RDONLY));
	DO(read(fd, buffer, 1));
	close(fd);
	become(OTHER, OTHER, "other: ");
	fd = MUST(open("d/f", O_RDONLY));
	DO(ioctl(fd, FS_IOC_SETFLAGS, (int[]){FS_IMMUTABLE_FL}));
	DO(ioctl(fd, FS_IOC_SETFLAGS, (int[]){0}));
	DO(get_flags("d/f"));
	close(fd);
}

static void whole(void)
{
	struct statvfs v;
	struct statfs s;

	section("the whole");
	DO(statvfs(".", &v));
	printf("namemax %lu bsize %lu frsize %lu flags %lx\n", v.f_namemax,
	       v.f_bsize, v.f_frsize, v.f_flag & ~(ST_NOSUID | ST_NODEV));
	DO(statfs(".", &s));
	printf("bavail is bfree: %d\n", s.f_bavail == s.f_bfree);
	DO(pathconf(".", _PC_LINK_MAX));
	DO(pathconf(".", _PC_NAME_MAX));
	DO(pathconf(".", _PC_PATH_MAX));
	DO(pathconf(".", _PC_PIPE_BUF));
	DO(pathconf(".", _PC_FILESIZEBITS));
	DO(pathconf(".", _PC_SYMLINK_MAX));
	DO(pathconf(".", _PC_2_SYMLINKS));
	DO(pathconf(".", _PC_CHOWN_RESTRICTED));
	DO(pathconf(".", _PC_NO_TRUNC));
	watch(".", NULL, NULL);
	DO(chmod(".", 0755));
	DO(rmdir("."));
	DO(link(".", "x"));
}

/*
 * What FUSE cannot have as tmpfs has it, as the kernel does not tell of it:
 * see DIFFERENCES in zramfs(8). Without what depends on the page cache.
 */
static void differences(void)
{
	const struct timespec old[2] = {{1000000, 0}, {2000000, 0}};
	int fd;

	section("differences");
	MUST(mkfifo("p", 0666));
	fd = MUST(open("p", O_RDWR));
	watch("p", NULL, NULL);
	DO(write(fd, "xy", 2));
	DO(read(fd, buffer, 2));
	close(fd);
	make("f", 0644, PAGE);
	make("empty", 0644, 0);
	watch("f", "empty", NULL);
	MUST(utimensat(AT_FDCWD, "f", old, 0));
	fd = MUST(open("f", O_RDWR));
	DO(read(fd, buffer, 0));
	MUST(utimensat(AT_FDCWD, "f", old, 0));
	DO(pread(fd, buffer, 1, PAGE));
	close(fd);
	fd = MUST(open("empty", O_RDONLY));
	DO(read(fd, buffer, 1));
	close(fd);
	watch("f", NULL, NULL);
	MUST(chmod("f", 06775));
	become(OTHER, OTHER, "other: ");
	DO(chown("f", -1, -1));
	root();
	fd = MUST(open("f", O_RDWR));
	DO(ioctl(fd, FIBMAP, (int[]){0}));
	DO(fcntl(fd, F_GET_SEALS) < 0);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: %s DIRECTORY [differences]\n", argv[0]);
		return 2;
	}
	umask(022);
	setvbuf(stdout, NULL, _IOFBF, 1 << 20);
	MUST(chdir(argv[1]));
	if (argc == 3) {
		differences();
		return 0;
	}
	creating();
	reading();
	reading_after();
	writing();
	clearing();
	names();
	attributes();
	files_without_names();
	permissions();
	flags();
	whole();
	section("end");
	return 0;
}
