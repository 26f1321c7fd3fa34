/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_nospace.c - memory that runs out at any step of any operation
 *
 * Each operation is tried with no page to be had, then with one, and so on
 * until it succeeds. When it fails it must have changed nothing at all. What
 * frees must never need any.
 */
#include "fs_world.h"

#include <endian.h>
#include <linux/fs.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdio.h>

#include "fs/acl.h"

struct fixture {
	struct world world;
	ino_t dir, full, file;
	char text[PAGE_SIZE];
};

static void set_list(struct world *world, ino_t ino, const char *name)
{
	struct {
		uint32_t version;
		struct posix_acl_xattr_entry entry[5];
	} list = {htole32(POSIX_ACL_XATTR_VERSION),
		  {
			  {htole16(ACL_USER_OBJ), htole16(7), UINT32_MAX},
			  {htole16(ACL_USER), htole16(7), htole32(5)},
			  {htole16(ACL_GROUP_OBJ), htole16(5), UINT32_MAX},
			  {htole16(ACL_MASK), htole16(7), UINT32_MAX},
			  {htole16(ACL_OTHER), htole16(5), UINT32_MAX},
		  }};

	assert_int_equal(
		fs_setxattr(world->fs, ino, name, &list, sizeof(list), 0), 0);
}

/*
 * dir inherits an ACL; full has as many entries as its table has cells, so
 * that one more needs a new node.
 */
static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct world *world;
	char name[16];

	assert_non_null(fixture);
	world = &fixture->world;
	world_create(world, 0);
	fixture->dir = make_dir(world, ROOT, "dir");
	set_list(world, fixture->dir, ACL_NAME_DEFAULT);
	set_list(world, fixture->dir, ACL_NAME_ACCESS);
	fixture->full = make_dir(world, ROOT, "full");
	for (int i = 0; i < 64; i++) {
		snprintf(name, sizeof(name), "%d", i);
		make_file(world, fixture->full, name);
	}
	fixture->file = make_file(world, fixture->dir, "file");
	make_file(world, fixture->dir, "other");
	make_dir(world, fixture->dir, "sub");
	memset(fixture->text, 'x', PAGE_SIZE - 1);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	world_destroy(&fixture->world);
	free(fixture);
	return 0;
}

typedef int (*operation)(struct fixture *fixture);

/* Until it succeeds; returns how many pages that took. */
static unsigned int starve(struct fixture *fixture, operation operation)
{
	struct world *world = &fixture->world;
	unsigned int pages;

	for (pages = 0; pages < 64; pages++) {
		char *before = world_dump(world), *after;
		int error;

		world_starve(world, pages);
		error = operation(fixture);
		world_relax(world);
		world_check(world);
		if (!error) {
			free(before);
			break;
		}
		assert_int_equal(error, -ENOSPC);
		after = world_dump(world);
		assert_string_equal(before, after);
		free(before);
		free(after);
	}
	assert_true(pages < 64);
	return pages;
}

static int make_one(struct fixture *fixture, ino_t parent, mode_t mode)
{
	struct fs_entry entry;
	int error = fs_make(fixture->world.fs, &world_caller, parent, "new",
			    mode, 0, fixture->text, &entry);

	if (!error)
		fs_forget(fixture->world.fs, entry.ino, 1);
	return error;
}

static int make_in_dir(struct fixture *fixture)
{
	return make_one(fixture, fixture->dir, S_IFREG | 0644);
}

static int make_in_full(struct fixture *fixture)
{
	return make_one(fixture, fixture->full, S_IFREG | 0644);
}

static int make_directory(struct fixture *fixture)
{
	return make_one(fixture, fixture->dir, S_IFDIR | 0755);
}

static int make_symlink(struct fixture *fixture)
{
	return make_one(fixture, fixture->full, S_IFLNK | 0777);
}

static int make_unnamed(struct fixture *fixture)
{
	struct fs_entry entry;
	int error = fs_make_unnamed(fixture->world.fs, &world_caller,
				    fixture->dir, 0644, &entry);

	if (!error)
		fs_forget(fixture->world.fs, entry.ino, 1);
	return error;
}

static int link_to_full(struct fixture *fixture)
{
	struct fs_entry entry;
	int error = fs_link(fixture->world.fs, fixture->file, fixture->full,
			    "link", &entry);

	if (!error)
		fs_forget(fixture->world.fs, fixture->file, 1);
	return error;
}

static int rename_to_full(struct fixture *fixture)
{
	return move(&fixture->world, fixture->dir, "file", fixture->full, "new",
		    0);
}

static int rename_over(struct fixture *fixture)
{
	return move(&fixture->world, fixture->dir, "file", fixture->full, "0",
		    0);
}

static int rename_in_place(struct fixture *fixture)
{
	return move(&fixture->world, fixture->full, "1", fixture->full,
		    "a longer name than the one that it had before", 0);
}

static int exchange(struct fixture *fixture)
{
	return move(&fixture->world, fixture->dir, "sub", fixture->full, "1",
		    RENAME_EXCHANGE);
}

static int rename_with_whiteout(struct fixture *fixture)
{
	return move(&fixture->world, fixture->dir, "file", fixture->full, "new",
		    RENAME_WHITEOUT);
}

