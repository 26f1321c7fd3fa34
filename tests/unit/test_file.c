/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_file.c - data of regular files: what reads, writes, truncations and
 * ranges do, what they cost, and that they do it whole or not at all
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fs/file.h"

#define KEEP  FALLOC_FL_KEEP_SIZE
#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)
#define ZERO  FALLOC_FL_ZERO_RANGE

#define PAGES(n) ((uint64_t)(n)*PAGE_SIZE)

struct fixture {
	struct arena *arena;
	struct store *store;
	struct fs *fs;
	ino_t file;
	ino_t other;
};

static uint64_t random_state;

/* xorshift64*, Vigna 2016. */
static uint64_t random_step(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

static uint64_t random_next(void)
{
	return random_step(&random_state);
}

static uint64_t random_below(uint64_t bound)
{
	return random_next() % bound;
}

static ino_t make_file(struct fixture *fixture, const char *name)
{
	struct fs_caller caller = {0};
	struct fs_entry entry;

	assert_int_equal(fs_make(fixture->fs, &caller, FS_ROOT_INO, name,
				 S_IFREG | 0644, 0, NULL, &entry),
			 0);
	return entry.ino;
}

static int setup(void **state)
{
	struct arena_config arena_config = {.capacity = 1 << 30};
	struct store_config store_config = {
		.codec = {&codec_lz4, codec_lz4.level_default},
		.pool = &pool_zsmalloc,
		.hot = 64 * PAGE_SIZE,
		.dedup = true,
		.compressors = 1,
	};
	struct fs_config fs_config = {.mode = 0755};
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	assert_int_equal(arena_create(&fixture->arena, &arena_config), 0);
	assert_int_equal(
		store_create(&fixture->store, fixture->arena, &store_config),
		0);
	assert_int_equal(fs_create(&fixture->fs, fixture->arena, fixture->store,
				   &fs_config),
			 0);
	assert_int_equal(fs_attach_thread(fixture->fs), 0);
	assert_int_equal(store_start(fixture->store), 0);
	fixture->file = make_file(fixture, "file");
	fixture->other = make_file(fixture, "other");
	random_state = 88172645463325252u;
	*state = fixture;
	return 0;
}

static struct inode *inode_of(const struct fixture *fixture, ino_t ino)
{
	struct inode *inode = inode_get(fixture->fs, ino);

	assert_non_null(inode);
	return inode;
}

static uint64_t used_pages(const struct fixture *fixture)
{
	return atomic_load(&fixture->fs->root->used_pages);
}

static uint64_t references(const struct fixture *fixture)
{
	struct store_stats stats;

	store_stats(fixture->store, &stats);
	return stats.references;
}

static int set_size(struct fixture *fixture, ino_t ino, off_t size)
{
	struct stat attr = {.st_size = size}, result;

	return fs_setattr(fixture->fs, ino, FS_SET_SIZE, &attr, &result);
}

static struct stat attributes(const struct fixture *fixture, ino_t ino)
{
	struct stat attr;

	assert_int_equal(fs_getattr(fixture->fs, ino, &attr), 0);
	return attr;
}

/* Counts agree with cells; when files are empty, nothing is left over. */
static int teardown(void **state)
{
	struct fixture *fixture = *state;
	struct slab_usage before, after;

	slab_usage(fixture->fs->blocks, &before);
	assert_int_equal(set_size(fixture, fixture->file, 0), 0);
	assert_int_equal(set_size(fixture, fixture->other, 0), 0);
	assert_int_equal(used_pages(fixture), 0);
	assert_int_equal(references(fixture), 0);
	assert_int_equal(attributes(fixture, fixture->file).st_blocks, 0);
	slab_usage(fixture->fs->blocks, &after);
	assert_true(after.blocks <= before.blocks);
	assert_int_equal(
		atomic_load(&inode_of(fixture, fixture->file)->table.root), 0);
	store_stop(fixture->store);
	fs_detach_thread(fixture->fs);
	fs_destroy(fixture->fs);
	store_destroy(fixture->store);
	arena_destroy(fixture->arena);
	free(fixture);
	return 0;
}

static void put(struct fixture *fixture, ino_t ino, const void *data,
		size_t size, uint64_t offset)
{
	assert_int_equal(fs_write(fixture->fs, ino, data, size, offset, false),
			 size);
}

/* Fill bytes of a file with one letter. */
static void put_letters(struct fixture *fixture, ino_t ino, char letter,
			size_t size, uint64_t offset)
{
	char *data = malloc(size);

	assert_non_null(data);
	memset(data, letter, size);
	put(fixture, ino, data, size, offset);
	free(data);
}

static void assert_letters(struct fixture *fixture, ino_t ino, char letter,
			   size_t size, uint64_t offset)
{
	char *data = malloc(size);
	size_t i;

	assert_non_null(data);
	assert_int_equal(fs_read(fixture->fs, ino, data, size, offset), size);
	for (i = 0; i < size; i++)
		assert_int_equal(data[i], letter);
	free(data);
}

/* Pages that no codec makes smaller, and no two of which are equal. */
static void put_noise(struct fixture *fixture, ino_t ino, unsigned int pages,
		      uint64_t first)
{
	uint64_t page[PAGE_SIZE / sizeof(uint64_t)];

	while (pages--) {
		unsigned int i;

		for (i = 0; i < PAGE_SIZE / sizeof(uint64_t); i++)
			page[i] = random_next();
		put(fixture, ino, page, PAGE_SIZE, PAGES(first++));
	}
}

static uint64_t blocks(const struct fixture *fixture, ino_t ino)
{
	return attributes(fixture, ino).st_blocks / (PAGE_SIZE / 512);
}

/* --- reading and writing ----------------------------------------------- */

static void what_was_not_written_reads_as_zeros(void **state)
{
	struct fixture *fixture = *state;
	char byte;

	assert_int_equal(fs_read(fixture->fs, fixture->file, &byte, 1, 0), 0);
	put_letters(fixture, fixture->file, 'a', 10, PAGES(3) + 5);
	assert_letters(fixture, fixture->file, 0, PAGES(3) + 5, 0);
	assert_letters(fixture, fixture->file, 'a', 10, PAGES(3) + 5);
	assert_int_equal(attributes(fixture, fixture->file).st_size,
			 PAGES(3) + 15);
	assert_int_equal(blocks(fixture, fixture->file), 1);
}

static void a_read_ends_at_end_of_file(void **state)
{
	struct fixture *fixture = *state;
	char data[100];

	put_letters(fixture, fixture->file, 'a', 60, 0);
	assert_int_equal(fs_read(fixture->fs, fixture->file, data, 100, 50),
			 10);
	assert_int_equal(fs_read(fixture->fs, fixture->file, data, 100, 60), 0);
	assert_int_equal(
		fs_read(fixture->fs, fixture->file, data, 100, INT64_MAX), 0);
	assert_int_equal(fs_read(fixture->fs, FS_ROOT_INO, data, 100, 0),
			 -EISDIR);
}

static void a_write_across_pages_keeps_what_is_around_it(void **state)
{
	struct fixture *fixture = *state;

	put_letters(fixture, fixture->file, 'a', PAGES(5), 0);
	put_letters(fixture, fixture->file, 'b', PAGES(2) + 100, 4000);
	assert_letters(fixture, fixture->file, 'a', 4000, 0);
	assert_letters(fixture, fixture->file, 'b', PAGES(2) + 100, 4000);
	assert_letters(fixture, fixture->file, 'a', PAGES(3) - 4100,
		       PAGES(2) + 4100);
	assert_int_equal(blocks(fixture, fixture->file), 5);
}

static void a_write_may_be_longer_than_a_request(void **state)
{
	struct fixture *fixture = *state;
	size_t size = 3 * (1 << 20) + 777;

	put_letters(fixture, fixture->file, 'a', size, 1234);
	assert_letters(fixture, fixture->file, 'a', size, 1234);
	assert_int_equal(attributes(fixture, fixture->file).st_size,
			 size + 1234);
}

static void a_write_past_the_largest_size_is_refused(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(fs_write(fixture->fs, fixture->file, "ab", 2,
				  INT64_MAX - 1, false),
			 -EFBIG);
	assert_int_equal(fs_write(fixture->fs, fixture->file, "a", 1,
				  INT64_MAX - 1, false),
			 1);
	assert_letters(fixture, fixture->file, 'a', 1, INT64_MAX - 1);
}

static void a_write_takes_privileges_away_when_asked(void **state)
{
	struct fixture *fixture = *state;
	struct stat attr = {.st_mode = 06755}, result;

	assert_int_equal(fs_setattr(fixture->fs, fixture->file, FS_SET_MODE,
				    &attr, &result),
			 0);
	put_letters(fixture, fixture->file, 'a', 10, 0);
	assert_int_equal(attributes(fixture, fixture->file).st_mode & 07777,
			 06755);
	assert_int_equal(fs_write(fixture->fs, fixture->file, "b", 1, 0, true),
			 1);
	assert_int_equal(attributes(fixture, fixture->file).st_mode & 07777,
			 0755);
}

/* --- truncating -------------------------------------------------------- */

static void bytes_that_were_cut_off_never_come_back(void **state)
{
	static const uint64_t cuts[] = {
		0, 1, 100, PAGES(1), PAGES(1) + 1, PAGES(2), PAGES(4) - 1};
	struct fixture *fixture = *state;
	unsigned int i;

	for (i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
		put_letters(fixture, fixture->file, 'a', PAGES(4), 0);
		assert_int_equal(set_size(fixture, fixture->file, cuts[i]), 0);
		assert_int_equal(blocks(fixture, fixture->file),
				 file_pages(cuts[i]));
		/* by truncation */
		assert_int_equal(set_size(fixture, fixture->file, PAGES(4)), 0);
		assert_letters(fixture, fixture->file, 0, PAGES(4) - cuts[i],
			       cuts[i]);
		/* by writing further out */
		assert_int_equal(set_size(fixture, fixture->file, cuts[i]), 0);
		put_letters(fixture, fixture->file, 'b', 1, PAGES(5));
		assert_letters(fixture, fixture->file, 0, PAGES(5) - cuts[i],
			       cuts[i]);
		assert_int_equal(set_size(fixture, fixture->file, 0), 0);
	}
}

/* As a crash leaves it, after the size was stored and before pages went. */
static void pages_that_a_crash_left_past_the_end_do_not_show(void **state)
{
	struct fixture *fixture = *state;
	struct inode *inode = inode_of(fixture, fixture->file);

	put_letters(fixture, fixture->file, 'a', PAGES(6), 0);
	atomic_store(&inode->size, PAGES(1));
	put_letters(fixture, fixture->file, 'b', 10, PAGES(1) + 20);
	assert_letters(fixture, fixture->file, 0, 20, PAGES(1));
	assert_letters(fixture, fixture->file, 'b', 10, PAGES(1) + 20);
	assert_int_equal(set_size(fixture, fixture->file, PAGES(3)), 0);
	assert_letters(fixture, fixture->file, 0, PAGES(2) - 30, PAGES(1) + 30);
	assert_int_equal(
		fs_fallocate(fixture->fs, fixture->file, 0, 0, PAGES(6)), 0);
	assert_letters(fixture, fixture->file, 0, PAGES(5) - 30, PAGES(1) + 30);
}

static void sparse_files_of_any_size_cost_nothing(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(set_size(fixture, fixture->file, INT64_MAX), 0);
	assert_int_equal(blocks(fixture, fixture->file), 0);
	put_letters(fixture, fixture->file, 'a', 1, INT64_C(1) << 62);
	assert_int_equal(set_size(fixture, fixture->file, 10), 0);
	assert_int_equal(blocks(fixture, fixture->file), 0);
	assert_int_equal(file_truncate(fixture->fs,
				       inode_of(fixture, fixture->file),
				       (uint64_t)INT64_MAX + 1),
			 -EFBIG);
}

/* --- ranges ------------------------------------------------------------ */

static void fallocate_fills_holes_and_keeps_data(void **state)
{
	struct fixture *fixture = *state;

	put_letters(fixture, fixture->file, 'a', 100, PAGES(1));
	assert_int_equal(
		fs_fallocate(fixture->fs, fixture->file, 0, 10, PAGES(4)), 0);
	assert_int_equal(attributes(fixture, fixture->file).st_size,
			 PAGES(4) + 10);
	assert_int_equal(blocks(fixture, fixture->file), 5);
	assert_letters(fixture, fixture->file, 'a', 100, PAGES(1));
	assert_letters(fixture, fixture->file, 0, PAGES(1), 0);
	assert_letters(fixture, fixture->file, 0, PAGES(3) - 100 + 10,
		       PAGES(1) + 100);
}

static void fallocate_can_reach_past_the_end(void **state)
{
	struct fixture *fixture = *state;

	put_letters(fixture, fixture->file, 'a', 100, 0);
	assert_int_equal(
		fs_fallocate(fixture->fs, fixture->file, KEEP, 0, PAGES(8)), 0);
	assert_int_equal(attributes(fixture, fixture->file).st_size, 100);
	assert_int_equal(blocks(fixture, fixture->file), 8);
	/* Growing into them keeps them; cutting to the same size drops them. */
	assert_int_equal(set_size(fixture, fixture->file, PAGES(4)), 0);
	assert_int_equal(blocks(fixture, fixture->file), 8);
	assert_int_equal(set_size(fixture, fixture->file, PAGES(4)), 0);
	assert_int_equal(blocks(fixture, fixture->file), 4);
}

static void punching_drops_pages_and_zeroes_edges(void **state)
{
	struct fixture *fixture = *state;

	put_letters(fixture, fixture->file, 'a', PAGES(6), 0);
	assert_int_equal(fs_fallocate(fixture->fs, fixture->file, PUNCH,
				      PAGES(1) - 10, PAGES(3) + 20),
			 0);
	assert_int_equal(blocks(fixture, fixture->file), 3);
	assert_letters(fixture, fixture->file, 'a', PAGES(1) - 10, 0);
	assert_letters(fixture, fixture->file, 0, PAGES(3) + 20, PAGES(1) - 10);
	assert_letters(fixture, fixture->file, 'a', PAGES(2) - 10,
		       PAGES(4) + 10);
	/* within one page */
	assert_int_equal(fs_fallocate(fixture->fs, fixture->file, PUNCH,
				      PAGES(5) + 7, 5),
			 0);
	assert_letters(fixture, fixture->file, 0, 5, PAGES(5) + 7);
	assert_letters(fixture, fixture->file, 'a', 7, PAGES(5));
	assert_int_equal(attributes(fixture, fixture->file).st_size, PAGES(6));
}

static void zeroed_ranges_are_allocated(void **state)
{
	struct fixture *fixture = *state;

	put_letters(fixture, fixture->file, 'a', PAGES(2), PAGES(1));
	assert_int_equal(fs_fallocate(fixture->fs, fixture->file, ZERO | KEEP,
				      100, PAGES(4)),
			 0);
	assert_int_equal(attributes(fixture, fixture->file).st_size, PAGES(3));
	assert_int_equal(blocks(fixture, fixture->file), 5);
	assert_letters(fixture, fixture->file, 0, PAGES(3), 0);
	put_letters(fixture, fixture->file, 'b', PAGES(1), 0);
	assert_int_equal(
		fs_fallocate(fixture->fs, fixture->file, ZERO, 100, PAGES(6)),
		0);
	assert_int_equal(attributes(fixture, fixture->file).st_size,
			 PAGES(6) + 100);
	assert_letters(fixture, fixture->file, 'b', 100, 0);
	assert_letters(fixture, fixture->file, 0, PAGES(6), 100);
}

static void fallocate_refuses_what_linux_refuses(void **state)
{
	struct fixture *fixture = *state;
	struct fs *fs = fixture->fs;
	ino_t file = fixture->file;

	assert_int_equal(fs_fallocate(fs, file, 0, -1, 1), -EINVAL);
	assert_int_equal(fs_fallocate(fs, file, 0, 0, 0), -EINVAL);
	assert_int_equal(fs_fallocate(fs, file, 0, INT64_MAX, 1), -EFBIG);
	assert_int_equal(fs_fallocate(fs, file, FALLOC_FL_PUNCH_HOLE, 0, 1),
			 -EOPNOTSUPP);
	assert_int_equal(
		fs_fallocate(fs, file, FALLOC_FL_COLLAPSE_RANGE, 0, PAGES(1)),
		-EOPNOTSUPP);
	assert_int_equal(fs_fallocate(fs, file, PUNCH | ZERO, 0, 1),
			 -EOPNOTSUPP);
	assert_int_equal(fs_fallocate(fs, FS_ROOT_INO, 0, 0, 1), -EISDIR);
}

static void a_range_larger_than_the_limit_fails_at_once(void **state)
{
	struct fixture *fixture = *state;
	struct slab_usage before, after;

	slab_usage(fixture->fs->blocks, &before);
	/* even without size=, memory for the table is a limit */
	assert_int_equal(fs_fallocate(fixture->fs, fixture->file, 0, 0,
				      INT64_C(1) << 62),
			 -ENOSPC);
	assert_int_equal(fs_set_size(fixture->fs, PAGES(100)), 0);
	assert_int_equal(
		fs_fallocate(fixture->fs, fixture->file, 0, 0, PAGES(101)),
		-ENOSPC);
	slab_usage(fixture->fs->blocks, &after);
	assert_int_equal(after.blocks, before.blocks);
	assert_int_equal(attributes(fixture, fixture->file).st_size, 0);
	assert_int_equal(
		fs_fallocate(fixture->fs, fixture->file, 0, 0, PAGES(100)), 0);
}

static void seeking_finds_data_and_holes(void **state)
{
	struct fixture *fixture = *state;
	struct fs *fs = fixture->fs;
	ino_t file = fixture->file;

	assert_int_equal(fs_seek(fs, file, 0, SEEK_DATA), -ENXIO);
	put_letters(fixture, file, 'a', PAGES(1), PAGES(2));
	put_letters(fixture, file, 'a', 10, PAGES(1000));
	assert_int_equal(fs_seek(fs, file, 0, SEEK_DATA), PAGES(2));
	assert_int_equal(fs_seek(fs, file, 0, SEEK_HOLE), 0);
	assert_int_equal(fs_seek(fs, file, PAGES(2) + 5, SEEK_DATA),
			 PAGES(2) + 5);
	assert_int_equal(fs_seek(fs, file, PAGES(2) + 5, SEEK_HOLE), PAGES(3));
	assert_int_equal(fs_seek(fs, file, PAGES(3), SEEK_DATA), PAGES(1000));
	assert_int_equal(fs_seek(fs, file, PAGES(1000) + 3, SEEK_HOLE),
			 PAGES(1000) + 10);
	assert_int_equal(fs_seek(fs, file, PAGES(1000) + 10, SEEK_HOLE),
			 -ENXIO);
	assert_int_equal(fs_seek(fs, file, -1, SEEK_DATA), -ENXIO);
	assert_int_equal(fs_seek(fs, file, 0, SEEK_SET), -EINVAL);
	assert_int_equal(set_size(fixture, file, PAGES(2000)), 0);
	assert_int_equal(fs_seek(fs, file, PAGES(1001), SEEK_DATA), -ENXIO);
	assert_int_equal(fs_seek(fs, file, PAGES(1001), SEEK_HOLE),
			 PAGES(1001));
}

/* --- copying ----------------------------------------------------------- */

static ssize_t copy(struct fixture *fixture, uint64_t from, uint64_t to,
		    size_t length)
{
	return fs_copy_range(fixture->fs, fixture->file, from, fixture->other,
			     to, length);
}

static void an_aligned_copy_shares_pages(void **state)
{
	struct fixture *fixture = *state;
	struct store_stats before, after;
	char one[1000], two[1000];
	unsigned int i;

	put_noise(fixture, fixture->file, 10, 0);
	put_letters(fixture, fixture->file, 'e', 77, PAGES(10));
	store_stats(fixture->store, &before);
	/* The tail too: source and target both end there. */
	assert_int_equal(copy(fixture, 0, 0, SIZE_MAX), PAGES(10) + 77);
	store_stats(fixture->store, &after);
	assert_int_equal(after.stored_pages, before.stored_pages);
	assert_int_equal(after.references, before.references + 11);
	assert_int_equal(blocks(fixture, fixture->other), 11);
	for (i = 0; i < 41; i++) {
		ssize_t size = fs_read(fixture->fs, fixture->file, one, 1000,
				       i * 1000);

		assert_true(size > 0);
		assert_int_equal(fs_read(fixture->fs, fixture->other, two, 1000,
					 i * 1000),
				 size);
		assert_memory_equal(one, two, size);
	}
	/* Each file's own from now on. */
	put_letters(fixture, fixture->other, 'z', PAGES(1), PAGES(2));
	assert_int_equal(fs_read(fixture->fs, fixture->file, one, 1, PAGES(2)),
			 1);
	store_stats(fixture->store, &after);
	assert_int_equal(after.stored_pages, before.stored_pages);
}

static void a_copy_ends_where_it_was_told(void **state)
{
	struct fixture *fixture = *state;

	put_letters(fixture, fixture->file, 'a', PAGES(3), 0);
	/* The page shared for 100 bytes would bring the rest along. */
	assert_int_equal(copy(fixture, 0, 0, PAGES(1) + 100), PAGES(1) + 100);
	assert_int_equal(attributes(fixture, fixture->other).st_size,
			 PAGES(1) + 100);
	assert_int_equal(set_size(fixture, fixture->other, PAGES(2)), 0);
	assert_letters(fixture, fixture->other, 0, PAGES(1) - 100,
		       PAGES(1) + 100);
	/* The target goes on behind the source's end. */
	put_letters(fixture, fixture->other, 'b', PAGES(4), 0);
	assert_int_equal(set_size(fixture, fixture->file, PAGES(1) + 50), 0);
	assert_int_equal(copy(fixture, 0, 0, PAGES(4)), PAGES(1) + 50);
	assert_letters(fixture, fixture->other, 'a', PAGES(1) + 50, 0);
	assert_letters(fixture, fixture->other, 'b', PAGES(3) - 50,
		       PAGES(1) + 50);
	assert_int_equal(attributes(fixture, fixture->other).st_size, PAGES(4));
}

static void a_copied_hole_is_a_hole(void **state)
{
	struct fixture *fixture = *state;

	put_letters(fixture, fixture->file, 'a', PAGES(1), 0);
	put_letters(fixture, fixture->file, 'a', PAGES(1), PAGES(600));
	put_letters(fixture, fixture->other, 'b', PAGES(600), 0);
	assert_int_equal(copy(fixture, 0, 0, PAGES(601)), PAGES(601));
	assert_int_equal(blocks(fixture, fixture->other), 2);
	assert_letters(fixture, fixture->other, 0, PAGES(599), PAGES(1));
	assert_letters(fixture, fixture->other, 'a', PAGES(1), PAGES(600));
}

static void unaligned_copies_move_bytes(void **state)
{
	struct fixture *fixture = *state;

	put_letters(fixture, fixture->file, 'a', PAGES(40), 0);
	put_letters(fixture, fixture->file, 'b', 1, 0);
	assert_int_equal(copy(fixture, 0, 1, PAGES(30)), PAGES(30));
	assert_letters(fixture, fixture->other, 0, 1, 0);
	assert_letters(fixture, fixture->other, 'b', 1, 1);
	assert_letters(fixture, fixture->other, 'a', PAGES(30) - 1, 2);
	/* Same place within the page, but not its beginning. */
	assert_int_equal(copy(fixture, PAGES(3) + 5, PAGES(1) + 5, PAGES(2)),
			 PAGES(2));
	assert_letters(fixture, fixture->other, 'a', PAGES(30) - 1, 2);
}

static void copies_within_a_file_must_not_overlap(void **state)
{
	struct fixture *fixture = *state;
	struct fs *fs = fixture->fs;
	ino_t file = fixture->file;

	put_letters(fixture, file, 'a', PAGES(2), 0);
	assert_int_equal(fs_copy_range(fs, file, 0, file, PAGES(1), PAGES(2)),
			 -EINVAL);
	assert_int_equal(fs_copy_range(fs, file, 0, file, PAGES(2), PAGES(2)),
			 PAGES(2));
	assert_letters(fixture, file, 'a', PAGES(4), 0);
	assert_int_equal(fs_copy_range(fs, file, PAGES(4), file, 0, 1), 0);
}

static void a_copy_is_bounded_in_time(void **state)
{
	struct fixture *fixture = *state;
	ssize_t copied;

	assert_int_equal(set_size(fixture, fixture->file, INT64_C(1) << 40), 0);
	copied = copy(fixture, 0, 0, SIZE_MAX);
	assert_true(copied >= 1 << 20 && copied <= 64 << 20);
}

/* --- limits ------------------------------------------------------------ */

static void a_write_past_the_limit_changes_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct slab_usage usage, now;
	struct stat before, after;
	char *data = malloc(PAGES(8));

	assert_non_null(data);
	memset(data, 'b', PAGES(8));
	assert_int_equal(fs_set_size(fixture->fs, PAGES(6)), 0);
	put_letters(fixture, fixture->file, 'a', PAGES(4), PAGES(2));
	before = attributes(fixture, fixture->file);
	slab_usage(fixture->fs->blocks, &usage);
	usleep(20000); /* the clock of file times is coarse */
	/* Two holes are in reach, three are wanted; then all six pages. */
	assert_int_equal(fs_write(fixture->fs, fixture->file, data, PAGES(5),
				  PAGES(4) + 1, false),
			 -ENOSPC);
	assert_int_equal(fs_write(fixture->fs, fixture->file, data, PAGES(7),
				  PAGES(100) + 1, false),
			 -ENOSPC);
	after = attributes(fixture, fixture->file);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_letters(fixture, fixture->file, 'a', PAGES(4), PAGES(2));
	assert_int_equal(used_pages(fixture), 4);
	assert_int_equal(references(fixture), 4);
	slab_usage(fixture->fs->blocks, &now);
	assert_int_equal(now.blocks, usage.blocks);
	/* What is there may be overwritten, and two holes be filled. */
	put(fixture, fixture->file, data, PAGES(6), 0);
	assert_int_equal(used_pages(fixture), 6);
	free(data);
}

