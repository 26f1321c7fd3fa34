/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * posix_kernel.c - what the kernel does with any file, and so with these:
 * locks, leases, mappings, notification, handles, descriptors' other names
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/limits.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/cases.h"

#define PAGE 4096

static int new_file(const char *path)
{
	return OK(open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
}

/* Have the kernel forget what nobody uses: dentries, inodes, pages. */
static void drop_caches(void)
{
	int fd = OK(open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC));
	int here = OK(open(".", O_RDONLY | O_CLOEXEC));

	OK(syncfs(here));
	EXPECT_EQ(write(fd, "3", 1), 1);
	close(here);
	close(fd);
}

/* --- locks and leases -----------------------------------------------------
 */

static int lock(int fd, int command, short type, off_t start, off_t length)
{
	struct flock lock = {.l_type = type,
			     .l_whence = SEEK_SET,
			     .l_start = start,
			     .l_len = length};

	return fcntl(fd, command, &lock);
}

CASE(locks_of_an_open_file_belong_to_it_and_not_to_the_process)
{
	int a = new_file("f");
	int b = OK(open("f", O_RDWR)), c;

	OK(lock(a, F_OFD_SETLK, F_WRLCK, 0, 100));
	FAILS(lock(b, F_OFD_SETLK, F_WRLCK, 50, 1), EAGAIN);
	OK(lock(b, F_OFD_SETLK, F_RDLCK, 100, 100));
	FAILS(lock(a, F_OFD_SETLK, F_WRLCK, 150, 1), EAGAIN);
	/* Another descriptor of the same open file has the same lock. */
	c = OK(dup(a));
	close(c);
	FAILS(lock(b, F_OFD_SETLK, F_WRLCK, 50, 1), EAGAIN);
	close(a);
	OK(lock(b, F_OFD_SETLK, F_WRLCK, 50, 1));
}

CASE(record_locks_go_when_any_descriptor_is_closed)
{
	int a = new_file("f"), b;
	pid_t child;

	OK(lock(a, F_SETLK, F_WRLCK, 0, 0));
	b = OK(open("f", O_RDONLY));
	close(b);
	child = OK(fork());
	if (child == 0) {
		OK(lock(a, F_SETLK, F_WRLCK, 0, 0));
		_exit(0);
	}
	reap(child);
}

CASE(a_record_lock_is_waited_for)
{
	int fd = new_file("f"), p[2];
	pid_t child;
	char byte;

	OK(pipe(p));
	child = OK(fork());
	if (child == 0) {
		OK(lock(fd, F_SETLK, F_WRLCK, 0, 0));
		EXPECT_EQ(write(p[1], "x", 1), 1);
		tick();
		tick();
		EXPECT_EQ(pwrite(fd, "child", 5, 0), 5);
		_exit(0);
	}
	EXPECT_EQ(read(p[0], &byte, 1), 1);
	OK(lock(fd, F_SETLKW, F_WRLCK, 0, 0));
	EXPECT(file_is("f", "child"));
	reap(child);
}

