/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * store.h - 4 KiB pages by reference: put, read, share, drop
 *
 * The store keeps pages, not files: it knows no inode. store_put() takes a
 * page and gives a 32-bit reference; whoever holds the reference keeps it in
 * a *cell*, one aligned 32-bit word, and one cell holds one reference.
 *
 *   0 (STORE_HOLE)  no page; reads as zeros, costs nothing
 *   a repeated word the page is the word, kept in the reference or in a slot
 *   an object       the number of a slot in the object table
 *
 * An object is a page stored once however many cells refer to it. It starts
 * in the hot tier, as it is; background threads compress the oldest pages and
 * move them into the pool. The slot says where it is now, how long and by
 * which codec, its checksum, and how many references there are; the reference
 * never changes when the page moves.
 *
 * Equal pages are found when they are put: the seeded XXH3 of a page serves as
 * its checksum and as its hash in the dedup index; equality is always proved
 * by comparing bytes.
 *
 * Truth: the slots that cells refer to (location, checksum), the bytes in hot
 * frames and pool. Derived: reference counts, dedup index, hot queue,
 * counters. All in the arena but locks and queues.
 *
 * Reading without locks: store_read() takes the address of a cell. It pins the
 * slot that the cell names, and then looks whether the cell still names it; a
 * slot can be neither freed nor moved while pinned. So readers never wait for
 * writers, nor for background work but for the time of one page copy. The
 * caller keeps the cell itself in being (by whatever lock it has).
 *
 * Threads: every thread that calls a function below marked (T) must have
 * called store_attach_thread() first; it gives the thread its scratch pages
 * and what it needs to decompress, so that reading allocates nothing later.
 * Background threads have what they need to compress from the start; another
 * thread gets it when it first has to compress, and if there is no memory for
 * that, its page is kept as it is.
 *
 * Lock order, from outside in: dedup stripe, hot queue, pool class, slab,
 * arena region. Callers' locks come before all of these.
 */
#ifndef ZRAMFS_STORE_H
#define ZRAMFS_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "arena/arena.h"
#include "codec/codec.h"
#include "pool/pool.h"

typedef uint32_t store_ref;
typedef _Atomic uint32_t store_cell;

#define STORE_HOLE ((store_ref)0)

struct store;

struct store_config {
	struct codec_choice codec;
	const struct pool_ops *pool;
	uint64_t hot; /* bytes the hot tier may hold; 0: none */
	bool dedup;
	unsigned int compressors; /* background threads, at least 1 */
	unsigned int cluster_pages; /* compressed together; 0, 1: none */
};

/*
 * Make a store in a fresh arena. Starts no thread. -ENOMEM, -ENOSPC.
 * store_attach(): on an arena that has one; see store_map_settle().
 */
int store_create(struct store **store, struct arena *arena,
		 const struct store_config *config);
int store_attach(struct store **store, struct arena *arena,
		 const struct store_config *config);

/* Stops threads, frees what the process holds; the arena's contents stay. */
void store_destroy(struct store *store);

/*
 * Start and stop the background: compressors (nice 10), and the housekeeper,
 * which trims the arena and compacts the pool. store_stop() leaves what is
 * hot, hot. Errors as pthread_create(3), negative.
 */
int store_start(struct store *store);
void store_stop(struct store *store);

/* -ENOMEM. Attaching twice is counted. */
int store_attach_thread(struct store *store);
void store_detach_thread(struct store *store);

/* (T) The thread has little to do: it gives back what it can get again. */
void store_rest_thread(struct store *store);

/*
 * What so many attached threads, and those of the background, may take to
 * compress, in bytes; about.
 */
uint64_t store_threads_bytes(const struct store *store, unsigned int threads);

/*
 * (T) Keep a page. The caller owns the one new reference. -ENOSPC when there
 * is no memory for it: nothing has changed then. flags: ARENA_RESERVE or 0.
 * Never waits for background threads: when the hot tier is full, the page is
 * compressed here.
 */
int store_put(struct store *store, const void *page, unsigned int flags,
	      store_ref *ref);

/*
 * (T) Keep nr pages that lie one after the other, for less; ref[i] names the
 * i-th. On an error those before it have been put, and no other ref has
 * changed.
 */
int store_put_all(struct store *store, const void *pages, unsigned int nr,
		  unsigned int flags, store_ref *ref);

/* The reference of a page that repeats one word; no (T), -ENOSPC as put. */
int store_fill(struct store *store, uint64_t word, store_ref *ref);

/*
 * (T) Read length bytes at offset of the page that a cell names: offset +
 * length <= PAGE_SIZE. A hole reads as zeros. -EIO when the page fails its
 * checksum or its slot makes no sense: logged and counted, buffer undefined.
 */