static void the_limit_cannot_be_set_below_what_is_used(void **state)
{
	struct fixture *fixture = *state;

	put_letters(fixture, fixture->file, 'a', PAGES(10), 0);
	assert_int_equal(fs_set_size(fixture->fs, PAGES(9)), -EBUSY);
	assert_int_equal(fs_set_size(fixture->fs, PAGES(10)), 0);
	assert_int_equal(
		fs_write(fixture->fs, fixture->file, "a", 1, PAGES(10), false),
		-ENOSPC);
}

/* Leave exactly this many pages to be had. */
static void bound_memory(struct fixture *fixture, unsigned int pages)
{
	struct arena_usage usage;

	store_drain(fixture->store);
	arena_trim(fixture->arena, UINT64_MAX);
	arena_usage(fixture->arena, &usage);
	arena_set_limit(fixture->arena, usage.total + PAGES(pages));
}

/* However much memory there is when it runs out. */
static void a_write_without_memory_changes_nothing(void **state)
{
	enum {
		NOISE = 12
	};
	struct fixture *fixture = *state;
	struct slab_usage usage, now;
	struct stat before, after;
	uint64_t *data = malloc(PAGES(NOISE));
	unsigned int i, pages, failures = 0;
	uint64_t held;
	ssize_t written;

	assert_non_null(data);
	for (i = 0; i < PAGES(NOISE) / sizeof(*data); i++)
		data[i] = random_next();
	put_letters(fixture, fixture->file, 'a', 100, 0);
	before = attributes(fixture, fixture->file);
	slab_usage(fixture->fs->blocks, &usage);
	held = references(fixture);
	usleep(20000);
	for (pages = 0; pages < 500; pages++) {
		bound_memory(fixture, pages);
		written = fs_write(fixture->fs, fixture->file, data,
				   PAGES(NOISE - 1), PAGES(70000) + 5, false);
		if (written != -ENOSPC)
			break;
		failures++;
		after = attributes(fixture, fixture->file);
		assert_memory_equal(&before, &after, sizeof(before));
		slab_usage(fixture->fs->blocks, &now);
		assert_int_equal(now.blocks, usage.blocks);
		assert_int_equal(references(fixture), held);
		assert_int_equal(used_pages(fixture), 1);
	}
	arena_set_limit(fixture->arena, 0);
	assert_int_equal(written, PAGES(NOISE - 1));
	assert_true(failures >= NOISE);
	assert_letters(fixture, fixture->file, 'a', 100, 0);
	assert_letters(fixture, fixture->file, 0, PAGES(70000) + 5 - 100, 100);
	free(data);
}

