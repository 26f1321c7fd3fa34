/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * arena_layout.c - the memfd, its mapping, and what lies where in it
 *
 * Layout of the memfd, all in whole pages:
 *
 *   super block | roots | frames of the regions that have them | regions
 *
 * Makes and unmakes a struct arena; gives out no page.
 */
#include "arena/lock.h"
#include "arena/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "arena/arena_internal.h"

#define ARENA_MAGIC 0x31616e6572617a7aull /* "zzarena1" */

/* Super block and roots: always there. */
#define ALWAYS_PAGES (1 + ARENA_ROOTS)

/* Slab block numbers and table sizes leave room for no more: see slab.h. */
#define SLAB_REGION_MAX (32ull << 30)
/* Their numbers are kept with a bit beside: see store/object.h, cluster.h. */
#define OBJECTS_MAX (16ull << 30)
#define ARRAY_MIN   (16ull << 20)

static bool has_frames(enum arena_region region)
{
	return region == ARENA_INODES || region == ARENA_BLOCKS ||
	       region == ARENA_OBJECTS || region == ARENA_CLUSTERS ||
	       region == ARENA_POOL;
}

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t region_bytes(enum arena_region region, uint64_t ram,
			     uint64_t swap)
{
	uint64_t table = min64(SLAB_REGION_MAX, ram + swap);

	switch (region) {
	case ARENA_POOL:
		/* Twice what can be full, so that runs stay findable. */
		return 2 * (ram + swap);
	case ARENA_HOT:
		return ram;
	case ARENA_BUCKETS:
	case ARENA_NAMES:
		/* Four bytes for each record, and none is below 16. */
		return max64(ARRAY_MIN, table / 4);
	default:
		return table;
	}
}

/* Fill in where everything is; returns the size of the whole. */
static void lay_out(struct arena_super *super, uint64_t capacity)
{
	uint64_t offset = ALWAYS_PAGES * PAGE_SIZE;
	uint64_t ram = 0, swap = 0;
	struct sysinfo info;

	if (!capacity && sysinfo(&info) == 0) {
		ram = (uint64_t)info.totalram * info.mem_unit;
		swap = (uint64_t)info.totalswap * info.mem_unit;
	}
	for (unsigned int r = 0; r < ARENA_REGIONS; r++) {
		uint64_t bytes =
			capacity ? capacity : region_bytes(r, ram, swap);
		uint64_t pages = (bytes + PAGE_SIZE - 1) / PAGE_SIZE;

		pages = max64(pages, 1);
		/* Whole words of the pagemap; numbers have 32 bits. */
		pages = min64((pages + WORD_PAGES - 1) & ~(WORD_PAGES - 1ull),
			      (1ull << 32) - WORD_PAGES);
		if (r < ARENA_BUCKETS)
			pages = min64(pages, SLAB_REGION_MAX / PAGE_SIZE);
		if (r == ARENA_OBJECTS || r == ARENA_CLUSTERS)
			pages = min64(pages, OBJECTS_MAX / PAGE_SIZE);
		super->region[r].pages = pages;
		if (!has_frames(r))
			continue;
		super->region[r].frames = offset;
		offset +=
			((pages + GROUP_PAGES - 1) >> GROUP_SHIFT) * PAGE_SIZE;
	}
	for (unsigned int r = 0; r < ARENA_REGIONS; r++) {
		super->region[r].offset = offset;
		offset += (uint64_t)super->region[r].pages * PAGE_SIZE;
	}
	super->size = offset;
}

static size_t touched_bytes(const struct region *region)
{
	return (region->pages >> GROUP_SHIFT) + 1;
}

