/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_pagetable.c - the sparse array of cells, against a plain list of pairs
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fs/pagetable.h"

#define MODEL_CELLS 600

/* As the filesystem makes its slab of blocks, in what matters here. */
static const uint16_t sizes[] = {16,  32,  48,	64,  96,   128, 192,
				 256, 384, 512, 768, 1024, 2048};

struct model {
	unsigned int cells;
	struct {
		uint64_t index;
		uint32_t value;
	} cell[MODEL_CELLS];
};

struct fixture {
	struct arena *arena;
	struct slab *blocks;
	struct pagetable table;
	struct model model;
};

static uint64_t random_state;

/* xorshift64*, Vigna 2016. */
static uint64_t random_next(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * UINT64_C(2685821657736338717);
}

static int setup(void **state)
{
	struct arena_config config = {.capacity = 1 << 28};
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	assert_int_equal(arena_create(&fixture->arena, &config), 0);
	assert_int_equal(slab_create(&fixture->blocks, fixture->arena,
				     ARENA_BLOCKS, sizes,
				     sizeof(sizes) / sizeof(*sizes)),
			 0);
	random_state = 88172645463325252u;
	*state = fixture;
	return 0;
}

static uint64_t blocks_in_use(const struct fixture *fixture)
{
	struct slab_usage usage;

	slab_usage(fixture->blocks, &usage);
	return usage.blocks;
}

static uint64_t bytes_in_use(const struct fixture *fixture)
{
	struct slab_usage usage;

	slab_usage(fixture->blocks, &usage);
	return usage.bytes;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	pagetable_release(fixture->blocks, &fixture->table);
	assert_int_equal(blocks_in_use(fixture), 0);
	assert_int_equal(bytes_in_use(fixture), 0);
	slab_destroy(fixture->blocks);
	arena_destroy(fixture->arena);
	free(fixture);
	return 0;
}

static uint64_t get(const struct fixture *fixture, uint64_t index)
{
	pagetable_cell *cell =
		pagetable_find(fixture->blocks, &fixture->table, index);

	return cell ? atomic_load(cell) : 0;
}

static int set(struct fixture *fixture, uint64_t index, uint32_t value)
{
	int err = pagetable_reserve(fixture->blocks, &fixture->table, index,
				    index, 0);

	if (!err)
		atomic_store(
			pagetable_find(fixture->blocks, &fixture->table, index),
			value);
	return err;
}

static void clear(struct fixture *fixture, uint64_t index)
{
	pagetable_cell *cell =
		pagetable_find(fixture->blocks, &fixture->table, index);

	if (cell)
		atomic_store(cell, 0);
	pagetable_prune(fixture->blocks, &fixture->table, index, index);
}

static void model_set(struct model *model, uint64_t index, uint32_t value)
{
	unsigned int i = 0;

	while (i < model->cells && model->cell[i].index < index)
		i++;
	if (i == model->cells || model->cell[i].index != index) {
		memmove(&model->cell[i + 1], &model->cell[i],
			(model->cells - i) * sizeof(model->cell[0]));
		model->cells++;
		model->cell[i].index = index;
	}
	model->cell[i].value = value;
}

static uint64_t model_remove(struct model *model, unsigned int i)
{
	uint64_t index = model->cell[i].index;

	model->cells--;
	memmove(&model->cell[i], &model->cell[i + 1],
		(model->cells - i) * sizeof(model->cell[0]));
	return index;
}

/* The walk over the table yields the model's cells, each once, in order. */
static void assert_as_model(const struct fixture *fixture)
{
	const struct model *model = &fixture->model;
	uint64_t index = 0;
	unsigned int i;

	for (i = 0; i < model->cells; i++) {
		pagetable_cell *cell =
			pagetable_next(fixture->blocks, &fixture->table, &index,
				       PAGETABLE_INDEX_MAX);

		assert_non_null(cell);
		assert_true(index == model->cell[i].index);
		assert_true(atomic_load(cell) == model->cell[i].value);
		assert_ptr_equal(cell, pagetable_find(fixture->blocks,
						      &fixture->table, index));
		index++;
	}
	assert_null(pagetable_next(fixture->blocks, &fixture->table, &index,
				   PAGETABLE_INDEX_MAX));
}