static void a_range_without_memory_changes_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct slab_usage usage, now;
	struct stat before, after;
	unsigned int pages, failures = 0;
	int err;

	put_letters(fixture, fixture->file, 'a', 100, 0);
	before = attributes(fixture, fixture->file);
	slab_usage(fixture->fs->blocks, &usage);
	usleep(20000);
	for (pages = 0; pages < 500; pages++) {
		bound_memory(fixture, pages);
		err = fs_fallocate(fixture->fs, fixture->file, 0, 1,
				   PAGES(10000));
		if (err != -ENOSPC)
			break;
		failures++;
		after = attributes(fixture, fixture->file);
		assert_memory_equal(&before, &after, sizeof(before));
		slab_usage(fixture->fs->blocks, &now);
		assert_int_equal(now.blocks, usage.blocks);
		assert_int_equal(used_pages(fixture), 1);
	}
	arena_set_limit(fixture->arena, 0);
	assert_int_equal(err, 0);
	assert_true(failures > 0);
	assert_int_equal(used_pages(fixture), 10001);
}

/* Freeing must work when there is nothing to be had. */
static void truncating_and_punching_need_no_memory(void **state)
{
	struct fixture *fixture = *state;

	put_noise(fixture, fixture->file, 200, 0);
	bound_memory(fixture, 0);
	assert_int_equal(fs_fallocate(fixture->fs, fixture->file, PUNCH,
				      PAGES(50) + 9, PAGES(20)),
			 0);
	bound_memory(fixture, 0);
	assert_int_equal(set_size(fixture, fixture->file, PAGES(30) + 77), 0);
	arena_set_limit(fixture->arena, 0);
	assert_int_equal(blocks(fixture, fixture->file), 31);
}

