/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cluster.c - making, reading and leaving clusters
 *
 * Owns the records in the CLUSTERS slab. It may not change an object:
 * compress.c and repack.c do, who call it. See cluster.h.
 *
 * A record is complete before the first member's location names it, and freed
 * after the last one's does no more.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fault.h"
#include "store/store_private.h"

/* Saved by being compressed together: at least this part, or it is not done. */
#define SAVED_SHIFT 3

_Static_assert(sizeof(struct cluster) == 40, "arena layout");

size_t cluster_size(unsigned int pages, unsigned int chunks)
{
	return sizeof(struct cluster) + chunks * sizeof(uint64_t) +
	       pages * sizeof(uint32_t);
}

struct cluster *cluster_at(const struct store *store, uint32_t block)
{
	return slab_address(store->clusters, block);
}

/* What a record is does not change while it is held. */
static struct location shape_of(const struct cluster *cluster)
{
	return location_unpack(atomic_load_explicit(&cluster->object.location,
						    memory_order_relaxed));
}

unsigned int cluster_pages(const struct cluster *cluster)
{
	return shape_of(cluster).length;
}

unsigned int cluster_chunks(const struct cluster *cluster)
{
	return (unsigned int)shape_of(cluster).handle;
}

uint32_t *cluster_members(const struct cluster *cluster)
{
	return (uint32_t *)&cluster->chunk[cluster_chunks(cluster)];
}

/* --- room ---------------------------------------------------------------- */

int cluster_room_init(struct cluster_room *room, unsigned int pages)
{
	size_t bytes = (size_t)pages * PAGE_SIZE;
	void *memory;

	*room = (struct cluster_room){0};
	if (pages < 2)
		return 0;
	memory = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -ENOMEM;
	room->bytes = 2 * bytes;
	room->pages = memory;
	room->packed = room->pages + bytes;
	return 0;
}

void cluster_room_exit(struct cluster_room *room)
{
	if (room->pages)
		munmap(room->pages, room->bytes);
	room->pages = NULL;
}

void cluster_room_rest(struct cluster_room *room)
{
	/* Where it fails, the memory stays for another time: no harm. */
	if (room->used)
		madvise(room->pages, room->bytes, MADV_DONTNEED);
	room->serial = 0;
	room->used = false;
}

/* --- making -------------------------------------------------------------- */

static struct location chunk_at(const struct cluster *cluster, unsigned int i)
{
	return location_unpack(
		atomic_load_explicit(&cluster->chunk[i], memory_order_relaxed));
}

static void free_chunks(struct store *store, const struct cluster *cluster,
			unsigned int chunks)
{
	while (chunks--) {
		struct location at = chunk_at(cluster, chunks);

		store->pool_ops->free(store->pool, at.handle, at.length);
	}
}

/* Bytes into a pool object of their own; a page where no less will do. */
static int put_chunk(struct store *store, struct cluster *cluster,
		     uint32_t block, unsigned int i, const void *bytes,
		     size_t length, unsigned int flags)
{
	size_t stored = length > store->largest ? PAGE_SIZE : length;
	uint64_t handle;
	int ret = store->pool_ops->alloc(store->pool, stored,
					 block | CLUSTER_OWNER, flags, &handle);

	if (ret)
		return ret;
	memcpy(store->pool_ops->map(store->pool, handle, stored), bytes,
	       length);
	atomic_store_explicit(
		&cluster->chunk[i],
		location_pack(OBJECT_POOL, 0, (unsigned int)stored, handle),
		memory_order_relaxed);
	return 0;
}

static int put_chunks(struct store *store, struct cluster *cluster,
		      uint32_t block, const unsigned char *packed,
		      size_t length, unsigned int flags)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; length; i++) {
		size_t piece = length < PAGE_SIZE ? length : PAGE_SIZE;

		ret = put_chunk(store, cluster, block, i, packed, piece, flags);
		if (ret) {
			free_chunks(store, cluster, i);
			break;
		}
		packed += piece;
		length -= piece;
	}
	return ret;
}

