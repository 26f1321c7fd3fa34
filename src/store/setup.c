/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * setup.c - a store's beginning and end, and its threads' own memory
 *
 * Owns the struct store, the persistent root, and the list of stores that the
 * calling thread is attached to. A thread is attached to one store in the
 * daemon; the list is for a program that has two arenas open.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "arena/lock.h"
#include "deadline.h"
#include "store/store_private.h"

static const uint16_t object_sizes[] = {sizeof(struct object)};

/* Steps that cost a cluster four bytes in the mean, half a byte a page. */
static const uint16_t cluster_sizes[] = {
	56,  64,  72,  80,  88,	 96,  104, 112, 120, 128, 136, 144,
	152, 160, 168, 176, 184, 192, 200, 208, 216, 224, 232, 240,
	256, 272, 288, 304, 320, 336, 352, 368, 384, 400,
};
#define CLUSTER_SIZES (sizeof(cluster_sizes) / sizeof(*cluster_sizes))

static __thread struct store_thread *attached_threads;

struct store_thread *store_thread(struct store *store)
{
	struct store_thread *thread = attached_threads;

	while (thread && thread->store != store)
		thread = thread->next;
	return thread;
}

/* use: which streams the thread will surely want, as codec.h has it. */
int store_attach_thread_for(struct store *store, unsigned int use)
{
	struct store_thread *thread = store_thread(store);
	int ret;

	if (thread) {
		thread->attached++;
		return 0;
	}
	thread = aligned_alloc(64, sizeof(*thread));
	if (!thread)
		return -ENOMEM;
	memset(thread, 0, sizeof(*thread));
	ret = codec_streams_init(&thread->streams, &store->codec, use,
				 (size_t)store->cluster_pages * PAGE_SIZE);
	if (!ret)
		ret = cluster_room_init(&thread->room, store->cluster_pages);
	if (ret) {
		codec_streams_exit(&thread->streams);
		free(thread);
		return ret;
	}
	thread->store = store;
	thread->attached = 1;
	store_claim_counters(thread);
	thread->next = attached_threads;
	attached_threads = thread;
	return 0;
}

int store_attach_thread(struct store *store)
{
	return store_attach_thread_for(store, CODEC_TO_DECOMPRESS);
}

void store_detach_thread(struct store *store)
{
	struct store_thread **at = &attached_threads, *thread;

	while (*at && (*at)->store != store)
		at = &(*at)->next;
	thread = *at;
	if (!thread || --thread->attached)
		return;
	*at = thread->next;
	store_release_counters(thread);
	cluster_room_exit(&thread->room);
	codec_streams_exit(&thread->streams);
	free(thread);
}

void store_rest_thread(struct store *store)
{
	struct store_thread *thread = store_thread(store);

	/* To compress a page takes little. */
	if (store->cluster_pages < 2)
		return;
	codec_streams_rest(&thread->streams);
	cluster_room_rest(&thread->room);
}

uint64_t store_threads_bytes(const struct store *store, unsigned int threads)
{
	return (uint64_t)(threads + store->compressors) * store->thread_bytes;
}

/* The compressor, and a cluster's room in both forms and for the codec. */
static int find_thread_bytes(struct store *store)
{
	size_t together = (size_t)store->cluster_pages * PAGE_SIZE;
	int ret = codec_compressor_bytes(&store->codec, together,
					 &store->thread_bytes);

	if (!ret && store->cluster_pages > 1)
		store->thread_bytes += 3 * together;
	return ret;
}

int64_t store_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static void init_locks(struct store *store)
{
	pthread_rwlockattr_t prefer_writer;
	unsigned int i;

	/* Else compressors, one after another, could keep a pause waiting. */
	pthread_rwlockattr_init(&prefer_writer);
	pthread_rwlockattr_setkind_np(
		&prefer_writer, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&store->work_lock, &prefer_writer);
	pthread_rwlockattr_destroy(&prefer_writer);
	pthread_mutex_init(&store->wake_lock, NULL);
	deadline_cond_init(&store->wake);
	for (i = 0; i < INDEX_STRIPES; i++)
		lock_init(&store->stripes[i].lock);
	lock_init(&store->sparse.lock);
	housekeeping_init(store);
}