/* What is there can be written over when there is no room for more. */
static void a_reserve_is_for_what_is_there(void **state)
{
	enum {
		RESERVE = 400
	};
	struct fixture *fixture = *state;
	char page[PAGE_SIZE];
	unsigned int i, singles = 0;

	put_noise(fixture, fixture->file, 20, 0);
	set_size(fixture, fixture->file, PAGES(2000));
	fs_set_reserve(fixture->fs, RESERVE);
	bound_memory(fixture, RESERVE - 1);
	for (i = 0; i < PAGE_SIZE; i++)
		page[i] = (char)random_next();
	/* Two pages, and one that is there and one that is not. */
	assert_int_equal(fs_write(fixture->fs, fixture->file, page, PAGE_SIZE,
				  PAGES(300) + 2048, false),
			 -ENOSPC);
	assert_int_equal(fs_write(fixture->fs, fixture->file, page, PAGE_SIZE,
				  PAGES(19) + 2048, false),
			 -ENOSPC);
	/* Single ones, until half of it is used. */
	for (i = 100; i < 100 + RESERVE; i++) {
		memcpy(page, &i, sizeof(i));
		if (fs_write(fixture->fs, fixture->file, page, PAGE_SIZE,
			     PAGES(i), false) == PAGE_SIZE)
			singles++;
	}
	assert_in_range(singles, RESERVE / 4, RESERVE / 2 + 64);
	for (i = 0; i < 20; i++) {
		memcpy(page, &i, sizeof(i));
		assert_int_equal(fs_write(fixture->fs, fixture->file, page,
					  PAGE_SIZE, PAGES(i), false),
				 PAGE_SIZE);
	}
	fs_set_reserve(fixture->fs, 0);
	assert_int_equal(fs_write(fixture->fs, fixture->file, page, PAGE_SIZE,
				  PAGES(1500) + 2048, false),
			 PAGE_SIZE);
	arena_set_limit(fixture->arena, 0);
}

