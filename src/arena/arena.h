/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * arena.h - the one shared mapping in which all filesystem state lives
 *
 * The arena is a memfd, mapped shared and in full: a file of fixed, sparse
 * size, cut into regions. Whatever must outlive the process lies in it, and
 * names other things in it by number (page, block, object), never by pointer,
 * so that it can be mapped anywhere.
 *
 * This file gives out memory in 4 KiB pages, and counts it:
 *
 *   used    given out by arena_alloc() and not yet freed
 *   dirty   freed, but still backed by memory (fast to give out again)
 *   clean   no memory behind it; reads as zeros once given out
 *
 * resident = used + dirty is what the arena costs the system, and what the
 * limit bounds. arena_trim() turns dirty pages to clean ones (punches holes),
 * off the write path.
 *
 * Truth and derived state: which pages are used is *derived*: the layers above
 * can tell it by walking what they keep. After a crash, or to check a live
 * arena, they claim every page they use in a struct arena_map; see below.
 *
 * Locks: one mutex for each region, and one for trimming, around it. They are
 * leaves: no lock of another file is ever taken under them. All functions are
 * thread-safe unless they say not. Errors are negative errno.
 */
#ifndef ZRAMFS_ARENA_H
#define ZRAMFS_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_SHIFT 12
#define PAGE_SIZE  4096u

/* Changes with the layout of anything in the arena that is the arena's own. */
#define ARENA_VERSION 2

/* Longest run of contiguous pages that arena_alloc() gives. */
#define ARENA_RUN_MAX 64

/*
 * Numbers of what is in the regions are 32 bits wide; a page number in any
 * region is below 2^32, and below 2^24 in those that slab.h cuts up.
 */
enum arena_region {
	ARENA_INODES,  /* slab pages of struct inode */
	ARENA_BLOCKS,  /* slab pages of small blocks: names, tables, xattrs */
	ARENA_OBJECTS, /* slab pages of object table slots */
	ARENA_CLUSTERS, /* slab pages of pages compressed together */
	ARENA_BUCKETS, /* the dedup index: one array, grown at its end */
	ARENA_NAMES,   /* the name index: one array, grown at its end */
	ARENA_HOT,     /* frames of the hot tier */
	ARENA_POOL,    /* zspages */
	ARENA_REGIONS
};

/* A page of persistent roots for each layer that needs one; zero when new. */
enum arena_root {
	ARENA_ROOT_STORE,
	ARENA_ROOT_FS,
	ARENA_ROOTS
};

/*
 * What the arena remembers of each page of the INODES, BLOCKS, OBJECTS,
 * CLUSTERS and POOL regions, as the kernel's struct page does: 16 bytes for the layer that
 * owns the page, beside the page and not in it. `kind` is truth (it says how
 * to read the page after a crash); the rest is derived. Zero while free.
 */
struct arena_frame {
	uint16_t kind;	/* owner's: size class; 0 = page is free */
	uint16_t inuse; /* objects in use */
	union {
		struct {
			uint16_t free; /* first free object, owner's encoding */
			uint16_t state;
		};
		uint32_t owner;
	};
	uint32_t prev; /* list links: page numbers, ARENA_NIL ends */
	uint32_t next;
};

#define ARENA_NIL UINT32_MAX

struct arena;

struct arena_config {
	uint64_t capacity; /* bytes each region may grow to; 0: from RAM+swap */
	uint64_t limit;	   /* bound on resident bytes (mem_limit=); 0: none */
};

struct arena_usage {
	uint64_t resident[ARENA_REGIONS]; /* bytes, used and dirty */
	uint64_t dirty;			  /* bytes freed, not yet returned */
	uint64_t trimmable;		  /* of them, those not set aside */
	uint64_t fixed; /* bytes of super block, roots and page frames */
	uint64_t total; /* all of the above, in bytes */
	uint64_t peak;	/* highest total since creation or reset */
	uint64_t limit;
};

/*
 * Make a new arena in a new memfd. -ENOMEM, -EMFILE, or what memfd_create(2),
 * ftruncate(2) and mmap(2) give.
 */
int arena_create(struct arena **arena, const struct arena_config *config);

/*
 * Map an existing arena (fd is duplicated). Every page is unknown until the
 * layers above have claimed theirs and arena_settle() has been called: only
 * the accessors may be used before. -EPROTO when the magic number, the layout
 * version or the size is not this program's.
 */
int arena_attach(struct arena **arena, int fd);

/* Unmap, close, free what the process holds. The memfd lives while others hold
 * it. */
