/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_check.c - checking finds whatever is wrong, and nothing else; recovery
 * brings everything back from the truth alone
 */
#include "fs_world.h"

#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/acl.h"
#include "fs/xattr.h"

/* A reference to a slot that is not there (see store/object.h). */
#define NO_OBJECT UINT32_MAX

/* A tree with something of everything in it. */
struct tree {
	struct world world;
	ino_t dir, sub, file, link, symlink, held, unnamed;
};

static void build(struct tree *tree)
{
	struct world *world = &tree->world;
	static char value[10000];
	struct fs_entry entry;
	char name[16];

	tree->dir = make_dir(world, ROOT, "dir");
	tree->sub = make_dir(world, tree->dir, "sub");
	tree->file = make_file(world, tree->dir, "file");
	for (int i = 0; i < 40; i++) {
		for (size_t j = 0; j < sizeof(value); j++)
			value[j] = 'a' + (i + j * j / 7) % 26;
		assert_int_equal(fs_write(world->fs, tree->file, value, 4096,
					  i * 8192, false),
				 4096);
	}
	assert_int_equal(
		fs_link(world->fs, tree->file, tree->sub, "link", &entry), 0);
	fs_forget(world->fs, tree->file, 1);
	tree->symlink = make(world, tree->sub, "symlink", S_IFLNK | 0777);
	make(world, tree->sub, "pipe", S_IFIFO | 0600);
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		make_file(world, tree->sub, name);
		if (i % 3)
			fs_unlink(world->fs, tree->sub, name);
	}
	assert_int_equal(
		fs_setxattr(world->fs, tree->file, "user.small", "v", 1, 0), 0);
	assert_int_equal(fs_setxattr(world->fs, tree->file, "user.large", value,
				     sizeof(value), 0),
			 0);
	assert_int_equal(fs_setxattr(world->fs, tree->file, XATTR_CAPABILITY,
				     "caps", 4, 0),
			 0);
	/* Removed, and still open. */
	tree->held = make_held(world, ROOT, "held", S_IFREG);
	assert_int_equal(fs_write(world->fs, tree->held, "kept", 4, 0, false),
			 4);
	assert_int_equal(fs_unlink(world->fs, ROOT, "held"), 0);
}

static int setup(void **state)
{
	struct tree *tree = calloc(1, sizeof(*tree));

	assert_non_null(tree);
	world_create(&tree->world, 0);
	build(tree);
	*state = tree;
	return 0;
}

static int teardown(void **state)
{
	struct tree *tree = *state;

	world_destroy(&tree->world);
	free(tree);
	return 0;
}

/* For worlds that were damaged. */
static int teardown_unchecked(void **state)
{
	struct tree *tree = *state;

	close(world_abandon(&tree->world));
	free(tree);
	return 0;
}

static struct inode *inode(struct tree *tree, ino_t ino)
{
	return inode_get(tree->world.fs, ino);
}

static struct entry *entry_of(struct tree *tree, ino_t parent, const char *name)
{
	uint32_t block =
		directory_find(tree->world.fs, parent, name, strlen(name));

	assert_true(block != SLAB_NONE);
	return directory_entry(tree->world.fs, block);
}

static pagetable_cell *cell_of(struct tree *tree, ino_t parent,
			       const char *name)
{
	return pagetable_find(tree->world.fs->blocks,
			      &inode(tree, parent)->table,
			      entry_cookie(entry_of(tree, parent, name)));
}

/* --- checking ---------------------------------------------------------- */

static void test_check_counts(void **state)
{
	struct tree *tree = *state;
	struct fs_check check = world_check(&tree->world);

	/* root, dir, sub, file, symlink, pipe, a third of f*, held */
	assert_int_equal(check.inodes, 6 + 100 + 1);
	assert_int_equal(check.entries, 5 + 100 + 1);
	assert_int_equal(check.pages, 41);
}

static void found(struct tree *tree, uint64_t at_least)
{
	assert_true(world_findings(&tree->world) >= at_least);
}

/* Spoil a word, see that it is found, and put it right again. */
#define spoil(tree, word, value)                             \
	do {                                                 \
		typeof(word) *place = &(word), was = *place; \
                                                             \
		*place = (value);                            \
		found(tree, 1);                              \
		*place = was;                                \
		world_check(&(tree)->world);                 \
	} while (0)

