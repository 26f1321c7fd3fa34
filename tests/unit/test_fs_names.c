/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_fs_names.c - names: what making, looking up, linking, unlinking,
 * renaming and listing do, and how long inodes live
 */
#include "fs_world.h"

#include <linux/fs.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/sysmacros.h>

static int try_make(struct world *world, ino_t parent, const char *name,
		    mode_t mode)
{
	struct fs_entry entry;
	int error = fs_make(world->fs, &world_caller, parent, name, mode, 0,
			    S_ISLNK(mode) ? "target" : NULL, &entry);

	if (!error)
		fs_forget(world->fs, entry.ino, 1);
	return error;
}

static int try_lookup(struct world *world, ino_t parent, const char *name)
{
	struct fs_entry entry;
	int error = fs_lookup(world->fs, parent, name, &entry);

	if (!error)
		fs_forget(world->fs, entry.ino, 1);
	return error;
}

static unsigned int links(struct world *world, ino_t ino)
{
	return attributes(world, ino).st_nlink;
}

/* --- making and looking up --------------------------------------------- */

static void test_root(void **state)
{
	struct world *world = *state;
	struct stat attr = attributes(world, ROOT);

	assert_int_equal(attr.st_mode, S_IFDIR | 0755);
	assert_int_equal(attr.st_nlink, 2);
	assert_int_equal(attr.st_ino, ROOT);
	/* As tmpfs: 20 bytes for each entry, "." and ".." too. */
	assert_int_equal(attr.st_size, 40);
	assert_int_equal(attr.st_blksize, 4096);
	assert_int_equal(find(world, ROOT, "."), ROOT);
	assert_int_equal(find(world, ROOT, ".."), ROOT);
}

static void test_every_type(void **state)
{
	static const mode_t types[] = {S_IFREG,	 S_IFDIR, S_IFLNK, S_IFIFO,
				       S_IFSOCK, S_IFCHR, S_IFBLK};
	struct world *world = *state;
	struct fs_entry made, found;
	dev_t rdev = makedev(259, 70000);
	char name[2] = "a";

	for (size_t i = 0; i < 7; i++, name[0]++) {
		mode_t mode = types[i] | 0640;

		assert_int_equal(fs_make(world->fs, &world_caller, ROOT, name,
					 mode, rdev, "where", &made),
				 0);
		assert_int_equal(made.attr.st_mode, mode);
		assert_int_equal(made.attr.st_nlink, S_ISDIR(mode) ? 2 : 1);
		assert_int_equal(made.attr.st_ino, made.ino);
		assert_int_equal(made.attr.st_rdev,
				 S_ISCHR(mode) || S_ISBLK(mode) ? rdev : 0);
		assert_int_equal(fs_lookup(world->fs, ROOT, name, &found), 0);
		assert_memory_equal(&made, &found, sizeof(made));
		fs_forget(world->fs, made.ino, 2);
	}
	assert_int_equal(attributes(world, ROOT).st_size, 40 + 7 * 20);
	assert_int_equal(links(world, ROOT), 3);
	assert_int_equal(try_make(world, ROOT, "x", 0644), -EINVAL);
}

static void test_names(void **state)
{
	struct world *world = *state;
	ino_t file = make_file(world, ROOT, "file");
	char longest[257];

	memset(longest, 'n', 256);
	longest[256] = '\0';
	assert_int_equal(try_make(world, ROOT, longest, S_IFREG),
			 -ENAMETOOLONG);
	assert_int_equal(try_lookup(world, ROOT, longest), -ENAMETOOLONG);
	longest[255] = '\0';
	assert_int_equal(try_make(world, ROOT, longest, S_IFREG), 0);
	assert_int_equal(try_lookup(world, ROOT, longest), 0);
	longest[254] = '\0';
	assert_int_equal(try_lookup(world, ROOT, longest), -ENOENT);

	assert_int_equal(try_make(world, ROOT, "file", S_IFDIR), -EEXIST);
	assert_int_equal(try_make(world, ROOT, ".", S_IFDIR), -EEXIST);
	assert_int_equal(try_make(world, ROOT, "..", S_IFDIR), -EEXIST);
	assert_int_equal(try_make(world, ROOT, "...", S_IFDIR), 0);
	assert_int_equal(try_make(world, ROOT, "", S_IFDIR), -ENOENT);
	assert_int_equal(try_make(world, file, "x", S_IFREG), -ENOTDIR);
	assert_int_equal(try_lookup(world, file, "x"), -ENOTDIR);
	assert_int_equal(try_lookup(world, file, "."), -ENOTDIR);
	assert_int_equal(try_lookup(world, ROOT, "nothing"), -ENOENT);
	assert_int_equal(try_lookup(world, 987654, "x"), -ENOENT);
}

static void test_equal_names_in_many_directories(void **state)
{
	struct world *world = *state;
	ino_t dirs[300], files[300];
	char name[16];

	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "%d", i);
		dirs[i] = make_dir(world, ROOT, name);
		files[i] = make_file(world, dirs[i], "x");
	}
	for (int i = 0; i < 300; i++) {
		assert_int_equal(find(world, dirs[i], "x"), files[i]);
		assert_int_equal(find(world, dirs[i], ".."), ROOT);
		assert_int_equal(find(world, dirs[i], "."), dirs[i]);
	}
}

static void test_mode_owner_and_group(void **state)
{
	struct world *world = *state;
	struct fs_caller caller = {.uid = 7, .gid = 8, .umask = 027};
	struct fs_entry file, dir, link;
	struct stat attr = {.st_mode = S_ISGID | 0777, .st_gid = 99};

	assert_int_equal(fs_make(world->fs, &caller, ROOT, "a", S_IFREG | 06666,
				 0, NULL, &file),
			 0);
	assert_int_equal(file.attr.st_mode, S_IFREG | 06640);
	assert_int_equal(file.attr.st_uid, 7);
	assert_int_equal(file.attr.st_gid, 8);

	assert_int_equal(fs_setattr(world->fs, ROOT, FS_SET_MODE | FS_SET_GID,
				    &attr, &attr),
			 0);
	assert_int_equal(fs_make(world->fs, &caller, ROOT, "b", S_IFREG | 0666,
				 0, NULL, &file),
			 0);
	assert_int_equal(file.attr.st_mode, S_IFREG | 0640);
	assert_int_equal(file.attr.st_gid, 99);
	assert_int_equal(fs_make(world->fs, &caller, ROOT, "c", S_IFDIR | 0777,
				 0, NULL, &dir),
			 0);
	assert_int_equal(dir.attr.st_mode, S_IFDIR | S_ISGID | 0750);
	assert_int_equal(dir.attr.st_gid, 99);
	/* A symlink's mode is no matter of the umask. */
	assert_int_equal(fs_make(world->fs, &caller, ROOT, "d", S_IFLNK | 0777,
				 0, "t", &link),
			 0);
	assert_int_equal(link.attr.st_mode, S_IFLNK | 0777);
}

static void test_generations_differ(void **state)
{
	struct world *world = *state;
	struct fs_entry first, second;

	for (int i = 0; i < 2; i++) {
		struct fs_entry *entry = i ? &second : &first;

		assert_int_equal(fs_make(world->fs, &world_caller, ROOT, "x",
					 S_IFREG, 0, NULL, entry),
				 0);
		assert_int_equal(fs_unlink(world->fs, ROOT, "x"), 0);
		fs_forget(world->fs, entry->ino, 1);
	}
	assert_int_equal(first.ino, second.ino);
	assert_true(first.generation != second.generation);
}

