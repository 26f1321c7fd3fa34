/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * posix_data.c - file content: holes, ends, limits, mappings, direct I/O
 */
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cases.h"

#define PAGE 4096

static int new_file(const char *path)
{
	return OK(open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
}

static off_t size_of(int fd)
{
	struct stat st;

	OK(fstat(fd, &st));
	return st.st_size;
}

/*
 * With the writeback option a page is counted when it leaves the page cache,
 * and the kernel goes on to show the count that it knew, if not told to ask.
 */
static off_t blocks_of(int fd)
{
	struct statx st;

	OK(fdatasync(fd));
	OK(statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BLOCKS,
		 &st));
	return st.stx_blocks;
}

/* Have the next reads ask the filesystem, not the page cache. */
static void forget(int fd)
{
	OK(fdatasync(fd));
	EXPECT_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
}

CASE(a_write_is_read_back_at_every_offset_in_a_page)
{
	char out[64], in[64];
	int fd = new_file("f"), i;
	size_t j;

	for (i = 0; i < 2 * PAGE; i += 61) {
		for (j = 0; j < sizeof(out); j++)
			out[j] = (char)(i * 7 + j);
		EXPECT_EQ(pwrite(fd, out, sizeof(out), i), sizeof(out));
		forget(fd);
		EXPECT_EQ(pread(fd, in, sizeof(in), i), sizeof(in));
		EXPECT(memcmp(in, out, sizeof(in)) == 0);
	}
}

CASE(a_read_ends_at_the_end)
{
	char buffer[PAGE];
	int fd = new_file("f");

	write_bytes(fd, 0, 100, 'x');
	EXPECT_EQ(pread(fd, buffer, sizeof(buffer), 0), 100);
	EXPECT_EQ(pread(fd, buffer, sizeof(buffer), 99), 1);
	EXPECT_EQ(pread(fd, buffer, sizeof(buffer), 100), 0);
	EXPECT_EQ(pread(fd, buffer, sizeof(buffer), 1ll << 40), 0);
	EXPECT_EQ(pread(fd, buffer, 0, 0), 0);
}

CASE(a_write_of_nothing_changes_nothing)
{
	int fd = new_file("f");

	EXPECT_EQ(pwrite(fd, "x", 0, 100), 0);
	EXPECT_EQ(size_of(fd), 0);
}

CASE(blocks_count_pages_that_were_written)
{
	int fd = new_file("f");

	EXPECT_EQ(blocks_of(fd), 0);
	OK(ftruncate(fd, 1 << 20));
	EXPECT_EQ(blocks_of(fd), 0);
	write_bytes(fd, 10 * PAGE, 1, 'x');
	EXPECT_EQ(blocks_of(fd), 8);
	write_bytes(fd, 10 * PAGE + 5, 1, 'x');
	EXPECT_EQ(blocks_of(fd), 8);
	write_bytes(fd, 20 * PAGE - 1, 2, 'x');
	EXPECT_EQ(blocks_of(fd), 24);
	write_bytes(fd, 30 * PAGE, PAGE, 0); /* zeros that were written count */
	EXPECT_EQ(blocks_of(fd), 32);
	OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 20 * PAGE,
		     PAGE));
	EXPECT_EQ(blocks_of(fd), 24);
	OK(ftruncate(fd, 15 * PAGE));
	EXPECT_EQ(blocks_of(fd), 8);
	OK(ftruncate(fd, 0));
	EXPECT_EQ(blocks_of(fd), 0);
}

CASE(holes_read_as_zeros)
{
	int fd = new_file("f");

	write_bytes(fd, 0, 10, 'a');
	write_bytes(fd, 100000, 10, 'b');
	EXPECT(bytes_are(fd, 10, 100000 - 10, 0));
	forget(fd);
	EXPECT(bytes_are(fd, 0, 10, 'a'));
	EXPECT(bytes_are(fd, 10, 100000 - 10, 0));
	EXPECT(bytes_are(fd, 100000, 10, 'b'));
}

