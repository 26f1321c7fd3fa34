/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recovery_world.h - requests to crash in, and what is seen of them after
 */
#ifndef ZRAMFS_TESTS_RECOVERY_WORLD_H
#define ZRAMFS_TESTS_RECOVERY_WORLD_H

#include "fs_world.h"

#define REQUEST	 UINT64_C(42)
#define NR_SLOTS 8

/* What an operation gave its caller. */
struct outcome {
	int64_t result;
	char entry[64]; /* what it looked up, in words */
};

/* A request: state to begin with, and what is then asked for. */
struct scenario {
	const char *name;
	void (*set_up)(struct world *world);
	/* Must ask for the same thing each time. */
	void (*run)(struct world *world, struct outcome *outcome);
};

extern const struct scenario scenarios[];
extern const size_t nr_scenarios;

/* A world in which requests are noted, set up. */
void scenario_create(struct world *world, const struct scenario *scenario);
/* The process dies and another comes, up to the recovery. */
void scenario_crash(struct world *world);
void scenario_recover(struct world *world);
/*
 * The request that was left is brought again by nobody, where recovered. waits:
 * its caller had no answer to it when it was asked.
 */
void scenario_give_up(struct world *world, bool waits);
/* Destroys both; expects a clean check. */
void scenario_destroy(struct world *world);

/*
 * All that can be seen but numbers and times: names, types, links, sizes,
 * lookups, xattrs, data. free() it.
 */
char *scenario_dump(struct world *world);

#endif