static void test_symlinks(void **state)
{
	static const size_t lengths[] = {1,   12,   60,	  508,	509,
					 512, 1024, 2044, 4092, 4095};
	struct world *world = *state;
	char target[4200], buffer[4200];
	struct fs_entry entry;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		size_t length = lengths[i];

		for (size_t j = 0; j < length; j++)
			target[j] = 'a' + (j * 7 + i) % 26;
		target[length] = '\0';
		assert_int_equal(fs_make(world->fs, &world_caller, ROOT, "l",
					 S_IFLNK | 0777, 0, target, &entry),
				 0);
		assert_int_equal(entry.attr.st_size, length);
		assert_int_equal(fs_readlink(world->fs, entry.ino, buffer,
					     sizeof(buffer)),
				 length);
		assert_memory_equal(buffer, target, length);
		assert_int_equal(fs_readlink(world->fs, entry.ino, buffer, 1),
				 1);
		world_check(world);
		assert_int_equal(fs_unlink(world->fs, ROOT, "l"), 0);
		fs_forget(world->fs, entry.ino, 1);
	}
	memset(target, 'x', 4096);
	target[4096] = '\0';
	assert_int_equal(fs_make(world->fs, &world_caller, ROOT, "l",
				 S_IFLNK | 0777, 0, target, &entry),
			 -ENAMETOOLONG);
	assert_int_equal(fs_make(world->fs, &world_caller, ROOT, "l",
				 S_IFLNK | 0777, 0, "", &entry),
			 -ENOENT);
	assert_int_equal(fs_readlink(world->fs, ROOT, buffer, 10), -EINVAL);
}

/* --- links and lifetime ------------------------------------------------ */

static void test_links(void **state)
{
	struct world *world = *state;
	ino_t dir = make_dir(world, ROOT, "dir");
	ino_t file = make_held(world, ROOT, "a", S_IFREG);
	struct fs_entry entry;

	assert_int_equal(fs_link(world->fs, file, dir, "b", &entry), 0);
	assert_int_equal(entry.ino, file);
	assert_int_equal(entry.attr.st_nlink, 2);
	assert_int_equal(fs_link(world->fs, file, dir, "b", &entry), -EEXIST);
	assert_int_equal(fs_link(world->fs, dir, ROOT, "c", &entry), -EPERM);
	assert_int_equal(fs_link(world->fs, file, file, "c", &entry), -ENOTDIR);
	assert_int_equal(fs_link(world->fs, 987654, ROOT, "c", &entry),
			 -ENOENT);
	assert_int_equal(find(world, dir, "b"), file);

	assert_int_equal(fs_unlink(world->fs, ROOT, "a"), 0);
	assert_int_equal(links(world, file), 1);
	assert_int_equal(fs_unlink(world->fs, ROOT, "a"), -ENOENT);
	assert_int_equal(fs_unlink(world->fs, dir, "b"), 0);
	assert_int_equal(links(world, file), 0);
	fs_forget(world->fs, file, 1);
	assert_true(is_live(world, file));
	fs_forget(world->fs, file, 1);
	assert_false(is_live(world, file));
}

static void test_too_many_links(void **state)
{
	struct world *world = *state;
	ino_t file = make_file(world, ROOT, "a");
	struct inode *inode = inode_get(world->fs, file);
	struct fs_entry entry;

	inode->nlink = FS_LINK_MAX;
	assert_int_equal(fs_link(world->fs, file, ROOT, "b", &entry), -EMLINK);
	inode->nlink = 1;
}

static void test_an_inode_lives_while_named_or_looked_up(void **state)
{
	struct world *world = *state;
	ino_t file = make_held(world, ROOT, "f", S_IFREG);
	struct fs_entry entry;

	/* Unlinked, then forgotten. */
	assert_int_equal(fs_write(world->fs, file, "data", 4, 0, false), 4);
	assert_int_equal(fs_lookup(world->fs, ROOT, "f", &entry), 0);
	assert_int_equal(fs_unlink(world->fs, ROOT, "f"), 0);
	assert_true(is_live(world, file));
	fs_forget(world->fs, file, 1);
	assert_true(is_live(world, file));
	world_check(world);
	fs_forget(world->fs, file, 1);
	assert_false(is_live(world, file));
	assert_int_equal(world->fs->root->used_pages, 0);

	/* Forgotten, then unlinked. */
	file = make_file(world, ROOT, "f");
	assert_true(is_live(world, file));
	assert_int_equal(fs_unlink(world->fs, ROOT, "f"), 0);
	assert_false(is_live(world, file));
	assert_int_equal(fs_getattr(world->fs, file, &entry.attr), -ENOENT);
	assert_int_equal(world->fs->root->used_inodes, 1);
}

static void test_forgetting_too_much(void **state)
{
	struct world *world = *state;
	ino_t file = make_held(world, ROOT, "f", S_IFREG);

	fs_forget(world->fs, file, 1000);
	assert_true(is_live(world, file));
	assert_int_equal(inode_get(world->fs, file)->lookups, 0);
	fs_forget(world->fs, 987654, 1);
	fs_forget(world->fs, ROOT, 1000);
	assert_true(is_live(world, ROOT));
}

static void test_numbers_that_are_no_inodes(void **state)
{
	struct world *world = *state;
	ino_t file = make_file(world, ROOT, "f");
	struct fs_entry entry;

	for (ino_t ino = 0; ino < 4096; ino++) {
		bool live = ino == ROOT || ino == file;

		assert_int_equal(fs_lookup_ino(world->fs, ino, &entry),
				 live ? 0 : -ESTALE);
		if (live)
			fs_forget(world->fs, ino, 1);
	}
	assert_int_equal(fs_lookup_ino(world->fs, UINT64_MAX, &entry), -ESTALE);
	assert_int_equal(
		fs_lookup_ino(world->fs, file | UINT64_C(1) << 32, &entry),
		-ESTALE);
}

static void test_unnamed_files(void **state)
{
	struct world *world = *state;
	struct fs_entry entry, linked;
	ino_t dir = make_held(world, ROOT, "d", S_IFDIR);

	assert_int_equal(
		fs_make_unnamed(world->fs, &world_caller, ROOT, 0600, &entry),
		0);
	assert_int_equal(entry.attr.st_nlink, 0);
	assert_int_equal(entry.attr.st_mode, S_IFREG | 0600);
	/* No handle leads to what has no name. */
	assert_int_equal(fs_lookup_ino(world->fs, entry.ino, &linked), -ESTALE);
	world_check(world);
	fs_forget(world->fs, entry.ino, 1);
	assert_false(is_live(world, entry.ino));

	assert_int_equal(
		fs_make_unnamed(world->fs, &world_caller, ROOT, 0600, &entry),
		0);
	assert_int_equal(fs_link(world->fs, entry.ino, ROOT, "named", &linked),
			 0);
	assert_int_equal(linked.attr.st_nlink, 1);
	fs_forget(world->fs, entry.ino, 2);
	assert_true(is_live(world, entry.ino));

	assert_int_equal(fs_make_unnamed(world->fs, &world_caller, entry.ino,
					 0600, &linked),
			 -ENOTDIR);
	/* A removed directory takes no names; this has none. */
	assert_int_equal(fs_rmdir(world->fs, ROOT, "d"), 0);
	assert_int_equal(
		fs_make_unnamed(world->fs, &world_caller, dir, 0600, &linked),
		0);
	fs_forget(world->fs, linked.ino, 1);
	fs_forget(world->fs, dir, 1);
}