CASE(seek_finds_data_and_holes)
{
	int fd = new_file("f");

	FAILS(lseek(fd, 0, SEEK_DATA), ENXIO);
	OK(ftruncate(fd, 100 * PAGE + 10));
	FAILS(lseek(fd, 0, SEEK_DATA), ENXIO);
	EXPECT_EQ(lseek(fd, 0, SEEK_HOLE), 0);
	write_bytes(fd, 10 * PAGE + 100, 2 * PAGE, 'x'); /* pages 10 to 12 */
	write_bytes(fd, 50 * PAGE, PAGE, 'x');
	OK(fdatasync(fd)); /* as for blocks_of() */
	EXPECT_EQ(lseek(fd, 0, SEEK_DATA), 10 * PAGE);
	EXPECT_EQ(lseek(fd, 10 * PAGE + 5, SEEK_DATA), 10 * PAGE + 5);
	EXPECT_EQ(lseek(fd, 10 * PAGE + 5, SEEK_HOLE), 13 * PAGE);
	EXPECT_EQ(lseek(fd, 5, SEEK_HOLE), 5);
	EXPECT_EQ(lseek(fd, 13 * PAGE, SEEK_DATA), 50 * PAGE);
	EXPECT_EQ(lseek(fd, 50 * PAGE, SEEK_HOLE), 51 * PAGE);
	FAILS(lseek(fd, 51 * PAGE, SEEK_DATA), ENXIO);
	EXPECT_EQ(lseek(fd, 51 * PAGE, SEEK_HOLE), 51 * PAGE);
	FAILS(lseek(fd, 100 * PAGE + 10, SEEK_HOLE), ENXIO);
	FAILS(lseek(fd, 100 * PAGE + 10, SEEK_DATA), ENXIO);
	write_bytes(fd, 100 * PAGE, 10, 'x'); /* the last page */
	OK(fdatasync(fd));
	EXPECT_EQ(lseek(fd, 60 * PAGE, SEEK_DATA), 100 * PAGE);
	EXPECT_EQ(lseek(fd, 100 * PAGE, SEEK_HOLE), 100 * PAGE + 10);
	EXPECT_EQ(lseek(fd, 0, SEEK_END), 100 * PAGE + 10);
}

CASE(truncating_up_shows_zeros)
{
	int fd = new_file("f");

	write_bytes(fd, 0, 3 * PAGE, 'x');
	OK(ftruncate(fd, PAGE + 10));
	EXPECT_EQ(size_of(fd), PAGE + 10);
	OK(ftruncate(fd, 3 * PAGE));
	EXPECT(bytes_are(fd, 0, PAGE + 10, 'x'));
	EXPECT(bytes_are(fd, PAGE + 10, 2 * PAGE - 10, 0));
	forget(fd);
	EXPECT(bytes_are(fd, 0, PAGE + 10, 'x'));
	EXPECT(bytes_are(fd, PAGE + 10, 2 * PAGE - 10, 0));
}

CASE(writing_past_the_end_shows_zeros_between)
{
	int fd = new_file("f");

	write_bytes(fd, 0, PAGE, 'x');
	OK(ftruncate(fd, 100));
	write_bytes(fd, 3000, 10, 'y');
	forget(fd);
	EXPECT(bytes_are(fd, 0, 100, 'x'));
	EXPECT(bytes_are(fd, 100, 2900, 0));
	EXPECT(bytes_are(fd, 3000, 10, 'y'));
	EXPECT_EQ(size_of(fd), 3010);
}

CASE(truncate_works_by_path_and_refuses_what_is_wrong)
{
	make_file("f", "content");
	OK(mkdir("d", 0755));
	OK(truncate("f", 3));
	EXPECT(file_is("f", "con"));
	FAILS(truncate("d", 0), EISDIR);
	FAILS(truncate("f", -1), EINVAL);
	FAILS(truncate("none", 0), ENOENT);
}

CASE(fallocate_extends_unless_told_to_keep_the_size)
{
	int fd = new_file("f");

	write_bytes(fd, 0, 10, 'x');
	OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 10 * PAGE));
	EXPECT_EQ(size_of(fd), 10);
	OK(fallocate(fd, 0, 0, 5));
	EXPECT_EQ(size_of(fd), 10);
	OK(fallocate(fd, 0, 5 * PAGE, PAGE + 1));
	EXPECT_EQ(size_of(fd), 6 * PAGE + 1);
	EXPECT(bytes_are(fd, 0, 10, 'x'));
	EXPECT(bytes_are(fd, 10, 6 * PAGE - 9, 0));
	FAILS(fallocate(fd, 0, 0, 0), EINVAL);
	FAILS(fallocate(fd, 0, -1, 10), EINVAL);
	FAILS(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 10), EOPNOTSUPP);
	FAILS(fallocate(fd, FALLOC_FL_INSERT_RANGE, 0, PAGE), EOPNOTSUPP);
}