CASE(a_deadlock_of_record_locks_is_found)
{
	int fd = new_file("f"), p[2], q[2], status;
	pid_t child;
	char byte;

	OK(pipe(p));
	OK(pipe(q));
	OK(lock(fd, F_SETLK, F_WRLCK, 0, 1));
	child = OK(fork());
	if (child == 0) {
		OK(lock(fd, F_SETLK, F_WRLCK, 1, 1));
		EXPECT_EQ(write(p[1], "x", 1), 1);
		alarm(10);
		/* Either of the two is told. */
		_exit(lock(fd, F_SETLKW, F_WRLCK, 0, 1) == 0 ? 0
		      : errno == EDEADLK		     ? 1
							     : 2);
	}
	EXPECT_EQ(read(p[0], &byte, 1), 1);
	tick();
	if (lock(fd, F_SETLKW, F_WRLCK, 1, 1) < 0) {
		EXPECT_EQ(errno, EDEADLK);
		OK(lock(fd, F_SETLK, F_UNLCK, 0, 0));
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
}

CASE(flock_is_not_a_record_lock)
{
	int a = new_file("f"), b = OK(open("f", O_RDWR));

	OK(flock(a, LOCK_EX));
	OK(lock(b, F_SETLK, F_WRLCK, 0, 0));
	FAILS(flock(b, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	OK(flock(a, LOCK_UN));
	OK(flock(b, LOCK_EX | LOCK_NB));
}

static volatile sig_atomic_t signals;

static void on_signal(int signal)
{
	signals++;
}

CASE(a_lease_is_broken_by_who_opens)
{
	int fd = new_file("f"), other;
	pid_t child;

	close(fd);
	fd = OK(open("f", O_RDONLY));
	if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0 && case_on_fuse()) {
		EXPECT_EQ(errno, EINVAL);
		case_skip("the kernel's FUSE has no leases");
	}
	signal(SIGIO, on_signal);
	OK(fcntl(fd, F_SETLEASE, F_RDLCK));
	EXPECT_EQ(fcntl(fd, F_GETLEASE), F_RDLCK);
	child = OK(fork());
	if (child == 0) {
		other = open("f", O_WRONLY | O_NONBLOCK);
		_exit(other < 0 && errno == EWOULDBLOCK ? 0 : 1);
	}
	reap(child);
	EXPECT_EQ(signals, 1);
	OK(fcntl(fd, F_SETLEASE, F_UNLCK));
	close(OK(open("f", O_WRONLY | O_NONBLOCK)));
}

CASE(a_write_lease_is_for_who_has_the_file_alone)
{
	int fd = new_file("f"), other = OK(open("f", O_RDONLY));
	pid_t child;

	if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0 && errno == EINVAL &&
	    case_on_fuse())
		case_skip("the kernel's FUSE has no leases");
	FAILS(fcntl(fd, F_SETLEASE, F_WRLCK), EAGAIN);
	close(other);
	signal(SIGIO, on_signal);
	OK(fcntl(fd, F_SETLEASE, F_WRLCK));
	EXPECT_EQ(fcntl(fd, F_GETLEASE), F_WRLCK);
	child = OK(fork());
	if (child == 0) {
		other = open("f", O_RDONLY | O_NONBLOCK);
		_exit(other < 0 && errno == EWOULDBLOCK ? 0 : 1);
	}
	reap(child);
	EXPECT_EQ(signals, 1);
	OK(fcntl(fd, F_SETLEASE, F_UNLCK));
	close(OK(open("f", O_RDONLY | O_NONBLOCK)));
}

/* --- mappings --------------------------------------------------------------
 */

CASE(a_mapping_of_a_file_opened_for_direct_io_is_coherent)
{
	char *block = aligned_alloc(PAGE, PAGE), *map, byte;
	int fd = new_file("f"), direct;

	EXPECT(block != NULL);
	write_bytes(fd, 0, 4 * PAGE, 'x');
	direct = OK(open("f", O_RDWR | O_DIRECT));
	map = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, direct,
		   0);
	EXPECT(map != MAP_FAILED);
	EXPECT_EQ(map[PAGE], 'x');
	/* What is stored through the mapping is read by descriptors... */
	map[PAGE] = 'm';
	EXPECT_EQ(pread(direct, block, PAGE, PAGE), PAGE);
	EXPECT_EQ(block[0], 'm');
	map[PAGE + 1] = 'n';
	EXPECT_EQ(pread(fd, &byte, 1, PAGE + 1), 1);
	EXPECT_EQ(byte, 'n');
	/* ... and what they write is seen through it. */
	memset(block, 'd', PAGE);
	EXPECT_EQ(pwrite(direct, block, PAGE, 2 * PAGE), PAGE);
	EXPECT_EQ(map[2 * PAGE], 'd');
	write_bytes(fd, 3 * PAGE, 1, 'b');
	EXPECT_EQ(map[3 * PAGE], 'b');
	OK(msync(map, 4 * PAGE, MS_SYNC));
	munmap(map, 4 * PAGE);
	EXPECT(bytes_are(fd, PAGE, 1, 'm'));
	EXPECT(bytes_are(fd, 2 * PAGE, PAGE, 'd'));
}

