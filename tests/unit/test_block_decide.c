/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_block_decide.c - when block mode trims, and how much it lets be taken
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "block_decide.h"

#define KIB(n) (UINT64_C(n) << 10)
#define MIB(n) (UINT64_C(n) << 20)
#define GIB(n) (UINT64_C(n) << 30)

/* A device of 4 GiB, with used bytes in use and so many stored. */
static struct block_look look(uint64_t used, uint64_t stored)
{
	return (struct block_look){
		.used = used,
		.free = GIB(4) - used,
		.stored = stored,
		.block_size = 4096,
	};
}

/* As of a trim when half a GiB was in use. */
static struct block_memory trimmed(void)
{
	const struct block_look now = look(MIB(512), MIB(500));
	struct block_memory memory = {0};

	block_decide_trimmed(&memory, &now);
	return memory;
}

static bool decide(struct block_memory *memory, uint64_t used, uint64_t stored,
		   int64_t now)
{
	const struct block_look next = look(used, stored);

	return block_decide_trim(memory, &next, now);
}

/* --- when -------------------------------------------------------------- */

static void test_nothing_freed(void **state)
{
	struct block_memory memory = trimmed();

	assert_false(decide(&memory, MIB(512), MIB(500), 1000));
	/* Written: less is free, and more is stored. */
	assert_false(decide(&memory, MIB(600), MIB(580), 2000));
	assert_false(decide(&memory, MIB(600), MIB(588), 100000));
}

static void test_a_block_freed(void **state)
{
	struct block_memory memory = trimmed();

	/* Once no more is freed. */
	assert_false(decide(&memory, MIB(512) - KIB(4), MIB(500), 1000));
	assert_false(decide(&memory, MIB(512) - KIB(8), MIB(500), 1400));
	assert_true(decide(&memory, MIB(512) - KIB(8), MIB(500), 1800));
}

static void test_much_freed(void **state)
{
	struct block_memory memory = trimmed();

	/* A sixteenth of what is stored, at once. */
	assert_false(decide(&memory, MIB(482), MIB(500), 1000));
	assert_true(decide(&memory, MIB(480), MIB(500), 1400));
}

static void test_little_all_the_time(void **state)
{
	struct block_memory memory = trimmed();
	uint64_t freed;

	for (freed = 1; freed <= 10; freed++)
		assert_false(decide(&memory, MIB(512) - KIB(4) * freed,
				    MIB(500), 1000 * freed));
	assert_true(
		decide(&memory, MIB(512) - KIB(4) * freed, MIB(500), 11000));
}

static void test_freed_after_written(void **state)
{
	struct block_memory memory = trimmed();

	/* As free as at the trim, but there was less in between. */
	assert_false(decide(&memory, MIB(600), MIB(588), 1000));
	assert_true(decide(&memory, MIB(512), MIB(588), 1400));
}

static void test_freed_and_written_elsewhere(void **state)
{
	struct block_memory memory = trimmed();

	/* No look has seen less or more in use; what is stored tells. */
	assert_true(decide(&memory, MIB(512), MIB(540), 1000));
	/* Less than a sixty-fourth of it may be the filesystem's own. */
	memory = trimmed();
	assert_false(decide(&memory, MIB(512), MIB(507), 1000));
}

static void test_scarce(void **state)
{
	struct block_memory memory = trimmed();
	struct block_look next = look(MIB(512) - KIB(4), MIB(500));

	next.limit = MIB(800);
	next.left = MIB(200);
	assert_false(block_decide_trim(&memory, &next, 1000));
	/* Less than a quarter is left: no waiting. */
	memory = trimmed();
	next.left = MIB(199);
	assert_true(block_decide_trim(&memory, &next, 1000));
}

