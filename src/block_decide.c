/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block_decide.c - see block_decide.h
 */
#include "block_decide.h"

/* While files come and go all the time, trim so often at most for little. */
#define PATIENCE_MS 10000
/* What is much: this, and this part of all that is stored. */
#define MUCH_FLOOR (UINT64_C(4) << 20)
#define MUCH_SHIFT 4
/* The second sign counts above this: metadata grows too. */
#define SIGN_FLOOR (UINT64_C(1) << 20)
#define SIGN_SHIFT 6

/* --- when -------------------------------------------------------------- */

static uint64_t at_least(uint64_t floor, uint64_t value)
{
	return value > floor ? value : floor;
}

/* How much there seems to be to discard. */
static uint64_t estimate(const struct block_memory *memory,
			 const struct block_look *look)
{
	uint64_t freed = look->free - memory->lowest;
	int64_t excess =
		(int64_t)(look->stored - look->used) - memory->baseline;

	if (excess > 0 &&
	    (uint64_t)excess >=
		    at_least(SIGN_FLOOR, look->stored >> SIGN_SHIFT) &&
	    (uint64_t)excess > freed)
		return excess;
	return freed;
}

/* Less than a quarter is left: what was freed is wanted back at once. */
static bool is_scarce(const struct block_look *look)
{
	return look->left < look->limit / 4;
}

static bool is_due(struct block_memory *memory, const struct block_look *look,
		   int64_t now)
{
	uint64_t much = at_least(MUCH_FLOOR, look->stored >> MUCH_SHIFT);
	uint64_t amount;

	if (look->free < memory->lowest)
		memory->lowest = look->free;
	if (memory->wanted)
		return true;
	amount = estimate(memory, look);
	if (!amount) {
		memory->since = 0;
		return false;
	}
	if (!memory->since)
		memory->since = now;
	return is_scarce(look) || amount >= much ||
	       look->free == memory->last.free ||
	       now - memory->since >= PATIENCE_MS;
}

bool block_decide_trim(struct block_memory *memory,
		       const struct block_look *look, int64_t now)
{
	bool due = is_due(memory, look, now);

	if (!due)
		memory->last = *look;
	return due;
}

void block_decide_trimmed(struct block_memory *memory,
			  const struct block_look *look)
{
	memory->known = true;
	memory->wanted = false;
	memory->anew = false;
	memory->since = 0;
	memory->last = *look;
	memory->lowest = look->free;
	memory->baseline = (int64_t)(look->stored - look->used);
}

void block_decide_missed(struct block_memory *memory,
			 const struct block_look *before,
			 const struct block_look *after)
{
	if (before->free == after->free)
		return;
	if (before->free < memory->lowest)
		memory->lowest = before->free;
	if (memory->lowest)
		memory->lowest--;
	memory->anew = true;
}

/* --- room -------------------------------------------------------------- */

/*
 * An eighth of the limit is left alone: half for what the filesystem writes
 * about data, half for what is written over (fs_set_reserve()).
 */
static uint64_t kept(const struct block_look *look)
{
	return look->limit / 8;
}

static uint64_t most(const struct block_look *look)
{
	return look->left > kept(look) ? look->left - kept(look) : 0;
}

/*
 * Each page is taken to need a page of memory, as nobody knows how it will
 * compress, and what is written but not stored needs that too.
 */
uint64_t block_decide_room(const struct block_look *look)
{
	uint64_t pending =
		look->used > look->stored ? look->used - look->stored : 0;

	return most(look) > pending ? most(look) - pending : 0;
}

bool block_decide_warning(struct block_memory *memory,
			  const struct block_look *look)
{
	bool full = look->limit && !most(look);
	bool warn = full && !memory->warned;

	memory->warned = look->limit && look->left < 2 * kept(look) &&
			 (memory->warned || full);
	return warn;
}