CASE(stores_to_a_mapping_fill_a_hole)
{
	int fd = new_file("f");
	char *map;

	OK(ftruncate(fd, 10 * PAGE));
	map = mmap(NULL, 10 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(map != MAP_FAILED);
	EXPECT_EQ(map[5 * PAGE], 0);
	map[7 * PAGE + 1] = 'x';
	OK(msync(map, 10 * PAGE, MS_SYNC));
	munmap(map, 10 * PAGE);
	OK(fsync(fd));
	drop_caches();
	EXPECT(bytes_are(fd, 0, 7 * PAGE + 1, 0));
	EXPECT(bytes_are(fd, 7 * PAGE + 1, 1, 'x'));
	EXPECT_EQ(lseek(fd, 0, SEEK_DATA), 7 * PAGE);
}

static sigjmp_buf fault;

static void on_fault(int signal)
{
	siglongjmp(fault, 1);
}

CASE(a_mapping_ends_with_the_page_that_the_file_ends_in)
{
	int fd = new_file("f");
	volatile char *map;

	write_bytes(fd, 0, PAGE + 100, 'x');
	map = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(map != MAP_FAILED);
	EXPECT_EQ(map[PAGE + 99], 'x');
	EXPECT_EQ(map[PAGE + 100], 0);
	EXPECT_EQ(map[2 * PAGE - 1], 0);
	/* Stores past the end are no part of the file. */
	map[PAGE + 200] = 'y';
	EXPECT_EQ(stat_of("f").st_size, PAGE + 100);
	signal(SIGBUS, on_fault);
	if (sigsetjmp(fault, 1) == 0) {
		map[2 * PAGE] = 'z';
		case_fail(__LINE__, "a page past the end can be stored to");
	}
	OK(msync((char *)map, 2 * PAGE, MS_SYNC));
	munmap((char *)map, 4 * PAGE);
	OK(fsync(fd));
	drop_caches();
	OK(ftruncate(fd, 2 * PAGE));
	/* tmpfs, where the page cache is all there is, shows them now. */
	if (case_on_fuse())
		EXPECT(bytes_are(fd, PAGE + 100, PAGE - 100, 0));
}

CASE(msync_takes_all_flags_and_refuses_what_is_wrong)
{
	int fd = new_file("f");
	char *map;

	write_bytes(fd, 0, 2 * PAGE, 'x');
	map = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(map != MAP_FAILED);
	map[0] = 'a';
	OK(msync(map, 2 * PAGE, MS_ASYNC));
	OK(msync(map, 2 * PAGE, MS_SYNC | MS_INVALIDATE));
	EXPECT(bytes_are(fd, 0, 1, 'a'));
	FAILS(msync(map, PAGE, MS_SYNC | MS_ASYNC), EINVAL);
	FAILS(msync(map + 1, PAGE, MS_SYNC), EINVAL);
	munmap(map + PAGE, PAGE);
	FAILS(msync(map, 2 * PAGE, MS_SYNC), ENOMEM);
}

CASE(what_is_removed_from_a_mapping_is_a_hole)
{
	int fd = new_file("f");
	char *map;

	write_bytes(fd, 0, 4 * PAGE, 'x');
	map = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(map != MAP_FAILED);
	map[2 * PAGE] = 'm';
	OK(madvise(map + PAGE, 2 * PAGE, MADV_REMOVE));
	OK(fsync(fd));
	/* Looking may fill it again. */
	EXPECT_EQ(lseek(fd, 0, SEEK_HOLE), PAGE);
	EXPECT_EQ(lseek(fd, PAGE, SEEK_DATA), 3 * PAGE);
	EXPECT_EQ(map[PAGE], 0);
	EXPECT_EQ(map[2 * PAGE], 0);
	EXPECT_EQ(map[3 * PAGE], 'x');
	munmap(map, 4 * PAGE);
	EXPECT_EQ(stat_of("f").st_size, 4 * PAGE);
	EXPECT(bytes_are(fd, 0, PAGE, 'x'));
	EXPECT(bytes_are(fd, PAGE, 2 * PAGE, 0));
}

CASE(a_running_program_is_not_written_to)
{
	int in = OK(open("/bin/sleep", O_RDONLY)), out = new_file("program"), i;
	char path[64], exe[PATH_MAX];
	ssize_t length;
	pid_t child;

	while (OK(sendfile(out, in, NULL, 1 << 20)) > 0)
		;
	OK(fchmod(out, 0755));
	close(out);
	child = OK(fork());
	if (child == 0) {
		execl("./program", "program", "100", NULL);
		_exit(1);
	}
	/* Until it has become the program: it could not, while it is written.
	 */
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)child);
	for (i = 0; i < 3000; i++) {
		length = readlink(path, exe, sizeof(exe) - 1);
		exe[length > 0 ? length : 0] = 0;
		if (strstr(exe, "/program"))
			break;
		tick();
	}
	FAILS(open("program", O_WRONLY), ETXTBSY);
	FAILS(truncate("program", 0), ETXTBSY);
	OK(kill(child, SIGKILL));
	waitpid(child, NULL, 0);
	close(OK(open("program", O_WRONLY)));
}

