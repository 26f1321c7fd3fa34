/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_recovery_points.c - dying at every point there is, and running out of
 * memory at every allocation
 *
 * Each scenario is run once to its end to count the points that it passes, and
 * then once for each point, in a process that is killed there. What is left is
 * recovered and the request brought again: all must be as if nothing had
 * happened. The recovery is then killed at each of its own points likewise.
 *
 * For builds with FAULTS=1 only; STRIDE=1 in the environment for all of it.
 */
#include "recovery_world.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault.h"

static char *expected, *untouched;
static struct outcome wanted;

/* The points that are passed from the request's begin to its end. */
static unsigned long run_to_the_end(const struct scenario *scenario)
{
	struct world world;
	unsigned long points;

	scenario_create(&world, scenario);
	wanted = (struct outcome){0};
	fault_arm(0, 0);
	fs_begin(world.fs, 0, REQUEST);
	scenario->run(&world, &wanted);
	points = fault_points();
	fs_resumed(world.fs, true);
	expected = scenario_dump(&world);
	scenario_destroy(&world);
	return points;
}

/* True when the child was killed as it was to be. */
static bool was_killed(pid_t child)
{
	int status;

	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		assert_int_equal(WTERMSIG(status), SIGKILL);
	else
		assert_int_equal(WEXITSTATUS(status), 0);
	return WIFSIGNALED(status);
}

static void die_in_request(struct world *world, const struct scenario *scenario,
			   unsigned long point)
{
	pid_t child = fork();

	if (child == 0) {
		struct outcome outcome = {0};

		fault_arm(point, 0);
		fs_begin(world->fs, 0, REQUEST);
		scenario->run(world, &outcome);
		_exit(0);
	}
	assert_true(was_killed(child));
}

/* False when there are no more points in it. */
static bool die_in_recovery(struct world *world,
			    const struct scenario *scenario,
			    unsigned long point)
{
	pid_t child = fork();

	if (child == 0) {
		struct outcome outcome = {0};

		scenario_crash(world);
		fault_arm(point, 0);
		scenario_recover(world);
		if (fs_resume(world->fs, REQUEST))
			_exit(1);
		scenario->run(world, &outcome);
		_exit(0);
	}
	return was_killed(child);
}

static void come_back(struct world *world, const struct scenario *scenario,
		      const char *where)
{
	struct outcome outcome = {0};
	char *dump;

	scenario_crash(world);
	scenario_recover(world);
	world_check(world);
	assert_int_equal(fs_resume(world->fs, REQUEST), 0);
	scenario->run(world, &outcome);
	fs_resumed(world->fs, true);
	dump = scenario_dump(world);
	if (strcmp(dump, expected) || outcome.result != wanted.result ||
	    strcmp(outcome.entry, wanted.entry))
		print_message("# %s, %s: result %jd '%s', want %jd '%s'\n%s"
			      "# want\n%s",
			      scenario->name, where, (intmax_t)outcome.result,
			      outcome.entry, (intmax_t)wanted.result,
			      wanted.entry, dump, expected);
	assert_string_equal(dump, expected);
	assert_int_equal(outcome.result, wanted.result);
	assert_string_equal(outcome.entry, wanted.entry);
	free(dump);
}

static void test_killed_at_each_point(void **state)
{
	unsigned long all = 0;

	for (size_t i = 0; i < nr_scenarios; i++) {
		const struct scenario *scenario = &scenarios[i];
		unsigned long points = run_to_the_end(scenario);

		assert_true(points > 0);
		all += points;
		for (unsigned long point = 1; point <= points; point++) {
			struct world world;
			char where[64];

			snprintf(where, sizeof(where), "point %lu", point);
			scenario_create(&world, scenario);
			die_in_request(&world, scenario, point);
			come_back(&world, scenario, where);
			scenario_destroy(&world);
		}
		free(expected);
	}
	print_message("# killed at %lu points\n", all);
}

/*
 * The second death at every point of the recovery, for every so many of the
 * first: STRIDE in the environment, 1 for all.
 */
static void test_killed_in_recovery(void **state)
{
	const char *text = getenv("STRIDE");
	unsigned long stride = text ? strtoul(text, NULL, 10) : 17;
	unsigned long all = 0;

	for (size_t i = 0; i < nr_scenarios; i++) {
		const struct scenario *scenario = &scenarios[i];
		unsigned long points = run_to_the_end(scenario);
		unsigned long point = 1 + i % stride;

		for (; point <= points; point += stride) {
			bool more = true;

			for (unsigned long second = 1; more; second++) {
				struct world world;
				char where[64];

				snprintf(where, sizeof(where),
					 "points %lu and %lu", point, second);
				scenario_create(&world, scenario);
				die_in_request(&world, scenario, point);
				more = die_in_recovery(&world, scenario,
						       second);
				come_back(&world, scenario, where);
				scenario_destroy(&world);
				all += more;
			}
		}
		free(expected);
	}
	print_message("# killed at %lu points of recoveries\n", all);
}

