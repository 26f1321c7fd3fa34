/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * index.h - a hash index over numbered records, growing a bucket at a time
 *
 * Linear hashing (Litwin, VLDB 1980; in memory: Larson, CACM 31(4), 1988):
 * buckets are one array of 32-bit record numbers in an arena region, records
 * chain through a 32-bit link of their own, and growing or shrinking touches
 * one bucket, so that no operation ever pays for rehashing the whole. A
 * bucket costs 4 bytes; there is about one bucket for each record.
 *
 * The index neither owns records nor compares them: the caller walks a chain
 * with index_first() and the record's link. All of it is derived state.
 *
 * Locking is the caller's, by stripe: the stripe of a hash is its low
 * INDEX_STRIPE_BITS bits; a bucket's records all lie in one stripe, and a
 * split or merge stays within one. A caller that holds the lock of a hash's
 * stripe may call the functions that take a hash. index_adjust() takes no
 * locks: it is called with the stripe lock that index_adjust_stripe() named,
 * and does nothing if the answer has changed since.
 */
#ifndef ZRAMFS_INDEX_H
#define ZRAMFS_INDEX_H

#include "arena/arena.h"

#define INDEX_STRIPE_BITS 6
#define INDEX_STRIPES	  (1u << INDEX_STRIPE_BITS)

struct index;

struct index_ops {
	/* The link of a record, SLAB_NONE (0) ending a chain. */
	uint32_t *(*link)(void *context, uint32_t record);
	/* The 32-bit hash under which the record was inserted. */
	uint32_t (*hash)(void *context, uint32_t record);
};

/* An empty index with INDEX_STRIPES buckets. -ENOMEM, -ENOSPC. */
int index_create(struct index **index, struct arena *arena,
		 enum arena_region region, const struct index_ops *ops,
		 void *context);

/* Frees the buckets' pages too; records keep their links as they were. */
void index_destroy(struct index *index);

/*
 * Before the first record of so many: buckets for all of them at once, as far
 * as there is memory, so that none has to be split. No locks: nobody else may
 * use the index yet.
 */
void index_expect(struct index *index, uint64_t records);

uint32_t index_first(const struct index *index, uint32_t hash);

/* This hash will soon be looked for. Needs no lock. */
void index_prefetch(const struct index *index, uint32_t hash);

/* And so will its chain's first record. Needs no lock. */
void index_prefetch_first(const struct index *index, uint32_t hash);

/* Put a record in front of its chain. Cannot fail. */
void index_insert(struct index *index, uint32_t hash, uint32_t record);

/* Take a record out. False if it was not there. */
bool index_remove(struct index *index, uint32_t hash, uint32_t record);

/*
 * When the number of records has drifted from the number of buckets, the
 * stripe whose lock allows the next split or merge; -1 when none is wanted.
 * Callers ask after an insert or remove, without any lock.
 */
int index_adjust_stripe(const struct index *index);
void index_adjust(struct index *index, unsigned int stripe);

uint64_t index_count(const struct index *index);
uint64_t index_bytes(const struct index *index);

/* Claim the pages of the bucket array. */
int index_claim(const struct index *index, struct arena_map *map);

#endif