/* From mmap, as pagemap.c's: what calloc() clears takes memory. */
static int init_touched(struct region *region)
{
	void *memory = mmap(NULL, touched_bytes(region), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return -ENOMEM;
	region->frames_touched = memory;
	return 0;
}

static void exit_touched(struct region *region)
{
	if (region->frames_touched)
		munmap(region->frames_touched, touched_bytes(region));
	region->frames_touched = NULL;
}

static int region_init(struct arena *arena, enum arena_region nr)
{
	struct region *region = &arena->region[nr];
	const struct arena_super *super = arena->super;
	int err;

	region->pages = super->region[nr].pages;
	region->offset = super->region[nr].offset;
	region->base = arena->base + region->offset;
	region->extent = &arena->super->region[nr].extent;
	err = pagemap_init(&region->map, region->pages);
	if (err)
		return err;
	if (has_frames(nr)) {
		region->frames_offset = super->region[nr].frames;
		region->frames = (struct arena_frame *)(arena->base +
							region->frames_offset);
		err = init_touched(region);
	}
	if (!err)
		err = -lock_init(&region->lock);
	if (err) {
		exit_touched(region);
		pagemap_exit(&region->map);
	}
	return err;
}

static void region_exit(struct region *region)
{
	pthread_mutex_destroy(&region->lock);
	exit_touched(region);
	pagemap_exit(&region->map);
}

/* Map arena->fd and make the process's side of it. */
static int map_arena(struct arena *arena, uint64_t size)
{
	unsigned int r;
	void *base;
	int err;

	base = mmap(NULL, size, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_NORESERVE, arena->fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	arena->base = base;
	arena->size = size;
	arena->super = base;
	/* A dump would be as large as the data; it is kept elsewhere anyway. */
	if (madvise(base, size, MADV_DONTDUMP) < 0) {
		err = -errno;
		goto unmap;
	}
	err = -pthread_mutex_init(&arena->trim_lock, NULL);
	if (err)
		goto unmap;
	for (r = 0; r < ARENA_REGIONS; r++) {
		err = region_init(arena, r);
		if (err)
			goto regions;
	}
	atomic_init(&arena->total, ALWAYS_PAGES);
	atomic_init(&arena->fixed, ALWAYS_PAGES);
	return 0;

regions:
	while (r--)
		region_exit(&arena->region[r]);
	pthread_mutex_destroy(&arena->trim_lock);
unmap:
	munmap(base, size);
	return err;
}

static struct arena *new_arena(void)
{
	struct arena *arena =
		aligned_alloc(_Alignof(struct arena), sizeof(*arena));

	if (!arena)
		return NULL;
	memset(arena, 0, sizeof(*arena));
	atomic_init(&arena->least_over, UINT64_MAX / 2);
	return arena;
}

int arena_create(struct arena **result, const struct arena_config *config)
{
	struct arena_super super = {.magic = ARENA_MAGIC,
				    .version = ARENA_VERSION,
				    .regions = ARENA_REGIONS};
	struct arena *arena;
	int err;

	arena = new_arena();
	if (!arena)
		return -ENOMEM;
	lay_out(&super, config->capacity);
	atomic_init(&super.limit, config->limit);
	atomic_init(&super.peak, ALWAYS_PAGES);

	arena->fd = memfd_create("zramfs", MFD_CLOEXEC);
	if (arena->fd < 0) {
		err = -errno;
		goto free;
	}
	if (ftruncate(arena->fd, super.size) < 0) {
		err = -errno;
		goto close;
	}
	if (pwrite(arena->fd, &super, sizeof(super), 0) != sizeof(super)) {
		err = -ENOMEM; /* of which there is too little for a page */
		goto close;
	}
	err = map_arena(arena, super.size);
	if (err)
		goto close;
	arena->settled = true;
	*result = arena;
	return 0;

close:
	close(arena->fd);
free:
	free(arena);
	return err;
}

/* Is this super block one that lay_out() of this program made? */
static bool super_valid(const struct arena_super *super, uint64_t size)
{
	if (super->magic != ARENA_MAGIC || super->version != ARENA_VERSION ||
	    super->regions != ARENA_REGIONS || super->size != size)
		return false;
	for (unsigned int r = 0; r < ARENA_REGIONS; r++) {
		uint64_t pages = super->region[r].pages;
		uint64_t offset = super->region[r].offset;
		uint64_t frames = super->region[r].frames;

		if (!pages || pages % WORD_PAGES || offset % PAGE_SIZE ||
		    offset > size || pages > (size - offset) / PAGE_SIZE ||
		    super->region[r].extent > pages)
			return false;
		if (!has_frames(r))
			continue;
		if (!frames || frames % PAGE_SIZE || frames > size ||
		    pages > (size - frames) / sizeof(struct arena_frame))
			return false;
	}
	return true;
}

int arena_attach(struct arena **result, int fd)
{
	struct arena_super super;
	struct arena *arena;
	struct stat st;
	ssize_t got;
	int err;

	if (fstat(fd, &st) < 0)
		return -errno;
	got = pread(fd, &super, sizeof(super), 0);
	if (got < 0)
		return -errno;
	if (got != sizeof(super) || !super_valid(&super, st.st_size))
		return -EPROTO;

	arena = new_arena();
	if (!arena)
		return -ENOMEM;
	arena->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (arena->fd < 0) {
		err = -errno;
		goto free;
	}
	err = map_arena(arena, super.size);
	if (err)
		goto close;
	*result = arena;
	return 0;

close:
	close(arena->fd);
free:
	free(arena);
	return err;
}

void arena_destroy(struct arena *arena)
{
	if (!arena)
		return;
	for (unsigned int r = 0; r < ARENA_REGIONS; r++)
		region_exit(&arena->region[r]);
	pthread_mutex_destroy(&arena->trim_lock);
	munmap(arena->base, arena->size);
	close(arena->fd);
	free(arena);
}