/* --- removing ---------------------------------------------------------- */

static void test_removing_the_wrong_thing(void **state)
{
	struct world *world = *state;
	ino_t dir = make_dir(world, ROOT, "dir");

	make_file(world, ROOT, "file");
	assert_int_equal(fs_unlink(world->fs, ROOT, "dir"), -EISDIR);
	assert_int_equal(fs_rmdir(world->fs, ROOT, "file"), -ENOTDIR);
	assert_int_equal(fs_rmdir(world->fs, ROOT, "none"), -ENOENT);
	assert_int_equal(fs_rmdir(world->fs, ROOT, "."), -EINVAL);
	make_file(world, dir, "x");
	assert_int_equal(fs_rmdir(world->fs, ROOT, "dir"), -ENOTEMPTY);
	assert_int_equal(fs_unlink(world->fs, dir, "x"), 0);
	assert_int_equal(fs_rmdir(world->fs, ROOT, "dir"), 0);
	assert_int_equal(links(world, ROOT), 2);
}

static bool count_entry(void *context, const char *name,
			const struct fs_entry *entry, uint64_t cursor)
{
	++*(unsigned int *)context;
	return true;
}

static void test_a_removed_directory_takes_nothing(void **state)
{
	struct world *world = *state;
	ino_t dir = make_held(world, ROOT, "dir", S_IFDIR | 0755);
	ino_t file = make_held(world, ROOT, "file", S_IFREG);
	struct fs_entry entry;
	unsigned int count = 0;

	assert_int_equal(fs_rmdir(world->fs, ROOT, "dir"), 0);
	assert_int_equal(links(world, dir), 0);
	assert_int_equal(try_make(world, dir, "x", S_IFREG), -ENOENT);
	assert_int_equal(try_make(world, dir, "x", S_IFDIR), -ENOENT);
	assert_int_equal(fs_link(world->fs, file, dir, "x", &entry), -ENOENT);
	assert_int_equal(move(world, ROOT, "file", dir, "x", 0), -ENOENT);
	assert_int_equal(try_lookup(world, dir, "x"), -ENOENT);
	assert_int_equal(try_lookup(world, dir, ".."), -ENOENT);
	assert_int_equal(
		fs_readdir(world->fs, dir, 0, false, count_entry, &count),
		-ENOENT);
	world_check(world);
	fs_forget(world->fs, dir, 1);
	fs_forget(world->fs, file, 1);
	assert_false(is_live(world, dir));
}

static void test_link_counts_of_directories(void **state)
{
	struct world *world = *state;
	ino_t a = make_dir(world, ROOT, "a");
	ino_t b = make_dir(world, ROOT, "b");
	ino_t sub = make_dir(world, a, "sub");

	assert_int_equal(links(world, ROOT), 4);
	assert_int_equal(links(world, a), 3);
	assert_int_equal(move(world, a, "sub", b, "sub", 0), 0);
	assert_int_equal(links(world, a), 2);
	assert_int_equal(links(world, b), 3);
	assert_int_equal(find(world, sub, ".."), b);
	make_dir(world, a, "sub");
	/* Replacing an empty directory by one. */
	assert_int_equal(move(world, b, "sub", a, "sub", 0), 0);
	assert_int_equal(links(world, a), 3);
	assert_int_equal(links(world, b), 2);
	assert_int_equal(find(world, sub, ".."), a);
	/* Exchanging a directory and a file. */
	make_file(world, b, "file");
	assert_int_equal(move(world, a, "sub", b, "file", RENAME_EXCHANGE), 0);
	assert_int_equal(links(world, a), 2);
	assert_int_equal(links(world, b), 3);
	assert_int_equal(find(world, b, "file"), sub);
	assert_int_equal(find(world, sub, ".."), b);
}

/* --- renaming ---------------------------------------------------------- */

enum kind {
	NONE,
	FILE_,
	DIR_,
	FULL_,
	KINDS
};

static ino_t make_kind(struct world *world, ino_t parent, const char *name,
		       enum kind kind)
{
	ino_t ino;

	switch (kind) {
	case FILE_:
		return make_file(world, parent, name);
	case DIR_:
		return make_dir(world, parent, name);
	case FULL_:
		ino = make_dir(world, parent, name);
		make_file(world, ino, "inside");
		return ino;
	default:
		return 0;
	}
}

static void remove_kind(struct world *world, ino_t parent, const char *name)
{
	ino_t ino = find(world, parent, name);

	if (!ino)
		return;
	if (!S_ISDIR(attributes(world, ino).st_mode)) {
		assert_int_equal(fs_unlink(world->fs, parent, name), 0);
		return;
	}
	fs_unlink(world->fs, ino, "inside");
	assert_int_equal(fs_rmdir(world->fs, parent, name), 0);
}

/* rename(2), as the manual page tells it. */
static int expected(enum kind from, enum kind to, unsigned int flags)
{
	bool directory = from != FILE_;

	if (flags & ~7u || (flags & RENAME_EXCHANGE && flags & ~2u))
		return -EINVAL;
	if (from == NONE)
		return -ENOENT;
	if (flags & RENAME_EXCHANGE)
		return to == NONE ? -ENOENT : 0;
	if (to == NONE)
		return 0;
	if (flags & RENAME_NOREPLACE)
		return -EEXIST;
	if (directory && to == FILE_)
		return -ENOTDIR;
	if (!directory && to != FILE_)
		return -EISDIR;
	return to == FULL_ ? -ENOTEMPTY : 0;
}

static void expect_renamed(struct world *world, ino_t parent, ino_t new_parent,
			   ino_t from, ino_t to, unsigned int flags)
{
	ino_t left = find(world, parent, "old");

	assert_int_equal(find(world, new_parent, "new"), from);
	if (flags & RENAME_EXCHANGE) {
		assert_int_equal(left, to);
	} else if (flags & RENAME_WHITEOUT) {
		struct stat attr = attributes(world, left);

		assert_int_equal(attr.st_mode, S_IFCHR);
		assert_int_equal(attr.st_rdev, 0);
		assert_int_equal(attr.st_nlink, 1);
	} else {
		assert_int_equal(left, 0);
	}
	if (to && !(flags & RENAME_EXCHANGE))
		assert_false(is_live(world, to));
}

static void rename_one(struct world *world, ino_t parent, ino_t new_parent,
		       enum kind from, enum kind to, unsigned int flags)
{
	ino_t old = make_kind(world, parent, "old", from);
	ino_t new = make_kind(world, new_parent, "new", to);
	int error = move(world, parent, "old", new_parent, "new", flags);

	assert_int_equal(error, expected(from, to, flags));
	if (error) {
		assert_int_equal(find(world, parent, "old"), old);
		assert_int_equal(find(world, new_parent, "new"), new);
	} else {
		expect_renamed(world, parent, new_parent, old, new, flags);
	}
	world_check(world);
	remove_kind(world, parent, "old");
	remove_kind(world, new_parent, "new");
}

static void test_rename_matrix(void **state)
{
	struct world *world = *state;
	ino_t a = make_dir(world, ROOT, "a");
	ino_t b = make_dir(world, ROOT, "b");

	for (int across = 0; across < 2; across++)
		for (int from = NONE; from < KINDS; from++)
			for (int to = NONE; to < KINDS; to++)
				for (unsigned int flags = 0; flags < 9; flags++)
					rename_one(world, a, across ? b : a,
						   from, to, flags);
}