/* Any magnitude up to 2^52, small ones as often as large ones. */
static uint64_t random_index(void)
{
	return (random_next() & PAGETABLE_INDEX_MAX) >> random_next() % 52;
}

static void a_new_table_has_room_for_index_zero_only(void **state)
{
	struct fixture *fixture = *state;
	uint64_t index = 0;

	assert_ptr_equal(pagetable_find(fixture->blocks, &fixture->table, 0),
			 &fixture->table.first);
	assert_null(pagetable_find(fixture->blocks, &fixture->table, 1));
	assert_null(pagetable_find(fixture->blocks, &fixture->table,
				   PAGETABLE_INDEX_MAX));
	assert_null(pagetable_next(fixture->blocks, &fixture->table, &index,
				   PAGETABLE_INDEX_MAX));
	assert_true(pagetable_covers(fixture->blocks, &fixture->table, 0, 0));
	assert_false(pagetable_covers(fixture->blocks, &fixture->table, 0, 1));
}

static void a_small_table_costs_what_it_holds(void **state)
{
	static const struct {
		uint64_t cells;
		uint64_t bytes;
	} cost[] = {{1, 0},
		    {2, 16},
		    {4, 16},
		    {5, 32},
		    {8, 32},
		    {9, 64},
		    {16, 64},
		    {17, 128},
		    {33, 256},
		    {64, 256},
		    /* two leaves under one inner node of 64 numbers */
		    {65, 2 * 256 + 256}};
	struct fixture *fixture = *state;
	uint64_t index = 0;
	unsigned int i;

	for (i = 0; i < sizeof(cost) / sizeof(*cost); i++) {
		for (; index < cost[i].cells; index++)
			assert_int_equal(set(fixture, index, index + 1), 0);
		assert_int_equal(bytes_in_use(fixture), cost[i].bytes);
	}
	for (index = 0; index < 65; index++)
		assert_int_equal(get(fixture, index), index + 1);
	while (index-- > 1)
		clear(fixture, index);
	assert_int_equal(get(fixture, 0), 1);
	assert_int_equal(bytes_in_use(fixture), 0);
}

static void a_lone_cell_far_out_costs_one_path(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(set(fixture, PAGETABLE_INDEX_MAX, 7), 0);
	assert_int_equal(blocks_in_use(fixture), 9);
	assert_int_equal(get(fixture, PAGETABLE_INDEX_MAX), 7);
	assert_null(pagetable_find(fixture->blocks, &fixture->table, 0));
	clear(fixture, PAGETABLE_INDEX_MAX);
	assert_int_equal(blocks_in_use(fixture), 0);
}

static void a_range_is_reserved_whole(void **state)
{
	struct fixture *fixture = *state;
	uint64_t first = 4000, last = 70000, index;

	assert_int_equal(pagetable_reserve(fixture->blocks, &fixture->table,
					   first, last, 0),
			 0);
	assert_true(pagetable_covers(fixture->blocks, &fixture->table, first,
				     last));
	for (index = first; index <= last; index += 37)
		assert_non_null(pagetable_find(fixture->blocks, &fixture->table,
					       index));
	assert_false(
		pagetable_covers(fixture->blocks, &fixture->table, 0, last));
	assert_false(pagetable_covers(fixture->blocks, &fixture->table, first,
				      last + 64));
	pagetable_prune(fixture->blocks, &fixture->table, first, last);
	assert_int_equal(blocks_in_use(fixture), 0);
}

static void the_walk_ends_at_last(void **state)
{
	struct fixture *fixture = *state;
	uint64_t index = 0;

	assert_int_equal(set(fixture, 3, 1), 0);
	assert_int_equal(set(fixture, UINT64_C(1) << 40, 2), 0);
	assert_non_null(
		pagetable_next(fixture->blocks, &fixture->table, &index, 3));
	index = 4;
	assert_null(pagetable_next(fixture->blocks, &fixture->table, &index,
				   (UINT64_C(1) << 40) - 1));
	index = 4;
	assert_non_null(pagetable_next(fixture->blocks, &fixture->table, &index,
				       UINT64_C(1) << 40));
	assert_true(index == UINT64_C(1) << 40);
}