static void test_wrong_counts_are_found(void **state)
{
	struct tree *tree = *state;
	struct fs_root *root = tree->world.fs->root;

	spoil(tree, inode(tree, tree->file)->nlink, 3);
	spoil(tree, inode(tree, tree->dir)->nlink, 2);
	spoil(tree, inode(tree, ROOT)->nlink, 4);
	spoil(tree, inode(tree, tree->dir)->entries, 1);
	spoil(tree, inode(tree, tree->sub)->cookie, 3);
	spoil(tree, inode(tree, tree->file)->pages, 39);
	spoil(tree, inode(tree, tree->sub)->parent, ROOT);
	spoil(tree, inode(tree, tree->file)->mode, S_IFREG | 0644);
	spoil(tree, inode(tree, tree->dir)->mode,
	      S_IFDIR | 0755 | INODE_CAPABLE);
	spoil(tree, root->used_pages, 40);
	spoil(tree, root->used_inodes, 100);
}

static void test_wrong_entries_are_found(void **state)
{
	struct tree *tree = *state;
	struct entry *file = entry_of(tree, tree->dir, "file");

	spoil(tree, file->ino, 7);
	spoil(tree, file->ino, UINT32_MAX);
	spoil(tree, file->ino, (uint32_t)tree->dir);
	spoil(tree, file->ino, ROOT);
	spoil(tree, file->type, 4);
	spoil(tree, file->cookie_low, 99);
	spoil(tree, file->cookie_high, 1);
	spoil(tree, file->name[0], '/');
	spoil(tree, file->name[3], '\0');
	spoil(tree, file->length, 0);
	spoil(tree, file->length, 255);
	spoil(tree, file->parent, ROOT);
	spoil(tree, entry_of(tree, ROOT, "dir")->ino, (uint32_t)tree->sub);
}

static void test_wrong_cells_are_found(void **state)
{
	struct tree *tree = *state;
	pagetable_cell *cell = cell_of(tree, tree->dir, "file");
	pagetable_cell *page = pagetable_find(
		tree->world.fs->blocks, &inode(tree, tree->file)->table, 0);

	spoil(tree, *cell, 0);
	spoil(tree, *cell, 1);
	spoil(tree, *cell, *cell + 1);
	spoil(tree, *cell, UINT32_MAX);
	spoil(tree, *cell, *cell_of(tree, tree->sub, "link"));
	spoil(tree, *page, 0);
	spoil(tree, *page, NO_OBJECT);
	spoil(tree, inode(tree, tree->file)->table.root, UINT64_MAX);
	spoil(tree, inode(tree, tree->dir)->table.root, UINT64_MAX);
	spoil(tree, inode(tree, tree->dir)->table.root,
	      inode(tree, tree->sub)->table.root);
}

static void test_wrong_xattrs_and_targets_are_found(void **state)
{
	struct tree *tree = *state;
	struct inode *file = inode(tree, tree->file);
	_Atomic uint32_t *next =
		slab_address(tree->world.fs->blocks, file->xattr);

	spoil(tree, file->xattr, SLAB_NONE);
	spoil(tree, file->xattr, *next);
	spoil(tree, file->xattr, UINT32_MAX);
	spoil(tree, *next, file->xattr); /* a circle */
	spoil(tree, *next, SLAB_NONE);
	spoil(tree, inode(tree, tree->symlink)->target, SLAB_NONE);
	spoil(tree, inode(tree, tree->symlink)->size, 600);
	spoil(tree, inode(tree, tree->symlink)->size, UINT64_MAX);
}

static void test_lost_inodes_are_found(void **state)
{
	struct tree *tree = *state;
	struct fs *fs = tree->world.fs;

	spoil(tree, inode(tree, tree->held)->lookups, 0);
	/* Two directories in each other: both have names, nobody gets there. */
	spoil(tree, entry_of(tree, ROOT, "dir")->parent, (uint32_t)tree->sub);
	spoil(tree, inode(tree, tree->file)->mode, 0);
	spoil(tree, fs->root->root_block, (uint32_t)tree->dir);
}

