/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * service.h - one filesystem being served: the rooms, put together
 *
 * Owns the memfds, the arena, the store and the filesystem in them, and holds
 * the numbers that the operations need beside them. The memfds are made in the
 * process that keeps them; all else in the one that serves, which may be
 * another one each time.
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
#include "ledger.h"
#include "options.h"
#include "store/store.h"
#include "transport.h"

struct service {
	int arena_fd; /* the memfds; -1: none yet */
	int ledger_fd;
	int pipe[2];	   /* of the ledger; -1: it does without */
	int link;	   /* to the keeper; -1: none */
	/* It has died meanwhile; relaxed: nothing else comes with it. */
	atomic_bool keeper_gone;
	bool handing_over; /* this worker ends for another program */
	struct ledger ledger;
	struct arena *arena;
	struct store *store;
	struct fs *fs;
	struct transport *transport;
	uid_t owner; /* who started the daemon */
	bool writeback;
	bool noopen;		    /* files are opened without asking */
	bool block;		    /* see block.h */
	bool noatime;		    /* reading moves no atime */
	bool opens_directories;	    /* the kernel is to ask for that */
	unsigned int max_read;	    /* as mounted with; 0: no bound */
	_Atomic uint64_t mem_limit; /* as asked for; 0: none */
	uint64_t process_begin;	    /* what the process took when it began */
};

/*
 * Make the memfds, with nothing in them. Negative errno, and one line in
 * message. They last until service_release().
 */
int service_hold(struct service *service, const struct options *options,
		 char *message, size_t message_size);
void service_release(struct service *service);

/*
 * Go on with the filesystem that is in the memfds, or if there is none, make
 * an empty one as options say; and start what works in the background. Errors
 * as above. service_stop() leaves in the memfds what is there.
 */
int service_start(struct service *service, const struct options *options,
		  char *message, size_t message_size);
void service_stop(struct service *service);

/*
 * Bound the memory that zramfs takes in all: the arena gets what the process
 * does not need for itself. -EINVAL when that is nothing; the least with which
 * there is something.
 */
int service_set_mem_limit(struct service *service, uint64_t bytes);
uint64_t service_least_mem_limit(struct service *service);

/* In block mode: what the arena's limit leaves to writes over other pages. */
void service_set_reserve(struct service *service);

/* Change the bound of the hot tier. Errors as store_set_hot(). */
int service_set_hot(struct service *service, uint64_t bytes);

/* For worker threads, with a struct service. */
int service_attach_thread(void *service);
void service_detach_thread(void *service);
void service_rest_thread(void *service);
/* Likewise, see transport.h. */
void service_begin(void *service, unsigned int thread, uint64_t request);
int service_resume(void *service, uint64_t request);
void service_withdraw(void *service, uint64_t request);
void service_await(void *service, bool (*waits)(void *caller, uint64_t request),
		   void *caller);
void service_resumed(void *service, bool all);
/* Tell the keeper that requests are being served. */
void service_served(void *service);

#endif
