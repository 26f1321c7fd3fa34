/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zbud.c - the zbud pool: at most two objects to a page
 *
 * One object stands at the beginning of a page and its buddy at the end; what
 * is left between them is lost. So there are never more than two objects to a
 * page, and where zsmalloc would have three or four, zbud needs up to twice
 * the memory. In exchange all is simple: no object is ever moved but by
 * compaction, which pairs up those that have no buddy, and a page is free when
 * two objects are.
 *
 * The idea is that of the kernel's zbud (mm/zbud.c, Seth Jennings; in Linux
 * 3.11 to 6.14). It spends the first chunk of each page on a header; here that
 * is in the page's frame, and both halves of a page can have an object of 2044
 * bytes.
 */
#include "pool/buddies.h"

static int zbud_create(struct pool **pool, struct arena *arena,
		       const struct pool_owner_ops *owner_ops, void *context)
{
	return buddies_create(pool, arena, owner_ops, context, 2);
}

const struct pool_ops pool_zbud = {
	.name = "zbud",
	.create = zbud_create,
	BUDDIES_POOL_OPS,
};