CASE(punching_a_hole_leaves_zeros)
{
	int fd = new_file("f");

	write_bytes(fd, 0, 10 * PAGE, 'x');
	OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE + 100,
		     4 * PAGE));
	EXPECT_EQ(size_of(fd), 10 * PAGE);
	EXPECT(bytes_are(fd, 0, PAGE + 100, 'x'));
	EXPECT(bytes_are(fd, PAGE + 100, 4 * PAGE, 0));
	EXPECT(bytes_are(fd, 5 * PAGE + 100, 5 * PAGE - 100, 'x'));
	EXPECT_EQ(blocks_of(fd), 7 * 8);
	OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 50, 10));
	OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 9 * PAGE,
		     100 * PAGE));
	EXPECT_EQ(size_of(fd), 10 * PAGE);
	forget(fd);
	EXPECT(bytes_are(fd, 0, 50, 'x'));
	EXPECT(bytes_are(fd, 50, 10, 0));
	EXPECT(bytes_are(fd, 60, PAGE + 40, 'x'));
	EXPECT(bytes_are(fd, 9 * PAGE, PAGE, 0));
}

CASE(zeroing_a_range_leaves_zeros)
{
	int fd = new_file("f");

	if (!case_on_fuse())
		case_skip("tmpfs has no FALLOC_FL_ZERO_RANGE; the rules are "
			  "those of ext4");
	write_bytes(fd, 0, 3 * PAGE, 'x');
	OK(fallocate(fd, FALLOC_FL_ZERO_RANGE, 100, 2 * PAGE));
	EXPECT(bytes_are(fd, 0, 100, 'x'));
	EXPECT(bytes_are(fd, 100, 2 * PAGE, 0));
	EXPECT(bytes_are(fd, 2 * PAGE + 100, PAGE - 100, 'x'));
	OK(fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 2 * PAGE,
		     4 * PAGE));
	EXPECT_EQ(size_of(fd), 3 * PAGE);
	OK(fallocate(fd, FALLOC_FL_ZERO_RANGE, 2 * PAGE, 4 * PAGE));
	EXPECT_EQ(size_of(fd), 6 * PAGE);
	forget(fd);
	EXPECT(bytes_are(fd, 100, 6 * PAGE - 100, 0));
}

CASE(appending_processes_do_not_overwrite_each_other)
{
	enum {
		WRITERS = 4,
		RECORDS = 500,
		LENGTH = 37
	};
	char record[64], got[LENGTH];
	int count[WRITERS] = {0};
	pid_t child[WRITERS];
	int fd, i, w, next[WRITERS] = {0};

	close(new_file("f"));
	for (w = 0; w < WRITERS; w++) {
		child[w] = OK(fork());
		if (child[w])
			continue;
		fd = OK(open("f", O_WRONLY | O_APPEND));
		for (i = 0; i < RECORDS; i++) {
			snprintf(record, sizeof(record), "%d:%06d:%028d", w, i,
				 i);
			EXPECT_EQ(write(fd, record, LENGTH), LENGTH);
		}
		_exit(0);
	}
	for (w = 0; w < WRITERS; w++)
		reap(child[w]);
	fd = OK(open("f", O_RDONLY));
	EXPECT_EQ(size_of(fd), WRITERS * RECORDS * LENGTH);
	while (read(fd, got, LENGTH) == LENGTH) {
		EXPECT_EQ(sscanf(got, "%d:%d", &w, &i), 2);
		EXPECT(w >= 0 && w < WRITERS);
		EXPECT_EQ(i, next[w]);
		next[w]++;
		count[w]++;
	}
	for (w = 0; w < WRITERS; w++)
		EXPECT_EQ(count[w], RECORDS);
}