/* --- costs ------------------------------------------------------------- */

static void usage_tells_where_pages_are(void **state)
{
	struct fixture *fixture = *state;
	struct fs_usage usage;

	put_noise(fixture, fixture->file, 3, 0);
	put_letters(fixture, fixture->file, 'x', PAGES(2), PAGES(5));
	put_letters(fixture, fixture->file, 'y', 99, PAGES(9));
	assert_int_equal(copy(fixture, 0, 0, PAGES(1)), PAGES(1));
	assert_int_equal(store_drain(fixture->store), 0);
	assert_int_equal(fs_usage(fixture->fs, fixture->file, &usage), 0);
	assert_int_equal(usage.uid, 0);
	assert_int_equal(usage.size, PAGES(9) + 99);
	assert_int_equal(usage.pages, 6);
	assert_int_equal(usage.fill_pages, 2);
	assert_int_equal(usage.huge_pages, 3);
	assert_int_equal(usage.compressed_pages, 1);
	assert_int_equal(usage.codec_pages[CODEC_LZ4], 1);
	assert_int_equal(usage.hot_pages, 0);
	assert_int_equal(usage.shared_pages, 1);
	assert_true(usage.stored_bytes > PAGES(3));
	assert_true(usage.stored_bytes < PAGES(4));
	assert_int_equal(usage.share_bytes, usage.stored_bytes - PAGE_SIZE / 2);
	assert_int_equal(fs_usage(fixture->fs, FS_ROOT_INO, &usage), -EISDIR);
}