static void test_rename_of_one_file_does_nothing(void **state)
{
	struct world *world = *state;
	ino_t file = make_held(world, ROOT, "a", S_IFREG);
	struct fs_entry entry;

	assert_int_equal(fs_link(world->fs, file, ROOT, "b", &entry), 0);
	fs_forget(world->fs, file, 2);
	assert_int_equal(move(world, ROOT, "a", ROOT, "b", 0), 0);
	assert_int_equal(move(world, ROOT, "a", ROOT, "a", 0), 0);
	assert_int_equal(find(world, ROOT, "a"), file);
	assert_int_equal(find(world, ROOT, "b"), file);
	assert_int_equal(links(world, file), 2);
	assert_int_equal(move(world, ROOT, "a", ROOT, "b", RENAME_NOREPLACE),
			 -EEXIST);
}

static void test_whiteout_belongs_to_the_caller(void **state)
{
	struct world *world = *state;
	struct fs_caller caller = {.uid = 5, .gid = 6, .umask = 077};

	make_file(world, ROOT, "a");
	assert_int_equal(fs_rename(world->fs, &caller, ROOT, "a", ROOT, "b",
				   RENAME_WHITEOUT),
			 0);
	assert_int_equal(attributes(world, find(world, ROOT, "a")).st_uid, 5);
	assert_int_equal(attributes(world, find(world, ROOT, "a")).st_gid, 6);
	assert_int_equal(attributes(world, ROOT).st_size, 40 + 2 * 20);
}

static void test_a_replaced_file_lives_while_looked_up(void **state)
{
	struct world *world = *state;
	ino_t victim = make_held(world, ROOT, "b", S_IFREG);

	assert_int_equal(fs_write(world->fs, victim, "text", 4, 0, false), 4);
	make_file(world, ROOT, "a");
	assert_int_equal(move(world, ROOT, "a", ROOT, "b", 0), 0);
	assert_int_equal(links(world, victim), 0);
	world_check(world);
	fs_forget(world->fs, victim, 1);
	assert_false(is_live(world, victim));
}

/* --- times ------------------------------------------------------------- */

static const struct timespec past = {.tv_sec = 1000};

static int compare_times(const struct timespec *a, const struct timespec *b)
{
	if (a->tv_sec != b->tv_sec)
		return a->tv_sec < b->tv_sec ? -1 : 1;
	return a->tv_nsec < b->tv_nsec ? -1 : a->tv_nsec > b->tv_nsec;
}

static void make_old(struct world *world, ino_t ino)
{
	struct stat attr = {.st_mtim = past, .st_ctim = past, .st_atim = past};

	assert_int_equal(fs_setattr(world->fs, ino,
				    FS_SET_MTIME | FS_SET_CTIME | FS_SET_ATIME,
				    &attr, &attr),
			 0);
}

static void expect_touched(struct world *world, ino_t ino, bool mtime,
			   bool ctime)
{
	struct stat attr = attributes(world, ino);

	assert_int_equal(attr.st_mtim.tv_sec != past.tv_sec, mtime);
	assert_int_equal(attr.st_ctim.tv_sec != past.tv_sec, ctime);
	make_old(world, ino);
}

static void test_times_of_names(void **state)
{
	struct world *world = *state;
	ino_t a = make_dir(world, ROOT, "a"), b = make_dir(world, ROOT, "b");
	ino_t file, other;
	struct fs_entry entry;

	make_old(world, a);
	make_old(world, b);
	file = make_held(world, a, "file", S_IFREG);
	expect_touched(world, a, true, true);
	expect_touched(world, file, true, true);

	assert_int_equal(fs_link(world->fs, file, b, "link", &entry), 0);
	expect_touched(world, b, true, true);
	expect_touched(world, file, false, true);
	assert_int_equal(fs_unlink(world->fs, b, "link"), 0);
	expect_touched(world, b, true, true);
	expect_touched(world, file, false, true);

	other = make_held(world, b, "other", S_IFREG);
	make_old(world, b);
	make_old(world, other);
	assert_int_equal(move(world, a, "file", b, "other", RENAME_EXCHANGE),
			 0);
	expect_touched(world, a, true, true);
	expect_touched(world, b, true, true);
	expect_touched(world, file, false, true);
	expect_touched(world, other, false, true);
	assert_int_equal(move(world, a, "file", b, "other", 0), 0);
	expect_touched(world, a, true, true);
	expect_touched(world, b, true, true);
	expect_touched(world, file, false, true); /* lost a link */
	expect_touched(world, other, false, true);

	make_dir(world, a, "sub");
	make_old(world, a);
	assert_int_equal(fs_rmdir(world->fs, a, "sub"), 0);
	expect_touched(world, a, true, true);
	assert_int_equal(try_lookup(world, a, "nothing"), -ENOENT);
	expect_touched(world, a, false, false);
}

/* --- listing ----------------------------------------------------------- */

#define LISTED_MAX 4096

struct listing {
	unsigned int room; /* entries fill takes */
	unsigned int given;
	uint64_t cursor;
	unsigned int count;
	char names[LISTED_MAX][24];
	ino_t inos[LISTED_MAX];
};

static bool take_entry(void *context, const char *name,
		       const struct fs_entry *entry, uint64_t cursor)
{
	struct listing *listing = context;

	if (listing->given == listing->room)
		return false;
	assert_true(cursor > listing->cursor);
	assert_int_equal(entry->attr.st_ino, entry->ino);
	listing->given++;
	listing->cursor = cursor;
	assert_true(listing->count < LISTED_MAX);
	strcpy(listing->names[listing->count], name);
	listing->inos[listing->count++] = entry->ino;
	return true;
}

/* False at the end. */
static bool list_some(struct world *world, ino_t dir, struct listing *listing,
		      unsigned int room)
{
	listing->room = room;
	listing->given = 0;
	assert_int_equal(fs_readdir(world->fs, dir, listing->cursor, false,
				    take_entry, listing),
			 0);
	return listing->given != 0;
}

static unsigned int times_listed(const struct listing *listing,
				 const char *name)
{
	unsigned int times = 0;

	for (unsigned int i = 0; i < listing->count; i++)
		times += strcmp(listing->names[i], name) == 0;
	return times;
}

static void test_listing(void **state)
{
	struct world *world = *state;
	struct listing *listing = calloc(1, sizeof(*listing));
	ino_t dir = make_dir(world, ROOT, "dir");
	char name[16];

	assert_non_null(listing);
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		make_file(world, dir, name);
	}
	while (list_some(world, dir, listing, 1))
		;
	assert_int_equal(listing->count, 202);
	assert_string_equal(listing->names[0], ".");
	assert_int_equal(listing->inos[0], dir);
	assert_string_equal(listing->names[1], "..");
	assert_int_equal(listing->inos[1], ROOT);
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		assert_string_equal(listing->names[i + 2], name);
		assert_int_equal(listing->inos[i + 2], find(world, dir, name));
	}
	free(listing);
	assert_int_equal(fs_readdir(world->fs, find(world, dir, "f0"), 0, false,
				    take_entry, NULL),
			 -ENOTDIR);
}

