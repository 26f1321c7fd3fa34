/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_xattr.c - extended attributes: names, limits, values of any length
 */
#include "fs_world.h"

#include <linux/limits.h>
#include <stdio.h>
#include <sys/xattr.h>

#include "fs/blob.h"

static void fill(char *bytes, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (i * 31 + seed * 7 + i / 251) & 0xff;
}

static void expect_xattr(struct world *world, ino_t ino, const char *name,
			 const void *value, size_t size)
{
	static char found[BLOB_MAX + 1];

	memset(found, 0x55, sizeof(found));
	assert_int_equal(fs_getxattr(world->fs, ino, name, NULL, 0), size);
	assert_int_equal(
		fs_getxattr(world->fs, ino, name, found, sizeof(found)), size);
	assert_memory_equal(found, value, size);
	if (size > 1)
		assert_int_equal(
			fs_getxattr(world->fs, ino, name, found, size - 1),
			-ERANGE);
}

static void test_namespaces(void **state)
{
	static const char *const good[] = {"user.a", "trusted.a",
					   "security.selinux", "user.b.c"};
	static const char *const bad[] = {
		"a",   "system.a", "users.a", "", "system.posix_acl_accesses",
		"user"};
	struct world *world = *state;
	ino_t file = make_file(world, ROOT, "f");

	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(
			fs_setxattr(world->fs, file, good[i], "v", 1, 0), 0);
		expect_xattr(world, file, good[i], "v", 1);
	}
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(
			fs_setxattr(world->fs, file, bad[i], "v", 1, 0),
			-EOPNOTSUPP);
		assert_int_equal(fs_getxattr(world->fs, file, bad[i], NULL, 0),
				 -EOPNOTSUPP);
		assert_int_equal(fs_removexattr(world->fs, file, bad[i]),
				 -EOPNOTSUPP);
	}
	assert_int_equal(fs_setxattr(world->fs, file, "user.", "v", 1, 0),
			 -EINVAL);
}

static void test_create_and_replace(void **state)
{
	struct world *world = *state;
	struct fs *fs = world->fs;
	ino_t file = make_file(world, ROOT, "f");

	assert_int_equal(fs_setxattr(fs, file, "user.a", "1", 1, XATTR_REPLACE),
			 -ENODATA);
	assert_int_equal(fs_setxattr(fs, file, "user.a", "1", 1, XATTR_CREATE),
			 0);
	assert_int_equal(fs_setxattr(fs, file, "user.a", "2", 1, XATTR_CREATE),
			 -EEXIST);
	expect_xattr(world, file, "user.a", "1", 1);
	assert_int_equal(
		fs_setxattr(fs, file, "user.a", "33", 2, XATTR_REPLACE), 0);
	expect_xattr(world, file, "user.a", "33", 2);
	assert_int_equal(fs_setxattr(fs, file, "user.a", "4", 1, 4), -EINVAL);
	assert_int_equal(fs_removexattr(fs, file, "user.a"), 0);
	assert_int_equal(fs_removexattr(fs, file, "user.a"), -ENODATA);
	assert_int_equal(fs_getxattr(fs, file, "user.a", NULL, 0), -ENODATA);
}

static void test_values_of_any_length(void **state)
{
	static const size_t sizes[] = {0,    1,	   100,	 480,  490,   492,
				       493,  500,  1000, 2044, 4092,  4093,
				       4096, 8184, 8185, 9999, 65535, 65536};
	struct world *world = *state;
	ino_t file = make_file(world, ROOT, "f");
	static char value[BLOB_MAX + 1];
	uint64_t random = 99;

	for (int i = 0; i < 200; i++) {
		size_t size = i < 18 ? sizes[i] : random_below(&random, 10000);

		fill(value, size, i);
		assert_int_equal(
			fs_setxattr(world->fs, file, "user.v", value, size, 0),
			0);
		expect_xattr(world, file, "user.v", value, size);
		/* Its length on its own, and that all of it is claimed. */
		if (i % 10 == 0)
			world_check(world);
	}
	assert_int_equal(
		fs_setxattr(world->fs, file, "user.v", value, BLOB_MAX + 1, 0),
		-E2BIG);
}

static void test_long_names(void **state)
{
	struct world *world = *state;
	ino_t file = make_file(world, ROOT, "f");
	char name[300] = "user.";

	memset(name + 5, 'n', 251);
	assert_int_equal(fs_setxattr(world->fs, file, name, "v", 1, 0),
			 -ERANGE);
	name[255] = '\0';
	assert_int_equal(fs_setxattr(world->fs, file, name, "v", 1, 0), 0);
	expect_xattr(world, file, name, "v", 1);
}

