/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_acl.c - POSIX ACLs: what is a list, how it goes with the mode, how it
 * is inherited
 */
#include "fs_world.h"

#include <endian.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/xattr.h>

#include "fs/acl.h"
#include "fs/xattr.h"

struct list {
	struct posix_acl_xattr_header header;
	struct posix_acl_xattr_entry entries[16];
	size_t count;
};

static void add(struct list *list, unsigned int tag, unsigned int perm,
		uint32_t id)
{
	struct posix_acl_xattr_entry *entry = &list->entries[list->count++];

	list->header.a_version = htole32(POSIX_ACL_XATTR_VERSION);
	entry->e_tag = htole16(tag);
	entry->e_perm = htole16(perm);
	entry->e_id = htole32(id);
}

static size_t size_of(const struct list *list)
{
	return sizeof(list->header) + list->count * sizeof(*list->entries);
}

static struct list minimal(mode_t mode)
{
	struct list list = {0};

	add(&list, ACL_USER_OBJ, mode >> 6 & 7, ACL_UNDEFINED_ID);
	add(&list, ACL_GROUP_OBJ, mode >> 3 & 7, ACL_UNDEFINED_ID);
	add(&list, ACL_OTHER, mode & 7, ACL_UNDEFINED_ID);
	return list;
}

/* u::rwx u:7:rw- g::r-x g:8:rwx m::mask o::other */
static struct list extended(unsigned int mask, unsigned int other)
{
	struct list list = {0};

	add(&list, ACL_USER_OBJ, 7, ACL_UNDEFINED_ID);
	add(&list, ACL_USER, 6, 7);
	add(&list, ACL_GROUP_OBJ, 5, ACL_UNDEFINED_ID);
	add(&list, ACL_GROUP, 7, 8);
	add(&list, ACL_MASK, mask, ACL_UNDEFINED_ID);
	add(&list, ACL_OTHER, other, ACL_UNDEFINED_ID);
	return list;
}

static int validate(const struct list *list)
{
	return acl_validate(list, size_of(list));
}

static void test_valid_lists(void **state)
{
	struct list list = minimal(0754);

	assert_int_equal(validate(&list), 0);
	assert_true(acl_is_minimal(&list, size_of(&list)));
	assert_int_equal(acl_mode(&list, size_of(&list)), 0754);

	list = extended(6, 1);
	assert_int_equal(validate(&list), 0);
	assert_false(acl_is_minimal(&list, size_of(&list)));
	/* The mask, and not the group, is what the mode shows. */
	assert_int_equal(acl_mode(&list, size_of(&list)), 0761);

	list.count = 0;
	assert_int_equal(validate(&list), 0);
	assert_true(acl_is_empty(&list, size_of(&list)));
}

static void test_invalid_lists(void **state)
{
	struct list list = minimal(0754);

	assert_int_equal(acl_validate(&list, 3), -EINVAL);
	assert_int_equal(acl_validate(&list, size_of(&list) - 1), -EINVAL);
	list.header.a_version = htole32(1);
	assert_int_equal(validate(&list), -EINVAL);

	list = minimal(0754); /* an entry missing */
	list.count = 2;
	assert_int_equal(validate(&list), -EINVAL);

	list = minimal(0754); /* one twice */
	add(&list, ACL_OTHER, 0, ACL_UNDEFINED_ID);
	assert_int_equal(validate(&list), -EINVAL);

	list = minimal(0754); /* out of order */
	list.entries[0].e_tag = htole16(ACL_GROUP_OBJ);
	list.entries[1].e_tag = htole16(ACL_USER_OBJ);
	assert_int_equal(validate(&list), -EINVAL);

	list = minimal(0754); /* no such permission */
	list.entries[1].e_perm = htole16(8);
	assert_int_equal(validate(&list), -EINVAL);

	list = minimal(0754); /* no such tag */
	list.entries[2].e_tag = htole16(0x40);
	assert_int_equal(validate(&list), -EINVAL);

	list = extended(7, 0); /* named, but no mask */
	list.entries[4] = list.entries[5];
	list.count--;
	assert_int_equal(validate(&list), -EINVAL);

	list = extended(7, 0); /* nobody named */
	list.entries[1].e_id = htole32(ACL_UNDEFINED_ID);
	assert_int_equal(validate(&list), -EINVAL);
}