static void an_unlinked_file_gives_everything_back(void **state)
{
	struct fixture *fixture = *state;
	ino_t ino = make_file(fixture, "third");

	put_noise(fixture, ino, 100, 0);
	put_noise(fixture, ino, 3, UINT64_C(1) << 40);
	assert_int_equal(used_pages(fixture), 103);
	assert_int_equal(fs_unlink(fixture->fs, FS_ROOT_INO, "third"), 0);
	assert_int_equal(used_pages(fixture), 103);
	fs_forget(fixture->fs, ino, 1);
	assert_int_equal(used_pages(fixture), 0);
	assert_int_equal(references(fixture), 0);
}

/* --- everything at random, against an array ---------------------------- */

#define MODEL_BYTES (80 * PAGE_SIZE)

struct model {
	uint64_t size;
	char bytes[MODEL_BYTES]; /* zero past size */
};

struct pair {
	struct fixture *fixture;
	ino_t ino[2];
	struct model model[2];
	char data[MODEL_BYTES];
};

static uint64_t random_offset(uint64_t bound)
{
	uint64_t offset = random_below(bound);

	/* Half of all at the edge of a page. */
	return random_below(2) ? offset : offset & ~PAGE_MASK;
}

static void random_data(char *data, size_t size)
{
	size_t i;

	switch (random_below(3)) {
	case 0:
		for (i = 0; i < size; i++)
			data[i] = random_next() >> 56;
		break;
	case 1:
		memset(data, random_below(256), size);
		break;
	default:
		for (i = 0; i < size; i++)
			data[i] = i / 7;
	}
}

static void model_grow(struct model *model, uint64_t size)
{
	if (size > model->size)
		model->size = size;
}

static void random_write(struct pair *pair, unsigned int which, uint64_t from,
			 uint64_t size)
{
	random_data(pair->data, size);
	put(pair->fixture, pair->ino[which], pair->data, size, from);
	memcpy(pair->model[which].bytes + from, pair->data, size);
	model_grow(&pair->model[which], from + size);
}

static void random_truncate(struct pair *pair, unsigned int which,
			    uint64_t size)
{
	struct model *model = &pair->model[which];

	assert_int_equal(set_size(pair->fixture, pair->ino[which], size), 0);
	if (size < model->size)
		memset(model->bytes + size, 0, model->size - size);
	model->size = size;
}

static void random_fallocate(struct pair *pair, unsigned int which,
			     uint64_t from, uint64_t size)
{
	static const int modes[] = {0, KEEP, PUNCH, ZERO, ZERO | KEEP};
	struct model *model = &pair->model[which];
	int mode = modes[random_below(5)];

	assert_int_equal(fs_fallocate(pair->fixture->fs, pair->ino[which], mode,
				      from, size),
			 0);
	if (mode & (FALLOC_FL_PUNCH_HOLE | ZERO))
		memset(model->bytes + from, 0, size);
	if (!(mode & KEEP))
		model_grow(model, from + size);
}

static void random_copy(struct pair *pair, unsigned int which, uint64_t from,
			uint64_t size)
{
	unsigned int target = random_below(2);
	uint64_t to = random_offset(MODEL_BYTES - size);
	ssize_t expected = size, result;

	if (random_below(2)) /* congruent, if there is room */
		to = (to & ~PAGE_MASK) + (from & PAGE_MASK);
	if (to + size > MODEL_BYTES)
		to = from;
	if (from >= pair->model[which].size)
		expected = 0;
	else if (size > pair->model[which].size - from)
		expected = pair->model[which].size - from;
	if (target == which && expected && from < to + expected &&
	    to < from + expected)
		expected = -EINVAL;
	result = fs_copy_range(pair->fixture->fs, pair->ino[which], from,
			       pair->ino[target], to, size);
	assert_int_equal(result, expected);
	if (result <= 0)
		return;
	memcpy(pair->model[target].bytes + to, pair->model[which].bytes + from,
	       result);
	model_grow(&pair->model[target], to + result);
}