/* --- descriptors -----------------------------------------------------------
 */

CASE(a_deleted_file_is_reached_by_its_descriptor)
{
	char path[64], target[PATH_MAX];
	int fd = new_file("f"), again;
	struct stat st;
	ssize_t length;

	write_bytes(fd, 0, 3 * PAGE, 'x');
	OK(unlink("f"));
	drop_caches();
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	length = OK(readlink(path, target, sizeof(target) - 1));
	target[length] = 0;
	EXPECT(strstr(target, "/f (deleted)") != NULL);
	OK(stat(path, &st));
	EXPECT_EQ(st.st_nlink, 0);
	EXPECT_EQ(st.st_size, 3 * PAGE);
	again = OK(open(path, O_RDWR));
	EXPECT(bytes_are(again, 0, 3 * PAGE, 'x'));
	write_bytes(again, PAGE, 10, 'y');
	EXPECT(bytes_are(fd, PAGE, 10, 'y'));
	OK(truncate(path, 5));
	OK(fstat(fd, &st));
	EXPECT_EQ(st.st_size, 5);
	/* What had a name cannot be given one again. */
	FAILS(linkat(AT_FDCWD, path, AT_FDCWD, "g", AT_SYMLINK_FOLLOW), ENOENT);
}

CASE(paths_have_up_to_4095_bytes)
{
	char path[PATH_MAX + 2];
	int i;

	/* "./././.../f" */
	for (i = 0; i < PATH_MAX; i += 2)
		memcpy(path + i, "./", 2);
	make_file("f", "x");
	make_file("ff", "x");
	strcpy(path + 4094, "f");
	close(OK(open(path, O_RDONLY)));
	strcpy(path + 4094, "ff");
	FAILS(open(path, O_RDONLY), ENAMETOOLONG);
	FAILS(mkdir(path, 0755), ENAMETOOLONG);
	FAILS(rename("f", path), ENAMETOOLONG);
}

CASE(a_working_directory_may_be_deeper_than_any_path)
{
	char name[201], cwd[PATH_MAX];
	int i;

	memset(name, 'd', 200);
	name[200] = 0;
	for (i = 0; i < 30; i++) { /* 6030 bytes */
		OK(mkdir(name, 0755));
		OK(chdir(name));
	}
	make_file("f", "deep");
	FAILS(syscall(79 /* getcwd */, cwd, sizeof(cwd)), ENAMETOOLONG);
	drop_caches();
	EXPECT(file_is("f", "deep"));
	OK(unlink("f"));
	for (i = 0; i < 30; i++) {
		OK(chdir(".."));
		OK(rmdir(name));
	}
}

CASE(inode_numbers_stay_when_the_kernel_forgets)
{
	ino_t file, dir, link;
	struct dirent *entry;
	int seen = 0;
	DIR *list;

	make_file("file", "");
	OK(mkdir("dir", 0755));
	make_file("dir/below", "");
	OK(symlink("x", "link"));
	file = stat_of("file").st_ino;
	dir = stat_of("dir").st_ino;
	link = stat_of("link").st_ino;
	drop_caches();
	list = opendir(".");
	EXPECT(list != NULL);
	while ((entry = readdir(list))) {
		if (!strcmp(entry->d_name, "file"))
			EXPECT_EQ(entry->d_ino, file);
		else if (!strcmp(entry->d_name, "dir"))
			EXPECT_EQ(entry->d_ino, dir);
		else if (!strcmp(entry->d_name, "link"))
			EXPECT_EQ(entry->d_ino, link);
		else
			continue;
		seen++;
	}
	closedir(list);
	EXPECT_EQ(seen, 3);
	drop_caches();
	EXPECT_EQ(stat_of("file").st_ino, file);
	EXPECT_EQ(stat_of("dir/.").st_ino, dir);
	EXPECT_EQ(stat_of("link").st_ino, link);
}