CASE(a_mapping_and_the_file_show_the_same)
{
	int fd = new_file("f");
	char *map, byte;

	write_bytes(fd, 0, 4 * PAGE, 'x');
	map = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(map != MAP_FAILED);
	EXPECT_EQ(map[3 * PAGE], 'x');
	write_bytes(fd, PAGE, 1, 'w');
	EXPECT_EQ(map[PAGE], 'w');
	map[2 * PAGE] = 'm';
	EXPECT_EQ(pread(fd, &byte, 1, 2 * PAGE), 1);
	EXPECT_EQ(byte, 'm');
	OK(msync(map, 4 * PAGE, MS_SYNC));
	munmap(map, 4 * PAGE);
	forget(fd);
	EXPECT(bytes_are(fd, 2 * PAGE, 1, 'm'));
	EXPECT(bytes_are(fd, PAGE, 1, 'w'));
}

CASE(a_mapping_of_two_processes_is_shared)
{
	int fd = new_file("f");
	volatile char *map;
	pid_t child;

	OK(ftruncate(fd, 2 * PAGE));
	map = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(map != MAP_FAILED);
	child = OK(fork());
	if (child == 0) {
		int own = OK(open("f", O_RDWR));
		char *other = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				   MAP_SHARED, own, 0);

		EXPECT(other != MAP_FAILED);
		other[7] = 'c';
		_exit(0);
	}
	reap(child);
	EXPECT_EQ(map[7], 'c');
}

CASE(a_private_mapping_changes_nothing)
{
	int fd = new_file("f");
	char *map;

	write_bytes(fd, 0, PAGE, 'x');
	map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	EXPECT(map != MAP_FAILED);
	map[0] = 'y';
	EXPECT(bytes_are(fd, 0, PAGE, 'x'));
}

CASE(a_mapping_cut_off_shows_zeros_when_it_grows_again)
{
	int fd = new_file("f");
	char *map;

	write_bytes(fd, 0, 2 * PAGE, 'x');
	map = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(map != MAP_FAILED);
	map[PAGE] = 'y';
	OK(ftruncate(fd, 100));
	EXPECT_EQ(map[200], 0);
	OK(msync(map, PAGE, MS_SYNC));
	OK(ftruncate(fd, 2 * PAGE));
	EXPECT_EQ(map[99], 'x');
	EXPECT_EQ(map[100], 0);
	EXPECT_EQ(map[PAGE], 0);
	munmap(map, 2 * PAGE);
	forget(fd);
	EXPECT(bytes_are(fd, 100, 2 * PAGE - 100, 0));
}

CASE(a_program_can_be_run_from_here)
{
	pid_t child;
	int in = OK(open("/bin/true", O_RDONLY)), out = new_file("true");

	while (OK(sendfile(out, in, NULL, 1 << 20)) > 0)
		;
	OK(fchmod(out, 0755));
	close(out);
	child = OK(fork());
	if (child == 0) {
		execl("./true", "true", NULL);
		_exit(1);
	}
	reap(child);
}

CASE(offsets_go_up_to_two_to_the_63rd)
{
	off_t far = (off_t)1 << 62;
	int fd = new_file("f");

	write_bytes(fd, far, 1, 'x');
	EXPECT_EQ(size_of(fd), far + 1);
	EXPECT_EQ(blocks_of(fd), 8);
	EXPECT(bytes_are(fd, far, 1, 'x'));
	EXPECT(bytes_are(fd, far - PAGE, PAGE, 0));
	EXPECT_EQ(lseek(fd, 0, SEEK_DATA), far);
	OK(ftruncate(fd, INT64_MAX));
	EXPECT_EQ(size_of(fd), INT64_MAX);
	FAILS(pwrite(fd, "x", 1, INT64_MAX), EINVAL);
	OK(ftruncate(fd, 5));
	EXPECT_EQ(blocks_of(fd), 0);
}

CASE(a_process_limit_on_file_sizes_is_kept)
{
	struct rlimit limit = {10000, 10000};
	char buffer[20000] = {0};
	int fd = new_file("f");

	signal(SIGXFSZ, SIG_IGN);
	OK(setrlimit(RLIMIT_FSIZE, &limit));
	EXPECT_EQ(pwrite(fd, buffer, 20000, 0), 10000);
	FAILS(pwrite(fd, buffer, 1, 10000), EFBIG);
	FAILS(ftruncate(fd, 10001), EFBIG);
	FAILS(fallocate(fd, 0, 0, 10001), EFBIG);
	EXPECT_EQ(size_of(fd), 10000);
}