static void test_lists(void **state)
{
	struct world *world = *state;
	struct fs *fs = world->fs;
	ino_t file = make_file(world, ROOT, "f");
	char list[64];

	assert_int_equal(fs_listxattr(fs, file, list, sizeof(list)), 0);
	assert_int_equal(fs_setxattr(fs, file, "user.a", "1", 1, 0), 0);
	assert_int_equal(fs_setxattr(fs, file, "trusted.bc", "2", 1, 0), 0);
	assert_int_equal(fs_setxattr(fs, file, "user.a", "replaced", 8, 0), 0);
	assert_int_equal(fs_listxattr(fs, file, NULL, 0), 18);
	assert_int_equal(fs_listxattr(fs, file, list, 17), -ERANGE);
	assert_int_equal(fs_listxattr(fs, file, list, 18), 18);
	/* Replacing keeps the place. */
	assert_memory_equal(list, "user.a\0trusted.bc", 18);
}

static void test_a_list_has_an_end(void **state)
{
	struct world *world = *state;
	ino_t file = make_file(world, ROOT, "f");
	static char list[XATTR_LIST_MAX];
	char name[256];
	int error = 0, count = 0;

	while (!error && count < 1000) {
		snprintf(name, sizeof(name), "user.%0250d", count);
		error = fs_setxattr(world->fs, file, name, "v", 1, 0);
		count += !error;
	}
	assert_int_equal(error, -ENOSPC);
	assert_int_equal(count, XATTR_LIST_MAX / 256);
	assert_int_equal(fs_listxattr(world->fs, file, list, sizeof(list)),
			 count * 256);
	assert_int_equal(fs_setxattr(world->fs, file, "user.a", "v", 1, 0),
			 -ENOSPC);
	/* One that is there can still be set. */
	snprintf(name, sizeof(name), "user.%0250d", 17);
	assert_int_equal(fs_setxattr(world->fs, file, name, "ww", 2, 0), 0);
}

static void test_ctime(void **state)
{
	struct world *world = *state;
	ino_t file = make_file(world, ROOT, "f");
	struct stat old = {.st_ctim = {1000, 0}, .st_mtim = {1000, 0}};
	struct stat attr;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(fs_setattr(world->fs, file,
					    FS_SET_CTIME | FS_SET_MTIME, &old,
					    &attr),
				 0);
		if (i == 0)
			fs_setxattr(world->fs, file, "user.a", "v", 1, 0);
		else if (i == 1)
			fs_removexattr(world->fs, file, "user.a");
		else
			fs_removexattr(world->fs, file, "user.a");
		attr = attributes(world, file);
		assert_int_equal(attr.st_mtim.tv_sec, 1000);
		assert_int_equal(attr.st_ctim.tv_sec == 1000, i == 2);
	}
}

/* Many attributes on many kinds of inodes, against a plain array. */
static void test_against_a_model(void **state)
{
	enum {
		NAMES = 12,
		ROUNDS = 4000,
		MOST = 3000
	};
	struct world *world = *state;
	static char model[NAMES][MOST];
	ssize_t sizes[NAMES];
	ino_t ino = make_dir(world, ROOT, "d");
	uint64_t random = 4711;
	char name[16];

	for (int i = 0; i < NAMES; i++)
		sizes[i] = -ENODATA;
	for (int round = 0; round < ROUNDS; round++) {
		int i = random_below(&random, NAMES);
		size_t size = random_below(&random, MOST);

		snprintf(name, sizeof(name), "user.%d", i);
		if (random_below(&random, 3)) {
			fill(model[i], size, round);
			sizes[i] = size;
			assert_int_equal(fs_setxattr(world->fs, ino, name,
						     model[i], size, 0),
					 0);
		} else {
			assert_int_equal(fs_removexattr(world->fs, ino, name),
					 sizes[i] < 0 ? -ENODATA : 0);
			sizes[i] = -ENODATA;
		}
		i = random_below(&random, NAMES);
		snprintf(name, sizeof(name), "user.%d", i);
		if (sizes[i] < 0)
			assert_int_equal(
				fs_getxattr(world->fs, ino, name, NULL, 0),
				-ENODATA);
		else
			expect_xattr(world, ino, name, model[i], sizes[i]);
	}
}

static void test_xattrs_die_with_their_inode(void **state)
{
	struct world *world = *state;
	ino_t file = make_held(world, ROOT, "f", S_IFREG);
	static char value[BLOB_MAX];
	struct slab_usage before, after;

	slab_usage(world->fs->blocks, &before);
	fill(value, sizeof(value), 1);
	assert_int_equal(
		fs_setxattr(world->fs, file, "user.a", value, sizeof(value), 0),
		0);
	assert_int_equal(fs_setxattr(world->fs, file, "user.b", value, 20, 0),
			 0);
	assert_int_equal(fs_unlink(world->fs, ROOT, "f"), 0);
	expect_xattr(world, file, "user.a", value, sizeof(value));
	fs_forget(world->fs, file, 1);
	slab_usage(world->fs->blocks, &after);
	assert_int_equal(after.blocks, before.blocks - 1); /* its name */
}

int main(void)
{
#define test(name) \
	cmocka_unit_test_setup_teardown(name, fs_world_setup, fs_world_teardown)
	const struct CMUnitTest tests[] = {
		test(test_namespaces),
		test(test_create_and_replace),
		test(test_values_of_any_length),
		test(test_long_names),
		test(test_lists),
		test(test_a_list_has_an_end),
		test(test_ctime),
		test(test_against_a_model),
		test(test_xattrs_die_with_their_inode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
