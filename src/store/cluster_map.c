/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cluster_map.c - claims: the clusters as their members tell them
 *
 * Owns a count of members for each record, in private memory. Nothing else of
 * the store runs meanwhile. See store.h, and map.c for the objects themselves.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "store/store_private.h"

struct cluster_map {
	struct store *store;
	uint8_t *members; /* by record */
	size_t bytes;
	uint64_t end; /* one past the highest number that a record can have */
	struct slab_map *blocks;
};

int cluster_map_create(struct cluster_map **result, struct store *store)
{
	struct cluster_map *map = calloc(1, sizeof(*map));
	void *members;
	int ret;

	if (!map)
		return -ENOMEM;
	map->store = store;
	map->end = (uint64_t)arena_extent(store->arena, ARENA_CLUSTERS)
		   << SLAB_SHIFT;
	/* One more, as an empty mapping is none. */
	map->bytes = map->end + 1;
	members = mmap(NULL, map->bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (members == MAP_FAILED) {
		free(map);
		return -ENOMEM;
	}
	map->members = members;
	ret = slab_map_create(&map->blocks, store->clusters);
	if (ret) {
		cluster_map_destroy(map);
		return ret;
	}
	*result = map;
	return 0;
}

void cluster_map_destroy(struct cluster_map *map)
{
	if (!map)
		return;
	if (map->blocks)
		slab_map_destroy(map->blocks);
	munmap(map->members, map->bytes);
	free(map);
}

/* Are there as many chunks as the compressed bytes take? */
static bool has_chunks(const struct cluster *cluster, uint64_t chunks)
{
	uint64_t pages =
		((uint64_t)cluster->length + PAGE_SIZE - 1) / PAGE_SIZE;

	return chunks && chunks == pages;
}

/* Is there a record of that shape, and is it all within its block? */
static bool is_whole(const struct cluster_map *map, uint32_t block)
{
	const struct slab *slab = map->store->clusters;
	const struct cluster *cluster = cluster_at(map->store, block);
	struct location shape = location_unpack(atomic_load_explicit(
		&cluster->object.location, memory_order_relaxed));

	return shape.type == OBJECT_CLUSTER && shape.length > 1 &&
	       shape.length <= map->store->cluster_pages &&
	       has_chunks(cluster, shape.handle) &&
	       shape.handle <= shape.length &&
	       slab_size(slab, block) >=
		       cluster_size(shape.length, (unsigned int)shape.handle);
}

static int claim_chunks(struct cluster_map *map, void *pool_map, uint32_t block)
{
	struct store *store = map->store;
	struct cluster *cluster = cluster_at(store, block);
	unsigned int i, chunks = cluster_chunks(cluster);
	int ret = 0;

	for (i = 0; !ret && i < chunks; i++) {
		struct location at = location_unpack(atomic_load_explicit(
			&cluster->chunk[i], memory_order_relaxed));

		ret = at.type == OBJECT_POOL
			      ? store->pool_ops->map_claim(
					store->pool, pool_map, at.handle,
					at.length, block | CLUSTER_OWNER)
			      : -ERANGE;
	}
	return ret;
}

int cluster_map_claim(struct cluster_map *map, void *pool_map, uint32_t slot,
		      const struct location *at)
{
	uint32_t block = (uint32_t)at->handle;
	struct cluster *cluster;
	int ret;

	if (!at->handle || at->handle >= map->end)
		return -ERANGE;
	if (!map->members[block]) {
		ret = slab_claim(map->blocks, block);
		if (!ret && !is_whole(map, block))
			ret = -ERANGE;
		if (!ret)
			ret = claim_chunks(map, pool_map, block);
		if (ret)
			return ret;
	}
	cluster = cluster_at(map->store, block);
	if (at->length >= cluster_pages(cluster))
		return -ERANGE;
	if (cluster_members(cluster)[at->length] != slot)
		return -EINVAL;
	return ++map->members[block] == 1;
}

int cluster_map_finish(struct cluster_map *map, struct arena_map *arena_map)
{
	return slab_map_finish(map->blocks, arena_map);
}

uint64_t cluster_map_compare(struct cluster_map *map)
{
	uint64_t block, differences;

	differences = slab_map_compare(map->blocks, map->store->clusters);
	for (block = 1; block < map->end; block++)
		if (map->members[block] &&
		    atomic_load_explicit(
			    &cluster_at(map->store, (uint32_t)block)
				     ->object.count,
			    memory_order_relaxed) != map->members[block])
			differences++;
	return differences;
}

int cluster_map_settle(struct cluster_map *map)
{
	struct store *store = map->store;
	uint64_t block;
	int ret = slab_settle(store->clusters, map->blocks);

	for (block = 1; !ret && block < map->end; block++) {
		struct cluster *cluster = cluster_at(store, (uint32_t)block);

		if (!map->members[block])
			continue;
		atomic_store_explicit(&cluster->object.count,
				      map->members[block],
				      memory_order_relaxed);
		cluster->object.word = ++store->cluster_serial;
		cluster->next = cluster->previous = 0;
		if (cluster_is_sparse(cluster, map->members[block]))
			cluster_list_sparse(store, (uint32_t)block);
	}
	return ret;
}