static void test_chmod_of_a_list(void **state)
{
	struct list list = extended(7, 7), other = extended(4, 1);

	other.entries[0].e_perm = htole16(2);
	acl_set_mode(&list, size_of(&list), 0241);
	assert_memory_equal(&list, &other, sizeof(list));

	list = minimal(0777);
	other = minimal(0241);
	acl_set_mode(&list, size_of(&list), 0241);
	assert_memory_equal(&list, &other, sizeof(list));
}

static void test_inheriting_a_list(void **state)
{
	struct list list = extended(6, 5), other = extended(4, 1);

	other.entries[0].e_perm = htole16(6);
	assert_int_equal(acl_inherit(&list, size_of(&list), S_IFREG | 06653),
			 S_IFREG | 06641);
	assert_memory_equal(&list, &other, sizeof(list));
}

/* --- in a filesystem --------------------------------------------------- */

static int set(struct world *world, ino_t ino, const char *name,
	       const struct list *list)
{
	return fs_setxattr(world->fs, ino, name, list, size_of(list), 0);
}

static void expect_list(struct world *world, ino_t ino, const char *name,
			const struct list *list)
{
	struct list found = {0};

	assert_int_equal(
		fs_getxattr(world->fs, ino, name, &found, sizeof(found)),
		size_of(list));
	assert_memory_equal(&found, list, size_of(list));
}

static void expect_none(struct world *world, ino_t ino, const char *name)
{
	assert_int_equal(fs_getxattr(world->fs, ino, name, NULL, 0), -ENODATA);
}

static mode_t mode_of(struct world *world, ino_t ino)
{
	return attributes(world, ino).st_mode & 07777;
}

static void test_a_list_sets_the_mode(void **state)
{
	struct world *world = *state;
	ino_t file = make_file(world, ROOT, "f");
	struct list list = extended(6, 1);
	struct stat attr = {.st_mode = 04640};

	assert_int_equal(set(world, file, ACL_NAME_ACCESS, &list), 0);
	assert_int_equal(mode_of(world, file), 0761);
	expect_list(world, file, ACL_NAME_ACCESS, &list);

	/* chmod changes the list. */
	assert_int_equal(fs_setattr(world->fs, file, FS_SET_MODE, &attr, &attr),
			 0);
	list = extended(4, 0);
	list.entries[0].e_perm = htole16(6);
	expect_list(world, file, ACL_NAME_ACCESS, &list);
	assert_int_equal(mode_of(world, file), 04640);
	world_check(world);

	/* A list that says what a mode can say is not stored. */
	list = minimal(0751);
	assert_int_equal(set(world, file, ACL_NAME_ACCESS, &list), 0);
	expect_none(world, file, ACL_NAME_ACCESS);
	assert_int_equal(mode_of(world, file), 04751);
}

static void test_removing_a_list(void **state)
{
	struct world *world = *state;
	ino_t file = make_file(world, ROOT, "f");
	struct list list = extended(6, 1), empty = {0};

	assert_int_equal(set(world, file, ACL_NAME_ACCESS, &list), 0);
	assert_int_equal(fs_removexattr(world->fs, file, ACL_NAME_ACCESS), 0);
	expect_none(world, file, ACL_NAME_ACCESS);
	assert_int_equal(mode_of(world, file), 0761);
	/* As it is with a mode alone. */
	assert_int_equal(fs_removexattr(world->fs, file, ACL_NAME_ACCESS), 0);

	assert_int_equal(set(world, file, ACL_NAME_ACCESS, &list), 0);
	empty.header = list.header;
	assert_int_equal(set(world, file, ACL_NAME_ACCESS, &empty), 0);
	expect_none(world, file, ACL_NAME_ACCESS);
}

static void test_where_lists_can_be(void **state)
{
	struct world *world = *state;
	ino_t file = make_file(world, ROOT, "f");
	ino_t link = make(world, ROOT, "l", S_IFLNK | 0777);
	ino_t dir = make_dir(world, ROOT, "d");
	struct list list = extended(6, 1), bad = list;

	assert_int_equal(set(world, file, ACL_NAME_DEFAULT, &list), -EACCES);
	assert_int_equal(set(world, link, ACL_NAME_ACCESS, &list), -EOPNOTSUPP);
	assert_int_equal(set(world, dir, ACL_NAME_DEFAULT, &list), 0);
	assert_int_equal(mode_of(world, dir), 0755);
	expect_list(world, dir, ACL_NAME_DEFAULT, &list);
	expect_none(world, dir, ACL_NAME_ACCESS);

	bad.entries[0].e_perm = htole16(9);
	assert_int_equal(set(world, file, ACL_NAME_ACCESS, &bad), -EINVAL);
	assert_int_equal(set(world, dir, ACL_NAME_DEFAULT, &bad), -EINVAL);
	expect_list(world, dir, ACL_NAME_DEFAULT, &list);
}

