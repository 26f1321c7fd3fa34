/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * store_private.h - what the files in store/ share, and nobody else sees
 */
#ifndef ZRAMFS_STORE_PRIVATE_H
#define ZRAMFS_STORE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "arena/index.h"
#include "arena/slab.h"
#include "store/hot.h"
#include "store/cluster.h"
#include "store/object.h"
#include "store/store.h"

/* Persistent; lies in the arena's root page for the store. */
struct store_root {
	uint64_t seed; /* of the checksums */
	uint32_t dedup;
	uint32_t cluster_pages;
	char pool[16];
};

/* What is counted where it happens, in one of several sets of counters. */
enum store_counter {
	COUNT_OBJECTS,		 /* live slots but fill objects */
	COUNT_OBJECT_REFERENCES, /* references to them */
	COUNT_FILL_REFERENCES,	 /* references to words, in slots or not */
	COUNT_COMPRESSED, /* members of clusters too */
	COUNT_CLUSTERS,
	COUNT_HUGE,
	COUNT_HUGE_SINCE,
	COUNT_COMPRESSED_BYTES, /* of compressed and huge pages */
	COUNT_COMPRESS_FAILED,
	COUNT_CHECKSUM_ERRORS,
	COUNT_PUTS,
	COUNT_WRITER_COMPRESSIONS,
	COUNT_BACKGROUND_COMPRESSIONS,
	STORE_COUNTERS
};

/* One for all, and one for each thread that has its own: bits of a word. */
#define STORE_COUNTER_SETS (1 + 32)

struct store_counters {
	_Atomic int64_t value[STORE_COUNTERS];
} __attribute__((aligned(64)));

/* A thread's own things: codec streams and room for a page of either kind. */
struct store_thread {
	struct store_thread *next; /* this thread's, for other stores */
	struct store *store;
	unsigned int attached;
	bool background;
	unsigned int freed; /* bytes the housekeeper was not told of yet */
	struct store_counters *counters; /* its own; NULL: those of all */
	struct codec_streams streams;
	struct cluster_room room;
	unsigned char page[PAGE_SIZE] __attribute__((aligned(64)));
	unsigned char compressed[PAGE_SIZE] __attribute__((aligned(64)));
};

struct dedup_stripe {
	pthread_mutex_t lock; /* guards the index's chains of this stripe */
} __attribute__((aligned(64)));

struct sparse_clusters {
	pthread_mutex_t lock; /* guards the circle, and is a leaf */
	uint32_t first;	      /* oldest; 0: none */
} __attribute__((aligned(64)));

/* Of the thread that trims and compacts; see housekeeping.c. */
struct housekeeper {
	/* Bytes freed since it last looked; relaxed: a hint when to look. */
	_Atomic uint64_t freed __attribute__((aligned(64)));
	_Atomic uint64_t due;	  /* so many are worth a look */
	_Atomic int64_t freed_at; /* ms, when some were told last: a hint */
	pthread_t thread;
	bool running; /* by store_start() and _stop() only */
	/* Guards what follows, and is what it waits with. A leaf. */
	pthread_mutex_t lock __attribute__((aligned(64)));
	pthread_cond_t wake;
	bool called;
	bool cooled; /* since it last looked */
	bool stopping;
};

struct store {
	struct arena *arena;
	struct store_root *root;
	struct slab *objects;
	uint64_t slots;	     /* one past the highest number a slot can have */
	struct index *index; /* NULL when dedup is off */
	struct dedup_stripe stripes[INDEX_STRIPES];
	const struct pool_ops *pool_ops;
	struct pool *pool;
	struct hot hot;
	struct codec_choice codec;
	size_t largest; /* compressed length worth storing */
	unsigned int cluster_pages; /* compressed together; 1: each by itself */
	size_t thread_bytes;	    /* what a thread takes to compress */
	struct slab *clusters;
	_Atomic uint64_t cluster_serial; /* of the one made last */
	struct sparse_clusters sparse;

	/*
	 * Held shared by background threads while they work, and by writers
	 * while they do that work; exclusively by whoever needs all of them to
	 * stand still. Before all other store locks.
	 */
	pthread_rwlock_t work_lock;
	/* Guards stopping, and is what idle threads wait with. */
	pthread_mutex_t wake_lock;
	pthread_cond_t wake;
	bool stopping;
	_Atomic unsigned int idle;   /* threads that wait; relaxed: a hint */
	_Atomic unsigned int urgent; /* drains under way; relaxed: a hint */
	_Atomic uint64_t frames_at_tick; /* of the hot tier; relaxed: a hint */
	unsigned int compressors;
	unsigned int started; /* of them; by store_start() and _stop() only */
	pthread_t *threads;