CASE(copy_file_range_copies_within_and_between_files)
{
	int from = new_file("from"), to = new_file("to");
	off_t in, out;
	int i;

	for (i = 0; i < 16; i++)
		write_bytes(from, i * PAGE, PAGE, 'a' + i);
	in = 4 * PAGE, out = 0; /* aligned */
	EXPECT_EQ(copy_file_range(from, &in, to, &out, 4 * PAGE, 0), 4 * PAGE);
	EXPECT_EQ(in, 8 * PAGE);
	EXPECT_EQ(out, 4 * PAGE);
	in = PAGE + 1, out = 10 * PAGE + 3; /* not */
	EXPECT_EQ(copy_file_range(from, &in, to, &out, PAGE, 0), PAGE);
	in = 15 * PAGE, out = 20 * PAGE; /* ends early */
	EXPECT_EQ(copy_file_range(from, &in, to, &out, 10 * PAGE, 0), PAGE);
	in = 16 * PAGE, out = 0; /* at the end */
	EXPECT_EQ(copy_file_range(from, &in, to, &out, PAGE, 0), 0);
	forget(to);
	EXPECT(bytes_are(to, 0, PAGE, 'e'));
	EXPECT(bytes_are(to, 3 * PAGE, PAGE, 'h'));
	EXPECT(bytes_are(to, 4 * PAGE, 6 * PAGE, 0));
	EXPECT(bytes_are(to, 10 * PAGE + 3, PAGE - 1, 'b'));
	EXPECT(bytes_are(to, 11 * PAGE + 2, 1, 'c'));
	EXPECT(bytes_are(to, 20 * PAGE, PAGE, 'p'));
	EXPECT_EQ(size_of(to), 21 * PAGE);
	in = 0, out = 8 * PAGE; /* within one file */
	EXPECT_EQ(copy_file_range(from, &in, from, &out, 4 * PAGE, 0),
		  4 * PAGE);
	EXPECT(bytes_are(from, 8 * PAGE, PAGE, 'a'));
	in = 0, out = PAGE; /* over itself */
	FAILS(copy_file_range(from, &in, from, &out, 2 * PAGE, 0), EINVAL);
	/* The source is its own from then on. */
	write_bytes(from, 4 * PAGE, PAGE, 'Z');
	EXPECT(bytes_are(to, 0, PAGE, 'e'));
}

CASE(copy_file_range_cuts_no_tail_short_and_leaves_none_behind)
{
	int from = new_file("from"), to = new_file("to");
	off_t in = 0, out = 0;

	write_bytes(from, 0, PAGE + 10, 'a');
	write_bytes(to, 0, 4 * PAGE, 'b');
	EXPECT_EQ(copy_file_range(from, &in, to, &out, PAGE + 10, 0),
		  PAGE + 10);
	EXPECT_EQ(size_of(to), 4 * PAGE);
	EXPECT(bytes_are(to, 0, PAGE + 10, 'a'));
	EXPECT(bytes_are(to, PAGE + 10, 3 * PAGE - 10, 'b'));
	OK(ftruncate(to, 0));
	in = out = 0;
	EXPECT_EQ(copy_file_range(from, &in, to, &out, PAGE + 10, 0),
		  PAGE + 10);
	OK(ftruncate(to, 2 * PAGE));
	forget(to);
	EXPECT(bytes_are(to, PAGE + 10, PAGE - 10, 0));
}

CASE(vectors_and_splices_write_the_same)
{
	char a[3000], b[5000];
	struct iovec vector[2] = {{a, sizeof(a)}, {b, sizeof(b)}};
	int fd = new_file("f"), copy = new_file("copy"), p[2];
	off_t at = 0;

	memset(a, 'a', sizeof(a));
	memset(b, 'b', sizeof(b));
	EXPECT_EQ(pwritev(fd, vector, 2, 100), 8000);
	EXPECT(bytes_are(fd, 100, 3000, 'a'));
	EXPECT(bytes_are(fd, 3100, 5000, 'b'));
	OK(pipe(p));
	EXPECT_EQ(splice(fd, &at, p[1], NULL, 4096, 0), 4096);
	at = 0;
	EXPECT_EQ(splice(p[0], NULL, copy, &at, 4096, 0), 4096);
	EXPECT(bytes_are(copy, 100, 3000, 'a'));
	EXPECT(bytes_are(copy, 3100, 996, 'b'));
}