static void test_wanted(void **state)
{
	struct block_memory memory = trimmed();

	memory.wanted = true;
	assert_true(decide(&memory, MIB(512), MIB(500), 1000));
	/* Until it was done. */
	assert_true(decide(&memory, MIB(512), MIB(500), 1400));
	memory = trimmed();
	assert_false(decide(&memory, MIB(512), MIB(500), 1000));
}

static void test_freed_during_a_trim(void **state)
{
	const struct block_look before = look(MIB(400), MIB(500));
	const struct block_look same = look(MIB(400), MIB(390));
	const struct block_look less = look(MIB(300), MIB(390));
	const struct block_look more = look(MIB(420), MIB(400));
	struct block_memory memory = trimmed();

	block_decide_trimmed(&memory, &same);
	block_decide_missed(&memory, &before, &same);
	assert_false(memory.anew);
	assert_false(decide(&memory, MIB(400), MIB(390), 1000));

	/* It may have been missed: again, and so that nothing is. */
	block_decide_trimmed(&memory, &less);
	block_decide_missed(&memory, &before, &less);
	assert_true(memory.anew);
	assert_true(decide(&memory, MIB(300), MIB(390), 1000));

	/* Written meanwhile: freed and written it may have been, too. */
	block_decide_trimmed(&memory, &more);
	block_decide_missed(&memory, &before, &more);
	assert_true(memory.anew);
	assert_true(decide(&memory, MIB(420), MIB(400), 1000));
}

/* --- room -------------------------------------------------------------- */

/* With a limit of 800 MiB. */
static struct block_look limited(uint64_t left, uint64_t used, uint64_t stored)
{
	struct block_look limited = look(used, stored);

	limited.limit = MIB(800);
	limited.left = left;
	return limited;
}

static void test_room(void **state)
{
	struct block_look now = limited(MIB(500), MIB(300), MIB(300));

	/* But for an eighth of the limit, what is left. */
	assert_int_equal(block_decide_room(&now), MIB(400));
	/* What is written and not stored yet will need it. */
	now = limited(MIB(500), MIB(350), MIB(300));
	assert_int_equal(block_decide_room(&now), MIB(350));
	now = limited(MIB(120), MIB(350), MIB(300));
	assert_int_equal(block_decide_room(&now), 0);
	/* What is stored and not in use any more needs none. */
	now = limited(MIB(500), MIB(200), MIB(300));
	assert_int_equal(block_decide_room(&now), MIB(400));
	now = limited(MIB(100), MIB(300), MIB(300));
	assert_int_equal(block_decide_room(&now), 0);
	now = limited(0, MIB(300), MIB(300));
	assert_int_equal(block_decide_room(&now), 0);
}

static void test_warning(void **state)
{
	struct block_memory memory = {0};
	struct block_look now = look(MIB(300), MIB(300));

	assert_false(block_decide_warning(&memory, &now)); /* no limit */
	now = limited(MIB(101), MIB(300), MIB(300));
	assert_false(block_decide_warning(&memory, &now));
	now.left = MIB(100);
	assert_true(block_decide_warning(&memory, &now));
	/* Once, while it goes up and down a little. */
	assert_false(block_decide_warning(&memory, &now));
	now.left = MIB(199);
	assert_false(block_decide_warning(&memory, &now));
	now.left = MIB(50);
	assert_false(block_decide_warning(&memory, &now));
	/* And again after a good part was free. */
	now.left = MIB(200);
	assert_false(block_decide_warning(&memory, &now));
	now.left = MIB(90);
	assert_true(block_decide_warning(&memory, &now));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_freed),
		cmocka_unit_test(test_a_block_freed),
		cmocka_unit_test(test_much_freed),
		cmocka_unit_test(test_little_all_the_time),
		cmocka_unit_test(test_freed_after_written),
		cmocka_unit_test(test_freed_and_written_elsewhere),
		cmocka_unit_test(test_scarce),
		cmocka_unit_test(test_wanted),
		cmocka_unit_test(test_freed_during_a_trim),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_warning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
