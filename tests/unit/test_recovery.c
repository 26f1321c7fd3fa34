/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_recovery.c - requests that the process died with
 *
 * Done and not answered, they are answered as before; answered, what they have
 * counted stays; not begun, they are done now. In each case all is as if no
 * process had died. Given up before they were answered, what they have counted
 * does not stay.
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
		fs_resumed(world.fs, true);
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
		fs_resumed(world.fs, true);
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
		fs_resumed(world.fs, true);
		expect(&world, i, &outcome);
		scenario_destroy(&world);
	}
}

static bool always(void *caller, uint64_t request)
{
	return true;
}

static bool never(void *caller, uint64_t request)
{
	return false;
}

/* The state after "lookup" that was not answered: crash, and recover. */
static char *lose_lookup(struct world *world, const struct scenario *scenario)
{
	struct outcome outcome = {0};
	char *before;

	scenario_create(world, scenario);
	before = scenario_dump(world);
	fs_begin(world->fs, 0, REQUEST);
	scenario->run(world, &outcome);
	scenario_crash(world);
	scenario_recover(world);
	return before;
}

static const struct scenario *scenario_of(const char *name)
{
	for (size_t i = 0; i < nr_scenarios; i++)
		if (!strcmp(scenarios[i].name, name))
			return &scenarios[i];
	fail();
	return NULL;
}

/* Expects that nothing was looked up, if equal. */
static void compare(struct world *world, char *before, bool equal)
{
	char *after = scenario_dump(world);

	if (equal)
		assert_string_equal(after, before);
	else
		assert_string_not_equal(after, before);
	free(before);
	free(after);
	scenario_destroy(world);
}

/* A request that was answered with an error then has looked up nothing. */
static void test_withdrawn(void **state)
{
	struct world world;
	char *before = lose_lookup(&world, scenario_of("lookup"));

	fs_withdraw(world.fs, REQUEST);
	fs_resumed(world.fs, true);
	compare(&world, before, true);
}

/* A client that is killed while its request waits to be brought again. */
static void test_given_up(void **state)
{
	static const char *const names[] = {"lookup", "readdirplus", "unnamed"};
	struct world world;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *before = lose_lookup(&world, scenario_of(names[i]));

		scenario_give_up(&world, true);
		compare(&world, before, true);
	}
}

/* The process dies between asking who waits and the end of what is brought. */
static void test_given_up_meanwhile(void **state)
{
	struct world world;
	char *before = lose_lookup(&world, scenario_of("lookup"));

	fs_await(world.fs, always, NULL);
	scenario_crash(&world);
	scenario_recover(&world);
	scenario_give_up(&world, false);
	compare(&world, before, true);
}

/* Answered by the second process, which then dies: now it is its caller's. */
static void test_answered_meanwhile(void **state)
{
	const struct scenario *lookup = scenario_of("lookup");
	struct outcome outcome = {0};
	struct world world;
	char *before = lose_lookup(&world, lookup);

	fs_await(world.fs, always, NULL);
	assert_int_equal(fs_resume(world.fs, REQUEST), 0);
	lookup->run(&world, &outcome);
	scenario_crash(&world);
	scenario_recover(&world);
	scenario_give_up(&world, false);
	compare(&world, before, false);
}

/* Who cannot tell whether all were brought takes nothing back. */
static void test_not_all_were_brought(void **state)
{
	struct world world;
	char *before = lose_lookup(&world, scenario_of("lookup"));

	fs_await(world.fs, always, NULL);
	fs_resumed(world.fs, false);
	compare(&world, before, false);
}

/* It was answered: its place is another's then, who is not mistaken for it. */
static void test_the_next_one_is_not_awaited(void **state)
{
	const struct scenario *lookup = scenario_of("lookup");
	struct outcome outcome = {0};
	struct world world;
	char *before = lose_lookup(&world, lookup);

	fs_await(world.fs, always, NULL);
	fs_resumed(world.fs, false);
	fs_begin(world.fs, 0, REQUEST + 1);
	lookup->run(&world, &outcome);
	scenario_crash(&world);
	scenario_recover(&world);
	fs_await(world.fs, never, NULL);
	fs_resumed(world.fs, true);
	assert_int_equal(
		inode_get(world.fs, find(&world, ROOT, "file"))->lookups,
		1 + 2);
	compare(&world, before, false);
}

/* What must not be tried for ever. */
static void test_crashed_in_twice(void **state)
{
	struct world world;
	char *before;

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
	fs_resumed(world.fs, true);
	scenario_destroy(&world);

	/* It was done, even: the caller gets no entry with that error. */
	before = lose_lookup(&world, scenario_of("unnamed"));
	assert_int_equal(fs_resume(world.fs, REQUEST), 0);
	fs_fault();
	fs_fault();
	scenario_crash(&world);
	scenario_recover(&world);
	assert_int_equal(fs_resume(world.fs, REQUEST), -EIO);
	fs_resumed(world.fs, true);
	compare(&world, before, true);
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
	fs_resumed(world.fs, true);
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
	fs_resumed(world.fs, true);
	scenario_destroy(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_done_and_not_answered),
		cmocka_unit_test(test_done_and_answered),
		cmocka_unit_test(test_not_begun),
		cmocka_unit_test(test_withdrawn),
		cmocka_unit_test(test_given_up),
		cmocka_unit_test(test_given_up_meanwhile),
		cmocka_unit_test(test_answered_meanwhile),
		cmocka_unit_test(test_not_all_were_brought),
		cmocka_unit_test(test_the_next_one_is_not_awaited),
		cmocka_unit_test(test_crashed_in_twice),
		cmocka_unit_test(test_others_are_not_confused),
		cmocka_unit_test(test_lookups_are_bounded),
	};

	return cmocka_run_group_tests(tests, without_a_crash, tidy);
}
