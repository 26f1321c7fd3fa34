/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * service.h - one filesystem being served: the rooms, put together
 *
 * Owns the arena, the store and the filesystem in it, and holds the numbers
 * that the operations need beside them. Made after the daemon's fork, before
 * the workers; outlives them.
 */
#ifndef ZRAMFS_SERVICE_H
#define ZRAMFS_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "arena/arena.h"
#include "fs/fs.h"
#include "options.h"
#include "store/store.h"
#include "transport.h"

struct service {
	struct arena *arena;
	struct store *store;
	struct fs *fs;
	struct transport *transport;
	uid_t owner; /* who started the daemon */
	bool writeback;
	bool block; /* see block.h */
	unsigned int max_read;	    /* as mounted with; 0: no bound */
	_Atomic uint64_t mem_limit; /* as asked for; 0: none */
	uint64_t process_begin;	    /* what the process took when it began */
};

/*
 * Make an empty filesystem as options say, and start what works in the
 * background. Negative errno, and one line in message.
 */
int service_start(struct service *service, const struct options *options,
		  char *message, size_t message_size);
void service_stop(struct service *service);

/*
 * Bound the memory that zramfs takes in all: the arena gets what the process
 * does not need for itself. -EINVAL when that is nothing.
 */
int service_set_mem_limit(struct service *service, uint64_t bytes);

/* For worker threads, with a struct service. */
int service_attach_thread(void *service);
void service_detach_thread(void *service);

#endif
