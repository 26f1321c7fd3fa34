/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * transport_private.h - what the transport's files share
 *
 * transport.c mounts and runs the worker threads; transport_resume.c takes over
 * from a worker process that has died.
 */
#ifndef ZRAMFS_TRANSPORT_PRIVATE_H
#define ZRAMFS_TRANSPORT_PRIVATE_H

#include <linux/fuse.h>
#include <pthread.h>
#include <stdatomic.h>

#include "ledger.h"
#include "request.h"
#include "transport.h"

#define PAGE 4096

/*
 * A worker's buffer: requests are read so that the data of a write begins at
 * the second page; replies are put together from the third page on, where no
 * request that has a reply with data still lies.
 */
#define WRITE_HEADER \
	(sizeof(struct fuse_in_header) + sizeof(struct fuse_write_in))
#define REQUEST_START (PAGE - WRITE_HEADER)
#define REPLY_START   (2 * PAGE)
#define BUFFER_SIZE   (REPLY_START + REQUEST_DATA_MAX)

_Static_assert(BUFFER_SIZE == LEDGER_BUFFER_SIZE, "fits where it lies");

struct worker {
	struct transport *transport;
	pthread_t thread;
	bool started;
	char *buffer; /* in the ledger */
	struct request request;
	uint64_t seen_served; /* as the waiting thread saw them last */
	uint64_t seen_large;
	_Atomic int attached; /* 0 not yet, 1 done, or negative errno */
	atomic_bool ended;
	atomic_bool give_back;
	/* A cache line apart from what others write. */
	_Alignas(64) atomic_bool large; /* the buffer takes memory */
	_Atomic uint64_t large_served;
	_Atomic uint64_t served;
	_Atomic uint64_t requests[TRANSPORT_OPCODES];
};

struct transport {
	struct fuse_session *session;
	int fd;
	int event;   /* eventfd: a worker has ended, or has become large */
	int signals; /* signalfd */
	unsigned int max_read;
	bool mounted;
	bool owner; /* of the mount: to unmount it */
	const struct ledger *ledger;
	atomic_bool stopping;
	atomic_bool has_served;
	struct request_agreement agreement;
	int (*attach)(void *userdata);
	void (*detach)(void *userdata);
	void (*served)(void *userdata);
	void *userdata;
	unsigned int threads;
	struct worker *workers;
};

/* Serve a message that lies in the worker's buffer, or in another one. */
void transport_serve(struct worker *worker, void *message, size_t length);

/* Answer a FUSE_INIT, as before if there was one, and keep it in the ledger. */
void transport_agree(struct transport *transport, const void *message,
		     size_t length);

#endif