int cluster_make(struct store *store, struct store_thread *thread,
		 const void *const *page, const uint32_t *slot, unsigned int nr,
		 unsigned int flags, uint32_t *block)
{
	struct cluster_room *room = &thread->room;
	size_t bytes = (size_t)nr * PAGE_SIZE;
	struct cluster *cluster;
	unsigned int i, chunks;
	uint64_t serial;
	int length, ret;

	room->serial = 0;
	room->used = true;
	for (i = 0; i < nr; i++)
		memcpy(room->pages + (size_t)i * PAGE_SIZE, page[i], PAGE_SIZE);
	length = codec_compress(&thread->streams, room->pages, bytes,
				room->packed, bytes - (bytes >> SAVED_SHIFT));
	if (length < 0)
		return -ENOSPC;
	chunks = ((unsigned int)length + PAGE_SIZE - 1) / PAGE_SIZE;
	ret = slab_alloc(store->clusters, cluster_size(nr, chunks), flags,
			 block);
	if (ret)
		return ret;
	cluster = cluster_at(store, *block);
	ret = put_chunks(store, cluster, *block, room->packed, (size_t)length,
			 flags);
	if (ret) {
		slab_free(store->clusters, *block);
		return ret;
	}
	/* Relaxed: a number, of which each is given once. */
	serial = 1 + atomic_fetch_add_explicit(&store->cluster_serial, 1,
					       memory_order_relaxed);
	cluster->object.word = serial;
	cluster->length = (uint32_t)length;
	atomic_store_explicit(
		&cluster->object.location,
		location_pack(OBJECT_CLUSTER, store->codec.ops->id, nr, chunks),
		memory_order_relaxed);
	memcpy(cluster_members(cluster), slot, nr * sizeof(*slot));
	/* Release: whoever pins it sees all of the above. */
	atomic_store_explicit(&cluster->object.count, OBJECT_REFERENCE,
			      memory_order_release);
	fault_point("cluster made");
	room->serial = serial;
	store_count(store, COUNT_CLUSTERS, 1);
	store_count(store, COUNT_COMPRESSED_BYTES, length);
	return 0;
}

uint64_t cluster_join(struct store *store, uint32_t block, unsigned int index)
{
	struct cluster *cluster = cluster_at(store, block);

	/* Neither can fail: the caller has a reference, and there are few. */
	if (object_pin(&cluster->object))
		object_pin_to_reference(&cluster->object);
	return location_pack(OBJECT_MEMBER, shape_of(cluster).codec, index,
			     block);
}

/* Whatever a damaged member may name. */
static bool is_cluster(const struct store *store, uint64_t block,
		       unsigned int index)
{
	uint64_t end = (uint64_t)arena_extent(store->arena, ARENA_CLUSTERS)
		       << SLAB_SHIFT;
	struct location shape;

	if (!block || block >= end)
		return false;
	shape = shape_of(cluster_at(store, (uint32_t)block));
	return shape.type == OBJECT_CLUSTER && index < shape.length &&
	       shape.length <= store->cluster_pages &&
	       shape.handle <= store->cluster_pages;
}

/* --- leaving ------------------------------------------------------------- */

static void free_cluster(struct store *store, struct cluster *cluster,
			 uint32_t block)
{
	unsigned int length = cluster->length;

	cluster_unlist(store, block);
	free_chunks(store, cluster, cluster_chunks(cluster));
	slab_free(store->clusters, block);
	store_count(store, COUNT_CLUSTERS, -1);
	store_count(store, COUNT_COMPRESSED_BYTES, -(int64_t)length);
	housekeeping_freed(store, length);
}

void cluster_unpin(struct store *store, uint32_t block)
{
	struct cluster *cluster = cluster_at(store, block);

	if (object_unpin(&cluster->object))
		free_cluster(store, cluster, block);
}