static uint64_t count_cells(const struct fixture *fixture, ino_t ino)
{
	uint64_t index = 0, cells = 0;

	while (pagetable_next(fixture->fs->blocks,
			      &inode_of(fixture, ino)->table, &index,
			      PAGETABLE_INDEX_MAX)) {
		cells++;
		index++;
	}
	return cells;
}

static void assert_same(struct pair *pair)
{
	uint64_t cells = 0;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct model *model = &pair->model[i];

		assert_int_equal(fs_read(pair->fixture->fs, pair->ino[i],
					 pair->data, MODEL_BYTES, 0),
				 model->size);
		assert_memory_equal(pair->data, model->bytes, model->size);
		assert_int_equal(blocks(pair->fixture, pair->ino[i]),
				 count_cells(pair->fixture, pair->ino[i]));
		cells += count_cells(pair->fixture, pair->ino[i]);
	}
	assert_int_equal(used_pages(pair->fixture), cells);
	assert_int_equal(references(pair->fixture), cells);
}

static void anything_at_random_agrees_with_an_array(void **state)
{
	struct fixture *fixture = *state;
	struct pair *pair = calloc(1, sizeof(*pair));
	unsigned int round;

	assert_non_null(pair);
	pair->fixture = fixture;
	pair->ino[0] = fixture->file;
	pair->ino[1] = fixture->other;
	for (round = 0; round < 4000; round++) {
		unsigned int which = random_below(2);
		uint64_t from = random_offset(MODEL_BYTES - 1);
		uint64_t size =
			1 + random_below(random_below(2) ? 9000 : MODEL_BYTES);

		if (size > MODEL_BYTES - from)
			size = MODEL_BYTES - from;
		switch (random_below(8)) {
		case 0:
			random_truncate(pair, which, from);
			break;
		case 1:
		case 2:
			random_fallocate(pair, which, from, size);
			break;
		case 3:
		case 4:
			random_copy(pair, which, from, size);
			break;
		default:
			random_write(pair, which, from, size);
		}
		if (round % 8 == 0)
			assert_same(pair);
	}
	assert_same(pair);
	free(pair);
}

/* --- threads ----------------------------------------------------------- */

#define THREADS 4

struct worker {
	struct fixture *fixture;
	unsigned int number;
	unsigned int rounds;
	pthread_t thread;
	bool failed;
};

static void start_workers(struct worker *workers, struct fixture *fixture,
			  void *(*work)(void *), unsigned int rounds)
{
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){fixture, i, rounds, 0, false};
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work,
						&workers[i]),
				 0);
	}
}

static void join_workers(struct worker *workers)
{
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
		assert_false(workers[i].failed);
	}
}

static void run_workers(struct fixture *fixture, void *(*work)(void *),
			unsigned int rounds)
{
	struct worker workers[THREADS];

	start_workers(workers, fixture, work, rounds);
	join_workers(workers);
}

enum {
	QUARTER = PAGE_SIZE / THREADS,
	QUARTER_WORDS = QUARTER / 4
};

static void fill_quarter(uint32_t *data, unsigned int round)
{
	unsigned int i;

	for (i = 0; i < QUARTER_WORDS; i++)
		data[i] = round ? round * 1000 + i : 0;
}

/*
 * Each thread owns a quarter of the page. If one writer's patch could undo
 * another's, a quarter would soon be found in an older state.
 */
static void *write_quarters(void *context)
{
	struct worker *worker = context;
	struct fs *fs = worker->fixture->fs;
	ino_t file = worker->fixture->file;
	uint64_t offset = worker->number * (uint64_t)QUARTER;
	uint32_t data[QUARTER_WORDS], back[QUARTER_WORDS];
	unsigned int round;

	worker->failed = fs_attach_thread(fs) != 0;
	for (round = 0; !worker->failed && round < worker->rounds; round++) {
		fill_quarter(data, round);
		worker->failed |=
			fs_read(fs, file, back, QUARTER, offset) != QUARTER;
		worker->failed |= memcmp(data, back, QUARTER) != 0;
		fill_quarter(data, round + 1);
		worker->failed |= fs_write(fs, file, data, QUARTER, offset,
					   false) != QUARTER;
	}
	fs_detach_thread(fs);
	return NULL;
}

static void writers_of_one_page_do_not_undo_each_other(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(
		fs_fallocate(fixture->fs, fixture->file, 0, 0, PAGE_SIZE), 0);
	run_workers(fixture, write_quarters, 15000);
	assert_int_equal(blocks(fixture, fixture->file), 1);
	assert_int_equal(references(fixture), 1);
}

#define HOLES 60

static pthread_barrier_t barrier;

/* All threads fill the same holes, beside pages that keep the table's nodes. */
static void *fill_same_holes(void *context)
{
	struct worker *worker = context;
	struct fs *fs = worker->fixture->fs;
	ino_t file = worker->fixture->file;
	char *data = calloc(HOLES, PAGE_SIZE);
	unsigned int round;

	worker->failed = fs_attach_thread(fs) != 0 || !data;
	for (round = 0; round < worker->rounds; round++) {
		pthread_barrier_wait(&barrier);
		if (worker->number == 0)
			worker->failed |= fs_fallocate(fs, file, PUNCH, 0,
						       PAGES(HOLES)) != 0;
		pthread_barrier_wait(&barrier);
		worker->failed |= fs_write(fs, file, data, PAGES(HOLES), 0,
					   false) != PAGES(HOLES);
	}
	fs_detach_thread(fs);
	free(data);
	return NULL;
}

static void a_hole_filled_by_many_is_charged_once(void **state)
{
	struct fixture *fixture = *state;

	put_letters(fixture, fixture->file, 'a', PAGES(1), PAGES(HOLES));
	assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS), 0);
	run_workers(fixture, fill_same_holes, 1500);
	pthread_barrier_destroy(&barrier);
	assert_int_equal(blocks(fixture, fixture->file), HOLES + 1);
	assert_int_equal(used_pages(fixture), HOLES + 1);
	assert_int_equal(references(fixture), HOLES + 1);
}

/*
 * Whatever is done at once, counts agree in the end, and a page read is one
 * that somebody wrote: all its words are equal.
 */
