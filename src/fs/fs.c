/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fs.c - the filesystem as a whole: made, attached, measured, stopped
 *
 * Owns struct fs and the root page, and puts the slabs, the name index and the
 * locks together. What is in them is the other files'.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "fs/directory.h"
#include "fs/fs_private.h"

static const uint16_t inode_sizes[] = {sizeof(struct inode)};

/*
 * Steps of 8 to 128, because most blocks are names, and a million of them is
 * where the slab's waste would show. Above, the largest multiples of 16 of
 * which so many fill a page; with the powers of two among them, which are the
 * nodes of page tables (16 to 256), and 280, which the longest name takes.
 */
static const uint16_t block_sizes[] = {
	16,  24,  32,  40,  48,	 56,  64,  72,	 80,   88,   96,   104, 112,
	120, 128, 144, 160, 176, 192, 208, 224,	 240,  256,  272,  288, 336,
	368, 400, 448, 512, 576, 672, 816, 1024, 1360, 2048, 4096,
};

_Static_assert(sizeof(struct fs_root) <= PAGE_SIZE, "fits its page");

static int lock_init(pthread_rwlock_t *lock)
{
	pthread_rwlockattr_t attr;
	int error;

	error = pthread_rwlockattr_init(&attr);
	if (error)
		return -error;
	/* Nobody takes one twice, and a writer must get its turn. */
	pthread_rwlockattr_setkind_np(
		&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	error = pthread_rwlock_init(lock, &attr);
	pthread_rwlockattr_destroy(&attr);
	return -error;
}

/* glibc's rwlocks hold no resources, so a half-made set can just be freed. */
static int locks_init(struct fs *fs)
{
	int error = lock_init(&fs->namespace_lock);

	for (size_t i = 0; !error && i < FS_INODE_LOCKS; i++)
		error = lock_init(&fs->inode_locks[i].lock);
	for (size_t i = 0; !error && i < FS_COUNT_LOCKS; i++)
		error = -pthread_mutex_init(&fs->count_locks[i].lock, NULL);
	return error;
}

void fs_destroy(struct fs *fs)
{
	if (!fs)
		return;
	if (fs->names)
		index_destroy(fs->names);
	slab_destroy(fs->inodes);
	slab_destroy(fs->blocks);
	gates_exit(fs);
	free(fs);
}

/* All but the name index, which is made on a settled arena only. */
static int fs_new(struct fs **result, struct arena *arena, struct store *store)
{
	struct fs *fs = aligned_alloc(_Alignof(struct fs), sizeof(*fs));
	int error;

	if (!fs)
		return -ENOMEM;
	*fs = (struct fs){
		.arena = arena,
		.store = store,
		.root = arena_root(arena, ARENA_ROOT_FS),
	};
	error = gates_init(fs);
	if (error) {
		free(fs);
		return error;
	}
	error = locks_init(fs);
	if (!error)
		error = slab_create(&fs->inodes, arena, ARENA_INODES,
				    inode_sizes, 1);
	if (!error)
		error = slab_create(&fs->blocks, arena, ARENA_BLOCKS,
				    block_sizes,
				    sizeof(block_sizes) / sizeof(*block_sizes));
	if (error) {
		fs_destroy(fs);
		return error;
	}
	*result = fs;
	return 0;
}

static int make_root(struct fs *fs, const struct fs_config *config)
{
	struct inode *inode;
	int64_t now = inode_now();
	uint32_t block;
	int error = inode_alloc(fs, &block);

	if (error)
		return error;
	inode = slab_address(fs->inodes, block);
	inode->uid = config->uid;
	inode->gid = config->gid;
	inode->nlink = 2;
	inode->parent = FS_ROOT_INO;
	inode->atime = inode->mtime = inode->ctime = now;
	/* The caller holds the root for as long as it is mounted. */
	inode->lookups = 1;
	inode->mode = S_IFDIR | (config->mode & 07777);
	fs->root->root_block = block;
	return 0;
}

int fs_create(struct fs **result, struct arena *arena, struct store *store,
	      const struct fs_config *config)
{
	struct fs *fs;
	int error = fs_new(&fs, arena, store);

	if (error)
		return error;
	fs->root->size_pages =
		config->size / PAGE_SIZE + (config->size % PAGE_SIZE != 0);
	fs->root->nr_inodes = config->nr_inodes;
	if (getrandom(&fs->root->name_seed, sizeof(fs->root->name_seed), 0) !=
	    sizeof(fs->root->name_seed))
		error = -errno;
	if (!error)
		error = index_create(&fs->names, arena, ARENA_NAMES,
				     &directory_index_ops, fs);
	if (!error)
		error = make_root(fs, config);
	if (error) {
		fs_destroy(fs);
		return error;
	}
	*result = fs;
	return 0;
}

int fs_attach(struct fs **result, struct arena *arena, struct store *store)
{
	const struct fs_root *root = arena_root(arena, ARENA_ROOT_FS);

	if (!root->root_block)
		return -EPROTO;
	return fs_new(result, arena, store);
}

int fs_attach_thread(struct fs *fs)
{
	gate_choose();
	return store_attach_thread(fs->store);
}

void fs_detach_thread(struct fs *fs)
{
	store_detach_thread(fs->store);
}

/* Without size= or nr_inodes=, memory is the bound: RAM is what there is. */
static uint64_t ram_pages(void)
{
	long pages = sysconf(_SC_PHYS_PAGES);
	long size = sysconf(_SC_PAGESIZE);

	return pages > 0 ? (uint64_t)pages * size / PAGE_SIZE : 0;
}

static uint64_t left(uint64_t total, uint64_t used)
{
	return total > used ? total - used : 0;
}

/* Pages that the arena's limit leaves. What can be trimmed counts as free. */
static uint64_t memory_left(const struct fs *fs)
{
	struct arena_usage usage;

	arena_usage(fs->arena, &usage);
	if (!usage.limit)
		return UINT64_MAX;
	return left(usage.limit, usage.total - usage.trimmable) / PAGE_SIZE;
}

int fs_statvfs(struct fs *fs, struct statvfs *statvfs)
{
	uint64_t blocks = fs->root->size_pages;
	uint64_t inodes = fs->root->nr_inodes;
	uint64_t memory = memory_left(fs);

	if (!blocks)
		blocks = ram_pages();
	if (!inodes)
		inodes = ram_pages();
	*statvfs = (struct statvfs){
		.f_bsize = PAGE_SIZE,
		.f_frsize = PAGE_SIZE,
		.f_blocks = blocks,
		.f_bfree = left(blocks, fs->root->used_pages),
		.f_files = inodes,
		.f_ffree = left(inodes, fs->root->used_inodes),
		.f_namemax = FS_NAME_MAX,
	};
	statvfs->f_bavail =
		memory < statvfs->f_bfree ? memory : statvfs->f_bfree;
	statvfs->f_favail = statvfs->f_ffree;
	return 0;
}

void fs_stats(struct fs *fs, struct fs_stats *stats)
{
	struct slab_usage inodes, blocks;

	slab_usage(fs->inodes, &inodes);
	slab_usage(fs->blocks, &blocks);
	*stats = (struct fs_stats){
		.size = fs->root->size_pages * PAGE_SIZE,
		.size_used = fs->root->used_pages * PAGE_SIZE,
		.inodes = fs->root->nr_inodes,
		.inodes_used = fs->root->used_inodes,
		.inode_bytes = inodes.pages * PAGE_SIZE,
		.block_bytes = blocks.pages * PAGE_SIZE,
	};
	fs_enter(fs);
	pthread_rwlock_rdlock(&fs->namespace_lock);
	stats->name_index_bytes = index_bytes(fs->names);
	pthread_rwlock_unlock(&fs->namespace_lock);
	fs_leave(fs);
}

int fs_set_size(struct fs *fs, uint64_t size)
{
	struct fs_root *root = fs->root;
	uint64_t pages = size / PAGE_SIZE + (size % PAGE_SIZE != 0);
	uint64_t old;

	/*
	 * Bound first, look then: whoever charges sees the new bound, or was
	 * counted before this looks. Sequentially consistent on both sides.
	 */
	old = atomic_exchange(&root->size_pages, pages);
	if (pages && atomic_load(&root->used_pages) > pages) {
		atomic_store(&root->size_pages, old);
		return -EBUSY;
	}
	return 0;
}
