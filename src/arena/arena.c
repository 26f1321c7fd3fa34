/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * arena.c - the mapping, its layout, and the giving out of its pages
 *
 * Layout of the memfd, all in whole pages:
 *
 *   super block | roots | frames of the regions that have them | regions
 *
 * A page costs memory from when it is first given out until it is trimmed;
 * so does a page of frames, for as long as a page that it describes does.
 */
#include "arena/arena.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "arena/arena_internal.h"

#define ARENA_MAGIC   0x31616e6572617a7aull /* "zzarena1" */
#define ARENA_VERSION 1

/* Super block and roots: always there. */
#define ALWAYS_PAGES (1 + ARENA_ROOTS)

/* Slab block numbers and table sizes leave room for no more: see slab.h. */
#define SLAB_REGION_MAX (32ull << 30)
#define ARRAY_MIN	(16ull << 20)

static bool has_frames(enum arena_region region)
{
	return region == ARENA_INODES || region == ARENA_BLOCKS ||
	       region == ARENA_OBJECTS || region == ARENA_POOL;
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
		region->frames_touched =
			calloc((region->pages >> GROUP_SHIFT) + 1, 1);
		if (!region->frames_touched) {
			pagemap_exit(&region->map);
			return -ENOMEM;
		}
	}
	err = pthread_mutex_init(&region->lock, NULL);
	if (err) {
		free(region->frames_touched);
		pagemap_exit(&region->map);
	}
	return -err;
}

static void region_exit(struct region *region)
{
	pthread_mutex_destroy(&region->lock);
	free(region->frames_touched);
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

	if (arena)
		memset(arena, 0, sizeof(*arena));
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

int arena_fd(const struct arena *arena)
{
	return arena->fd;
}

static uint64_t limit_pages(const struct arena *arena)
{
	uint64_t limit = counter_read(&arena->super->limit);

	return limit ? limit / PAGE_SIZE : UINT64_MAX / 2;
}

bool arena_charge(struct arena *arena, uint64_t pages, uint64_t excess)
{
	uint64_t bound = limit_pages(arena) + excess;
	uint64_t total = counter_read(&arena->total);
	uint64_t peak;

	do {
		/* Also for no pages: above the limit, nothing is given. */
		if (total + pages > bound)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&arena->total, &total, total + pages, memory_order_relaxed,
		memory_order_relaxed));

	peak = counter_read(&arena->super->peak);
	while (total + pages > peak &&
	       !atomic_compare_exchange_weak_explicit(
		       &arena->super->peak, &peak, total + pages,
		       memory_order_relaxed, memory_order_relaxed))
		;
	return true;
}

struct run {
	uint32_t page;
	uint64_t dirty;	    /* which of its pages are, in the word */
	unsigned int clean; /* how many are */
};

/*
 * The lowest run, counted in and marked. -ENOSPC: there is none; -EDQUOT: the
 * limit; -EAGAIN: pages are held, so that the answer might be another without
 * them. Region lock held.
 */
static int take_run(struct arena *arena, enum arena_region nr_region,
		    unsigned int nr, unsigned int flags, struct run *run)
{
	struct region *region = &arena->region[nr_region];
	unsigned int cost, frames = 0;
	struct pageword *word;
	uint64_t mask;
	bool array;

	/* These must grow at their end, also while that page is held. */
	array = nr_region == ARENA_BUCKETS || nr_region == ARENA_NAMES;
	if (region->nr_held && array)
		return -EAGAIN;
	if (!pagemap_find(&region->map, nr, &run->page))
		return region->nr_held ? -EAGAIN : -ENOSPC;

	word = &region->map.words[run->page >> WORD_SHIFT];
	mask = pagemap_mask(run->page, nr);
	run->dirty = word->dirty & mask;
	run->clean = nr - __builtin_popcountll(run->dirty);
	if (region->frames)
		frames = !region->frames_touched[run->page >> GROUP_SHIFT];
	cost = run->clean + frames;
	if (!arena_charge(arena, cost,
			  flags & ARENA_RESERVE ? ARENA_RESERVE_PAGES : 0))
		return -EDQUOT;

	word->used |= mask;
	word->dirty &= ~mask;
	word->aged &= ~mask;
	if (frames) {
		region->frames_touched[run->page >> GROUP_SHIFT] = 1;
		counter_add(&arena->fixed, 1);
	}
	if (run->clean)
		counter_add(&region->resident, run->clean);
	if (run->clean < nr)
		counter_sub(&region->dirty, nr - run->clean);
	/* Release: who sees the extent may look at frames below it. */
	if (run->page + nr > counter_read(region->extent))
		atomic_store_explicit(region->extent, run->page + nr,
				      memory_order_release);
	return 0;
}

/* How far an allocation of nr pages is from fitting under the limit. */
static uint64_t pages_over(const struct arena *arena, unsigned int nr)
{
	uint64_t need = counter_read(&arena->total) + nr + 1;
	uint64_t limit = limit_pages(arena);

	return need > limit ? need - limit : 0;
}

/*
 * With the trim lock nothing is held, and dirty pages can be given back until
 * the allocation fits. Others may take what was given back: a few rounds only.
 */
