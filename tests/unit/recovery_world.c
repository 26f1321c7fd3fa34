/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recovery_world.c - requests to crash in, and what is seen of them after
 */
#include "recovery_world.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/xattr.h>

#include "fs/answer.h"

static struct answer *answers;

/* --- the world ----------------------------------------------------------- */

void scenario_create(struct world *world, const struct scenario *scenario)
{
	size_t bytes = NR_SLOTS * sizeof(struct answer);

	world_create(world, 0);
	answers = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(answers, MAP_FAILED);
	fs_set_answers(world->fs, answers, NR_SLOTS);
	scenario->set_up(world);
}

void scenario_crash(struct world *world)
{
	world_attach(world, world_abandon(world));
	fs_set_answers(world->fs, answers, NR_SLOTS);
}

void scenario_recover(struct world *world)
{
	struct fs_check check;

	world_recover(world, &check);
}

static bool waits(void *caller, uint64_t request)
{
	return *(const bool *)caller && request == REQUEST;
}

void scenario_give_up(struct world *world, bool waiting)
{
	fs_await(world->fs, waits, &waiting);
	fs_resumed(world->fs, true);
}

void scenario_destroy(struct world *world)
{
	world_destroy(world);
	munmap(answers, NR_SLOTS * sizeof(struct answer));
}

/* --- looking ------------------------------------------------------------- */

struct looking {
	struct world *world;
	FILE *out;
	char path[1024];
};

static void look_at_data(struct looking *looking, ino_t ino,
			 const struct stat *attr)
{
	uint64_t sum = 0, pages = 0;
	char page[4096];

	for (off_t at = 0; at < attr->st_size; at += sizeof(page)) {
		ssize_t length = fs_read(looking->world->fs, ino, page,
					 sizeof(page), at);

		assert_true(length > 0);
		pages++;
		for (ssize_t i = 0; i < length; i++)
			sum = sum * 31 + (unsigned char)page[i];
	}
	fprintf(looking->out, " data %" PRIu64 " %" PRIx64, pages, sum);
}

static void look_at(struct looking *looking, ino_t ino);

static bool look_at_name(void *context, const char *name,
			 const struct fs_entry *entry, uint64_t cursor)
{
	struct looking *looking = context;
	size_t length = strlen(looking->path);

	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return true;
	snprintf(looking->path + length, sizeof(looking->path) - length, "/%s",
		 name);
	look_at(looking, entry->ino);
	looking->path[length] = '\0';
	return true;
}

static void look_at(struct looking *looking, ino_t ino)
{
	struct stat attr = attributes(looking->world, ino);
	struct inode *inode = inode_get(looking->world->fs, ino);
	char list[1024];
	ssize_t size =
		fs_listxattr(looking->world->fs, ino, list, sizeof(list));

	fprintf(looking->out,
		"%s mode %o links %ju size %jd blocks %jd "
		"lookups %ju xattrs %zd",
		looking->path, attr.st_mode, (uintmax_t)attr.st_nlink,
		(intmax_t)attr.st_size, (intmax_t)attr.st_blocks,
		(uintmax_t)inode->lookups, size);
	if (S_ISREG(attr.st_mode))
		look_at_data(looking, ino, &attr);
	fputc('\n', looking->out);
	if (S_ISDIR(attr.st_mode))
		assert_int_equal(fs_readdir(looking->world->fs, ino, 0, false,
					    look_at_name, looking),
				 0);
}

char *scenario_dump(struct world *world)
{
	struct looking looking = {.world = world};
	struct fs_stats stats;
	char *text;
	size_t size;

	looking.out = open_memstream(&text, &size);
	assert_non_null(looking.out);
	look_at(&looking, ROOT);
	fs_stats(world->fs, &stats);
	fprintf(looking.out, "%ju inodes\n", (uintmax_t)stats.inodes_used);
	fclose(looking.out);
	return text;
}

/* --- requests ------------------------------------------------------------ */

/* By its names the same tree always; the file and the directory are held. */
static ino_t file_ino, dir_ino, open_ino;

static void fill_page(char page[4096], int seed)
{
	for (int i = 0; i < 4096; i++)
		page[i] = (char)(i * seed + (i >> 7));
}