static void test_a_circle_of_directories_is_found(void **state)
{
	struct tree *tree = *state;
	struct world *world = &tree->world;
	struct fs_check check;

	/* dir moves into dir/sub, which the kernel never asks for. */
	assert_int_equal(move(world, ROOT, "dir", tree->sub, "dir", 0), 0);
	assert_int_equal(fs_check(world->fs, false, &check, NULL, NULL), 0);
	assert_int_equal(check.errors, 2);
	assert_int_equal(check.differences, 0);
	assert_int_equal(move(world, tree->sub, "dir", ROOT, "dir", 0), 0);
}

static void test_lost_memory_is_found(void **state)
{
	struct tree *tree = *state;
	struct fs *fs = tree->world.fs;
	uint32_t block, page;

	assert_int_equal(slab_alloc(fs->blocks, 40, 0, &block), 0);
	found(tree, 1);
	slab_free(fs->blocks, block);
	assert_int_equal(slab_alloc(fs->inodes, 96, 0, &block), 0);
	found(tree, 1);
	slab_free(fs->inodes, block);
	assert_int_equal(arena_alloc(fs->arena, ARENA_POOL, 1, 0, &page), 0);
	found(tree, 1);
	arena_free(fs->arena, ARENA_POOL, page, 1);
}

static void test_a_lost_name_is_found(void **state)
{
	struct tree *tree = *state;
	struct fs *fs = tree->world.fs;
	uint32_t hash = directory_index_ops.hash(
		fs, directory_find(fs, tree->dir, "file", 4));
	uint32_t block = *cell_of(tree, tree->dir, "file");

	assert_true(index_remove(fs->names, hash, block));
	found(tree, 2); /* it, and their number */
	index_insert(fs->names, hash, block);
}

/* Turn every bit of the pool. Twice is none. */
static void flip_pool(struct world *world)
{
	uint32_t pages = arena_extent(world->arena, ARENA_POOL);

	for (uint32_t page = 0; page < pages; page++) {
		uint64_t *word = arena_page(world->arena, ARENA_POOL, page);

		for (size_t i = 0; i < PAGE_SIZE / sizeof(*word); i++)
			word[i] ^= UINT64_MAX;
	}
}

static void test_verify_reads_every_page(void **state)
{
	struct tree *tree = *state;
	struct world *world = &tree->world;
	struct fs_check check;

	assert_int_equal(store_drain(world->store), 0);
	flip_pool(world);
	assert_int_equal(fs_check(world->fs, true, &check, NULL, NULL), 0);
	assert_true(check.errors >= 41);
	flip_pool(world);
}

/* --- recovering -------------------------------------------------------- */

/* All that is derived can be anything. */
static void scramble(struct tree *tree)
{
	struct fs *fs = tree->world.fs;
	const ino_t inos[] = {ROOT,	  tree->dir,	 tree->sub,
			      tree->file, tree->symlink, tree->held};

	for (size_t i = 0; i < sizeof(inos) / sizeof(*inos); i++) {
		struct inode *one = inode(tree, inos[i]);

		one->nlink = 4711;
		one->mode ^= INODE_CAPABLE;
		if (!S_ISLNK(one->mode))
			one->pages = 12345; /* and entries */
		if (S_ISDIR(one->mode)) {
			one->parent = 99;
			one->cookie = 0;
		}
	}
	entry_of(tree, ROOT, "dir")->link = 777;
	fs->root->used_pages = 99999;
	fs->root->used_inodes = 0;
}

static void test_recovery_brings_everything_back(void **state)
{
	struct tree *tree = *state;
	struct fs_check before = world_check(&tree->world), after;
	char *was = world_dump(&tree->world), *is;

	for (int i = 0; i < 2; i++) {
		scramble(tree);
		world_attach(&tree->world, world_abandon(&tree->world));
		world_recover(&tree->world, &after);
		assert_memory_equal(&before, &after, sizeof(before));
		world_check(&tree->world);
		is = world_dump(&tree->world);
		assert_string_equal(was, is);
		free(is);
	}
	/* What was held is still there, and dies when it is let go. */
	assert_int_equal(attributes(&tree->world, tree->held).st_nlink, 0);
	fs_forget(tree->world.fs, tree->held, 1);
	assert_false(is_live(&tree->world, tree->held));
	/* And it goes on. */
	make_file(&tree->world, tree->sub, "new");
	assert_int_equal(fs_unlink(tree->world.fs, tree->sub, "f0"), 0);
	free(was);
}