void cluster_leave(struct store *store, uint64_t named)
{
	uint32_t block = (uint32_t)named;
	struct cluster *cluster;
	uint32_t left;

	/* A damaged member's: what it named stays as it is. */
	if (!is_cluster(store, named, 0))
		return;
	cluster = cluster_at(store, block);
	/* Cannot fail, as there is the caller's reference. */
	if (!object_pin(&cluster->object))
		return;
	left = object_release_pinned(&cluster->object);
	if (left && cluster_is_sparse(cluster, left))
		cluster_list_sparse(store, block);
	cluster_unpin(store, block);
}

/* --- reading ------------------------------------------------------------- */

/* The compressed bytes in one piece. The caller has pinned the cluster. */
static const unsigned char *gather(struct store *store,
				   const struct cluster *cluster,
				   struct cluster_room *room)
{
	unsigned int i, chunks = cluster_chunks(cluster);
	size_t left = cluster->length;
	unsigned char *to = room->packed;

	if (left > chunks * PAGE_SIZE)
		return NULL;
	for (i = 0; i < chunks; i++) {
		struct location at = chunk_at(cluster, i);
		const void *bytes =
			store->pool_ops->map(store->pool, at.handle, at.length);
		size_t piece = left < PAGE_SIZE ? left : PAGE_SIZE;

		if (!bytes || at.length < piece)
			return NULL;
		if (chunks == 1)
			return bytes;
		memcpy(to, bytes, piece);
		to += piece;
		left -= piece;
	}
	return room->packed;
}

int cluster_unpack(struct store *store, struct store_thread *thread,
		   uint64_t block, unsigned int index)
{
	struct cluster_room *room = &thread->room;
	const unsigned char *packed;
	struct cluster *cluster;
	struct location shape;
	int ret = -EIO;

	if (!is_cluster(store, block, index))
		return -EIO;
	cluster = cluster_at(store, (uint32_t)block);
	if (room->serial == cluster->object.word)
		return 0;
	room->serial = 0;
	room->used = true;
	shape = shape_of(cluster);
	if (!object_pin(&cluster->object))
		return -EIO;
	packed = gather(store, cluster, room);
	if (packed)
		ret = codec_decompress(&thread->streams, shape.codec, packed,
				       cluster->length, room->pages,
				       (size_t)shape.length * PAGE_SIZE);
	if (!ret)
		room->serial = cluster->object.word;
	cluster_unpin(store, (uint32_t)block);
	return ret;
}

unsigned int cluster_share(const struct store *store, uint64_t block)
{
	const struct cluster *cluster;
	uint32_t members;

	if (!is_cluster(store, block, 0))
		return 0;
	cluster = cluster_at(store, (uint32_t)block);
	members = object_references(atomic_load_explicit(&cluster->object.count,
							 memory_order_relaxed));
	return cluster->length / (members ? members : 1);
}

/* --- moving -------------------------------------------------------------- */

/* The record itself stays where it is. */
static void moved(struct cluster *cluster)
{
	object_moved(&cluster->object,
		     atomic_load_explicit(&cluster->object.location,
					  memory_order_relaxed));
}

static int find_chunk(const struct cluster *cluster, uint64_t handle)
{
	unsigned int i, chunks = cluster_chunks(cluster);

	for (i = 0; i < chunks; i++)
		if (chunk_at(cluster, i).handle == handle)
			return (int)i;
	return -1;
}

size_t cluster_move_begin(struct store *store, uint32_t block, uint64_t handle)
{
	struct cluster *cluster = cluster_at(store, block);
	int i;

	if (!object_move(&cluster->object, 0))
		return 0;
	i = find_chunk(cluster, handle);
	if (i < 0) {
		/* Not this one's any more. */
		moved(cluster);
		return 0;
	}
	cluster->moving = (uint32_t)i;
	return chunk_at(cluster, (unsigned int)i).length;
}

void cluster_move_end(struct store *store, uint32_t block, uint64_t handle)
{
	struct cluster *cluster = cluster_at(store, block);
	_Atomic uint64_t *chunk = &cluster->chunk[cluster->moving];
	struct location at = chunk_at(cluster, cluster->moving);

	atomic_store_explicit(chunk,
			      location_pack(OBJECT_POOL, 0, at.length, handle),
			      memory_order_release);
	moved(cluster);
}