static int set_large_xattr(struct fixture *fixture)
{
	static char value[20000];

	memset(value, 'v', sizeof(value));
	return fs_setxattr(fixture->world.fs, fixture->file, "user.large",
			   value, sizeof(value), 0);
}

static int replace_xattr(struct fixture *fixture)
{
	return fs_setxattr(fixture->world.fs, fixture->file, "user.large",
			   fixture->text, 600, 0);
}

static void test_running_out_changes_nothing(void **state)
{
	struct fixture *fixture = *state;

	/* inode, two ACLs (of one size), name, table: each needs a page */
	assert_true(starve(fixture, make_in_dir) >= 3);
	assert_true(starve(fixture, make_in_full) >= 3);
	assert_int_equal(fs_unlink(fixture->world.fs, fixture->full, "new"), 0);
	assert_int_equal(fs_unlink(fixture->world.fs, fixture->dir, "new"), 0);
	assert_true(starve(fixture, make_directory) >= 3);
	assert_true(starve(fixture, make_symlink) >= 4);
	assert_int_equal(fs_unlink(fixture->world.fs, fixture->full, "new"), 0);
	assert_true(starve(fixture, make_unnamed) >= 2);
	assert_true(starve(fixture, link_to_full) >= 2);
	assert_int_equal(fs_unlink(fixture->world.fs, fixture->full, "link"),
			 0);
	assert_true(starve(fixture, rename_in_place) >= 1);
	assert_true(starve(fixture, rename_to_full) >= 2);
	assert_int_equal(move(&fixture->world, fixture->full, "new",
			      fixture->dir, "file", 0),
			 0);
	assert_true(starve(fixture, rename_with_whiteout) >= 3);
	assert_int_equal(move(&fixture->world, fixture->full, "new",
			      fixture->dir, "file", 0),
			 0);
	make_file(&fixture->world, fixture->full, "1");
	assert_true(starve(fixture, exchange) >= 1);
	assert_true(starve(fixture, rename_over) >= 1);
	assert_true(starve(fixture, set_large_xattr) >= 5);
	assert_true(starve(fixture, replace_xattr) >= 1);
}

static void test_freeing_needs_no_memory(void **state)
{
	struct fixture *fixture = *state;
	struct world *world = &fixture->world;
	struct fs *fs = world->fs;
	struct stat attr = {.st_size = 0, .st_mode = 0700};
	ino_t held = make_held(world, ROOT, "held", S_IFREG);
	char name[16];

	for (int i = 0; i < 200; i++)
		assert_int_equal(fs_write(fs, held, fixture->text, PAGE_SIZE,
					  i * 3 * PAGE_SIZE, false),
				 PAGE_SIZE);
	assert_int_equal(set_large_xattr(fixture), 0);
	make_one(fixture, fixture->full, S_IFLNK | 0777);

	world_starve(world, 0);
	assert_int_equal(fs_unlink(fs, fixture->full, "new"), 0);
	for (int i = 0; i < 64; i++) {
		snprintf(name, sizeof(name), "%d", i * 37 % 64);
		assert_int_equal(fs_unlink(fs, fixture->full, name), 0);
	}
	assert_int_equal(fs_rmdir(fs, ROOT, "full"), 0);
	assert_int_equal(fs_removexattr(fs, fixture->file, "user.large"), 0);
	assert_int_equal(fs_unlink(fs, ROOT, "held"), 0);
	assert_int_equal(fs_setattr(fs, held, FS_SET_SIZE, &attr, &attr), 0);
	fs_forget(fs, held, 1);
	world_relax(world);
	world_check(world);

	/* Nor must taking permissions away: it has a reserve. */
	attr.st_mode = 0700;
	world_starve(world, 0);
	assert_int_equal(
		fs_setattr(fs, fixture->file, FS_SET_MODE, &attr, &attr), 0);
	world_relax(world);
	assert_int_equal(attributes(world, fixture->file).st_mode,
			 S_IFREG | 0700);
}

/* Making and removing until nothing more goes in, again and again. */
static void test_full_and_empty(void **state)
{
	struct fixture *fixture = *state;
	struct world *world = &fixture->world;
	struct arena_usage usage;
	char name[16];

	arena_usage(world->arena, &usage);
	arena_set_limit(world->arena, usage.total + (1 << 20));
	for (int round = 0; round < 3; round++) {
		struct fs_entry entry;
		unsigned int made = 0;
		int error = 0;

		while (!error) {
			snprintf(name, sizeof(name), "n%u", made);
			error = fs_make(world->fs, &world_caller, fixture->dir,
					name, S_IFDIR | 0755, 0, NULL, &entry);
			if (!error)
				fs_forget(world->fs, entry.ino, 1);
			made += !error;
		}
		assert_int_equal(error, -ENOSPC);
		assert_true(made > 1000);
		world_check(world);
		while (made--) {
			snprintf(name, sizeof(name), "n%u", made);
			assert_int_equal(
				fs_rmdir(world->fs, fixture->dir, name), 0);
		}
		world_check(world);
	}
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		test(test_running_out_changes_nothing),
		test(test_freeing_needs_no_memory),
		test(test_full_and_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