static int take_run_slowly(struct arena *arena, enum arena_region nr_region,
			   unsigned int nr, unsigned int flags, struct run *run)
{
	struct region *region = &arena->region[nr_region];
	unsigned int rounds = 8;
	int err;

	pthread_mutex_lock(&arena->trim_lock);
	do {
		pthread_mutex_lock(&region->lock);
		err = take_run(arena, nr_region, nr, flags, run);
		pthread_mutex_unlock(&region->lock);
	} while (err == -EDQUOT && rounds-- &&
		 arena_reclaim(arena, pages_over(arena, nr)));
	pthread_mutex_unlock(&arena->trim_lock);
	return err ? -ENOSPC : 0;
}

int arena_alloc(struct arena *arena, enum arena_region nr_region,
		unsigned int nr, unsigned int flags, uint32_t *page)
{
	struct region *region = &arena->region[nr_region];
	struct run run;
	int err;

	assert(nr >= 1 && nr <= ARENA_RUN_MAX);
	assert(arena->settled);
	pthread_mutex_lock(&region->lock);
	err = take_run(arena, nr_region, nr, flags, &run);
	pthread_mutex_unlock(&region->lock);
	if (err == -EDQUOT || err == -EAGAIN)
		err = take_run_slowly(arena, nr_region, nr, flags, &run);
	if (err)
		return err;

	if (flags & ARENA_ZERO)
		for (uint64_t left = run.dirty; left; left &= left - 1)
			memset(region->base +
				       (uint64_t)((run.page &
						   ~(WORD_PAGES - 1)) +
						  __builtin_ctzll(left)) *
					       PAGE_SIZE,
			       0, PAGE_SIZE);
	*page = run.page;
	return 0;
}

void arena_free(struct arena *arena, enum arena_region nr_region, uint32_t page,
		unsigned int nr)
{
	struct region *region = &arena->region[nr_region];
	uint32_t number = page >> WORD_SHIFT;
	struct pageword *word;
	uint64_t mask;

	assert(nr >= 1 && page % WORD_PAGES + nr <= WORD_PAGES);
	assert(page < region->pages);
	/*
	 * Atomically, as a reader whose number has become stale may look at a
	 * frame meanwhile; it finds out afterwards.
	 */
	if (region->frames) {
		uint64_t *frame = (uint64_t *)&region->frames[page];

		for (unsigned int i = 0; i < 2 * nr; i++)
			__atomic_store_n(&frame[i], 0, __ATOMIC_RELAXED);
	}

	mask = pagemap_mask(page, nr);
	word = &region->map.words[number];
	pthread_mutex_lock(&region->lock);
	assert((word->used & mask) == mask && "page freed that is not in use");
	word->used &= ~mask;
	word->dirty |= mask;
	counter_add(&region->dirty, nr);
	if (region->dirty_low > number)
		region->dirty_low = number;
	pagemap_opened(&region->map, page, nr);
	pthread_mutex_unlock(&region->lock);
}

void *arena_page(const struct arena *arena, enum arena_region region,
		 uint32_t page)
{
	return arena->region[region].base + (uint64_t)page * PAGE_SIZE;
}

struct arena_frame *arena_frame(const struct arena *arena,
				enum arena_region region, uint32_t page)
{
	return &arena->region[region].frames[page];
}

bool arena_frame_touched(const struct arena *arena, enum arena_region region,
			 uint32_t page)
{
	return !arena->settled ||
	       arena->region[region].frames_touched[page >> GROUP_SHIFT];
}

void *arena_root(const struct arena *arena, enum arena_root root)
{
	return arena->base + (uint64_t)(1 + root) * PAGE_SIZE;
}

uint32_t arena_extent(const struct arena *arena, enum arena_region region)
{
	return atomic_load_explicit(arena->region[region].extent,
				    memory_order_acquire);
}

uint32_t arena_capacity(const struct arena *arena, enum arena_region region)
{
	return arena->region[region].pages;
}

void arena_set_limit(struct arena *arena, uint64_t limit)
{
	atomic_store_explicit(&arena->super->limit, limit,
			      memory_order_relaxed);
}

bool arena_is_full(const struct arena *arena, unsigned int nr)
{
	uint64_t total = counter_read(&arena->total);

	/* Dirty pages would be given back first. */
	for (unsigned int r = 0; r < ARENA_REGIONS; r++)
		total -= min64(total, counter_read(&arena->region[r].dirty));
	return total + nr > limit_pages(arena);
}

void arena_usage(const struct arena *arena, struct arena_usage *usage)
{
	uint64_t dirty = 0;

	for (unsigned int r = 0; r < ARENA_REGIONS; r++) {
		const struct region *region = &arena->region[r];

		usage->resident[r] =
			counter_read(&region->resident) * PAGE_SIZE;
		dirty += counter_read(&region->dirty);
	}
	usage->dirty = dirty * PAGE_SIZE;
	usage->fixed = counter_read(&arena->fixed) * PAGE_SIZE;
	usage->total = counter_read(&arena->total) * PAGE_SIZE;
	usage->peak = counter_read(&arena->super->peak) * PAGE_SIZE;
	usage->limit = counter_read(&arena->super->limit);
}

void arena_reset_peak(struct arena *arena)
{
	atomic_store_explicit(&arena->super->peak, counter_read(&arena->total),
			      memory_order_relaxed);
}
