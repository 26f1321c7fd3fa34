/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * transport_private.h - what the transport's files share
 *
 * transport.c starts and stops; transport_wait.c watches meanwhile, and waits for
 * the end; transport_session.c has libfuse's session and the mount;
 * transport_worker.c is what the worker threads do; transport_receive.c gets
 * them their requests, and memory for these; transport_resume.c takes over from
 * a worker process that has died.
 */
#ifndef ZRAMFS_TRANSPORT_PRIVATE_H
#define ZRAMFS_TRANSPORT_PRIVATE_H

#include <linux/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "awake.h"
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
	char *buffer;	    /* in the ledger */
	size_t resident;    /* so much of it is in memory and mapped here */
	unsigned int taken; /* by the pipe, since it was given back */
	bool direct;	    /* is read into, be it in memory or not */
	struct request request;
	struct awake_pace pace;
	uint64_t seen_served; /* as the waiting thread saw it last */
	_Atomic int attached; /* 0 not yet, 1 done, or negative errno */
	atomic_bool ended;
	atomic_bool give_back;
	/* A cache line apart from what others write. */
	_Alignas(64) atomic_bool large; /* the buffer takes memory */
	_Atomic uint64_t served;
	_Atomic uint64_t requests[TRANSPORT_OPCODES];
};

struct transport {
	struct fuse_session *session;
	int fd;
	int last_fd; /* the same once more, see transport_mount() */
	int event;   /* eventfd: a worker has ended, or has become large or busy
		      */
	int signals; /* signalfd */
	unsigned int max_read;
	bool mounted;
	bool owner; /* of the mount: to unmount it */
	/* Held by who gets a request by the pipe, until it is in a buffer. */
	pthread_mutex_t pipe_lock;
	const struct ledger *ledger;
	struct awake awake; /* of the thread that waits */
	int waited;	    /* ms since workers were watched */
	atomic_bool busy;   /* requests come in quick succession */
	atomic_bool stopping;
	atomic_bool ending; /* asked for by transport_end() */
	atomic_bool has_served;
	struct request_agreement agreement;
	struct transport_config config;
	unsigned int threads;
	struct worker *workers;
};

/* Errors as transport_create()'s; fills in session and max_read. */
int transport_create_session(struct transport *transport,
			     const struct transport_config *config,
			     char *message, size_t message_size);

/* Interrupts a worker's read(); does nothing else. */
#define WAKE_SIGNAL SIGUSR2

/* Errors as pthread_create(3), negative. */
int transport_start_worker(struct worker *worker,
			   const pthread_attr_t *attributes);

/*
 * Call from time to time while the worker is large: when it has had next to no
 * request since the last call, it is made to give its buffer's memory back.
 */
void transport_watch_worker(struct worker *worker);

/* To be made to in any case. */
void transport_shed_worker(struct worker *worker);

/* Before the first request is received. */
void transport_prepare_buffer(struct worker *worker);

/*
 * Wait for the next request, and have it in the worker's buffer: its length,
 * or -1 and errno as read(2).
 */
ssize_t transport_receive(struct worker *worker);

/* Have the whole buffer in memory: then requests are read into it. */
void transport_keep_buffer(struct worker *worker);

/* The request was served, its reply sent. */
void transport_note_size(struct worker *worker, size_t request, size_t reply);

/* When the watching thread wants it. */
void transport_give_buffer_back(struct worker *worker);

/*
 * What a worker process left in the pipe when it died, into the worker's
 * buffer: its length, 0: nothing (more).
 */
size_t transport_take_left(struct worker *worker);

/* A request was served: the first since the start is told of. */
void transport_tell_served(struct transport *transport);

/* Answer with an error, if it wants an answer. */
void transport_refuse(struct transport *transport,
		      const struct fuse_in_header *in, int error);

/*
 * Who gets a request has all before it that was answered before. TSan sees that
 * of read() and writev() on one descriptor, but not of splice().
 */
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
extern char transport_order;
#define transport_answering() __tsan_release(&transport_order)
#define transport_spliced()   __tsan_acquire(&transport_order)
#else
#define transport_answering() ((void)0)
#define transport_spliced()   ((void)0)
#endif

/* Make the event readable. Any thread. */
void transport_notify(struct transport *transport);

/*
 * Serve a message that lies in the worker's buffer, or in another one. error:
 * do nothing but to answer with this, if it wants an answer.
 */
void transport_serve(struct worker *worker, void *message, size_t length,
		     int error);

/* Answer a FUSE_INIT, as before if there was one, and keep it in the ledger. */
void transport_agree(struct transport *transport, const void *message,
		     size_t length);

#endif