/* False when there are no more points in it. */
static bool die_giving_up(struct world *world, unsigned long point)
{
	pid_t child = fork();

	if (child == 0) {
		scenario_crash(world);
		scenario_recover(world);
		fault_arm(point, 0);
		scenario_give_up(world, true);
		_exit(0);
	}
	return was_killed(child);
}

/* It was done or not, and whatever it has counted was taken back. */
static void expect_given_up(struct world *world, const char *name)
{
	char *dump = scenario_dump(world);

	if (strcmp(dump, expected) && strcmp(dump, untouched))
		print_message("# %s, given up:\n%s# want\n%s# or\n%s", name,
			      dump, expected, untouched);
	assert_true(!strcmp(dump, expected) || !strcmp(dump, untouched));
	free(dump);
}

/* What the world is before a request, and when its answer was thrown away. */
static unsigned long run_and_withdraw(const struct scenario *scenario)
{
	struct outcome outcome = {0};
	unsigned long points;
	struct world world;

	scenario_create(&world, scenario);
	untouched = scenario_dump(&world);
	fault_arm(0, 0);
	fs_begin(world.fs, 0, REQUEST);
	scenario->run(&world, &outcome);
	points = fault_points();
	fs_withdraw(world.fs, REQUEST);
	fs_resumed(world.fs, true);
	expected = scenario_dump(&world);
	scenario_destroy(&world);
	return points;
}

static bool looks_up(const struct scenario *scenario)
{
	static const char *const names[] = {"create",
					    "mkdir",
					    "mknod",
					    "symlink",
					    "unnamed",
					    "link",
					    "link of an unlinked file",
					    "lookup",
					    "readdirplus"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(scenario->name, names[i]))
			return true;
	return false;
}

/*
 * Killed at each point, recovered, then brought again by nobody; and killed at
 * each point of taking back what it had counted.
 */
static void test_given_up_at_each_point(void **state)
{
	unsigned long all = 0;

	for (size_t i = 0; i < nr_scenarios; i++) {
		const struct scenario *scenario = &scenarios[i];
		unsigned long points;

		if (!looks_up(scenario))
			continue;
		points = run_and_withdraw(scenario);
		for (unsigned long point = 1; point <= points; point++) {
			bool more = true;

			for (unsigned long second = 1; more; second++) {
				struct world world;

				scenario_create(&world, scenario);
				die_in_request(&world, scenario, point);
				more = die_giving_up(&world, second);
				scenario_crash(&world);
				scenario_recover(&world);
				world_check(&world);
				/* As it is no more, the second time. */
				scenario_give_up(&world, false);
				expect_given_up(&world, scenario->name);
				scenario_destroy(&world);
				all += more;
			}
		}
		free(expected);
		free(untouched);
	}
	print_message("# killed at %lu points of giving up\n", all);
}

/* It has not happened then, and nothing is lost or locked. */
static void test_each_allocation_fails(void **state)
{
	unsigned long all = 0;

	for (size_t i = 0; i < nr_scenarios; i++) {
		const struct scenario *scenario = &scenarios[i];
		bool more = true;

		for (unsigned long nth = 1; more; nth++) {
			struct outcome outcome = {0};
			struct world world;
			char *before, *after;

			scenario_create(&world, scenario);
			before = scenario_dump(&world);
			fault_arm(0, nth);
			scenario->run(&world, &outcome);
			more = fault_allocs() >= nth;
			fault_arm(0, 0);
			after = scenario_dump(&world);
			if (outcome.result < 0) {
				assert_true(outcome.result == -ENOSPC ||
					    outcome.result == -ENOMEM);
				assert_string_equal(after, before);
			}
			all += more;
			free(before);
			free(after);
			/* Done again, it works. */
			if (outcome.result < 0)
				scenario->run(&world, &outcome);
			assert_true(outcome.result >= 0);
			scenario_destroy(&world);
		}
	}
	print_message("# %lu allocations failed\n", all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed_at_each_point),
		cmocka_unit_test(test_killed_in_recovery),
		cmocka_unit_test(test_given_up_at_each_point),
		cmocka_unit_test(test_each_allocation_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