CASE(sendfile_copies_between_files)
{
	int from = new_file("from"), to = new_file("to");
	off_t at = PAGE - 10;

	write_bytes(from, 0, PAGE, 'a');
	write_bytes(from, PAGE, 2 * PAGE, 'b');
	OK(lseek(from, 0, SEEK_SET));
	OK(lseek(to, 5, SEEK_SET));
	EXPECT_EQ(sendfile(to, from, &at, PAGE), PAGE);
	EXPECT_EQ(at, 2 * PAGE - 10);
	EXPECT_EQ(lseek(to, 0, SEEK_CUR), PAGE + 5);
	EXPECT_EQ(lseek(from, 0, SEEK_CUR), 0);
	at = 3 * PAGE - 7; /* ends early */
	EXPECT_EQ(sendfile(to, from, &at, PAGE), 7);
	EXPECT_EQ(sendfile(to, from, &at, PAGE), 0);
	forget(to);
	EXPECT(bytes_are(to, 0, 5, 0));
	EXPECT(bytes_are(to, 5, 10, 'a'));
	EXPECT(bytes_are(to, 15, PAGE - 3, 'b'));
	EXPECT_EQ(size_of(to), PAGE + 12);
}

/* It may go another way than what one writes who can read it back. */
CASE(what_one_writes_who_cannot_read_is_seen_by_all)
{
	int fd = OK(open("f", O_WRONLY | O_CREAT | O_EXCL, 0644));
	int reader = OK(open("f", O_RDWR)),
	    null = OK(open("/dev/zero", O_RDONLY));
	int p[2];
	off_t at = 0;
	char *map;

	write_bytes(fd, 0, 2 * PAGE + 10, 'a');
	EXPECT(bytes_are(reader, 0, 2 * PAGE + 10, 'a'));
	map = OK(mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
		      reader, 0));
	EXPECT_EQ(map[PAGE + 100], 'a');
	/* Not aligned, and in the middle of what others have mapped. */
	write_bytes(fd, PAGE + 99, 3, 'b');
	EXPECT_EQ(map[PAGE + 98], 'a');
	EXPECT_EQ(map[PAGE + 100], 'b');
	EXPECT(bytes_are(reader, PAGE + 99, 3, 'b'));
	/* What they have stored, and nobody has written back, stays. */
	map[PAGE + 200] = 'c';
	map[10] = 'c';
	write_bytes(fd, PAGE + 300, 3, 'd');
	EXPECT(bytes_are(reader, PAGE + 200, 1, 'c'));
	EXPECT(bytes_are(reader, 10, 1, 'c'));
	EXPECT_EQ(map[PAGE + 200], 'c');
	EXPECT_EQ(map[PAGE + 302], 'd');
	/* From a mapping of the file itself, even of the same page. */
	EXPECT_EQ(pwrite(fd, map + PAGE, PAGE, 2 * PAGE), PAGE);
	EXPECT_EQ(pwrite(fd, map, PAGE, 0), PAGE);
	EXPECT_EQ(map[2 * PAGE + 302], 'd');
	EXPECT(bytes_are(reader, 10, 1, 'c'));
	EXPECT_EQ(size_of(fd), 3 * PAGE);

	OK(pipe(p));
	EXPECT_EQ(write(p[1], "pipe", 4), 4);
	at = 3 * PAGE - 2;
	EXPECT_EQ(splice(p[0], NULL, fd, &at, 4, 0), 4);
	EXPECT_EQ(map[3 * PAGE - 1], 'i');
	EXPECT_EQ(map[3 * PAGE + 1], 'e');
	OK(lseek(fd, 0, SEEK_SET));
	EXPECT_EQ(sendfile(fd, null, NULL, 100), 100);
	EXPECT(bytes_are(reader, 0, 100, 0));
	OK(ftruncate(fd, 50));
	write_bytes(fd, 100, 1, 'z');
	EXPECT(bytes_are(reader, 50, 50, 0));
	EXPECT_EQ(map[100], 'z');
}