/* --- handles ---------------------------------------------------------------
 */

struct handle {
	struct file_handle head;
	unsigned char room[MAX_HANDLE_SZ];
};

static void handle_of(const char *path, struct handle *handle)
{
	int mount;

	handle->head.handle_bytes = MAX_HANDLE_SZ;
	OK(name_to_handle_at(AT_FDCWD, path, &handle->head, &mount, 0));
}

CASE(a_handle_opens_its_file_wherever_it_is)
{
	struct handle file, dir;
	int here = OK(open(".", O_RDONLY | O_DIRECTORY)), fd;

	OK(mkdir("d", 0755));
	OK(mkdir("e", 0755));
	make_file("d/f", "content");
	handle_of("d/f", &file);
	handle_of("d", &dir);
	fd = OK(open_by_handle_at(here, &file.head, O_RDONLY));
	EXPECT(bytes_are(fd, 0, 1, 'c'));
	close(fd);
	/* Also when the kernel has to ask, and when it has moved. */
	OK(rename("d/f", "e/g"));
	drop_caches();
	fd = OK(open_by_handle_at(here, &file.head, O_RDWR));
	EXPECT_EQ(write(fd, "C", 1), 1);
	close(fd);
	EXPECT(file_is("e/g", "Content"));
	drop_caches();
	fd = OK(open_by_handle_at(here, &dir.head, O_RDONLY | O_DIRECTORY));
	make_file("d/new", "x");
	close(OK(openat(fd, "new", O_RDONLY)));
	close(OK(openat(fd, "../e/g", O_RDONLY)));
	close(fd);
}

CASE(a_handle_of_a_deleted_file_is_stale)
{
	int here = OK(open(".", O_RDONLY | O_DIRECTORY)), i;
	struct handle handle;

	make_file("f", "content");
	handle_of("f", &handle);
	OK(unlink("f"));
	FAILS(open_by_handle_at(here, &handle.head, O_RDONLY), ESTALE);
	/* Even where its number is another file's by now. */
	for (i = 0; i < 100; i++) {
		char name[16];

		snprintf(name, sizeof(name), "new-%d", i);
		make_file(name, "other");
	}
	drop_caches();
	FAILS(open_by_handle_at(here, &handle.head, O_RDONLY), ESTALE);
}

/* --- notification ----------------------------------------------------------
 */

static void expect_event(int fd, unsigned int mask, const char *name)
{
	static char buffer[4096] __attribute__((aligned(8)));
	static ssize_t have, at;
	struct inotify_event *event;
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	if (at >= have) {
		if (poll(&ready, 1, 2000) != 1)
			case_fail(__LINE__, "no event %#x", mask);
		have = OK(read(fd, buffer, sizeof(buffer)));
		at = 0;
	}
	event = (struct inotify_event *)(buffer + at);
	at += sizeof(*event) + event->len;
	if ((event->mask & ~IN_ISDIR) != mask ||
	    (event->len && strcmp(event->name, name)))
		case_fail(__LINE__, "event %#x of '%s', not %#x of '%s'",
			  event->mask, event->len ? event->name : "", mask,
			  name);
}