/* Stays given exactly once, whatever else happens between the steps. */
static void test_listing_while_changing(void **state)
{
	struct world *world = *state;
	struct listing *listing = malloc(sizeof(*listing));
	ino_t dir = make_dir(world, ROOT, "dir");
	uint64_t random = 1234567;
	char name[16], other[16];

	assert_non_null(listing);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "stay%d", i);
		make_file(world, dir, name);
		snprintf(name, sizeof(name), "go%d", i);
		make_file(world, dir, name);
	}
	for (int round = 0; round < 20; round++) {
		memset(listing, 0, sizeof(*listing));
		while (list_some(world, dir, listing,
				 1 + random_below(&random, 20))) {
			snprintf(name, sizeof(name), "go%d",
				 (int)random_below(&random, 100));
			snprintf(other, sizeof(other), "go%d",
				 (int)random_below(&random, 100));
			if (move(world, dir, name, dir, other, 0))
				try_make(world, dir, name, S_IFREG);
			else if (random_below(&random, 2))
				fs_unlink(world->fs, dir, other);
		}
		for (int i = 0; i < 100; i++) {
			snprintf(name, sizeof(name), "stay%d", i);
			assert_int_equal(times_listed(listing, name), 1);
		}
	}
	free(listing);
}

static void test_removing_all_while_listing(void **state)
{
	struct world *world = *state;
	struct listing *listing = calloc(1, sizeof(*listing));
	ino_t dir = make_dir(world, ROOT, "dir");
	char name[16];

	assert_non_null(listing);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		make_file(world, dir, name);
	}
	/* As rm -r does it. */
	while (list_some(world, dir, listing, 50)) {
		for (unsigned int i = listing->count - listing->given;
		     i < listing->count; i++)
			fs_unlink(world->fs, dir, listing->names[i]);
	}
	assert_int_equal(listing->count, 1002);
	assert_int_equal(fs_rmdir(world->fs, ROOT, "dir"), 0);
	free(listing);
}

static void test_a_rename_in_place_keeps_its_cursor(void **state)
{
	struct world *world = *state;
	struct listing *listing = calloc(1, sizeof(*listing));
	ino_t dir = make_dir(world, ROOT, "dir");

	assert_non_null(listing);
	make_file(world, dir, "a");
	make_file(world, dir, "b");
	list_some(world, dir, listing, 3);
	assert_string_equal(listing->names[2], "a");
	/* Given already: it does not come again under its new name. */
	assert_int_equal(move(world, dir, "a", dir, "c", 0), 0);
	list_some(world, dir, listing, 3);
	assert_int_equal(listing->count, 4);
	assert_string_equal(listing->names[3], "b");
	free(listing);
}

static void test_an_empty_directory_starts_anew(void **state)
{
	struct world *world = *state;
	ino_t dir = make_dir(world, ROOT, "dir");
	struct inode *inode = inode_get(world->fs, dir);

	for (int i = 0; i < 500; i++) {
		make_file(world, dir, "x");
		assert_int_equal(inode->cookie, 1);
		assert_int_equal(fs_unlink(world->fs, dir, "x"), 0);
	}
	assert_int_equal(inode->table.root, 0);
}

static void test_cookies_run_out(void **state)
{
	struct world *world = *state;
	ino_t dir = make_dir(world, ROOT, "dir");

	make_file(world, dir, "first");
	inode_get(world->fs, dir)->cookie = DIRECTORY_COOKIE_MAX;
	make_file(world, dir, "last");
	assert_int_equal(try_make(world, dir, "none", S_IFREG), -ENOSPC);
	assert_int_equal(move(world, dir, "last", dir, "other", 0), 0);
	world_check(world);
	assert_int_equal(fs_unlink(world->fs, dir, "first"), 0);
	assert_int_equal(try_make(world, dir, "none", S_IFREG), -ENOSPC);
	assert_int_equal(fs_unlink(world->fs, dir, "other"), 0);
	assert_int_equal(try_make(world, dir, "again", S_IFREG), 0);
}

struct plus {
	unsigned int room;
	unsigned int given;
	ino_t inos[8];
};

static bool take_plus(void *context, const char *name,
		      const struct fs_entry *entry, uint64_t cursor)
{
	struct plus *plus = context;

	if (name[0] == '.')
		return true;
	if (plus->given == plus->room)
		return false;
	assert_int_equal(entry->attr.st_nlink, 1);
	assert_true(entry->generation != 0);
	plus->inos[plus->given++] = entry->ino;
	return true;
}

