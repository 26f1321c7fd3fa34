/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fs_world.c - a filesystem to test names with
 */
#include "fs_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

const struct fs_caller world_caller = {0};

static const struct store_config store_config = {
	.codec = {&codec_lz4, 1},
	.pool = &pool_zsmalloc,
	.hot = 64 * PAGE_SIZE,
	.dedup = true,
	.compressors = 1,
};

void world_create(struct world *world, uint64_t nr_inodes)
{
	struct arena_config arena_config = {.capacity = UINT64_C(1) << 30};
	struct fs_config config = {.mode = 0755, .nr_inodes = nr_inodes};

	assert_int_equal(arena_create(&world->arena, &arena_config), 0);
	assert_int_equal(
		store_create(&world->store, world->arena, &store_config), 0);
	assert_int_equal(
		fs_create(&world->fs, world->arena, world->store, &config), 0);
	assert_int_equal(fs_attach_thread(world->fs), 0);
}

int fs_world_setup(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	world_create(world, 0);
	*state = world;
	return 0;
}

static void leave(struct world *world)
{
	fs_detach_thread(world->fs);
	fs_destroy(world->fs);
	store_destroy(world->store);
	arena_destroy(world->arena);
}

void world_destroy(struct world *world)
{
	world_check(world);
	leave(world);
}

int fs_world_teardown(void **state)
{
	world_destroy(*state);
	free(*state);
	return 0;
}

int world_abandon(struct world *world)
{
	int fd = dup(arena_fd(world->arena));

	assert_true(fd >= 0);
	leave(world);
	return fd;
}

void world_attach(struct world *world, int fd)
{
	assert_int_equal(arena_attach(&world->arena, fd), 0);
	close(fd);
	assert_int_equal(
		store_attach(&world->store, world->arena, &store_config), 0);
	assert_int_equal(fs_attach(&world->fs, world->arena, world->store), 0);
	assert_int_equal(fs_attach_thread(world->fs), 0);
}

static void print_line(void *context, const char *line)
{
	print_message("# %s\n", line);
}

void world_recover(struct world *world, struct fs_check *check)
{
	assert_int_equal(fs_recover(world->fs, check, print_line, NULL), 0);
	assert_int_equal(check->errors, 0);
}

void world_crash(struct world *world)
{
	struct fs_check check;

	world_attach(world, world_abandon(world));
	world_recover(world, &check);
}

struct fs_check world_check(struct world *world)
{
	struct fs_check check;

	assert_int_equal(fs_check(world->fs, true, &check, print_line, NULL),
			 0);
	assert_int_equal(check.errors, 0);
	assert_int_equal(check.differences, 0);
	return check;
}

static void keep_quiet(void *context, const char *line)
{
	/* Nor is a line longer than zramfsctl's. */
	assert_true(strlen(line) < 160);
}

uint64_t world_findings(struct world *world)
{
	struct fs_check check;

	assert_int_equal(fs_check(world->fs, false, &check, keep_quiet, NULL),
			 0);
	return check.errors + check.differences;
}

/* --- dump -------------------------------------------------------------- */

struct dump {
	struct world *world;
	FILE *out;
	char path[4096];
};

static void dump_xattrs(struct dump *dump, ino_t ino)
{
	struct fs *fs = dump->world->fs;
	static char list[65536], value[65536];
	ssize_t size = fs_listxattr(fs, ino, list, sizeof(list));

	assert_true(size >= 0);
	for (ssize_t i = 0; i < size; i += strlen(list + i) + 1) {
		ssize_t length =
			fs_getxattr(fs, ino, list + i, value, sizeof(value));
		uint64_t sum = 0;

		assert_true(length >= 0);
		for (ssize_t j = 0; j < length; j++)
			sum = sum * 31 + (unsigned char)value[j];
		fprintf(dump->out, "  %s %zd %" PRIx64 "\n", list + i, length,
			sum);
	}
}

static void dump_content(struct dump *dump, ino_t ino, const struct stat *attr)
{
	char buffer[4096];
	uint64_t sum = 0;
	ssize_t length;

	if (S_ISLNK(attr->st_mode)) {
		length = fs_readlink(dump->world->fs, ino, buffer,
				     sizeof(buffer));
		fprintf(dump->out, "  -> %.*s\n", (int)length, buffer);
	}
	for (off_t at = 0; S_ISREG(attr->st_mode) && at < attr->st_size;
	     at += length) {
		length = fs_read(dump->world->fs, ino, buffer, sizeof(buffer),
				 at);
		assert_true(length > 0);
		for (ssize_t i = 0; i < length; i++)
			sum = sum * 31 + (unsigned char)buffer[i];
	}
	if (attr->st_size)
		fprintf(dump->out, "  data %" PRIx64 "\n", sum);
}

static void dump_inode(struct dump *dump, ino_t ino);

static bool dump_child(void *context, const char *name,
		       const struct fs_entry *entry, uint64_t cursor)
{
	struct dump *dump = context;
	size_t length = strlen(dump->path);

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return true;
	snprintf(dump->path + length, sizeof(dump->path) - length, "/%s", name);
	fprintf(dump->out, "%s @%" PRIu64 "\n", dump->path, cursor);
	dump_inode(dump, entry->ino);
	dump->path[length] = '\0';
	return true;
}

