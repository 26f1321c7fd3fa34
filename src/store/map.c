/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * map.c - rebuilding what the store derives, to check it or to start with it
 *
 * Owns a count of claims for each slot, in private memory, and the claims of
 * slab and pool that follow from them. Nothing else of the store runs
 * meanwhile. See store.h.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "store/store_private.h"

struct store_map {
	struct store *store;
	uint32_t *claims; /* by slot */
	size_t claims_bytes;
	struct slab_map *slots;
	struct cluster_map *clusters;
	void *pool;
	uint64_t totals[STORE_COUNTERS];
	uint64_t hot;
};

int store_map_create(struct store_map **result, struct store *store)
{
	struct store_map *map = calloc(1, sizeof(*map));
	void *claims;
	int ret;

	if (!map)
		return -ENOMEM;
	map->store = store;
	map->claims_bytes = store->slots * sizeof(uint32_t);
	claims = mmap(NULL, map->claims_bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (claims == MAP_FAILED) {
		free(map);
		return -ENOMEM;
	}
	map->claims = claims;
	ret = slab_map_create(&map->slots, store->objects);
	if (!ret)
		ret = cluster_map_create(&map->clusters, store);
	if (!ret)
		ret = store->pool_ops->map_create(store->pool, &map->pool);
	if (ret) {
		store_map_destroy(map);
		return ret;
	}
	*result = map;
	return 0;
}

void store_map_destroy(struct store_map *map)
{
	if (!map)
		return;
	if (map->pool)
		map->store->pool_ops->map_destroy(map->store->pool, map->pool);
	cluster_map_destroy(map->clusters);
	if (map->slots)
		slab_map_destroy(map->slots);
	munmap(map->claims, map->claims_bytes);
	free(map);
}

static struct location location_of(const struct object *object)
{
	return location_unpack(
		atomic_load_explicit(&object->location, memory_order_relaxed));
}

int store_claim(struct store_map *map, store_ref ref)
{
	struct object *object;
	struct location at;
	uint64_t value;

	switch (reference_decode(ref, &value)) {
	case REFERENCE_HOLE:
		return ref ? -EINVAL : 0;
	case REFERENCE_WORD:
		map->totals[COUNT_FILL_REFERENCES]++;
		return 0;
	case REFERENCE_OBJECT:
		break;
	}
	object = store_object(map->store, value);
	if (!object)
		return -EINVAL;
	at = location_of(object);
	if (at.type == OBJECT_FREE || at.type > OBJECT_MEMBER ||
	    at.length > PAGE_SIZE)
		return -EINVAL;
	map->claims[value]++;
	map->totals[at.type == OBJECT_FILL ? COUNT_FILL_REFERENCES
					   : COUNT_OBJECT_REFERENCES]++;
	return 0;
}

static void tally(struct store_map *map, const struct location *at)
{
	if (at->type == OBJECT_FILL)
		return;
	map->totals[COUNT_OBJECTS]++;
	if (at->type == OBJECT_HOT) {
		map->hot++;
		return;
	}
	if (at->type == OBJECT_MEMBER) {
		/* Its bytes are its cluster's. */
		map->totals[COUNT_COMPRESSED]++;
		return;
	}
	map->totals[at->length == PAGE_SIZE ? COUNT_HUGE : COUNT_COMPRESSED]++;
	map->totals[COUNT_COMPRESSED_BYTES] += at->length;
}

/* A member; with the first one its cluster. Negative errno as map_claim(). */
static int claim_member(struct store_map *map, uint32_t slot,
			const struct location *at)
{
	int ret = cluster_map_claim(map->clusters, map->pool, slot, at);

	if (ret <= 0)
		return ret;
	map->totals[COUNT_CLUSTERS]++;
	map->totals[COUNT_COMPRESSED_BYTES] +=
		cluster_at(map->store, (uint32_t)at->handle)->length;
	return 0;
}

/* Number of things wrong with a claimed slot's place; or negative errno. */
static int claim_place(struct store_map *map, struct arena_map *arena_map,
		       uint32_t slot, const struct location *at)
{
	struct store *store = map->store;
	int ret = 0;

	if (at->type == OBJECT_HOT)
		ret = at->handle > UINT32_MAX
			      ? -ERANGE
			      : arena_claim(arena_map, ARENA_HOT,
					    (uint32_t)at->handle, 1);
	else if (at->type == OBJECT_POOL)
		ret = store->pool_ops->map_claim(store->pool, map->pool,
						 at->handle, at->length, slot);
	else if (at->type == OBJECT_MEMBER)
		ret = claim_member(map, slot, at);
	if (ret == -ENOMEM)
		return ret;
	return ret ? 1 : 0;
}

static int for_each_claimed(struct store_map *map,
			    int (*visit)(struct store_map *map, uint32_t slot,
					 struct object *object, void *context),
			    void *context)
{
	uint64_t end = (uint64_t)arena_extent(map->store->arena, ARENA_OBJECTS)
		       << SLAB_SHIFT;
	uint64_t slot;
	int ret;

	for (slot = 1; slot < end && slot < map->store->slots; slot++) {
		if (!map->claims[slot])
			continue;
		ret = visit(map, (uint32_t)slot, store_object(map->store, slot),
			    context);
		if (ret)
			return ret;
	}
	return 0;
}

struct finish {
	struct arena_map *arena_map;
	uint64_t *errors;
};

static int finish_slot(struct store_map *map, uint32_t slot,
		       struct object *object, void *context)
{
	struct finish *finish = context;
	struct location at = location_of(object);
	int ret;

	if (slab_claim(map->slots, slot)) {
		++*finish->errors;
		return 0;
	}
	tally(map, &at);
	ret = claim_place(map, finish->arena_map, slot, &at);
	if (ret < 0)
		return ret;
	*finish->errors += (uint64_t)ret;
	return 0;
}

int store_map_finish(struct store_map *map, struct arena_map *arena_map,
		     uint64_t *errors)
{
	struct store *store = map->store;
	struct finish finish = {arena_map, errors};
	int ret;

	ret = for_each_claimed(map, finish_slot, &finish);
	if (!ret)
		ret = store->pool_ops->map_finish(store->pool, map->pool,
						  arena_map);
	if (!ret)
		ret = cluster_map_finish(map->clusters, arena_map);
	if (!ret)
		ret = slab_map_finish(map->slots, arena_map);
	if (!ret && store->index)
		ret = index_claim(store->index, arena_map);
	return ret;
}

struct comparison {
	uint64_t *differences;
	void (*report)(void *context, const char *line);
	void *context;
	unsigned int reported;
};

/* The first few in words, all in number. */
static void differs(struct comparison *comparison, uint64_t amount,
		    const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void differs(struct comparison *comparison, uint64_t amount,
		    const char *format, ...)
{
	char line[160];
	va_list arguments;

	if (!amount)
		return;
	*comparison->differences += amount;
	if (!comparison->report || comparison->reported++ >= 8)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	comparison->report(comparison->context, line);
}

static bool is_indexed(struct store *store, uint32_t slot,
		       const struct object *object)
{
	uint32_t at = index_first(store->index, object->checksum);

	while (at != SLAB_NONE && at != slot)
		at = store_object(store, at)->link;
	return at == slot;
}

static int compare_slot(struct store_map *map, uint32_t slot,
			struct object *object, void *context)
{
	uint64_t count =
		atomic_load_explicit(&object->count, memory_order_relaxed);

	if (count != map->claims[slot])
		differs(context, 1,
			"object %u: count word %#llx, but %u references found",
			slot, (unsigned long long)count, map->claims[slot]);
	if (map->store->index && location_of(object).type != OBJECT_FILL &&
	    !is_indexed(map->store, slot, object))
		differs(context, 1, "object %u: not in the dedup index", slot);
	return 0;
}

static void compare_total(struct store_map *map, struct comparison *comparison,
			  enum store_counter counter, const char *name)
{
	int64_t live = store_counted(map->store, counter);

	if (live != (int64_t)map->totals[counter])
		differs(comparison, 1, "%s: counted %lld, found %llu", name,
			(long long)live,
			(unsigned long long)map->totals[counter]);
}

void store_map_compare(struct store_map *map, uint64_t *differences,
		       void (*report)(void *context, const char *line),
		       void *context)
{
	struct comparison comparison = {differences, report, context, 0};
	struct store *store = map->store;
	uint64_t frames = hot_frames(&store->hot);

	for_each_claimed(map, compare_slot, &comparison);
	compare_total(map, &comparison, COUNT_OBJECTS, "stored pages");
	compare_total(map, &comparison, COUNT_OBJECT_REFERENCES,
		      "references to stored pages");
	compare_total(map, &comparison, COUNT_FILL_REFERENCES, "same pages");
	compare_total(map, &comparison, COUNT_COMPRESSED, "compressed pages");
	compare_total(map, &comparison, COUNT_CLUSTERS, "clusters");
	compare_total(map, &comparison, COUNT_HUGE, "huge pages");
	compare_total(map, &comparison, COUNT_COMPRESSED_BYTES,
		      "compressed bytes");
	differs(&comparison, frames != map->hot,
		"hot pages: counted %llu, found %llu",
		(unsigned long long)frames, (unsigned long long)map->hot);
	differs(&comparison,
		store->index &&
			index_count(store->index) != map->totals[COUNT_OBJECTS],
		"dedup index: %llu records",
		(unsigned long long)(store->index ? index_count(store->index)
						  : 0));
	differs(&comparison, slab_map_compare(map->slots, store->objects),
		"object table: slots in use that nothing refers to, or free "
		"ones that something does");
	differs(&comparison, cluster_map_compare(map->clusters),
		"clusters: members that are not counted, or counted ones that "
		"are none");
	differs(&comparison,
		store->pool_ops->map_compare(store->pool, map->pool),
		"pool: objects in use that nothing refers to, or free ones "
		"that something does");
}

static int settle_slot(struct store_map *map, uint32_t slot,
		       struct object *object, void *context)
{
	struct store *store = map->store;
	struct location at = location_of(object);

	atomic_store_explicit(&object->count, map->claims[slot],
			      memory_order_relaxed);
	if (at.type == OBJECT_HOT)
		hot_enqueue(&store->hot, (uint32_t)at.handle, slot,
			    store_clock(), false);
	if (at.type == OBJECT_FILL || !store->index)
		return 0;
	index_insert(store->index, object->checksum, slot);
	return 0;
}

int store_map_settle(struct store_map *map)
{
	struct store *store = map->store;
	unsigned int counter;
	int ret;

	ret = slab_settle(store->objects, map->slots);
	if (!ret)
		ret = cluster_map_settle(map->clusters);
	if (!ret)
		ret = store->pool_ops->map_settle(store->pool, map->pool);
	if (!ret && store->root->dedup)
		ret = index_create(&store->index, store->arena, ARENA_BUCKETS,
				   &dedup_index_ops, store);
	if (ret)
		return ret;
	if (store->index)
		/* And no merging of those that have no record yet. */
		index_expect(store->index, map->totals[COUNT_OBJECTS]);
	hot_restore(&store->hot, map->hot);
	for (counter = 0; counter < STORE_COUNTERS; counter++)
		store_set_count(store, counter, (int64_t)map->totals[counter]);
	return for_each_claimed(map, settle_slot, NULL);
}
