/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * transport.h - the mount, and the threads that serve it
 *
 * Owns the libfuse session, the mount, the worker threads and their buffers.
 * Each worker reads a request from the kernel, has libfuse parse it, and
 * serves it to its end; then the next. It knows nothing of files: requests go
 * to the low-level operations it was given.
 *
 * Life: create, mount, attach, start, wait, stop, destroy, all from one thread,
 * which has called transport_block_signals() before it made any other thread.
 * A child of the process that mounted goes on with attach, and may do so again
 * after another child has died: the ledger (ledger.h) tells what the dead one
 * had agreed with the kernel and which requests it has left behind.
 * Errors are negative errno, with one line in message where there is one.
 */
#ifndef ZRAMFS_TRANSPORT_H
#define ZRAMFS_TRANSPORT_H

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Request counts are kept by opcode; 0 is for opcodes from here on. */
#define TRANSPORT_OPCODES 64

struct transport;

struct transport_config {
	const char *options; /* for libfuse and the kernel, comma-separated */
	unsigned int threads;
	/*
	 * So many bytes of data in each buffer stay in memory, and no request
	 * has more; 0: buffers come and go, see transport_receive.c.
	 */
	size_t resident;
	bool low_latency; /* keep processors awake in bursts: see awake.h */
	const struct fuse_lowlevel_ops *ops;
	void *userdata; /* of ops */
	/* Called by each worker at its start and its end. */
	int (*attach)(void *userdata);
	void (*detach)(void *userdata);
	/* By a worker that had large requests, and has few now. */
	void (*rest)(void *userdata);
	/*
	 * Each request, before anything is done for it: by its worker thread,
	 * of threads 0 and up; or for one that may have been begun by a worker
	 * that died, by the main thread: 0, or the error to answer with; or
	 * that it was answered with an error now. Before these, which of them
	 * the kernel waits for can be asked; after them, there are no more,
	 * and all: of those it waited for, it has given up what did not come.
	 */
	void (*begin)(void *userdata, unsigned int thread, uint64_t request);
	int (*resume)(void *userdata, uint64_t request);
	void (*withdraw)(void *userdata, uint64_t request);
	void (*await)(void *userdata,
		      bool (*waits)(void *caller, uint64_t request),
		      void *caller);
	void (*resumed)(void *userdata, bool all);
	/* The first request since the start has been answered. Any worker. */
	void (*served)(void *userdata);
};

struct ledger;

/*
 * Block the signals that end transport_wait() and the one that wakes workers,
 * here and in threads yet to come.
 */
int transport_block_signals(void);

/* -EINVAL: an option that neither libfuse nor the kernel knows. -ENOMEM. */
int transport_create(struct transport **transport,
		     const struct transport_config *config, char *message,
		     size_t message_size);

/* The value of the mount option max_read=, the user's or ours; 0: no bound. */
unsigned int transport_max_read(const struct transport *transport);

/* Mount; requests queue in the kernel until workers run. */
int transport_mount(struct transport *transport, const char *mountpoint,
		    char *message, size_t message_size);

/*
 * Take the ledger's buffers, and if it is another process's, its place: agree
 * with the kernel as it had, do the forgets it had read, and serve again what
 * it had not answered. Where the kernel cannot send those requests once more
 * (Linux before 6.9) they are answered EIO. The ledger outlives the transport.
 */
int transport_attach(struct transport *transport, const struct ledger *ledger);

/* Another will unmount, or nobody: not transport_destroy(). */
void transport_disown(struct transport *transport);
void transport_own(struct transport *transport);
/* Start the workers. When one cannot start, none is left running. */
int transport_start(struct transport *transport);

/*
 * Wait until the filesystem is unmounted (0) or a signal asks to end (its
 * number). Meanwhile, sees to it that idle workers' buffers take no memory.
 * on_link is called when there is something to read from link (-1: none);
 * false: it need not be called again.
 */
int transport_wait(struct transport *transport, int link,
		   bool (*on_link)(void *userdata));

/* The signals that it waits for, as signalfd(2), once started. */
int transport_signals(const struct transport *transport);

/*
 * transport_wait() is to come back with 0, as if unmounted. Any thread. Of
 * another worker's too, should this one die before, if it is for good.
 */
void transport_end(struct transport *transport, bool for_good);

/* Of /dev/fuse, once mounted. */
int transport_fd(const struct transport *transport);

/* Let the workers finish what they serve, and end. */
void transport_stop(struct transport *transport);

/* Unmount, unless that was done, and free. The workers must have stopped. */
void transport_destroy(struct transport *transport);

/* Have workers give back what their buffers take, soon. Any thread. */
void transport_shed(struct transport *transport);

unsigned int transport_threads(const struct transport *transport);

/* What the workers' buffers take at most. */
size_t transport_buffer_bytes(const struct transport *transport);

/* Requests served until now, by opcode. Any thread. */
void transport_requests(const struct transport *transport,
			uint64_t requests[TRANSPORT_OPCODES]);

#endif
