/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dedup_cost.c - what looking for equal pages costs the store
 *
 *	dedup_cost [MIB [ROUNDS]]	256 MiB, 5 rounds
 *
 * Puts pages into a store that looks for equal ones and into one that does
 * not, by turns, in one thread and without a filesystem around it, as many at
 * once as a file of that size written by one write would be. Prints one
 * JSON object, with the median of CPU nanoseconds a page (put into the hot
 * tier, compressed into the pool, dropped) and the bytes held for each:
 *
 *	distinct   pages that all differ
 *	near       pages that differ from each other in their last byte or two
 *	chains     pages whose hashes have their low bits in common: what only
 *		   luck gives a writer, as the hash has a secret seed. Here it
 *		   is known; pages are tried until they have the hash
 *	equal      pages that are there already, in the pool. That store has one
 *		   row more: how many of them were compressed
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/store.h"
#include "store/store_private.h"

/* Pages of the kind "chains" agree in this many low bits of their hashes. */
#define CHAIN_BITS  8
#define CHAIN_PAGES 4096
#define ROUNDS_MAX  64

enum kind {
	DISTINCT,
	NEAR,
	CHAINS,
	EQUAL,
	KINDS
};

static const char *const kind_name[] = {"distinct", "near", "chains", "equal"};

struct world {
	struct arena *arena;
	struct store *store;
};

struct sample {
	double put, compress, drop; /* ns a page */
	uint64_t held;		    /* bytes, when all is compressed */
	uint64_t compressed;	    /* pages, after the first round of puts */
};

static void die(const char *what, int error)
{
	fprintf(stderr, "dedup_cost: %s: %s\n", what, strerror(-error));
	exit(1);
}

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

/* A third is noise, the rest compresses: as much as of source code. */
static void make_page(unsigned char *page, uint64_t number)
{
	uint64_t state = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
	unsigned int i;

	memset(page, ' ', PAGE_SIZE);
	for (i = 0; i < PAGE_SIZE / 3; i += sizeof(state)) {
		uint64_t word = next(&state);

		memcpy(page + i, &word, sizeof(word));
	}
}

/* They are all one page but for its last bytes. */
static void number_page(unsigned char *page, uint32_t number)
{
	memcpy(page + PAGE_SIZE - sizeof(number), &number, sizeof(number));
}

static void make_chain_page(const struct store *store, unsigned char *page,
			    uint32_t *tried)
{
	do
		number_page(page, (*tried)++);
	while (store_checksum(store, page) & ((1u << CHAIN_BITS) - 1));
}

static void make_world(struct world *world, uint64_t hot, bool dedup)
{
	struct arena_config arena = {0};
	struct store_config config = {
		.codec = {&codec_lz4, 1},
		.pool = &pool_zsmalloc,
		.hot = hot,
		.dedup = dedup,
		.compressors = 1,
	};
	int error = arena_create(&world->arena, &arena);

	if (!error)
		error = store_create(&world->store, world->arena, &config);
	if (!error)
		error = store_attach_thread(world->store);
	if (error)
		die("no store", error);
}

static void end_world(struct world *world)
{
	store_detach_thread(world->store);
	store_destroy(world->store);
	arena_destroy(world->arena);
}

static void fill_pages(const struct store *store, enum kind kind,
		       unsigned char *pages, size_t count)
{
	uint32_t tried = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		unsigned char *page = pages + i * PAGE_SIZE;

		make_page(page, kind == NEAR || kind == CHAINS ? 0 : i);
		if (kind == NEAR)
			number_page(page, i);
		if (kind == CHAINS)
			make_chain_page(store, page, &tried);
	}
}

static double put_all(struct store *store, const unsigned char *pages,
		      store_ref *ref, size_t count)
{
	double start = cpu_ns();
	int error = store_put_all(store, pages, (unsigned int)count, 0, ref);

	if (error)
		die("put", error);
	return (cpu_ns() - start) / count;
}

static double drop_all(struct store *store, const store_ref *ref, size_t count)
{
	double start = cpu_ns();

	store_drop_all(store, ref, (unsigned int)count);
	return (cpu_ns() - start) / count;
}

static double compress_all(struct store *store, size_t count)
{
	double start = cpu_ns();
	int error = store_drain(store);

	if (error)
		die("compress", error);
	return (cpu_ns() - start) / count;
}

static uint64_t compressions(struct store *store)
{
	struct store_stats stats;

	store_stats(store, &stats);
	return stats.writer_compressions + stats.background_compressions;
}

static struct sample measure(enum kind kind, bool dedup, unsigned char *pages,
			     store_ref *ref, size_t count)
{
	struct sample sample = {0};
	struct arena_usage usage;
	struct world world;
	uint64_t before;

	make_world(&world, (uint64_t)count * PAGE_SIZE, dedup);
	fill_pages(world.store, kind, pages, count);
	sample.put = put_all(world.store, pages, ref, count);
	sample.compress = compress_all(world.store, count);
	if (kind == EQUAL) {
		before = compressions(world.store);
		sample.put = put_all(world.store, pages, ref + count, count);
		sample.compress = compress_all(world.store, count);
		sample.compressed = compressions(world.store) - before;
	}
	store_compact(world.store, NULL);
	arena_usage(world.arena, &usage);
	sample.held = usage.total;
	sample.drop = drop_all(world.store, ref, count);
	if (kind == EQUAL)
		drop_all(world.store, ref + count, count);
	end_world(&world);
	return sample;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, unsigned int count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

static void print(enum kind kind, bool dedup, const struct sample *sample,
		  unsigned int rounds)
{
	double put[ROUNDS_MAX], compress[ROUNDS_MAX], drop[ROUNDS_MAX];
	unsigned int i;

	for (i = 0; i < rounds; i++) {
		put[i] = sample[i].put;
		compress[i] = sample[i].compress;
		drop[i] = sample[i].drop;
	}
	printf("%s\"%s\": {\"put\": %.0f, \"compress\": %.0f, \"drop\": %.0f, "
	       "\"held\": %" PRIu64 ", \"compressed\": %" PRIu64 "}",
	       dedup ? ", " : "", dedup ? "on" : "off", median(put, rounds),
	       median(compress, rounds), median(drop, rounds), sample[0].held,
	       sample[0].compressed);
}

static void measure_kind(enum kind kind, size_t count, unsigned int rounds)
{
	struct sample sample[2][ROUNDS_MAX];
	unsigned char *pages = malloc(count * PAGE_SIZE);
	store_ref *ref = calloc(2 * count, sizeof(*ref));
	unsigned int round, turn;

	if (!pages || !ref)
		die("no memory", -ENOMEM);
	for (round = 0; round < rounds; round++)
		for (turn = 0; turn < 2; turn++) {
			bool dedup = (round + turn) % 2;

			sample[dedup][round] =
				measure(kind, dedup, pages, ref, count);
		}
	printf("%s\"%s\": {", kind ? ", " : "{", kind_name[kind]);
	print(kind, false, sample[0], rounds);
	print(kind, true, sample[1], rounds);
	printf("}");
	free(ref);
	free(pages);
}

int main(int argc, char **argv)
{
	size_t count = (argc > 1 ? strtoul(argv[1], NULL, 10) : 256) << 8;
	unsigned int rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 5;
	unsigned int kind;

	if (argc > 3 || !count || !rounds || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: dedup_cost [MIB [ROUNDS]]\n");
		return 2;
	}
	for (kind = 0; kind < KINDS; kind++)
		measure_kind(kind,
			     kind == CHAINS && count > CHAIN_PAGES ? CHAIN_PAGES
								   : count,
			     rounds);
	puts("}");
	return 0;
}