int store_read(struct store *store, const store_cell *cell, void *buffer,
	       unsigned int offset, unsigned int length);

/*
 * Take one more reference to what a cell names now (STORE_HOLE for a hole).
 * The caller owns it. -ENOSPC only for a fill word that needs a slot;
 * -EOVERFLOW when the page has 2^32 - 1 references already.
 */
int store_share(struct store *store, const store_cell *cell, store_ref *ref);

/* Give a reference back. Never allocates, cannot fail. Holes are ignored. */
void store_drop(struct store *store, store_ref ref);
/* Likewise nr references, for less. */
void store_drop_all(struct store *store, const store_ref *ref, unsigned int nr);

/* What a reference costs: for du. */
enum store_kind {
	STORE_KIND_HOLE,
	STORE_KIND_FILL,
	STORE_KIND_HOT,
	STORE_KIND_COMPRESSED,
	STORE_KIND_HUGE
};
struct store_page_info {
	enum store_kind kind;
	unsigned int codec;  /* codec_id */
	unsigned int length; /* bytes stored; PAGE_SIZE when hot or huge */
	uint32_t references;
};
void store_page_info(struct store *store, const store_cell *cell,
		     struct store_page_info *info);

/*
 * (T) Compress all pages that are hot now, but those that somebody is reading
 * just then. 0, or -ENOSPC when there is no memory for some.
 */
int store_drain(struct store *store);

/*
 * At the limit: a file goes after its deletion was answered. While pages get
 * fewer, wait for room, a tenth of a second at most. False: they do not. No
 * lock may be held that freeing takes.
 */
bool store_wait_for_room(struct store *store);

/*
 * (T) Drain, compact the pool, trim the arena. Errors as store_drain(): the rest
 * is done all the same. *pages: how many pages of the pool compaction freed; may
 * be NULL.
 */
int store_compact(struct store *store, uint64_t *pages);

/*
 * (T) Change the bound of the hot tier; drains what is above it. Errors as
 * store_drain(): the bound is as before.
 */
int store_set_hot(struct store *store, uint64_t bytes);

struct store_stats {
	uint64_t stored_pages; /* distinct pages: objects, fill words not
				  counted */
	uint64_t hot_pages;
	uint64_t compressed_pages;
	uint64_t huge_pages;	   /* kept as they are in the pool */
	uint64_t huge_pages_since; /* of them since mount */
	uint64_t compr_data_size;  /* bytes of compressed and huge pages */
	uint64_t clusters;	   /* pages compressed together */
	uint64_t same_pages;	   /* references to fill words */
	uint64_t dedup_pages;  /* references beyond the first of an object */
	uint64_t references;   /* all references: orig_data_size / PAGE_SIZE */
	uint64_t compr_failed; /* pages that did not compress */
	uint64_t checksum_errors;
	uint64_t puts;
	uint64_t
		writer_compressions; /* pages compressed by the writer itself */
	uint64_t background_compressions;
	uint64_t index_bytes;
	uint64_t table_bytes;
	struct pool_stats pool;
};
void store_stats(struct store *store, struct store_stats *stats);
const struct pool_ops *store_pool(const struct store *store,
				  const struct pool **pool);
void store_codec(const struct store *store, struct codec_choice *choice);
uint64_t store_hot_limit(const struct store *store);

/*
 * Rebuild and check. The caller walks its cells and claims each; meanwhile no
 * other function of the store may run: store_pause() waits until background
 * threads stand still, store_resume() lets them go on.
 *
 * store_claim(): one cell's reference. -EINVAL: names no live object.
 * store_map_finish(): claims slots, frames, pool objects and index pages in
 * the arena's map. Adds to *errors each inconsistency found among the claimed
 * objects (two in one place, bad location, pool's owner is another).
 * store_map_compare(): adds the number of differences between the map and the
 * live state (reference counts, counters, free lists, index membership), and
 * writes a line for each of the first few to report (may be NULL).
 * store_map_settle(): after store_attach() and arena_settle(): make the map
 * the live state; objects that nothing refers to are freed.
 */
struct store_map;
void store_pause(struct store *store);
void store_resume(struct store *store);
int store_map_create(struct store_map **map, struct store *store);
void store_map_destroy(struct store_map *map);
int store_claim(struct store_map *map, store_ref ref);
int store_map_finish(struct store_map *map, struct arena_map *arena_map,
		     uint64_t *errors);
void store_map_compare(struct store_map *map, uint64_t *differences,
		       void (*report)(void *context, const char *line),
		       void *context);
int store_map_settle(struct store_map *map);

#endif
