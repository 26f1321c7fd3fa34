/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cluster_sparse.c - the clusters of which a third has died, oldest first
 *
 * Owns a circle through their records, under a lock that is a leaf. One that
 * somebody has taken is in a circle of its own. See cluster.h.
 */
#include "store/store_private.h"

bool cluster_is_sparse(const struct cluster *cluster, uint32_t members)
{
	return members * 3 <= cluster_pages(cluster) * 2;
}

/* Under the lock. */
static void list(struct store *store, struct cluster *cluster, uint32_t block)
{
	struct sparse_clusters *sparse = &store->sparse;

	if (!cluster->next && !sparse->first) {
		sparse->first = cluster->next = cluster->previous = block;
	} else if (!cluster->next) {
		struct cluster *first = cluster_at(store, sparse->first);

		cluster->next = sparse->first;
		cluster->previous = first->previous;
		cluster_at(store, first->previous)->next = block;
		first->previous = block;
	}
}

void cluster_list_sparse(struct store *store, uint32_t block)
{
	pthread_mutex_lock(&store->sparse.lock);
	list(store, cluster_at(store, block), block);
	pthread_mutex_unlock(&store->sparse.lock);
}

/* Under the lock. */
static void unlist(struct store *store, struct cluster *cluster, uint32_t block)
{
	struct sparse_clusters *sparse = &store->sparse;

	if (!cluster->next)
		return;
	cluster_at(store, cluster->previous)->next = cluster->next;
	cluster_at(store, cluster->next)->previous = cluster->previous;
	if (sparse->first == block)
		sparse->first = cluster->next == block ? 0 : cluster->next;
	cluster->next = cluster->previous = 0;
}

uint32_t cluster_take_sparse(struct store *store)
{
	struct sparse_clusters *sparse = &store->sparse;
	uint32_t block;
	bool pinned = false;

	pthread_mutex_lock(&sparse->lock);
	do {
		block = sparse->first;
		if (!block)
			break;
		/* One that is being freed refuses. */
		pinned = object_pin(&cluster_at(store, block)->object);
		unlist(store, cluster_at(store, block), block);
	} while (!pinned);
	if (block) {
		/* In a circle of its own: nobody lists it meanwhile. */
		cluster_at(store, block)->next = block;
		cluster_at(store, block)->previous = block;
	}
	pthread_mutex_unlock(&sparse->lock);
	return block;
}

void cluster_put_back(struct store *store, uint32_t block, bool again)
{
	struct cluster *cluster = cluster_at(store, block);

	pthread_mutex_lock(&store->sparse.lock);
	unlist(store, cluster, block);
	if (again)
		list(store, cluster, block);
	pthread_mutex_unlock(&store->sparse.lock);
	cluster_unpin(store, block);
}

void cluster_unlist(struct store *store, uint32_t block)
{
	pthread_mutex_lock(&store->sparse.lock);
	unlist(store, cluster_at(store, block), block);
	pthread_mutex_unlock(&store->sparse.lock);
}
