/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_recovery.c - requests that the process died with
 *
 * Done and not answered, they are answered as before; answered, what they have
 * counted stays; not begun, they are done now. In each case all is as if no
 * process had died.
 */
#include "recovery_world.h"

#include <stdio.h>
#include <stdlib.h>

/* What is there after each scenario, and what its caller got. */
static char *expected[64];
static struct outcome outcomes[64];

static void expect(struct world *world, size_t i, const struct outcome *outcome)
{
	char *dump = scenario_dump(world);

	if (strcmp(dump, expected[i]))
		print_message("# %s: have\n%s# want\n%s", scenarios[i].name,
			      dump, expected[i]);
	assert_string_equal(dump, expected[i]);
	free(dump);
	if (!outcome)
		return;
	assert_int_equal(outcome->result, outcomes[i].result);
	assert_string_equal(outcome->entry, outcomes[i].entry);
}

static int without_a_crash(void **state)
{
	struct world world;

	for (size_t i = 0; i < nr_scenarios; i++) {
		scenario_create(&world, &scenarios[i]);
		fs_begin(world.fs, 0, REQUEST);
		scenarios[i].run(&world, &outcomes[i]);
		assert_true(outcomes[i].result >= 0);
		expected[i] = scenario_dump(&world);
		scenario_destroy(&world);
	}
	return 0;
}

static int tidy(void **state)
{
	for (size_t i = 0; i < nr_scenarios; i++)
		free(expected[i]);
	return 0;
}

static void test_done_and_not_answered(void **state)
{
	struct world world;

	for (size_t i = 0; i < nr_scenarios; i++) {
		struct outcome first = {0}, again = {0};

		scenario_create(&world, &scenarios[i]);
		fs_begin(world.fs, 3, REQUEST);
		scenarios[i].run(&world, &first);
		scenario_crash(&world);
		scenario_recover(&world);
		assert_int_equal(fs_resume(world.fs, REQUEST), 0);
		scenarios[i].run(&world, &again);
		fs_resumed(world.fs);
		expect(&world, i, &again);
		scenario_destroy(&world);
	}
}

static void test_done_and_answered(void **state)
{
	struct world world;

	for (size_t i = 0; i < nr_scenarios; i++) {
		struct outcome outcome = {0};

		scenario_create(&world, &scenarios[i]);
		fs_begin(world.fs, 3, REQUEST);
		scenarios[i].run(&world, &outcome);
		scenario_crash(&world);
		scenario_recover(&world);
		fs_resumed(world.fs);
		expect(&world, i, NULL);
		scenario_destroy(&world);
	}
}

static void test_not_begun(void **state)
{
	struct world world;

	for (size_t i = 0; i < nr_scenarios; i++) {
		struct outcome outcome = {0};

		scenario_create(&world, &scenarios[i]);
		scenario_crash(&world);
		scenario_recover(&world);
		assert_int_equal(fs_resume(world.fs, REQUEST), 0);
		scenarios[i].run(&world, &outcome);
		fs_resumed(world.fs);
		expect(&world, i, &outcome);
		scenario_destroy(&world);
	}
}

/* A request that was answered with an error then has looked up nothing. */
static void test_withdrawn(void **state)
{
	struct world world;
	struct outcome outcome = {0};

	for (size_t i = 0; i < nr_scenarios; i++) {
		if (scenarios[i].run == NULL ||
		    strcmp(scenarios[i].name, "lookup"))
			continue;
		char *before;

		scenario_create(&world, &scenarios[i]);
		before = scenario_dump(&world);
		fs_begin(world.fs, 0, REQUEST);
		scenarios[i].run(&world, &outcome);
		scenario_crash(&world);
		scenario_recover(&world);
		fs_withdraw(world.fs, REQUEST);
		fs_resumed(world.fs);
		char *after = scenario_dump(&world);

		assert_string_equal(after, before);
		free(before);
		free(after);
		scenario_destroy(&world);
	}
}

/* What must not be tried for ever. */
static void test_crashed_in_twice(void **state)
{
	struct world world;

	scenario_create(&world, &scenarios[0]);
	fs_begin(world.fs, 0, REQUEST);
	fs_fault();
	scenario_crash(&world);
	scenario_recover(&world);
	assert_int_equal(fs_resume(world.fs, REQUEST), 0);
	fs_fault();
	scenario_crash(&world);
	scenario_recover(&world);
	assert_int_equal(fs_resume(world.fs, REQUEST), -EIO);
	fs_resumed(world.fs);
	scenario_destroy(&world);
}

/* Another one's request is not taken for it. */
static void test_others_are_not_confused(void **state)
{
	struct world world;
	struct fs_entry entry;

	scenario_create(&world, &scenarios[0]);
	fs_begin(world.fs, 0, REQUEST);
	assert_int_equal(fs_make(world.fs, &world_caller, ROOT, "x",
				 S_IFDIR | 0755, 0, NULL, &entry),
			 0);
	scenario_crash(&world);
	scenario_recover(&world);
	assert_int_equal(fs_resume(world.fs, REQUEST + 1), 0);
	assert_int_equal(fs_make(world.fs, &world_caller, ROOT, "x",
				 S_IFDIR | 0755, 0, NULL, &entry),
			 -EEXIST);
	assert_int_equal(fs_resume(world.fs, REQUEST), 0);
	assert_int_equal(fs_make(world.fs, &world_caller, ROOT, "x",
				 S_IFDIR | 0755, 0, NULL, &entry),
			 0);
	/* Given once, even so. */
	assert_int_equal(fs_make(world.fs, &world_caller, ROOT, "x",
				 S_IFDIR | 0755, 0, NULL, &entry),
			 -EEXIST);
	fs_resumed(world.fs);
	scenario_destroy(&world);
}

/* More entries than an answer has room for come in several requests. */
static void test_lookups_are_bounded(void **state)
{
	struct world world;
	struct outcome outcome = {0};
	ino_t dir;

	scenario_create(&world, &scenarios[0]);
	dir = find(&world, ROOT, "dir");
	for (int i = 0; i < 300; i++) {
		char name[16];

		snprintf(name, sizeof(name), "many%d", i);
		make_file(&world, dir, name);
	}
	for (size_t i = 0; i < nr_scenarios; i++) {
		if (strcmp(scenarios[i].name, "readdirplus"))
			continue;
		fs_begin(world.fs, 0, REQUEST);
		scenarios[i].run(&world, &outcome);
		/* And "." and "..", which are not looked up. */
		assert_string_equal(outcome.entry, "106");
		scenario_crash(&world);
		scenario_recover(&world);
		assert_int_equal(fs_resume(world.fs, REQUEST), 0);
		scenarios[i].run(&world, &outcome);
		assert_string_equal(outcome.entry, "106");
	}
	fs_resumed(world.fs);
	scenario_destroy(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_done_and_not_answered),
		cmocka_unit_test(test_done_and_answered),
		cmocka_unit_test(test_not_begun),
		cmocka_unit_test(test_withdrawn),
		cmocka_unit_test(test_crashed_in_twice),
		cmocka_unit_test(test_others_are_not_confused),
		cmocka_unit_test(test_lookups_are_bounded),
	};

	return cmocka_run_group_tests(tests, without_a_crash, tidy);
}