	struct housekeeper housekeeper;
	_Atomic int64_t last_squeeze; /* ms; see compress_relieve() */
	/* Slot of a fill object made not long ago, or 0; relaxed: a hint. */
	_Atomic uint32_t last_fill;
	_Atomic uint32_t sets_taken;
	struct store_counters counters[STORE_COUNTER_SETS];
};

/* --- setup.c, statistics.c --------------------------------------------- */

int store_attach_thread_for(struct store *store, unsigned int use);
/* At attaching and detaching. */
void store_claim_counters(struct store_thread *thread);
void store_release_counters(struct store_thread *thread);
/* The calling thread's own; it must be attached. */
struct store_thread *store_thread(struct store *store);
void store_count(struct store *store, enum store_counter counter,
		 int64_t amount);
int64_t store_counted(const struct store *store, enum store_counter counter);
void store_set_count(struct store *store, enum store_counter counter,
		     int64_t value);
int64_t store_clock(void); /* milliseconds, monotonic */

/* --- store.c ----------------------------------------------------------- */

uint32_t store_checksum(const struct store *store, const void *page);
/* NULL when no slot can be there. */
struct object *store_object(const struct store *store, uint64_t slot);

/* Of one that is held: does it stand for a word? */
bool store_is_fill(const struct object *object);

/* The whole page of a pinned object, checked. -EIO. */
int store_read_object(struct store *store, struct store_thread *thread,
		      struct object *object, void *page);
/* Where an object's bytes are goes back to its giver. */
void store_free_place(struct store *store, struct object *object);
/* Free an object whose count has come to 0. */
void store_free_object(struct store *store, uint32_t slot,
		       struct object *object);

/* --- dedup.c ----------------------------------------------------------- */

/*
 * Find an object equal to the page; its new reference goes to the caller.
 * *head is what dedup_insert() needs to know. False: there is none.
 */
bool dedup_find(struct store *store, struct store_thread *thread,
		const void *page, uint32_t checksum, uint32_t *slot,
		uint32_t *head);
/*
 * Make an object findable. False, and nothing done, when its chain has
 * changed since dedup_find() said *head: an equal page may have come.
 */
bool dedup_insert(struct store *store, uint32_t slot, uint32_t checksum,
		  uint32_t head);
uint32_t dedup_head(struct store *store, uint32_t checksum);
void dedup_remove(struct store *store, uint32_t slot, uint32_t checksum);
extern const struct index_ops dedup_index_ops;

/* --- background.c ------------------------------------------------------ */

/* So many frames are kept free for the next burst. */
uint64_t store_hot_spare(const struct store *store);
/* A page became hot: wake a compressor if that is due. */
void store_wake(struct store *store);

/* --- housekeeping.c ---------------------------------------------------- */

void housekeeping_init(struct store *store);
void housekeeping_exit(struct store *store);
int housekeeping_start(struct store *store);
void housekeeping_stop(struct store *store);
/* So many bytes were freed: wake the housekeeper if that makes it due. */
void housekeeping_freed(struct store *store, unsigned int bytes);
/* Is something being freed? True when it is worth waiting for a moment. */
bool housekeeping_is_freeing(struct store *store);
/* What was old in the hot tier is compressed: what it took lies free. */
void housekeeping_cooled(struct store *store);

/* --- compress.c -------------------------------------------------------- */

/*
 * Compress a page into the pool for a slot. The location is returned, not yet
 * published. -ENOSPC.
 */
int compress_page(struct store *store, struct store_thread *thread,
		  const void *page, uint32_t slot, unsigned int flags,
		  uint64_t *location);
/*
 * Name an object's new place, when nobody but the caller, who has one pin,
 * looks at the old one. The pin is gone on success.
 */
bool compress_switch(struct object *object, uint64_t location);
/* Take back what compress_page() did. */
void compress_undo(struct store *store, uint64_t location);
/*
 * Compress up to max of the oldest hot pages, those at least age ms old.
 * Returns how many left the hot tier. *refused, unless NULL: for how many there
 * was no memory; those are the oldest still. One that is being read becomes the
 * youngest.
 */
unsigned int compress_hot(struct store *store, struct store_thread *thread,
			  unsigned int max, int64_t age, unsigned int *refused);
/* At the limit: make room. True when it may be worth trying again. */
bool compress_relieve(struct store *store, struct store_thread *thread);
/* How the pool asks for a move. */
extern const struct pool_owner_ops compress_owner_ops;

#endif