static void *do_anything(void *context)
{
	enum {
		NR_PAGES = 200,
		MOST = 8
	};
	struct worker *worker = context;
	struct fs *fs = worker->fixture->fs;
	ino_t ino[2] = {worker->fixture->file, worker->fixture->other};
	uint64_t seed = 1000 + worker->number, round, i;
	uint64_t data[MOST * PAGE_SIZE / 8];

	worker->failed = fs_attach_thread(fs) != 0;
	for (round = 0; !worker->failed && round < worker->rounds; round++) {
		uint64_t dice = random_step(&seed);
		ino_t file = ino[dice >> 20 & 1], other = ino[dice >> 21 & 1];
		uint64_t offset = PAGES((dice >> 24) % NR_PAGES);
		uint64_t size = PAGES(1 + (dice >> 32) % MOST);
		struct stat attr = {.st_size = offset};
		ssize_t got;

		switch (dice % 16) {
		case 0:
			worker->failed |= fs_setattr(fs, file, FS_SET_SIZE,
						     &attr, &attr) != 0;
			break;
		case 1:
			worker->failed |= fs_fallocate(fs, file, PUNCH, offset,
						       size) != 0;
			break;
		case 2:
			worker->failed |=
				fs_fallocate(fs, file, ZERO, offset, size) != 0;
			break;
		case 3:
		case 4:
			got = fs_copy_range(fs, file, offset, other,
					    PAGES((dice >> 40) % NR_PAGES),
					    size);
			worker->failed |= got < 0 && got != -EINVAL;
			break;
		case 5:
		case 6:
		case 7:
		case 8:
			got = fs_read(fs, file, data, size, offset);
			worker->failed |= got < 0 || got % PAGE_SIZE;
			for (i = 0; i < (uint64_t)got / 8; i++)
				worker->failed |= data[i] != data[i & ~511ul];
			break;
		default:
			for (i = 0; i < size / 8; i++)
				data[i] = dice;
			worker->failed |= fs_write(fs, file, data, size, offset,
						   false) != (ssize_t)size;
		}
	}
	fs_detach_thread(fs);
	return NULL;
}

static void counts_agree_whatever_is_done_at_once(void **state)
{
	struct fixture *fixture = *state;

	run_workers(fixture, do_anything, 2000);
	assert_int_equal(blocks(fixture, fixture->file),
			 count_cells(fixture, fixture->file));
	assert_int_equal(used_pages(fixture),
			 count_cells(fixture, fixture->file) +
				 count_cells(fixture, fixture->other));
	assert_int_equal(references(fixture), used_pages(fixture));
}

/* A check in between sees no page that is put and not yet in a cell. */
static void a_check_finds_nothing_whatever_is_done_at_once(void **state)
{
	struct fixture *fixture = *state;
	struct worker workers[THREADS];
	struct fs_check check;
	unsigned int i;

	start_workers(workers, fixture, do_anything, 1000);
	for (i = 0; i < 20; i++) {
		assert_int_equal(
			fs_check(fixture->fs, i % 4 == 0, &check, NULL, NULL),
			0);
		assert_int_equal(check.errors, 0);
		assert_int_equal(check.differences, 0);
	}
	join_workers(workers);
}

#define LIMIT 40

/* Fill and empty, so that the limit is met all the time. */
static void *press_against_limit(void *context)
{
	struct worker *worker = context;
	struct fs *fs = worker->fixture->fs;
	ino_t ino[2] = {worker->fixture->file, worker->fixture->other};
	uint64_t seed = 1000 + worker->number;
	unsigned int round;
	char data[5 * PAGE_SIZE];

	worker->failed = fs_attach_thread(fs) != 0;
	memset(data, 'a' + worker->number, sizeof(data));
	for (round = 0; !worker->failed && round < worker->rounds; round++) {
		uint64_t dice = random_step(&seed);
		uint64_t offset = PAGES((dice >> 24) % 60) + dice % 3;
		ino_t file = ino[dice >> 20 & 1];
		ssize_t got = sizeof(data);

		if (dice >> 32 & 1)
			got = fs_write(fs, file, data, sizeof(data), offset,
				       false);
		else
			worker->failed |= fs_fallocate(fs, file, PUNCH, offset,
						       sizeof(data)) != 0;
		worker->failed |= got != -ENOSPC && got != sizeof(data);
		worker->failed |= used_pages(worker->fixture) > LIMIT;
	}
	fs_detach_thread(fs);
	return NULL;
}

static void the_limit_is_never_passed(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(fs_set_size(fixture->fs, PAGES(LIMIT)), 0);
	run_workers(fixture, press_against_limit, 2000);
	assert_int_equal(used_pages(fixture),
			 count_cells(fixture, fixture->file) +
				 count_cells(fixture, fixture->other));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_not_written_reads_as_zeros),
		TEST(a_read_ends_at_end_of_file),
		TEST(a_write_across_pages_keeps_what_is_around_it),
		TEST(a_write_may_be_longer_than_a_request),
		TEST(a_write_past_the_largest_size_is_refused),
		TEST(a_write_takes_privileges_away_when_asked),
		TEST(bytes_that_were_cut_off_never_come_back),
		TEST(pages_that_a_crash_left_past_the_end_do_not_show),
		TEST(sparse_files_of_any_size_cost_nothing),
		TEST(fallocate_fills_holes_and_keeps_data),
		TEST(fallocate_can_reach_past_the_end),
		TEST(punching_drops_pages_and_zeroes_edges),
		TEST(zeroed_ranges_are_allocated),
		TEST(fallocate_refuses_what_linux_refuses),
		TEST(a_range_larger_than_the_limit_fails_at_once),
		TEST(seeking_finds_data_and_holes),
		TEST(an_aligned_copy_shares_pages),
		TEST(a_copy_ends_where_it_was_told),
		TEST(a_copied_hole_is_a_hole),
		TEST(unaligned_copies_move_bytes),
		TEST(copies_within_a_file_must_not_overlap),
		TEST(a_copy_is_bounded_in_time),
		TEST(a_write_past_the_limit_changes_nothing),
		TEST(the_limit_cannot_be_set_below_what_is_used),
		TEST(a_write_without_memory_changes_nothing),
		TEST(a_range_without_memory_changes_nothing),
		TEST(truncating_and_punching_need_no_memory),
		TEST(a_reserve_is_for_what_is_there),
		TEST(usage_tells_where_pages_are),
		TEST(an_unlinked_file_gives_everything_back),
		TEST(anything_at_random_agrees_with_an_array),
		TEST(writers_of_one_page_do_not_undo_each_other),
		TEST(a_hole_filled_by_many_is_charged_once),
		TEST(counts_agree_whatever_is_done_at_once),
		TEST(a_check_finds_nothing_whatever_is_done_at_once),
		TEST(the_limit_is_never_passed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