CASE(inotify_tells_of_each_change)
{
	int fd = OK(inotify_init1(IN_CLOEXEC)), file;

	OK(mkdir("d", 0755));
	OK(mkdir("e", 0755));
	OK(inotify_add_watch(fd, "d", IN_ALL_EVENTS & ~IN_ACCESS));
	file = OK(open("d/f", O_RDWR | O_CREAT, 0644));
	expect_event(fd, IN_CREATE, "f");
	expect_event(fd, IN_OPEN, "f");
	EXPECT_EQ(write(file, "x", 1), 1);
	expect_event(fd, IN_MODIFY, "f");
	OK(ftruncate(file, 0));
	expect_event(fd, IN_MODIFY, "f");
	OK(fchmod(file, 0600));
	expect_event(fd, IN_ATTRIB, "f");
	close(file);
	expect_event(fd, IN_CLOSE_WRITE, "f");
	OK(rename("d/f", "d/g"));
	expect_event(fd, IN_MOVED_FROM, "f");
	expect_event(fd, IN_MOVED_TO, "g");
	OK(rename("d/g", "e/g"));
	expect_event(fd, IN_MOVED_FROM, "g");
	OK(link("e/g", "d/h"));
	expect_event(fd, IN_CREATE, "h");
	OK(unlink("d/h"));
	expect_event(fd, IN_DELETE, "h");
	OK(mkdir("d/sub", 0755));
	expect_event(fd, IN_CREATE, "sub");
	OK(rmdir("d/sub"));
	expect_event(fd, IN_DELETE, "sub");
	OK(rmdir("d"));
	expect_event(fd, IN_DELETE_SELF, "");
	expect_event(fd, IN_IGNORED, "");
}

/* Who watches all of a file system has it told apart by its number. */
CASE(fanotify_watches_a_whole_file_system)
{
	int fd = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_DFID_NAME |
				       FAN_CLOEXEC | FAN_NONBLOCK,
			       O_RDONLY);
	struct fanotify_event_metadata event[64];

	if (fd < 0)
		case_skip("no fanotify: %s", case_error(errno));
	if (fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_CREATE,
			  AT_FDCWD, ".") < 0) {
		EXPECT_EQ(errno, ENODEV);
		EXPECT(case_on_fuse());
		case_skip("the kernel's FUSE gives a mount no number");
	}
	make_file("f", "");
	EXPECT(read(fd, event, sizeof(event)) > 0);
	EXPECT(event[0].mask & FAN_CREATE);
}

CASE(fanotify_is_asked_before_a_file_is_opened)
{
	int fd = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC,
			       O_RDONLY | O_CLOEXEC);
	struct fanotify_event_metadata event;
	struct fanotify_response response = {.response = FAN_DENY};
	pid_t child;

	make_file("f", "x");
	if (fd < 0 ||
	    fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD, "f") < 0)
		case_skip("no fanotify: %s", case_error(errno));
	child = OK(fork());
	if (child == 0)
		_exit(open("f", O_RDONLY) < 0 && errno == EPERM ? 0 : 1);
	EXPECT_EQ(read(fd, &event, sizeof(event)), sizeof(event));
	EXPECT_EQ(event.pid, child);
	EXPECT(bytes_are(event.fd, 0, 1, 'x'));
	response.fd = event.fd;
	EXPECT_EQ(write(fd, &response, sizeof(response)), sizeof(response));
	reap(child);
}

/* --- special files ---------------------------------------------------------
 */

CASE(a_fifo_joins_two_processes)
{
	char line[64];
	pid_t child;
	int fd;

	OK(mkfifo("fifo", 0644));
	child = OK(fork());
	if (child == 0) {
		fd = OK(open("fifo", O_WRONLY));
		EXPECT_EQ(write(fd, "hello", 5), 5);
		_exit(0);
	}
	fd = OK(open("fifo", O_RDONLY));
	EXPECT_EQ(read(fd, line, sizeof(line)), 5);
	EXPECT(memcmp(line, "hello", 5) == 0);
	reap(child);
	EXPECT_EQ(read(fd, line, sizeof(line)), 0);
	EXPECT_EQ(stat_of("fifo").st_size, 0);
}

CASE(a_socket_joins_two_processes_by_its_name)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "socket"};
	int server = OK(socket(AF_UNIX, SOCK_STREAM, 0)), peer;
	char line[16];
	pid_t child;

	OK(bind(server, (struct sockaddr *)&name, sizeof(name)));
	OK(listen(server, 1));
	child = OK(fork());
	if (child == 0) {
		int own = OK(socket(AF_UNIX, SOCK_STREAM, 0));

		OK(connect(own, (struct sockaddr *)&name, sizeof(name)));
		EXPECT_EQ(write(own, "hello", 5), 5);
		_exit(0);
	}
	peer = OK(accept(server, NULL, NULL));
	EXPECT_EQ(read(peer, line, sizeof(line)), 5);
	reap(child);
	close(server);
	FAILS(connect(OK(socket(AF_UNIX, SOCK_STREAM, 0)),
		      (struct sockaddr *)&name, sizeof(name)),
	      ECONNREFUSED);
	FAILS(open("socket", O_RDWR), ENXIO);
	OK(unlink("socket"));
}