void arena_destroy(struct arena *arena);

int arena_fd(const struct arena *arena);

/*
 * Get nr contiguous pages, 1 <= nr <= ARENA_RUN_MAX: the lowest-numbered free
 * run that lies within one aligned group of 64 pages. For nr == 1 that is the
 * lowest free page, which the arrays in BUCKETS and NAMES rely on to grow
 * contiguously. ARENA_ZERO: contents are zero; else they are undefined.
 *
 * -ENOSPC when it would pass the limit, even after dirty pages of other
 * regions were given back, or the region is full. ARENA_RESERVE may pass the
 * limit by a small fixed reserve (ARENA_RESERVE_PAGES): for operations that
 * have to allocate a little in order to free (truncating within a page,
 * compressing, compaction). When the limit was set below what is used, the
 * reserve comes on top of the least that has been used since.
 * ARENA_RESERVE_SOME: likewise, but only half of it: for what takes several
 * pages and fills them later, so that single pages can be had in any case.
 */
#define ARENA_ZERO	    (1u << 0)
#define ARENA_RESERVE	    (1u << 1)
#define ARENA_RESERVE_SOME  (1u << 2)
#define ARENA_RESERVE_PAGES 64
int arena_alloc(struct arena *arena, enum arena_region region, unsigned int nr,
		unsigned int flags, uint32_t *page);

/* Give pages back. Never allocates, makes no system call, cannot fail. */
void arena_free(struct arena *arena, enum arena_region region, uint32_t page,
		unsigned int nr);

/* Address of a page; valid as long as the arena is mapped. */
void *arena_page(const struct arena *arena, enum arena_region region,
		 uint32_t page);

/* The frame of a page. Not for BUCKETS, NAMES, HOT. */
struct arena_frame *arena_frame(const struct arena *arena,
				enum arena_region region, uint32_t page);

/* A layer's root page, PAGE_SIZE bytes. */
void *arena_root(const struct arena *arena, enum arena_root root);

/* One past the highest page that was ever used in the region: for scans. */
uint32_t arena_extent(const struct arena *arena, enum arena_region region);

/* How many pages the region can have. */
uint32_t arena_capacity(const struct arena *arena, enum arena_region region);

/*
 * Give up to max_pages dirty pages back to the system, neighbours together.
 * Returns how many.
 */
uint64_t arena_trim(struct arena *arena, uint64_t max_pages);

/*
 * Get memory for up to max pages that will be given out soon, in a region
 * without frames, max at most 256: they are dirty then. Returns how many; 0
 * also at the limit, while others trim, and when the system has none. For
 * threads that have time: see bring.c. arena_ready(): how many pages of the
 * region are dirty now.
 */
uint64_t arena_bring(struct arena *arena, enum arena_region region,
		     unsigned int max);
uint64_t arena_ready(const struct arena *arena, enum arena_region region);

/*
 * Get memory for the first nr pages of a region without frames, and never trim
 * them: whoever is given one of these need not wait for the system. They count
 * as dirty until they are given out, and are given out first. Once, before the
 * region is used by several threads. -ENOSPC at the limit, or what madvise(2)
 * gives.
 */
int arena_set_aside(struct arena *arena, enum arena_region region, uint32_t nr);

/* Change the limit; may be below what is used, then nothing more is given. */
void arena_set_limit(struct arena *arena, uint64_t limit);

/* True when nr more pages would pass the limit. A hint, no reservation. */
bool arena_is_full(const struct arena *arena, unsigned int nr);

void arena_usage(const struct arena *arena, struct arena_usage *usage);
void arena_reset_peak(struct arena *arena);

/*
 * Claims: the set of used pages as the truth tells it, built in private memory
 * while nothing else allocates or frees.
 *
 * arena_claim(): -EEXIST if a page is claimed twice, -ERANGE if out of range.
 * arena_map_compare(): number of pages on which map and live state disagree.
 * arena_settle(): after arena_attach(): make the map the live state and give
 * every other resident page back to the system. If that fails (-ENOMEM, or what
 * lseek(2) and fallocate(2) give), the arena can only be destroyed.
 */
struct arena_map;
int arena_map_create(struct arena_map **map, const struct arena *arena);
void arena_map_destroy(struct arena_map *map);
int arena_claim(struct arena_map *map, enum arena_region region, uint32_t page,
		unsigned int nr);
uint64_t arena_map_compare(const struct arena_map *map,
			   const struct arena *arena);
int arena_settle(struct arena *arena, const struct arena_map *map);

#endif