static void test_listing_with_attributes_counts_lookups(void **state)
{
	struct world *world = *state;
	struct plus plus = {.room = 2};
	ino_t inos[3];
	char name[2] = "a";

	for (int i = 0; i < 3; i++, name[0]++)
		inos[i] = make_file(world, ROOT, name);
	assert_int_equal(fs_readdir(world->fs, ROOT, 0, true, take_plus, &plus),
			 0);
	assert_int_equal(plus.given, 2);
	/* The third was not taken, so nobody has looked it up. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(inode_get(world->fs, inos[i])->lookups,
				 i < 2 ? 1 : 0);
	assert_int_equal(inode_get(world->fs, ROOT)->lookups, 1);
	fs_forget(world->fs, inos[0], 1);
	fs_forget(world->fs, inos[1], 1);
}

/* --- limits ------------------------------------------------------------ */

static void test_nr_inodes(void **state)
{
	struct world bounded, *world = &bounded;
	struct fs_entry entry;
	struct statvfs statvfs;

	world_create(world, 4); /* the root is one */
	make_file(world, ROOT, "a");
	make_dir(world, ROOT, "b");
	make(world, ROOT, "c", S_IFLNK);
	assert_int_equal(try_make(world, ROOT, "d", S_IFREG), -ENOSPC);
	assert_int_equal(try_make(world, ROOT, "d", S_IFLNK), -ENOSPC);
	assert_int_equal(
		fs_make_unnamed(world->fs, &world_caller, ROOT, 0600, &entry),
		-ENOSPC);
	assert_int_equal(move(world, ROOT, "a", ROOT, "d", RENAME_WHITEOUT),
			 -ENOSPC);
	assert_int_equal(fs_statvfs(world->fs, &statvfs), 0);
	assert_int_equal(statvfs.f_files, 4);
	assert_int_equal(statvfs.f_ffree, 0);
	assert_int_equal(fs_unlink(world->fs, ROOT, "c"), 0);
	assert_int_equal(try_make(world, ROOT, "d", S_IFREG), 0);
	world_destroy(world);
}

static uint64_t inodes_used(struct world *world)
{
	struct fs_stats stats;

	fs_stats(world->fs, &stats);
	return stats.inodes_used;
}

static int try_link(struct world *world, ino_t ino, const char *name)
{
	struct fs_entry entry;
	int error = fs_link(world->fs, ino, ROOT, name, &entry);

	if (!error)
		fs_forget(world->fs, ino, 1);
	return error;
}

/* As tmpfs has it: each name but a file's first takes one. */
static void test_nr_inodes_counts_links(void **state)
{
	struct world bounded, *world = &bounded;
	struct fs_entry entry;
	ino_t file;

	world_create(world, 4);
	file = make_file(world, ROOT, "a");
	assert_int_equal(try_link(world, file, "b"), 0);
	assert_int_equal(inodes_used(world), 3);
	assert_int_equal(try_link(world, file, "b"), -EEXIST);
	assert_int_equal(try_link(world, file, "c"), 0);
	assert_int_equal(inodes_used(world), 4);
	assert_int_equal(try_link(world, file, "d"), -ENOSPC);
	assert_int_equal(try_make(world, ROOT, "d", S_IFREG), -ENOSPC);
	assert_int_equal(inodes_used(world), 4);
	world_crash(world);
	assert_int_equal(inodes_used(world), 4);

	assert_int_equal(fs_unlink(world->fs, ROOT, "a"), 0);
	assert_int_equal(inodes_used(world), 3);
	make_file(world, ROOT, "e");
	assert_int_equal(move(world, ROOT, "e", ROOT, "b", 0), 0);
	assert_int_equal(inodes_used(world), 3);
	assert_int_equal(fs_unlink(world->fs, ROOT, "c"), 0);
	assert_int_equal(fs_unlink(world->fs, ROOT, "b"), 0);
	assert_int_equal(inodes_used(world), 1);

	/* A file without a name is one already. */
	assert_int_equal(
		fs_make_unnamed(world->fs, &world_caller, ROOT, 0600, &entry),
		0);
	assert_int_equal(try_link(world, entry.ino, "f"), 0);
	assert_int_equal(inodes_used(world), 2);
	assert_int_equal(try_link(world, entry.ino, "g"), 0);
	assert_int_equal(inodes_used(world), 3);
	fs_forget(world->fs, entry.ino, 1);
	world_destroy(world);
}

static void test_statvfs_tells_what_memory_is_left(void **state)
{
	struct world *world = *state;
	struct arena_usage usage;
	struct statvfs statvfs;

	assert_int_equal(fs_set_size(world->fs, 1000 * PAGE_SIZE), 0);
	arena_usage(world->arena, &usage);
	arena_set_limit(world->arena,
			usage.total - usage.trimmable + 10 * PAGE_SIZE);
	assert_int_equal(fs_statvfs(world->fs, &statvfs), 0);
	assert_int_equal(statvfs.f_bfree, 1000);
	assert_int_equal(statvfs.f_bavail, 10);
	arena_set_limit(world->arena, PAGE_SIZE);
	assert_int_equal(fs_statvfs(world->fs, &statvfs), 0);
	assert_int_equal(statvfs.f_bavail, 0);
	/* What size= leaves is less. */
	arena_set_limit(world->arena, usage.total + 2000 * PAGE_SIZE);
	assert_int_equal(fs_statvfs(world->fs, &statvfs), 0);
	assert_int_equal(statvfs.f_bavail, 1000);
	arena_set_limit(world->arena, 0);
	assert_int_equal(fs_statvfs(world->fs, &statvfs), 0);
	assert_int_equal(statvfs.f_bavail, 1000);
}

static void test_statvfs_and_stats(void **state)
{
	struct world *world = *state;
	struct statvfs statvfs;
	struct fs_stats stats;
	ino_t file = make_file(world, ROOT, "a");

	assert_int_equal(fs_write(world->fs, file, "x", 1, 0, false), 1);
	assert_int_equal(fs_set_size(world->fs, 10 * PAGE_SIZE), 0);
	assert_int_equal(fs_statvfs(world->fs, &statvfs), 0);
	assert_int_equal(statvfs.f_bsize, 4096);
	assert_int_equal(statvfs.f_blocks, 10);
	assert_int_equal(statvfs.f_bfree, 9);
	assert_int_equal(statvfs.f_bavail, 9);
	assert_int_equal(statvfs.f_namemax, 255);
	fs_stats(world->fs, &stats);
	assert_int_equal(stats.size, 10 * PAGE_SIZE);
	assert_int_equal(stats.size_used, PAGE_SIZE);
	assert_int_equal(stats.inodes_used, 2);
	assert_true(stats.inode_bytes && stats.block_bytes &&
		    stats.name_index_bytes);

	assert_int_equal(fs_write(world->fs, file, "x", 1, PAGE_SIZE, false),
			 1);
	assert_int_equal(fs_set_size(world->fs, PAGE_SIZE), -EBUSY);
	assert_int_equal(fs_set_size(world->fs, PAGE_SIZE + 1), 0);
	assert_int_equal(
		fs_write(world->fs, file, "x", 1, 2 * PAGE_SIZE, false),
		-ENOSPC);
	assert_int_equal(fs_set_size(world->fs, 0), 0);
	assert_int_equal(
		fs_write(world->fs, file, "x", 1, 2 * PAGE_SIZE, false), 1);
}

/* --- attributes -------------------------------------------------------- */

static void test_setattr(void **state)
{
	struct world *world = *state;
	ino_t file = make_file(world, ROOT, "f");
	struct stat attr = {.st_mode = S_IFDIR | 04711,
			    .st_uid = 1,
			    .st_gid = 2,
			    .st_atim = {-5, 999999999},
			    .st_mtim = {INT64_MAX / 2, 0},
			    .st_ctim = {INT64_MIN / 2, 0}};
	struct stat result;

	assert_int_equal(fs_setattr(world->fs, file,
				    FS_SET_MODE | FS_SET_UID | FS_SET_GID |
					    FS_SET_ATIME | FS_SET_MTIME |
					    FS_SET_CTIME,
				    &attr, &result),
			 0);
	assert_int_equal(result.st_mode, S_IFREG | 04711);
	assert_int_equal(result.st_uid, 1);
	assert_int_equal(result.st_gid, 2);
	assert_int_equal(result.st_atim.tv_sec, -5);
	assert_int_equal(result.st_atim.tv_nsec, 999999999);
	/* Clamped to what 64 bits of nanoseconds can say. */
	assert_int_equal(result.st_mtim.tv_sec, INT64_MAX / 1000000000);
	assert_int_equal(result.st_ctim.tv_sec, INT64_MIN / 1000000000 - 1);

	make_old(world, file);
	assert_int_equal(fs_setattr(world->fs, file, 0, &attr, &result), 0);
	expect_touched(world, file, false, false);
	assert_int_equal(
		fs_setattr(world->fs, file, FS_SET_UID, &attr, &result), 0);
	expect_touched(world, file, false, true);
	assert_int_equal(fs_setattr(world->fs, file,
				    FS_SET_ATIME_NOW | FS_SET_MTIME_NOW, &attr,
				    &result),
			 0);
	expect_touched(world, file, true, true);
	/* A size that is set is a change, unless the file is and was empty. */
	attr.st_size = 0;
	assert_int_equal(
		fs_setattr(world->fs, file, FS_SET_SIZE, &attr, &result), 0);
	expect_touched(world, file, false, false);
	attr.st_size = 10;
	assert_int_equal(
		fs_setattr(world->fs, file, FS_SET_SIZE, &attr, &result), 0);
	expect_touched(world, file, true, true);
	assert_int_equal(
		fs_setattr(world->fs, ROOT, FS_SET_SIZE, &attr, &result),
		-EISDIR);
	attr.st_size = -1;
	assert_int_equal(
		fs_setattr(world->fs, file, FS_SET_SIZE, &attr, &result),
		-EINVAL);
	assert_int_equal(fs_setattr(world->fs, make(world, ROOT, "p", S_IFIFO),
				    FS_SET_SIZE, &attr, &result),
			 -EINVAL);
}

/* Programs that look between two changes see that there were two. */
static void test_a_change_that_follows_a_look_is_seen(void **state)
{
	struct world *world = *state;
	ino_t file = make_file(world, ROOT, "f");
	ino_t other = make_file(world, ROOT, "g");
	struct stat attr = {0}, before, after;
	int i;

	for (i = 0; i < 1000; i++) {
		before = attributes(world, file);
		assert_int_equal(fs_setattr(world->fs, file, FS_SET_MTIME_NOW,
					    &attr, &after),
				 0);
		assert_true(compare_times(&before.st_ctim, &after.st_ctim) < 0);
		assert_true(compare_times(&before.st_mtim, &after.st_mtim) < 0);
		/* And what changes later is not older. */
		assert_int_equal(fs_setattr(world->fs, other, FS_SET_MTIME_NOW,
					    &attr, &before),
				 0);
		assert_true(compare_times(&before.st_ctim, &after.st_ctim) >=
			    0);
	}
}

static void test_atime_moves_when_it_is_due(void **state)
{
	struct world *world = *state;
	ino_t file = make_file(world, ROOT, "f");
	struct stat attr = {.st_atim = {1000, 0}, .st_mtim = {2000, 0}};
	struct timespec first;

	assert_int_equal(fs_setattr(world->fs, file,
				    FS_SET_ATIME | FS_SET_MTIME, &attr, &attr),
			 0);
	assert_true(fs_atime_is_due(world->fs, file));
	fs_accessed(world->fs, file);
	first = attributes(world, file).st_atim;
	assert_true(first.tv_sec > 2000);

	/* Later than mtime and ctime, it stays for a day. */
	attr.st_atim = attr.st_mtim = attr.st_ctim = first;
	attr.st_atim.tv_sec -= 10;
	attr.st_mtim.tv_sec -= 20;
	attr.st_ctim.tv_sec -= 20;
	assert_int_equal(fs_setattr(world->fs, file,
				    FS_SET_ATIME | FS_SET_MTIME | FS_SET_CTIME,
				    &attr, &attr),
			 0);
	assert_false(fs_atime_is_due(world->fs, file));
	fs_accessed(world->fs, file);
	assert_int_equal(attributes(world, file).st_atim.tv_sec,
			 first.tv_sec - 10);
	attr.st_atim.tv_sec = first.tv_sec - 25 * 60 * 60;
	attr.st_mtim.tv_sec = attr.st_ctim.tv_sec = attr.st_atim.tv_sec - 10;
	assert_int_equal(fs_setattr(world->fs, file,
				    FS_SET_ATIME | FS_SET_MTIME | FS_SET_CTIME,
				    &attr, &attr),
			 0);
	assert_true(fs_atime_is_due(world->fs, file));
}

static void test_how_long_reads_unseen_leave_atime_alone(void **state)
{
	struct world *world = *state;
	ino_t file = make_file(world, ROOT, "f");
	struct stat attr;

	/* With no pages of it elsewhere, the first read is seen. */
	assert_true(fs_atime_is_due(world->fs, file));
	assert_float_equal(fs_atime_holds(world->fs, file), 86400, 0.001);
	fs_keeps_pages(world->fs, file);
	assert_float_equal(fs_atime_holds(world->fs, file), 0, 0);

	attr = attributes(world, file);
	attr.st_atim.tv_sec -= 3600;
	attr.st_mtim.tv_sec = attr.st_ctim.tv_sec = attr.st_atim.tv_sec - 10;
	assert_int_equal(fs_setattr(world->fs, file,
				    FS_SET_ATIME | FS_SET_MTIME | FS_SET_CTIME,
				    &attr, &attr),
			 0);
	assert_float_equal(fs_atime_holds(world->fs, file), 82800, 60);

	/* What is remembered of it is no permission, and outlives chmod(2). */
	attr.st_mode = 0600;
	assert_int_equal(fs_setattr(world->fs, file, FS_SET_MODE, &attr, &attr),
			 0);
	assert_int_equal(attributes(world, file).st_mode, S_IFREG | 0600);
	assert_float_equal(fs_atime_holds(world->fs, file), 0, 0);

	assert_int_equal(fs_set_flags(world->fs, file, FS_NOATIME_FL), 0);
	assert_true(isinf(fs_atime_holds(world->fs, file)));
	assert_true(isinf(fs_atime_holds(world->fs, ROOT)));
	world_check(world);
}

static void test_fixed_names_stay(void **state)
{
	struct world *world = *state;
	struct fs *fs = world->fs;
	ino_t dir = make_dir(world, ROOT, "d");
	ino_t file = make_file(world, dir, "f");
	ino_t other = make_file(world, dir, "g");
	struct fs_entry entry;

	(void)other;
	assert_int_equal(fs_set_flags(fs, file, FS_COMPR_FL), -EOPNOTSUPP);
	assert_int_equal(fs_set_flags(fs, file, FS_IMMUTABLE_FL), 0);
	assert_int_equal(fs_flags(fs, file), FS_IMMUTABLE_FL);
	assert_int_equal(attributes(world, file).st_mode & S_IFMT, S_IFREG);
	assert_int_equal(fs_unlink(fs, dir, "f"), -EPERM);
	assert_int_equal(fs_link(fs, file, ROOT, "l", &entry), -EPERM);
	assert_int_equal(move(world, dir, "f", ROOT, "f", 0), -EPERM);
	assert_int_equal(move(world, dir, "g", dir, "f", 0), -EPERM);
	assert_int_equal(move(world, dir, "g", dir, "f", RENAME_EXCHANGE),
			 -EPERM);
	world_check(world);

	/* Names come to an append-only directory, and stay. */
	assert_int_equal(fs_set_flags(fs, file, 0), 0);
	assert_int_equal(fs_set_flags(fs, dir, FS_APPEND_FL | FS_NODUMP_FL), 0);
	assert_int_equal(fs_flags(fs, make_file(world, dir, "h")),
			 FS_NODUMP_FL);
	assert_int_equal(fs_unlink(fs, dir, "f"), -EPERM);
	assert_int_equal(move(world, dir, "f", dir, "i", 0), -EPERM);
	assert_int_equal(fs_set_flags(fs, dir, FS_IMMUTABLE_FL), 0);
	assert_int_equal(fs_make(fs, &world_caller, dir, "i", S_IFREG | 0600, 0,
				 NULL, &entry),
			 -EPERM);
	assert_int_equal(fs_make_unnamed(fs, &world_caller, dir, 0600, &entry),
			 -EPERM);
	assert_int_equal(fs_rmdir(fs, ROOT, "d"), -EPERM);

	/* Permissions are beside that. */
	assert_int_equal(fs_setattr(fs, dir, FS_SET_MODE,
				    &(struct stat){.st_mode = 0700},
				    &entry.attr),
			 0);
	assert_int_equal(fs_flags(fs, dir), FS_IMMUTABLE_FL);
	assert_int_equal(fs_set_flags(fs, dir, 0), 0);
	assert_int_equal(attributes(world, dir).st_mode, S_IFDIR | 0700);
	assert_int_equal(fs_unlink(fs, dir, "f"), 0);
	world_check(world);
}

static void test_kill_privileges(void **state)
{
	struct world *world = *state;
	ino_t file = make_file(world, ROOT, "f");
	struct stat attr = {.st_mode = 06755, .st_uid = 9}, result;

	assert_int_equal(
		fs_setattr(world->fs, file, FS_SET_MODE, &attr, &result), 0);
	assert_int_equal(fs_setxattr(world->fs, file, "security.capability",
				     "caps", 4, 0),
			 0);
	assert_int_equal(fs_setattr(world->fs, file,
				    FS_SET_UID | FS_SET_KILL_PRIV, &attr,
				    &result),
			 0);
	assert_int_equal(result.st_mode, S_IFREG | 0755);
	assert_int_equal(
		fs_getxattr(world->fs, file, "security.capability", NULL, 0),
		-ENODATA);

	/* Without group execution, sgid says something else. */
	attr.st_mode = 06745;
	assert_int_equal(fs_setattr(world->fs, file,
				    FS_SET_MODE | FS_SET_KILL_PRIV, &attr,
				    &result),
			 0);
	assert_int_equal(result.st_mode, S_IFREG | S_ISGID | 0745);
	assert_true(fs_has_sgid(world->fs, file));
	assert_int_equal(
		fs_setattr(world->fs, file, FS_SET_KILL_SGID, &attr, &result),
		0);
	assert_int_equal(result.st_mode, S_IFREG | 0745);
	assert_false(fs_has_sgid(world->fs, file));

	/* What a directory's bits mean stays true. */
	attr.st_mode = 06755;
	assert_int_equal(fs_setattr(world->fs, make_dir(world, ROOT, "d"),
				    FS_SET_MODE | FS_SET_KILL_PRIV, &attr,
				    &result),
			 0);
	assert_int_equal(result.st_mode, S_IFDIR | 06755);

	assert_int_equal(fs_setxattr(world->fs, file, "security.capability",
				     "caps", 4, 0),
			 0);
	/* A write takes them from whoever writes; suid only if asked to. */
	attr.st_mode = 04755;
	assert_int_equal(
		fs_setattr(world->fs, file, FS_SET_MODE, &attr, &result), 0);
	assert_true(attributes_has_privileges(
		world->fs, inode_get(world->fs, file), false));
	assert_int_equal(fs_write(world->fs, file, "x", 1, 0, false), 1);
	assert_int_equal(
		fs_getxattr(world->fs, file, "security.capability", NULL, 0),
		-ENODATA);
	assert_int_equal(attributes(world, file).st_mode, S_IFREG | 04755);
	assert_false(attributes_has_privileges(
		world->fs, inode_get(world->fs, file), false));
	assert_true(attributes_has_privileges(
		world->fs, inode_get(world->fs, file), true));
	assert_int_equal(fs_write(world->fs, file, "x", 1, 0, true), 1);
	assert_int_equal(attributes(world, file).st_mode, S_IFREG | 0755);
}

/* --- threads ----------------------------------------------------------- */

#define THREADS 4
#define STEPS	3000

struct player {
	struct world *world;
	ino_t dirs[3];
	unsigned int seed;
};

static bool take_all(void *context, const char *name,
		     const struct fs_entry *entry, uint64_t cursor)
{
	struct fs_entry *taken = context;

	if (entry->generation && !taken->ino)
		*taken = *entry;
	else if (entry->generation)
		return false;
	return true;
}

static void play_step(struct player *player, uint64_t *random)
{
	struct fs *fs = player->world->fs;
	ino_t dir = player->dirs[random_below(random, 3)];
	ino_t other = player->dirs[random_below(random, 3)];
	char name[2] = {'a' + random_below(random, 12)};
	char new_name[2] = {'a' + random_below(random, 12)};
	struct fs_entry entry = {0};
	struct stat attr = {.st_mode = 0600};
	char buffer[100];

	switch (random_below(random, 12)) {
	case 0:
	case 1:
		if (fs_make(fs, &world_caller, dir, name, S_IFREG | 0644, 0,
			    NULL, &entry) == 0)
			fs_write(fs, entry.ino, name, 1, 5000, false);
		break;
	case 2:
		fs_make(fs, &world_caller, dir, name, S_IFDIR | 0755, 0, NULL,
			&entry);
		break;
	case 3:
		fs_unlink(fs, dir, name);
		return;
	case 4:
		fs_rmdir(fs, dir, name);
		return;
	case 5:
	case 6:
		fs_rename(fs, &world_caller, dir, name, other, new_name,
			  random_below(random, 5));
		return;
	case 7:
		fs_readdir(fs, dir, random_below(random, 10), true, take_all,
			   &entry);
		break;
	case 8:
		if (fs_lookup(fs, dir, name, &entry) == 0 &&
		    fs_link(fs, entry.ino, other, new_name, &entry) == 0)
			fs_forget(fs, entry.ino, 1);
		break;
	case 9:
		if (fs_lookup(fs, dir, name, &entry) == 0) {
			fs_setxattr(fs, entry.ino, "user.a", name, 1, 0);
			fs_getxattr(fs, entry.ino, "user.a", buffer, 100);
		}
		break;
	case 10:
		if (fs_lookup(fs, dir, name, &entry) == 0)
			fs_setattr(fs, entry.ino, FS_SET_MODE, &attr, &attr);
		break;
	default:
		if (fs_lookup_ino(fs, random_below(random, 4096), &entry))
			entry.ino = 0;
	}
	if (entry.ino)
		fs_forget(fs, entry.ino, 1);
}

static void *play(void *context)
{
	struct player *player = context;
	uint64_t random = player->seed * 7919 + 1;

	if (fs_attach_thread(player->world->fs))
		return NULL;
	for (int i = 0; i < STEPS; i++)
		play_step(player, &random);
	fs_detach_thread(player->world->fs);
	return player;
}

/* All at once, with checks in between that must find everything in order. */
static void test_threads(void **state)
{
	struct world *world = *state;
	struct player players[THREADS];
	pthread_t threads[THREADS];
	void *result;

	assert_int_equal(store_start(world->store), 0);
	for (int i = 0; i < THREADS; i++) {
		players[i] = (struct player){.world = world, .seed = i};
		players[i].dirs[0] = ROOT;
	}
	players[0].dirs[1] = make_held(world, ROOT, "1", S_IFDIR);
	players[0].dirs[2] = make_held(world, ROOT, "2", S_IFDIR);
	for (int i = 0; i < THREADS; i++) {
		memcpy(players[i].dirs, players[0].dirs,
		       sizeof(players[i].dirs));
		assert_int_equal(
			pthread_create(&threads[i], NULL, play, &players[i]),
			0);
	}
	for (int i = 0; i < 20; i++)
		world_check(world);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_non_null(result);
	}
	fs_forget(world->fs, players[0].dirs[1], 1);
	fs_forget(world->fs, players[0].dirs[2], 1);
	store_stop(world->store);
	/* world_destroy() checks once more. */
}