static void destroy_locks(struct store *store)
{
	unsigned int i;

	housekeeping_exit(store);
	for (i = 0; i < INDEX_STRIPES; i++)
		pthread_mutex_destroy(&store->stripes[i].lock);
	pthread_mutex_destroy(&store->sparse.lock);
	pthread_cond_destroy(&store->wake);
	pthread_mutex_destroy(&store->wake_lock);
	pthread_rwlock_destroy(&store->work_lock);
}

/* What both a new and an attached store need; the index comes later. */
static int set_up(struct store **result, struct arena *arena,
		  const struct store_config *config)
{
	struct store *store;
	int ret;

	store = aligned_alloc(64, sizeof(*store));
	if (!store)
		return -ENOMEM;
	memset(store, 0, sizeof(*store));
	store->arena = arena;
	store->root = arena_root(arena, ARENA_ROOT_STORE);
	store->codec = config->codec;
	store->pool_ops = config->pool;
	store->compressors = config->compressors ? config->compressors : 1;
	store->cluster_pages =
		config->cluster_pages ? config->cluster_pages : 1;
	assert(store->cluster_pages <= CLUSTER_PAGES_MAX);
	store->slots = (uint64_t)arena_capacity(arena, ARENA_OBJECTS)
		       << SLAB_SHIFT;
	assert(store->slots <= REFERENCE_SLOTS);
	init_locks(store);
	store->threads = calloc(store->compressors, sizeof(pthread_t));
	ret = store->threads ? find_thread_bytes(store) : -ENOMEM;
	if (!ret)
		ret = slab_create(&store->objects, arena, ARENA_OBJECTS,
				  object_sizes, 1);
	if (!ret)
		ret = slab_create(&store->clusters, arena, ARENA_CLUSTERS,
				  cluster_sizes, CLUSTER_SIZES);
	if (!ret)
		ret = store->pool_ops->create(&store->pool, arena,
					      &compress_owner_ops, store);
	if (!ret)
		ret = hot_init(&store->hot, arena, config->hot);
	if (ret) {
		store_destroy(store);
		return ret;
	}
	store->largest = store->pool_ops->largest(store->pool);
	*result = store;
	return 0;
}

int store_create(struct store **result, struct arena *arena,
		 const struct store_config *config)
{
	struct store *store;
	int ret = set_up(&store, arena, config);

	if (ret)
		return ret;
	if (getrandom(&store->root->seed, sizeof(store->root->seed), 0) !=
	    sizeof(store->root->seed))
		ret = -errno;
	store->root->dedup = config->dedup;
	store->root->cluster_pages = store->cluster_pages;
	snprintf(store->root->pool, sizeof(store->root->pool), "%s",
		 config->pool->name);
	if (!ret && config->dedup)
		ret = index_create(&store->index, arena, ARENA_BUCKETS,
				   &dedup_index_ops, store);
	if (ret) {
		store_destroy(store);
		return ret;
	}
	*result = store;
	return 0;
}

int store_attach(struct store **result, struct arena *arena,
		 const struct store_config *config)
{
	const struct store_root *root = arena_root(arena, ARENA_ROOT_STORE);

	if (strcmp(root->pool, config->pool->name) ||
	    root->cluster_pages !=
		    (config->cluster_pages ? config->cluster_pages : 1))
		return -EPROTO;
	return set_up(result, arena, config);
}

/* The index's buckets stay in the arena, which goes with them or is rebuilt. */
void store_destroy(struct store *store)
{
	if (!store)
		return;
	store_stop(store);
	if (store->index)
		index_destroy(store->index);
	hot_exit(&store->hot);
	if (store->pool)
		store->pool_ops->destroy(store->pool);
	if (store->clusters)
		slab_destroy(store->clusters);
	if (store->objects)
		slab_destroy(store->objects);
	free(store->threads);
	destroy_locks(store);
	free(store);
}

const struct pool_ops *store_pool(const struct store *store,
				  const struct pool **pool)
{
	*pool = store->pool;
	return store->pool_ops;
}

void store_codec(const struct store *store, struct codec_choice *choice)
{
	*choice = store->codec;
}

uint64_t store_hot_limit(const struct store *store)
{
	return hot_limit(&store->hot) << PAGE_SHIFT;
}