static void pruning_spares_what_is_in_use(void **state)
{
	struct fixture *fixture = *state;
	struct model *model = &fixture->model;
	uint64_t blocks;

	model_set(model, 5, 50);
	model_set(model, 100000, 51);
	assert_int_equal(set(fixture, 5, 50), 0);
	assert_int_equal(set(fixture, 100000, 51), 0);
	blocks = blocks_in_use(fixture);
	assert_int_equal(pagetable_reserve(fixture->blocks, &fixture->table, 0,
					   1000000, 0),
			 0);
	assert_true(blocks_in_use(fixture) > blocks);
	pagetable_prune(fixture->blocks, &fixture->table, 0,
			PAGETABLE_INDEX_MAX);
	assert_int_equal(blocks_in_use(fixture), blocks);
	assert_as_model(fixture);
}

static void it_agrees_with_a_list_of_pairs(void **state)
{
	struct fixture *fixture = *state;
	struct model *model = &fixture->model;
	unsigned int round;

	for (round = 0; round < 20000; round++) {
		bool filling = round / 1000 % 2 == 0;

		if (model->cells < MODEL_CELLS - 1 &&
		    random_next() % 4 < (filling ? 3 : 1)) {
			uint64_t index = random_index();

			assert_int_equal(set(fixture, index, round + 1), 0);
			model_set(model, index, round + 1);
		} else if (model->cells) {
			clear(fixture,
			      model_remove(model,
					   random_next() % model->cells));
		}
		if (round % 64 == 0)
			assert_as_model(fixture);
	}
	while (model->cells)
		clear(fixture, model_remove(model, model->cells - 1));
	assert_int_equal(blocks_in_use(fixture), 0);
}

/* Leave exactly this many pages to be had. */
static void bound_pages(struct fixture *fixture, unsigned int pages)
{
	struct arena_usage usage;

	arena_trim(fixture->arena, UINT64_MAX);
	arena_usage(fixture->arena, &usage);
	arena_set_limit(fixture->arena,
			usage.total + (uint64_t)pages * PAGE_SIZE);
}

/*
 * However much memory there is when it runs out, a failed reserve leaves cells
 * and memory as they were, and one that had enough succeeds.
 */
static void assert_reserve_is_atomic(struct fixture *fixture, uint64_t first,
				     uint64_t last)
{
	uint64_t blocks = blocks_in_use(fixture);
	uint64_t bytes = bytes_in_use(fixture);
	unsigned int pages = 0, failures = 0;
	int err;

	do {
		bound_pages(fixture, pages++);
		err = pagetable_reserve(fixture->blocks, &fixture->table, first,
					last, 0);
		assert_true(err == 0 || err == -ENOSPC);
		assert_as_model(fixture);
		if (err) {
			failures++;
			assert_int_equal(blocks_in_use(fixture), blocks);
			assert_int_equal(bytes_in_use(fixture), bytes);
		}
	} while (err);
	assert_true(failures > 0);
	arena_set_limit(fixture->arena, 0);
	assert_true(pagetable_covers(fixture->blocks, &fixture->table, first,
				     last));
}

static void no_memory_for_an_empty_table(void **state)
{
	assert_reserve_is_atomic(*state, UINT64_C(1) << 45,
				 (UINT64_C(1) << 45) + 1000);
}

static void no_memory_for_a_table_with_a_cell_of_its_own(void **state)
{
	struct fixture *fixture = *state;

	model_set(&fixture->model, 0, 9);
	assert_int_equal(set(fixture, 0, 9), 0);
	assert_reserve_is_atomic(fixture, 0, 3000);
	assert_int_equal(get(fixture, 0), 9);
}

static void no_memory_for_a_table_with_a_small_leaf(void **state)
{
	struct fixture *fixture = *state;
	uint64_t index;

	for (index = 0; index < 7; index++) {
		model_set(&fixture->model, index, index + 1);
		assert_int_equal(set(fixture, index, index + 1), 0);
	}
	assert_reserve_is_atomic(fixture, 4, 3000);
}

