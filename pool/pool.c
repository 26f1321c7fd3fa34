/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pool.c - the list of allocators that pool= can name
 *
 * Owns nothing but that list.
 */
#include <string.h>

#include "pool/pool.h"

static const struct pool_ops *const pools[] = {
	&pool_zsmalloc,
	&pool_z3fold,
	&pool_zbud,
};

const struct pool_ops *pool_by_name(const char *name)
{
	for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++)
		if (strcmp(pools[i]->name, name) == 0)
			return pools[i];
	return NULL;
}