CASE(device_nodes_are_the_devices)
{
	struct statvfs fs;
	char bytes[16];
	int fd;

	OK(statvfs(".", &fs));
	OK(mknod("zero", S_IFCHR | 0666, makedev(1, 5)));
	OK(mknod("full", S_IFCHR | 0666, makedev(1, 7)));
	if (fs.f_flag & ST_NODEV) {
		FAILS(open("zero", O_RDONLY), EACCES);
		return;
	}
	fd = OK(open("zero", O_RDONLY));
	memset(bytes, 'x', sizeof(bytes));
	EXPECT_EQ(read(fd, bytes, sizeof(bytes)), sizeof(bytes));
	EXPECT_EQ(bytes[0] | bytes[15], 0);
	close(fd);
	fd = OK(open("full", O_WRONLY));
	FAILS(write(fd, "x", 1), ENOSPC);
	close(fd);
	FAILS(open("none", O_RDWR), ENOENT);
	OK(mknod("nobody", S_IFBLK | 0600, makedev(4000, 70000)));
	FAILS(open("nobody", O_RDONLY), ENXIO);
}

/* --- the rest --------------------------------------------------------------
 */

CASE(changes_within_a_tick_of_the_clock_can_be_told_apart)
{
	struct stat before, after;
	int fd = new_file("f"), i;

	for (i = 0; i < 200; i++) {
		OK(fstat(fd, &before));
		EXPECT_EQ(pwrite(fd, "x", 1, 0), 1);
		OK(fdatasync(fd));
		OK(fstat(fd, &after));
		if (compare_times(&before.st_mtim, &after.st_mtim) < 0)
			continue;
		/* With the writeback option, the kernel keeps the times. */
		if (case_on_fuse())
			case_skip("coarse times of the kernel's");
		case_fail(__LINE__, "no new time for write %d", i);
	}
}

CASE(a_file_system_object_is_the_same_through_a_bind_mount)
{
	OK(unshare(CLONE_NEWNS));
	OK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	OK(mkdir("a", 0755));
	OK(mkdir("b", 0755));
	OK(mount("a", "b", NULL, MS_BIND, NULL));
	make_file("a/f", "x");
	EXPECT(file_is("b/f", "x"));
	EXPECT_EQ(stat_of("a/f").st_ino, stat_of("b/f").st_ino);
	FAILS(rename("a/f", "b/g"), EXDEV);
	FAILS(link("a/f", "b/g"), EXDEV);
	FAILS(rmdir("b"), EBUSY);
	OK(umount("b"));
}

CASE(an_overlay_may_have_its_upper_layer_here)
{
	OK(unshare(CLONE_NEWNS));
	OK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	OK(mkdir("lower", 0755));
	OK(mkdir("upper", 0755));
	OK(mkdir("work", 0755));
	OK(mkdir("all", 0755));
	make_file("lower/f", "below");
	make_file("lower/g", "below");
	if (mount("overlay", "all", "overlay", 0,
		  "lowerdir=lower,upperdir=upper,workdir=work") < 0) {
		if (errno == ENODEV)
			case_skip("no overlayfs");
		case_fail(__LINE__, "overlay: %s", case_error(errno));
	}
	make_file("all/f", "above");
	OK(unlink("all/g"));
	OK(mkdir("all/g", 0755));
	OK(rename("all/f", "all/g/f"));
	EXPECT(file_is("all/g/f", "above"));
	EXPECT(!exists("all/f"));
	OK(umount("all"));
	EXPECT(file_is("lower/f", "below"));
	EXPECT(file_is("upper/g/f", "above"));
	EXPECT(S_ISCHR(stat_of("upper/f").st_mode));
}
