/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cluster.h - pages compressed together; private to store/
 *
 * With cluster= of more than a page, what leaves the hot tier is compressed
 * by up to so many pages at once: each finds matches in those before it, which
 * saves a third of what zstd makes of sources. (f2fs calls it a cluster, too.)
 *
 * A cluster is a record in the CLUSTERS slab. It begins as an object does, so
 * that its count word serves the same way: its references are the members that
 * are left, its pins are threads that look at its bytes. Then follow
 *
 *   chunks   where the compressed bytes are: as many pool objects as it takes,
 *            each a page long but the last, each with a location word
 *   members  the slots of the pages, in order
 *
 * A member's location is OBJECT_MEMBER, with the cluster's number and its place
 * in it. What was published is never written over, but for chunks that the
 * pool moves; a member that dies leaves a hole in the cluster. When a third of
 * them have, the cluster is sparse: it is listed, and repack.c brings what is
 * left back to the hot tier.
 *
 * Reading one page unpacks all of its cluster, into the thread's room; the
 * other pages are in it for whoever reads on.
 *
 * Truth: the records that members name, and their chunks. Derived: counts, and
 * the list of sparse clusters. Lock: sparse.lock, a leaf.
 */
#ifndef ZRAMFS_CLUSTER_H
#define ZRAMFS_CLUSTER_H

#include "store/object.h"

struct store;
struct store_thread;

#define CLUSTER_PAGES_MAX CODEC_PAGES_MAX

/* Set in the number that the pool keeps as a chunk's owner. */
#define CLUSTER_OWNER (UINT32_C(1) << 31)

struct cluster {
	/*
	 * location: OBJECT_CLUSTER, its codec, length: pages, handle: chunks.
	 * word: a number that no other cluster has while this program runs.
	 */
	struct object object;
	uint32_t length; /* compressed bytes */
	uint32_t moving; /* a chunk; the mover's, while the count says so */
	uint32_t next;	 /* of a circle of sparse ones; 0: not in it */
	uint32_t previous;
	_Atomic uint64_t chunk[];
};

/* Of how many bytes the record is. */
size_t cluster_size(unsigned int pages, unsigned int chunks);
struct cluster *cluster_at(const struct store *store, uint32_t block);
unsigned int cluster_pages(const struct cluster *cluster);
unsigned int cluster_chunks(const struct cluster *cluster);
uint32_t *cluster_members(const struct cluster *cluster);

/* What a thread needs to pack and unpack; of no use to anybody else. */
struct cluster_room {
	uint64_t serial; /* of the cluster in pages[]; 0: none */
	bool used;	 /* since it rested */
	size_t bytes;	 /* of both */
	unsigned char *pages;
	unsigned char *packed;
};

/* Both for a store without clusters, too: then there is nothing. -ENOMEM. */
int cluster_room_init(struct cluster_room *room, unsigned int pages);
void cluster_room_exit(struct cluster_room *room);
/* It is not needed for a while: give its memory back, until it is. */
void cluster_room_rest(struct cluster_room *room);

/*
 * Compress nr pages, at least 2, into a new cluster. The caller owns its one
 * reference, to be given back by cluster_leave(). -ENOSPC: no memory, or it
 * would not save an eighth.
 */
int cluster_make(struct store *store, struct store_thread *thread,
		 const void *const *page, const uint32_t *slot, unsigned int nr,
		 unsigned int flags, uint32_t *block);

/* One more reference, by who has one, and the location for that member. */
uint64_t cluster_join(struct store *store, uint32_t block, unsigned int index);

/*
 * Give a reference back. Never allocates, cannot fail: where a damaged member
 * names no cluster, nothing is done.
 */
void cluster_leave(struct store *store, uint64_t block);

/*
 * All pages of a cluster that the caller holds, by a member or a pin, into the
 * thread's room. -EIO when there is no such cluster, or index is not in it.
 */
int cluster_unpack(struct store *store, struct store_thread *thread,
		   uint64_t block, unsigned int index);

/* Of its bytes, a member's share; it is held. 0: there is no such cluster. */
unsigned int cluster_share(const struct store *store, uint64_t block);

/* Give up a pin. */
void cluster_unpin(struct store *store, uint32_t block);

/* How the pool asks for a chunk to be moved; see struct pool_owner_ops. */
size_t cluster_move_begin(struct store *store, uint32_t block, uint64_t handle);
void cluster_move_end(struct store *store, uint32_t block, uint64_t handle);

/* --- cluster_sparse.c ---------------------------------------------------- */

/* Has a third of the members died? */
bool cluster_is_sparse(const struct cluster *cluster, uint32_t members);
/* It is, and it is held. */
void cluster_list_sparse(struct store *store, uint32_t block);

/*
 * The oldest sparse cluster, pinned, for the caller alone: it is not listed
 * again before cluster_put_back(), which gives up the pin. 0: none. again: it
 * is as sparse as it was, and is the youngest of them now.
 */
uint32_t cluster_take_sparse(struct store *store);
void cluster_put_back(struct store *store, uint32_t block, bool again);
/* It is about to be freed: it is not listed any more, if it was. */
void cluster_unlist(struct store *store, uint32_t block);

/* --- cluster_map.c: see store_map_create() ------------------------------ */

struct cluster_map;

int cluster_map_create(struct cluster_map **map, struct store *store);
void cluster_map_destroy(struct cluster_map *map);
/*
 * A member's. 1: the first of its cluster, whose chunks are claimed in the
 * pool's map with it; 0: another; negative errno as pool.h's map_claim().
 */
int cluster_map_claim(struct cluster_map *map, void *pool_map, uint32_t slot,
		      const struct location *at);
int cluster_map_finish(struct cluster_map *map, struct arena_map *arena_map);
/* Number of clusters, and places for them, on which live state and map differ.
 */
uint64_t cluster_map_compare(struct cluster_map *map);
int cluster_map_settle(struct cluster_map *map);

/* --- repack.c ------------------------------------------------------------ */

/*
 * Bring what is left of up to max sparse clusters back to the hot tier, or
 * compress it by itself. Returns how many were looked at. One for which there
 * was no memory is not of them: it is listed again, and the last that is tried.
 */
unsigned int repack_sparse(struct store *store, struct store_thread *thread,
			   unsigned int max);

#endif