static void no_memory_for_a_table_with_a_full_leaf(void **state)
{
	struct fixture *fixture = *state;
	uint64_t index;

	for (index = 0; index < 64; index++) {
		model_set(&fixture->model, index, index + 1);
		assert_int_equal(set(fixture, index, index + 1), 0);
	}
	assert_reserve_is_atomic(fixture, 64, 5000);
}

static void no_memory_for_a_high_table(void **state)
{
	struct fixture *fixture = *state;
	uint64_t index;

	for (index = 1; index < PAGETABLE_INDEX_MAX >> 8; index *= 3) {
		model_set(&fixture->model, index, index);
		assert_int_equal(set(fixture, index, index), 0);
	}
	assert_reserve_is_atomic(fixture, 10, 4000);
	pagetable_prune(fixture->blocks, &fixture->table, 0,
			PAGETABLE_INDEX_MAX);
	assert_reserve_is_atomic(fixture, PAGETABLE_INDEX_MAX - 9000,
				 PAGETABLE_INDEX_MAX);
}

/* Each node is claimed once, and nothing is claimed that is free. */
static void claims_are_the_blocks_in_use(void **state)
{
	struct fixture *fixture = *state;
	unsigned int i, round;

	for (round = 0; round < 3; round++) {
		struct slab_map *map;

		for (i = 0; i < (round ? 100 : 0); i++)
			assert_int_equal(
				set(fixture,
				    round == 1 ? i % 50 : random_index(), 1),
				0);
		assert_int_equal(slab_map_create(&map, fixture->blocks), 0);
		assert_int_equal(
			pagetable_claim(fixture->blocks, &fixture->table, map),
			0);
		assert_int_equal(slab_map_compare(map, fixture->blocks), 0);
		slab_map_destroy(map);
	}
}

static int claim(struct fixture *fixture, const struct pagetable *table)
{
	struct slab_map *map;
	int err;

	assert_int_equal(slab_map_create(&map, fixture->blocks), 0);
	err = pagetable_claim(fixture->blocks, table, map);
	slab_map_destroy(map);
	return err;
}

static void damage_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct pagetable damaged = {0};
	_Atomic uint32_t *child;
	uint64_t root;
	uint32_t saved;

	assert_int_equal(set(fixture, 100, 1), 0);
	assert_int_equal(set(fixture, 200, 1), 0);
	assert_int_equal(claim(fixture, &fixture->table), 0);
	root = atomic_load(&fixture->table.root);

	/* a height that no tree has; a bit that no root word has */
	atomic_store(&damaged.root, root | 0xf0);
	assert_int_equal(claim(fixture, &damaged), -ERANGE);
	atomic_store(&damaged.root, root | 1 << 16);
	assert_int_equal(claim(fixture, &damaged), -ERANGE);
	/* the number of no block */
	atomic_store(&damaged.root, root | UINT64_C(0xfff) << 52);
	assert_int_equal(claim(fixture, &damaged), -ERANGE);

	/* one block in two places; a cycle */
	child = slab_address(fixture->blocks, root >> 32);
	saved = atomic_load(&child[1]);
	assert_int_not_equal(saved, 0);
	assert_int_equal(atomic_load(&child[2]), 0);
	atomic_store(&child[2], saved);
	assert_int_equal(claim(fixture, &fixture->table), -EEXIST);
	atomic_store(&child[2], root >> 32);
	assert_int_equal(claim(fixture, &fixture->table), -EEXIST);
	atomic_store(&child[2], 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_table_has_room_for_index_zero_only),
		TEST(a_small_table_costs_what_it_holds),
		TEST(a_lone_cell_far_out_costs_one_path),
		TEST(a_range_is_reserved_whole),
		TEST(the_walk_ends_at_last),
		TEST(pruning_spares_what_is_in_use),
		TEST(it_agrees_with_a_list_of_pairs),
		TEST(no_memory_for_an_empty_table),
		TEST(no_memory_for_a_table_with_a_cell_of_its_own),
		TEST(no_memory_for_a_table_with_a_small_leaf),
		TEST(no_memory_for_a_table_with_a_full_leaf),
		TEST(no_memory_for_a_high_table),
		TEST(claims_are_the_blocks_in_use),
		TEST(damage_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