CASE(direct_io_and_page_cache_show_the_same)
{
	char *block = aligned_alloc(PAGE, 8 * PAGE);
	int fd = new_file("f");
	int direct = OK(open("f", O_RDWR | O_DIRECT));

	EXPECT(block != NULL);
	memset(block, 'd', 8 * PAGE);
	write_bytes(fd, 0, 8 * PAGE, 'b');
	EXPECT_EQ(pwrite(direct, block, PAGE, 2 * PAGE), PAGE);
	EXPECT(bytes_are(fd, 0, 2 * PAGE, 'b'));
	EXPECT(bytes_are(fd, 2 * PAGE, PAGE, 'd'));
	write_bytes(fd, 3 * PAGE, PAGE, 'c');
	EXPECT_EQ(pread(direct, block, 8 * PAGE, 0), 8 * PAGE);
	EXPECT_EQ(block[PAGE], 'b');
	EXPECT_EQ(block[2 * PAGE], 'd');
	EXPECT_EQ(block[3 * PAGE], 'c');
	/* Past the end it is short, and extends. */
	EXPECT_EQ(pread(direct, block, 2 * PAGE, 7 * PAGE), PAGE);
	memset(block, 'e', PAGE);
	EXPECT_EQ(pwrite(direct, block, PAGE, 20 * PAGE), PAGE);
	EXPECT_EQ(size_of(fd), 21 * PAGE);
	EXPECT(bytes_are(fd, 8 * PAGE, 12 * PAGE, 0));
}

CASE(direct_io_need_not_be_aligned)
{
	char buffer[1000];
	int fd = new_file("f");
	int direct = OK(open("f", O_RDWR | O_DIRECT));

	memset(buffer, 'x', sizeof(buffer));
	EXPECT_EQ(pwrite(direct, buffer + 1, 777, 333), 777);
	EXPECT_EQ(size_of(fd), 333 + 777);
	EXPECT(bytes_are(fd, 0, 333, 0));
	EXPECT(bytes_are(fd, 333, 777, 'x'));
	EXPECT_EQ(pread(direct, buffer + 3, 500, 1000), 110);
}

enum {
	DIRECT_WRITERS = 4,
	DIRECT_BLOCKS = 512
};

static void *write_direct(void *argument)
{
	uintptr_t number = (uintptr_t)argument;
	char *block = aligned_alloc(PAGE, PAGE);
	int fd = OK(open("f", O_RDWR | O_DIRECT));
	int i;

	EXPECT(block != NULL);
	memset(block, 'a' + (int)number, PAGE);
	for (i = number; i < DIRECT_BLOCKS; i += DIRECT_WRITERS)
		EXPECT_EQ(pwrite(fd, block, 1024, i * 1024l), 1024);
	close(fd);
	free(block);
	return NULL;
}

CASE(direct_writers_of_one_page_do_not_undo_each_other)
{
	pthread_t thread[DIRECT_WRITERS];
	int fd = new_file("f"), i;

	for (i = 0; i < DIRECT_WRITERS; i++)
		EXPECT_EQ(pthread_create(&thread[i], NULL, write_direct,
					 (void *)(uintptr_t)i),
			  0);
	for (i = 0; i < DIRECT_WRITERS; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(size_of(fd), DIRECT_BLOCKS * 1024);
	for (i = 0; i < DIRECT_BLOCKS; i++)
		EXPECT(bytes_are(fd, i * 1024l, 1024,
				 'a' + i % DIRECT_WRITERS));
}

CASE(sync_calls_succeed)
{
	int fd = new_file("f"), dir;

	write_bytes(fd, 0, 100000, 'x');
	OK(fsync(fd));
	OK(fdatasync(fd));
	OK(syncfs(fd));
	OK(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
	dir = OK(open(".", O_RDONLY | O_DIRECTORY));
	OK(fsync(dir));
	close(fd);
	fd = OK(open("f", O_WRONLY | O_SYNC));
	write_bytes(fd, 0, 100, 'y');
	close(fd);
}

CASE(a_descriptor_of_a_directory_or_read_only_is_not_written)
{
	int fd;

	make_file("f", "x");
	fd = OK(open("f", O_RDONLY));
	FAILS(write(fd, "y", 1), EBADF);
	FAILS(ftruncate(fd, 0), EINVAL);
	FAILS(fallocate(fd, 0, 0, 10), EBADF);
	close(fd);
	fd = OK(open(".", O_RDONLY | O_DIRECTORY));
	FAILS(read(fd, (char[1]){0}, 1), EISDIR);
	close(fd);
}
