/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * z3fold.c - the z3fold pool: at most three objects to a page
 *
 * As zbud, with a third object between the first and the last. Three fit when
 * pages compress to less than a third; of larger ones, there are two to a page
 * as with zbud.
 *
 * The middle object stands beside the smaller of its neighbours: the rest of
 * the page is then in one piece, and together with the larger neighbour once
 * that is freed. When a neighbour is freed and another object needs the space
 * on both sides of the middle one, that moves to the free end of the page, if
 * its owner agrees. It moves only where its new place does not overlap its
 * old one: so that at each moment one whole copy is where its owner believes
 * it to be.
 *
 * The idea is that of the kernel's z3fold (mm/z3fold.c, Vitaly Wool; in Linux
 * 4.8 to 6.14), and so is the header that here is not in the page.
 */
#include "pool/buddies.h"

static int z3fold_create(struct pool **pool, struct arena *arena,
			 const struct pool_owner_ops *owner_ops, void *context)
{
	return buddies_create(pool, arena, owner_ops, context, 3);
}

const struct pool_ops pool_z3fold = {
	.name = "z3fold",
	.create = z3fold_create,
	BUDDIES_POOL_OPS,
};
