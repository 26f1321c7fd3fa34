/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block_space.h - what the mounted filesystem takes and gives back
 *
 * Memory of what was deleted comes back by itself:
 * ext4 without a journal can discard each extent as it frees it, while the one
 * who deletes waits: a round trip through the loop driver and the daemon for
 * each, which made deleting a tree four times as slow. So it is mounted without
 * that, and a thread of the daemon watches how much is free: a moment after no
 * more is freed, or much was, or memory is getting short, it has all of it
 * discarded at once (block_trim.c).
 *
 * And where memory has a limit, the filesystem is told to take no more than
 * there is (block_room.c), so that write(2) fails and not writing back.
 *
 * The thread asks the mounted filesystem for its counters only, which never
 * waits for the device; and it never makes a request to the daemon itself.
 * Errors are negative errno.
 */
#ifndef ZRAMFS_BLOCK_SPACE_H
#define ZRAMFS_BLOCK_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct block_space;

/* What is on the other side. All but attach and detach: by that one thread. */
struct block_space_config {
	const char *mountpoint; /* has to stay */
	dev_t device;		/* st_dev of what is mounted there */
	bool trims;    /* it is trimmed by us */
	bool reserves; /* it is an ext4 that can be told to reserve blocks */
	/* What was freed before is not known: trim at the first look. */
	bool begin_with_trim;
	void *context;
	int (*attach)(void *context); /* by the thread, at its start */
	void (*detach)(void *context);
	/* Bytes of the image that are stored. */
	uint64_t (*stored)(void *context);
	/* Where in it the first stored byte at or after offset is; -ENXIO. */
	off_t (*next_stored)(void *context, off_t offset);
	/* The bound of memory, in bytes, and how much of it is left. 0: none */
	uint64_t (*limit)(void *context, uint64_t *left);
};

/* -ENOMEM, or as pthread_create(3). */
int block_space_start(struct block_space **space,
		      const struct block_space_config *config);

/* While requests are still served: a trim under way is cut short. NULL: no. */
void block_space_stop(struct block_space *space);

#endif
