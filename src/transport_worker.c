/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * transport_worker.c - the threads that serve requests
 *
 * A worker's counters are written by it alone and read by anybody, so they are
 * relaxed atomics that cost no more than plain ones.
 */
#include "transport_private.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "log.h"

/* A worker with fewer requests in a tick does not need its buffer. */
#define FEW_REQUESTS 8

/* While there is no memory for them: for a second. */
#define FORGET_ATTEMPTS 100
#define FORGET_PAUSE_US (10 * 1000)

void transport_notify(struct transport *transport)
{
	uint64_t one = 1;

	/* Fails only when the count is at its end: then it is readable. */
	if (write(transport->event, &one, sizeof(one)) < 0)
		return;
}

/* The owner alone writes these: no read-modify-write is needed. */
static void count_one(_Atomic uint64_t *counter)
{
	atomic_store_explicit(
		counter,
		atomic_load_explicit(counter, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

/* Forgets and interrupts want no answer. */
void transport_refuse(struct transport *transport,
		      const struct fuse_in_header *in, int error)
{
	struct fuse_out_header out = {
		.len = sizeof(out),
		.error = error,
		.unique = in->unique,
	};

	if (in->opcode == FUSE_FORGET || in->opcode == FUSE_BATCH_FORGET ||
	    in->opcode == FUSE_INTERRUPT)
		return;
	if (write(transport->fd, &out, sizeof(out)) < 0)
		log_line(LOG_ERR, "cannot answer the kernel: %s",
			 strerror(errno));
}

/*
 * A forget that is not done would keep its inode for ever; what libfuse wants
 * to allocate for it is small and needed for a moment only.
 */
static void process(struct worker *worker, void *message, size_t length)
{
	struct request *request = &worker->request;
	struct fuse_buf buf = {0};
	unsigned int i;

	buf.mem = request_receive(request, message, &length);
	buf.size = length;
	for (i = 0; i < FORGET_ATTEMPTS; i++) {
		request->undone = false;
		fuse_session_process_buf(worker->transport->session, &buf);
		if (!request->undone)
			return;
		usleep(FORGET_PAUSE_US);
	}
	log_line(LOG_ERR, "out of memory: inodes stay that are not needed");
}

void transport_serve(struct worker *worker, void *message, size_t length,
		     int error)
{
	struct request *request = &worker->request;
	struct transport *transport = worker->transport;
	struct fuse_in_header *in = message;
	size_t received = length;
	uint32_t opcode;

	request->busy = true;
	request->opcode = in->opcode;
	opcode = in->opcode < TRANSPORT_OPCODES ? in->opcode : 0;
	count_one(&worker->requests[opcode]);
	if (error) {
		transport_refuse(transport, in, error);
	} else if (opcode == FUSE_INIT) {
		transport_agree(transport, message, length);
	} else {
		process(worker, message, length);
	}
	count_one(&worker->served);
	request->busy = false;
	fault_point("request done");
	/* Nothing is left to do of it, should this be the last. */
	in->len = 0;
	transport_note_size(worker, received, request->reply_length);
}

/*
 * The thread that waits is told once, and takes it back. Relaxed: the eventfd
 * orders it, and a request more or less does not matter.
 */
static void keep_pace(struct worker *worker)
{
	struct transport *transport = worker->transport;

	if (!transport->config.low_latency || !awake_pace(&worker->pace) ||
	    atomic_load_explicit(&transport->busy, memory_order_relaxed))
		return;
	atomic_store_explicit(&transport->busy, true, memory_order_relaxed);
	transport_notify(transport);
}

/* Once, after the first request. */
void transport_tell_served(struct transport *transport)
{
	if (atomic_load_explicit(&transport->has_served,
				 memory_order_relaxed) ||
	    atomic_exchange_explicit(&transport->has_served, true,
				     memory_order_relaxed))
		return;
	transport->config.served(transport->config.userdata);
}

static void begin(struct worker *worker, const void *message)
{
	const struct transport *transport = worker->transport;
	const struct fuse_in_header *in = message;

	transport->config.begin(transport->config.userdata,
				(unsigned int)(worker - transport->workers),
				in->unique);
}

static void serve_all(struct worker *worker)
{
	struct transport *transport = worker->transport;
	char *message = worker->buffer + REQUEST_START;
	ssize_t length;

	while (!atomic_load_explicit(&transport->stopping,
				     memory_order_relaxed)) {
		transport_give_buffer_back(worker);
		length = transport_receive(worker);
		if (length >= (ssize_t)sizeof(struct fuse_in_header)) {
			begin(worker, message);
			transport_serve(worker, message, length, 0);
			transport_tell_served(transport);
			keep_pace(worker);
			continue;
		}
		if (length >= 0)
			errno = EIO;
		switch (errno) {
		case EINTR:  /* Woken, to look at the flags. */
		case ENOENT: /* The request was given up while we read it. */
		case EAGAIN:
			break;
		case ENODEV: /* Unmounted. */
			return;
		default:
			log_line(LOG_ERR, "cannot read requests: %s",
				 strerror(errno));
			usleep(100 * 1000);
		}
	}
}

static void *worker_main(void *argument)
{
	struct worker *worker = argument;
	struct transport *transport = worker->transport;
	sigset_t wake;
	int error;

	sigemptyset(&wake);
	sigaddset(&wake, WAKE_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &wake, NULL);
	request_set_current(&worker->request);
	if (transport->config.resident)
		transport_keep_buffer(worker);
	error = transport->config.attach(transport->config.userdata);
	atomic_store_explicit(&worker->attached, error ? error : 1,
			      memory_order_release);
	if (!error) {
		transport_notify(transport);
		serve_all(worker);
		transport->config.detach(transport->config.userdata);
	}
	atomic_store_explicit(&worker->ended, true, memory_order_release);
	transport_notify(transport);
	return NULL;
}

int transport_start_worker(struct worker *worker,
			   const pthread_attr_t *attributes)
{
	int error;

	error = pthread_create(&worker->thread, attributes, worker_main,
			       worker);
	if (error)
		return -error;
	worker->started = true;
	return 0;
}

void transport_shed_worker(struct worker *worker)
{
	if (!atomic_load_explicit(&worker->large, memory_order_relaxed))
		return;
	atomic_store_explicit(&worker->give_back, true, memory_order_relaxed);
	pthread_kill(worker->thread, WAKE_SIGNAL);
}

/*
 * A worker that serves small requests sees the flag after the next; one that
 * sleeps has to be woken.
 */
void transport_watch_worker(struct worker *worker)
{
	uint64_t served =
		atomic_load_explicit(&worker->served, memory_order_relaxed);

	if (served - worker->seen_served < FEW_REQUESTS &&
	    atomic_load_explicit(&worker->large, memory_order_relaxed)) {
		atomic_store_explicit(&worker->give_back, true,
				      memory_order_relaxed);
		if (served == worker->seen_served)
			pthread_kill(worker->thread, WAKE_SIGNAL);
	}
	worker->seen_served = served;
}