static void test_recovery_drops_what_nobody_holds(void **state)
{
	struct tree *tree = *state;

	inode(tree, tree->held)->lookups = 0;
	world_crash(&tree->world);
	assert_false(is_live(&tree->world, tree->held));
	assert_int_equal(tree->world.fs->root->used_pages, 40);
}

static void test_recovery_cuts_off_what_is_damaged(void **state)
{
	struct tree *tree = *state;
	struct world *world = &tree->world;
	struct fs_check check;

	*cell_of(tree, tree->dir, "file") = 1;
	entry_of(tree, tree->sub, "pipe")->ino = 8;
	*pagetable_find(world->fs->blocks, &inode(tree, tree->file)->table, 0) =
		NO_OBJECT;
	world_attach(world, world_abandon(world));
	assert_int_equal(fs_recover(world->fs, &check, NULL, NULL), 0);
	assert_int_equal(check.errors, 3);
	assert_int_equal(find(world, tree->dir, "file"), 0);
	assert_int_equal(find(world, tree->sub, "pipe"), 0);
	assert_int_equal(find(world, tree->sub, "link"), tree->file);
	assert_int_equal(attributes(world, tree->file).st_nlink, 1);
	world_check(world);
}

static void test_attaching_to_something_else(void **state)
{
	struct tree *tree = *state;
	struct fs *fs;

	tree->world.fs->root->root_block = 0;
	assert_int_equal(fs_attach(&fs, tree->world.arena, tree->world.store),
			 -EPROTO);
}

/* A rename that was committed and not done. */
static void leave_intent(struct tree *tree, enum intent_state how)
{
	struct fs *fs = tree->world.fs;
	struct intent *intent = &fs->root->intents[3];
	struct entry *old = entry_of(tree, tree->dir, "file");
	uint32_t block;
	uint64_t cookie;

	assert_int_equal(directory_reserve(fs, inode(tree, ROOT), &cookie), 0);
	assert_int_equal(directory_prepare(fs, ROOT, "moved", 5, old->ino,
					   S_IFREG, &block),
			 0);
	directory_set_cookie(fs, block, cookie);
	intent->steps = 2;
	intent->step[0] = (struct intent_step){
		.block = inode_block(fs, ROOT),
		.value = block,
		.cookie = cookie,
	};
	intent->step[1] = (struct intent_step){
		.block = inode_block(fs, tree->dir),
		.value = SLAB_NONE,
		.cookie = entry_cookie(old),
	};
	intent->state = how;
}

static void test_a_committed_intent_is_done(void **state)
{
	struct tree *tree = *state;

	leave_intent(tree, INTENT_COMMITTED);
	world_crash(&tree->world);
	assert_int_equal(find(&tree->world, tree->dir, "file"), 0);
	assert_int_equal(find(&tree->world, ROOT, "moved"), tree->file);
	assert_int_equal(attributes(&tree->world, tree->file).st_nlink, 2);
	assert_int_equal(tree->world.fs->root->intents[3].state, INTENT_FREE);
}

static void test_an_intent_that_was_not_committed_never_was(void **state)
{
	struct tree *tree = *state;

	leave_intent(tree, INTENT_FILLING);
	world_crash(&tree->world);
	assert_int_equal(find(&tree->world, tree->dir, "file"), tree->file);
	assert_int_equal(find(&tree->world, ROOT, "moved"), 0);
	assert_int_equal(tree->world.fs->root->intents[3].state, INTENT_FREE);
}

/* --- killed ------------------------------------------------------------ */

#define KILLS 30

static void set_uniform(struct world *world, ino_t ino, uint64_t *random)
{
	static char value[6000];
	unsigned int letter = random_below(random, 26);

	memset(value, 'a' + letter, sizeof(value));
	fs_setxattr(world->fs, ino, "user.v", value, 10 + letter * 200, 0);
}

static void expect_uniform(struct world *world, ino_t ino)
{
	static char value[6000];
	ssize_t size =
		fs_getxattr(world->fs, ino, "user.v", value, sizeof(value));

	assert_true(size > 0);
	assert_int_equal(size, 10 + (value[0] - 'a') * 200);
	for (ssize_t i = 0; i < size; i++)
		assert_int_equal(value[i], value[0]);
}