int main(void)
{
#define test(name) \
	cmocka_unit_test_setup_teardown(name, fs_world_setup, fs_world_teardown)
	const struct CMUnitTest tests[] = {
		test(test_root),
		test(test_every_type),
		test(test_names),
		test(test_equal_names_in_many_directories),
		test(test_mode_owner_and_group),
		test(test_generations_differ),
		test(test_symlinks),
		test(test_links),
		test(test_too_many_links),
		test(test_an_inode_lives_while_named_or_looked_up),
		test(test_forgetting_too_much),
		test(test_numbers_that_are_no_inodes),
		test(test_unnamed_files),
		test(test_removing_the_wrong_thing),
		test(test_a_removed_directory_takes_nothing),
		test(test_link_counts_of_directories),
		test(test_rename_matrix),
		test(test_rename_of_one_file_does_nothing),
		test(test_whiteout_belongs_to_the_caller),
		test(test_a_replaced_file_lives_while_looked_up),
		test(test_times_of_names),
		test(test_listing),
		test(test_listing_while_changing),
		test(test_removing_all_while_listing),
		test(test_a_rename_in_place_keeps_its_cursor),
		test(test_an_empty_directory_starts_anew),
		test(test_cookies_run_out),
		test(test_listing_with_attributes_counts_lookups),
		test(test_nr_inodes),
		test(test_nr_inodes_counts_links),
		test(test_statvfs_tells_what_memory_is_left),
		test(test_statvfs_and_stats),
		test(test_setattr),
		test(test_a_change_that_follows_a_look_is_seen),
		test(test_atime_moves_when_it_is_due),
		test(test_how_long_reads_unseen_leave_atime_alone),
		test(test_fixed_names_stay),
		test(test_kill_privileges),
		test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