static void test_inheritance(void **state)
{
	struct world *world = *state;
	struct fs_caller caller = {.umask = 077};
	ino_t dir = make_dir(world, ROOT, "d");
	struct list given = extended(7, 5), list;
	struct fs_entry entry;

	assert_int_equal(set(world, dir, ACL_NAME_DEFAULT, &given), 0);

	/* The list takes the umask's place. */
	assert_int_equal(fs_make(world->fs, &caller, dir, "f", S_IFREG | 0664,
				 0, NULL, &entry),
			 0);
	assert_int_equal(entry.attr.st_mode, S_IFREG | 0664);
	list = extended(6, 4);
	list.entries[0].e_perm = htole16(6);
	expect_list(world, entry.ino, ACL_NAME_ACCESS, &list);
	expect_none(world, entry.ino, ACL_NAME_DEFAULT);
	fs_forget(world->fs, entry.ino, 1);

	assert_int_equal(fs_make(world->fs, &caller, dir, "s", S_IFDIR | 0770,
				 0, NULL, &entry),
			 0);
	assert_int_equal(entry.attr.st_mode, S_IFDIR | 0770);
	list = extended(7, 0);
	expect_list(world, entry.ino, ACL_NAME_ACCESS, &list);
	expect_list(world, entry.ino, ACL_NAME_DEFAULT, &given);
	fs_forget(world->fs, entry.ino, 1);

	assert_int_equal(fs_make(world->fs, &caller, dir, "l", S_IFLNK | 0777,
				 0, "t", &entry),
			 0);
	expect_none(world, entry.ino, ACL_NAME_ACCESS);
	fs_forget(world->fs, entry.ino, 1);

	assert_int_equal(fs_make_unnamed(world->fs, &caller, dir, 0600, &entry),
			 0);
	list = extended(0, 0);
	list.entries[0].e_perm = htole16(6);
	expect_list(world, entry.ino, ACL_NAME_ACCESS, &list);
	fs_forget(world->fs, entry.ino, 1);

	/* A minimal default list leaves a mode and nothing else. */
	given = minimal(0750);
	assert_int_equal(set(world, dir, ACL_NAME_DEFAULT, &given), 0);
	assert_int_equal(fs_make(world->fs, &caller, dir, "g", S_IFREG | 0666,
				 0, NULL, &entry),
			 0);
	assert_int_equal(entry.attr.st_mode, S_IFREG | 0640);
	expect_none(world, entry.ino, ACL_NAME_ACCESS);
	fs_forget(world->fs, entry.ino, 1);

	/* None: the umask counts again. */
	assert_int_equal(fs_removexattr(world->fs, dir, ACL_NAME_DEFAULT), 0);
	assert_int_equal(fs_make(world->fs, &caller, dir, "h", S_IFREG | 0666,
				 0, NULL, &entry),
			 0);
	assert_int_equal(entry.attr.st_mode, S_IFREG | 0600);
	fs_forget(world->fs, entry.ino, 1);
}

/*
 * A list that is stored is the truth. The program may die after it was stored
 * and before the mode was; the mode then follows.
 */
static void test_the_mode_follows_the_list_after_a_crash(void **state)
{
	struct world *world = *state;
	ino_t file = make_file(world, ROOT, "f");
	struct list list = extended(6, 1);

	assert_int_equal(set(world, file, ACL_NAME_ACCESS, &list), 0);
	inode_get(world->fs, file)->mode = S_IFREG | 04600;
	assert_int_equal(world_findings(world), 1);
	world_crash(world);
	assert_int_equal(mode_of(world, file), 04761);
	expect_list(world, file, ACL_NAME_ACCESS, &list);
}

int main(void)
{
#define test(name) \
	cmocka_unit_test_setup_teardown(name, fs_world_setup, fs_world_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid_lists),
		cmocka_unit_test(test_invalid_lists),
		cmocka_unit_test(test_chmod_of_a_list),
		cmocka_unit_test(test_inheriting_a_list),
		test(test_a_list_sets_the_mode),
		test(test_removing_a_list),
		test(test_where_lists_can_be),
		test(test_inheritance),
		test(test_the_mode_follows_the_list_after_a_crash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