/* Until it is killed. */
static void work(struct world *world, unsigned int round)
{
	uint64_t random = round * 7919 + 1;
	ino_t d[2] = {find(world, ROOT, "d0"), find(world, ROOT, "d1")};
	static char page[PAGE_SIZE];
	struct fs_entry entry;
	char name[16];

	for (unsigned int i = 0;; i++) {
		unsigned int side = random_below(&random, 2);

		move(world, d[side], "token", d[!side], "token", 0);
		move(world, d[side], "dir", d[!side], "dir", 0);
		move(world, d[0], "p", d[1], "q", RENAME_EXCHANGE);
		set_uniform(world, d[0], &random);
		snprintf(name, sizeof(name), "%d",
			 (int)random_below(&random, 200));
		if (fs_make(world->fs, &world_caller, d[side], name,
			    random_below(&random, 2) ? S_IFREG | 0644
						     : S_IFLNK | 0777,
			    0, "target", &entry) == 0) {
			memset(page, i, sizeof(page));
			fs_write(world->fs, entry.ino, page, sizeof(page),
				 random_below(&random, 100) * PAGE_SIZE, false);
			fs_forget(world->fs, entry.ino, 1);
		} else {
			fs_unlink(world->fs, d[side], name);
		}
		snprintf(name, sizeof(name), "d%d",
			 (int)random_below(&random, 20));
		if (fs_rmdir(world->fs, d[side], name) &&
		    fs_make(world->fs, &world_caller, d[side], name,
			    S_IFDIR | 0755, 0, NULL, &entry) == 0)
			fs_forget(world->fs, entry.ino, 1);
		move(world, d[side], name, d[!side], name, RENAME_WHITEOUT);
		fs_unlink(world->fs, d[side], name);
	}
}

static void expect_whole(struct world *world)
{
	ino_t d[2] = {find(world, ROOT, "d0"), find(world, ROOT, "d1")};
	ino_t p = find(world, d[0], "p"), q = find(world, d[1], "q");

	/* In one place, always. */
	assert_int_equal(
		!find(world, d[0], "token") + !find(world, d[1], "token"), 1);
	assert_int_equal(!find(world, d[0], "dir") + !find(world, d[1], "dir"),
			 1);
	/* Both, always, and not the same. */
	assert_true(p && q && p != q);
	assert_true(S_ISDIR(attributes(world, p).st_mode) !=
		    S_ISDIR(attributes(world, q).st_mode));
	expect_uniform(world, d[0]);
	world_check(world);
}

static int kill_one(int fd, unsigned int round)
{
	pid_t child = fork();
	struct world world;
	struct fs_check check;
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		world_attach(&world, fd);
		world_recover(&world, &check);
		work(&world, round);
		_exit(1);
	}
	usleep(3000 + round * 700);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);

	world_attach(&world, fd);
	world_recover(&world, &check);
	expect_whole(&world);
	return world_abandon(&world);
}

static void test_killed_at_any_moment(void **state)
{
	struct world world;
	uint64_t random = 1;
	ino_t d[2];
	int fd;

	world_create(&world, 0);
	d[0] = make_dir(&world, ROOT, "d0");
	d[1] = make_dir(&world, ROOT, "d1");
	make_file(&world, d[0], "token");
	make_dir(&world, d[0], "dir");
	make_file(&world, d[0], "p");
	make_dir(&world, d[1], "q");
	set_uniform(&world, d[0], &random);
	fd = world_abandon(&world);
	for (unsigned int round = 0; round < KILLS; round++)
		fd = kill_one(fd, round);
	close(fd);
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define test_damage(name) \
	cmocka_unit_test_setup_teardown(name, setup, teardown_unchecked)
	const struct CMUnitTest tests[] = {
		test(test_check_counts),
		test(test_wrong_counts_are_found),
		test(test_wrong_entries_are_found),
		test(test_wrong_cells_are_found),
		test(test_wrong_xattrs_and_targets_are_found),
		test(test_lost_inodes_are_found),
		test(test_a_circle_of_directories_is_found),
		test(test_lost_memory_is_found),
		test(test_a_lost_name_is_found),
		test(test_verify_reads_every_page),
		test(test_recovery_brings_everything_back),
		test(test_recovery_drops_what_nobody_holds),
		test(test_recovery_cuts_off_what_is_damaged),
		test_damage(test_attaching_to_something_else),
		test(test_a_committed_intent_is_done),
		test(test_an_intent_that_was_not_committed_never_was),
		cmocka_unit_test(test_killed_at_any_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