static void set_up(struct world *world)
{
	char page[4096];

	dir_ino = make_held(world, ROOT, "dir", S_IFDIR | 0755);
	make_dir(world, ROOT, "empty");
	file_ino = make_held(world, ROOT, "file", S_IFREG | 04755);
	assert_int_equal(fs_link(world->fs, file_ino, dir_ino, "other",
				 &(struct fs_entry){0}),
			 0);
	fs_forget(world->fs, file_ino, 1);
	for (int i = 0; i < 6; i++) {
		fill_page(page, i + 3);
		assert_int_equal(fs_write(world->fs, file_ino, page,
					  sizeof(page), i * 4096, false),
				 4096);
	}
	for (int i = 0; i < 5; i++) {
		char name[16];

		snprintf(name, sizeof(name), "n%d", i);
		make_file(world, dir_ino, name);
	}
	assert_int_equal(
		fs_setxattr(world->fs, file_ino, "user.old", "value", 5, 0), 0);
	open_ino = make_held(world, ROOT, "open", S_IFREG | 0600);
	assert_int_equal(fs_unlink(world->fs, ROOT, "open"), 0);
	fill_page(page, 77);
	assert_int_equal(fs_write(world->fs, open_ino, page, 4096, 0, false),
			 4096);
}

static void describe(struct outcome *outcome, const struct fs_entry *entry)
{
	if (!outcome->result)
		snprintf(outcome->entry, sizeof(outcome->entry),
			 "mode %o links %ju size %jd", entry->attr.st_mode,
			 (uintmax_t)entry->attr.st_nlink,
			 (intmax_t)entry->attr.st_size);
}

#define MAKE(function, mode, target)                                         \
	static void function(struct world *world, struct outcome *outcome)   \
	{                                                                    \
		struct fs_entry entry;                                       \
                                                                             \
		outcome->result = fs_make(world->fs, &world_caller, dir_ino, \
					  "new", mode, 0, target, &entry);   \
		describe(outcome, &entry);                                   \
	}
MAKE(run_create, S_IFREG | 0644, NULL)
MAKE(run_mkdir, S_IFDIR | 0755, NULL)
MAKE(run_mknod, S_IFIFO | 0644, NULL)
MAKE(run_symlink, S_IFLNK | 0777, "somewhere")

static void run_unnamed(struct world *world, struct outcome *outcome)
{
	struct fs_entry entry;

	outcome->result = fs_make_unnamed(world->fs, &world_caller, dir_ino,
					  S_IFREG | 0600, &entry);
	describe(outcome, &entry);
}

static void run_link(struct world *world, struct outcome *outcome)
{
	struct fs_entry entry;

	outcome->result = fs_link(world->fs, file_ino, dir_ino, "new", &entry);
	describe(outcome, &entry);
}

static void run_link_unnamed(struct world *world, struct outcome *outcome)
{
	struct fs_entry entry;

	outcome->result = fs_link(world->fs, open_ino, ROOT, "new", &entry);
	describe(outcome, &entry);
}

#define SIMPLE(function, call)                                             \
	static void function(struct world *world, struct outcome *outcome) \
	{                                                                  \
		outcome->result = call;                                    \
	}
SIMPLE(run_unlink, fs_unlink(world->fs, dir_ino, "n2"))
SIMPLE(run_unlink_held, fs_unlink(world->fs, ROOT, "file"))
SIMPLE(run_rmdir, fs_rmdir(world->fs, ROOT, "empty"))
SIMPLE(run_rename, move(world, dir_ino, "n1", dir_ino, "new", 0))
SIMPLE(run_rename_away, move(world, dir_ino, "n1", ROOT, "new", 0))
SIMPLE(run_rename_over, move(world, ROOT, "file", dir_ino, "n3", 0))
SIMPLE(run_rename_directory, move(world, ROOT, "empty", dir_ino, "new", 0))
SIMPLE(run_rename_noreplace,
       move(world, dir_ino, "n0", ROOT, "new", RENAME_NOREPLACE))
SIMPLE(run_exchange, move(world, dir_ino, "n0", ROOT, "file", RENAME_EXCHANGE))
SIMPLE(run_exchange_types,
       move(world, dir_ino, "n0", ROOT, "empty", RENAME_EXCHANGE))
SIMPLE(run_whiteout, move(world, dir_ino, "n0", ROOT, "new", RENAME_WHITEOUT))
SIMPLE(run_xattr_create,
       fs_setxattr(world->fs, file_ino, "user.new", "1", 1, XATTR_CREATE))
SIMPLE(run_xattr_replace,
       fs_setxattr(world->fs, file_ino, "user.old", "2", 1, XATTR_REPLACE))
SIMPLE(run_xattr_remove, fs_removexattr(world->fs, file_ino, "user.old"))
SIMPLE(run_punch,
       fs_fallocate(world->fs, file_ino,
		    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 100, 9000))