static void dump_inode(struct dump *dump, ino_t ino)
{
	struct stat attr = attributes(dump->world, ino);
	struct inode *inode = inode_get(dump->world->fs, ino);

	fprintf(dump->out,
		"  %ju mode %o nlink %ju %u:%u rdev %jx size %jd blocks %jd "
		"lookups %ju\n",
		(uintmax_t)ino, attr.st_mode, (uintmax_t)attr.st_nlink,
		attr.st_uid, attr.st_gid, (uintmax_t)attr.st_rdev,
		(intmax_t)attr.st_size, (intmax_t)attr.st_blocks,
		(uintmax_t)inode->lookups);
	fprintf(dump->out, "  m %jd.%09ld c %jd.%09ld\n",
		(intmax_t)attr.st_mtim.tv_sec, attr.st_mtim.tv_nsec,
		(intmax_t)attr.st_ctim.tv_sec, attr.st_ctim.tv_nsec);
	dump_xattrs(dump, ino);
	dump_content(dump, ino, &attr);
	if (S_ISDIR(attr.st_mode))
		assert_int_equal(fs_readdir(dump->world->fs, ino, 0, false,
					    dump_child, dump),
				 0);
}

char *world_dump(struct world *world)
{
	struct dump dump = {.world = world};
	char *text;
	size_t size;

	dump.out = open_memstream(&text, &size);
	assert_non_null(dump.out);
	dump_inode(&dump, ROOT);
	fclose(dump.out);
	return text;
}

/* --- shorthands -------------------------------------------------------- */

ino_t make_held(struct world *world, ino_t parent, const char *name,
		mode_t mode)
{
	struct fs_entry entry;

	assert_int_equal(fs_make(world->fs, &world_caller, parent, name, mode,
				 0, S_ISLNK(mode) ? "target" : NULL, &entry),
			 0);
	return entry.ino;
}

ino_t make(struct world *world, ino_t parent, const char *name, mode_t mode)
{
	ino_t ino = make_held(world, parent, name, mode);

	fs_forget(world->fs, ino, 1);
	return ino;
}

ino_t make_file(struct world *world, ino_t parent, const char *name)
{
	return make(world, parent, name, S_IFREG | 0644);
}

ino_t make_dir(struct world *world, ino_t parent, const char *name)
{
	return make(world, parent, name, S_IFDIR | 0755);
}

ino_t find(struct world *world, ino_t parent, const char *name)
{
	struct fs_entry entry;

	if (fs_lookup(world->fs, parent, name, &entry))
		return 0;
	fs_forget(world->fs, entry.ino, 1);
	return entry.ino;
}

struct stat attributes(struct world *world, ino_t ino)
{
	struct stat attr;

	assert_int_equal(fs_getattr(world->fs, ino, &attr), 0);
	return attr;
}

int move(struct world *world, ino_t parent, const char *name, ino_t new_parent,
	 const char *new_name, unsigned int flags)
{
	return fs_rename(world->fs, &world_caller, parent, name, new_parent,
			 new_name, flags);
}

bool is_live(struct world *world, ino_t ino)
{
	struct stat attr;

	return fs_getattr(world->fs, ino, &attr) == 0;
}

/* --- starving ---------------------------------------------------------- */

static struct {
	struct slab *slab;
	uint32_t block;
} * hogs;
static size_t nr_hogs, room_hogs;

static void hog(struct slab *slab, size_t size)
{
	uint32_t block;

	while (slab_alloc(slab, size, 0, &block) == 0) {
		if (nr_hogs == room_hogs) {
			room_hogs = room_hogs * 2 + 1024;
			hogs = realloc(hogs, room_hogs * sizeof(*hogs));
			assert_non_null(hogs);
		}
		hogs[nr_hogs].slab = slab;
		hogs[nr_hogs++].block = block;
	}
}

void world_starve(struct world *world, unsigned int pages)
{
	struct arena_usage usage;

	while (arena_trim(world->arena, UINT64_MAX))
		;
	arena_usage(world->arena, &usage);
	arena_set_limit(world->arena, usage.total);
	hog(world->fs->inodes, sizeof(struct inode));
	for (size_t size = 8; size <= PAGE_SIZE; size += 8)
		hog(world->fs->blocks, size);
	arena_usage(world->arena, &usage);
	arena_set_limit(world->arena, usage.total + pages * PAGE_SIZE);
}

void world_relax(struct world *world)
{
	arena_set_limit(world->arena, 0);
	while (nr_hogs) {
		nr_hogs--;
		slab_free(hogs[nr_hogs].slab, hogs[nr_hogs].block);
	}
	free(hogs);
	hogs = NULL;
	room_hogs = 0;
}

/* xorshift64*, Vigna 2016. */
uint64_t random_below(uint64_t *state, uint64_t bound)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (*state * UINT64_C(2685821657736338717) >> 16) % bound;
}