SIMPLE(run_fallocate, fs_fallocate(world->fs, file_ino, 0, 8192, 100000))
SIMPLE(run_copy, fs_copy_range(world->fs, file_ino, 0, open_ino, 4096, 12288))
SIMPLE(run_copy_bytes,
       fs_copy_range(world->fs, file_ino, 10, open_ino, 4000, 9000))

static void run_write(struct world *world, struct outcome *outcome)
{
	static char data[5 * 4096];

	for (int i = 0; i < 5; i++)
		fill_page(data + i * 4096, i + 20);
	outcome->result =
		fs_write(world->fs, file_ino, data, sizeof(data), 1000, false);
}

static void run_append(struct world *world, struct outcome *outcome)
{
	static char data[3 * 4096];

	for (int i = 0; i < 3; i++)
		fill_page(data + i * 4096, i + 30);
	outcome->result = fs_write(world->fs, file_ino, data, sizeof(data),
				   6 * 4096, true);
}

static void run_truncate(struct world *world, struct outcome *outcome)
{
	struct stat attr = {.st_size = 5000}, result = {0};

	outcome->result =
		fs_setattr(world->fs, file_ino, FS_SET_SIZE, &attr, &result);
	snprintf(outcome->entry, sizeof(outcome->entry), "size %jd",
		 (intmax_t)result.st_size);
}

static void run_chmod(struct world *world, struct outcome *outcome)
{
	struct stat attr = {.st_mode = 0640, .st_uid = 7}, result = {0};

	outcome->result = fs_setattr(
		world->fs, file_ino,
		FS_SET_MODE | FS_SET_UID | FS_SET_KILL_PRIV, &attr, &result);
	snprintf(outcome->entry, sizeof(outcome->entry), "mode %o",
		 result.st_mode);
}

static void run_lookup(struct world *world, struct outcome *outcome)
{
	struct fs_entry entry;

	outcome->result = fs_lookup(world->fs, ROOT, "file", &entry);
	describe(outcome, &entry);
}

static bool take(void *context, const char *name, const struct fs_entry *entry,
		 uint64_t cursor)
{
	++*(int64_t *)context;
	return true;
}

static void run_readdirplus(struct world *world, struct outcome *outcome)
{
	int64_t taken = 0;

	outcome->result = fs_readdir(world->fs, dir_ino, 0, true, take, &taken);
	snprintf(outcome->entry, sizeof(outcome->entry), "%jd",
		 (intmax_t)taken);
}

/* As the kernel sends them in one message; the last use of one is among them.
 */
static void run_forget(struct world *world, struct outcome *outcome)
{
	fs_forget(world->fs, dir_ino, 1);
	fs_forget(world->fs, open_ino, 1);
	fs_forget(world->fs, file_ino, 1);
}

const struct scenario scenarios[] = {
	{"create", set_up, run_create},
	{"mkdir", set_up, run_mkdir},
	{"mknod", set_up, run_mknod},
	{"symlink", set_up, run_symlink},
	{"unnamed", set_up, run_unnamed},
	{"link", set_up, run_link},
	{"link of an unlinked file", set_up, run_link_unnamed},
	{"unlink", set_up, run_unlink},
	{"unlink of a held file", set_up, run_unlink_held},
	{"rmdir", set_up, run_rmdir},
	{"rename in place", set_up, run_rename},
	{"rename to another directory", set_up, run_rename_away},
	{"rename over another", set_up, run_rename_over},
	{"rename of a directory", set_up, run_rename_directory},
	{"rename, not to replace", set_up, run_rename_noreplace},
	{"exchange", set_up, run_exchange},
	{"exchange of file and directory", set_up, run_exchange_types},
	{"whiteout", set_up, run_whiteout},
	{"setxattr, create", set_up, run_xattr_create},
	{"setxattr, replace", set_up, run_xattr_replace},
	{"removexattr", set_up, run_xattr_remove},
	{"write", set_up, run_write},
	{"append", set_up, run_append},
	{"truncate", set_up, run_truncate},
	{"chmod", set_up, run_chmod},
	{"punch a hole", set_up, run_punch},
	{"fallocate", set_up, run_fallocate},
	{"copy pages", set_up, run_copy},
	{"copy bytes", set_up, run_copy_bytes},
	{"lookup", set_up, run_lookup},
	{"readdirplus", set_up, run_readdirplus},
	{"forget", set_up, run_forget},
};
const size_t nr_scenarios = sizeof(scenarios) / sizeof(scenarios[0]);
