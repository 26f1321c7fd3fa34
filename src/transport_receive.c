/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * transport_receive.c - how a request comes into a worker's buffer
 *
 * A worker may be killed at any moment. When that is while it reads a request
 * into memory that is not there yet, the kernel gives up copying (a process
 * that is to die gets no more memory), answers the request with EIO, and
 * forgets it. So a request is read into memory that is there, and mapped: then
 * it is copied at one go, and once copied, it is one that is asked for again.
 *
 * To have all buffers there always would take a megabyte for each worker. An
 * idle one keeps only the first page of its own, and takes what comes through
 * a pipe, where the kernel brings the memory along: as soon as the request is
 * in there, its size is known, and it is taken out into memory that was made
 * ready for it. That costs some microseconds. A worker that has more to do
 * makes all of its buffer ready, and reads directly from then on.
 *
 * One pipe for all, of which one at a time waits for a request. It outlives
 * the worker process, for the kernel sends forgets once: see ledger.h.
 */
#include "transport_private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fault.h"
#include "log.h"

/* Messages above this are worth having all of the buffer for. */
#define LARGE_MESSAGE (64 * 1024)

/* So are so many, whatever their size. */
#define MANY_REQUESTS 32

/* --- memory ------------------------------------------------------------ */

static size_t whole(const struct transport *transport)
{
	size_t data = transport->config.resident;

	return data ? REPLY_START + data : BUFFER_SIZE;
}

static bool make_resident(struct worker *worker, size_t bytes)
{
	size_t from = worker->resident;

	bytes = (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
	if (bytes <= from)
		return true;
	if (madvise(worker->buffer + from, bytes - from, MADV_POPULATE_WRITE))
		return false;
	worker->resident = bytes;
	return true;
}

/* The buffer is to be given back when there is little to do. */
static void become_large(struct worker *worker)
{
	if (worker->transport->config.resident ||
	    atomic_load_explicit(&worker->large, memory_order_relaxed))
		return;
	atomic_store_explicit(&worker->large, true, memory_order_relaxed);
	transport_notify(worker->transport);
}

void transport_keep_buffer(struct worker *worker)
{
	if (worker->direct && !worker->transport->config.resident)
		return;
	if (!make_resident(worker, whole(worker->transport)))
		log_line(LOG_WARNING, "cannot keep a buffer in memory: %s",
			 strerror(errno));
	become_large(worker);
}

void transport_note_size(struct worker *worker, size_t request, size_t reply)
{
	if (request <= LARGE_MESSAGE && reply <= LARGE_MESSAGE)
		return;
	worker->taken = MANY_REQUESTS;
	become_large(worker);
}

void transport_give_buffer_back(struct worker *worker)
{
	if (!atomic_load_explicit(&worker->give_back, memory_order_relaxed))
		return;
	atomic_store_explicit(&worker->give_back, false, memory_order_relaxed);
	ledger_release_buffer(worker->transport->ledger,
			      worker - worker->transport->workers);
	if (worker->resident > PAGE)
		worker->resident = PAGE;
	worker->taken = 0;
	atomic_store_explicit(&worker->large, false, memory_order_relaxed);
	worker->transport->config.rest(worker->transport->config.userdata);
}

#ifdef __SANITIZE_THREAD__
char transport_order;
#endif

/* --- the pipe ---------------------------------------------------------- */

static struct fuse_in_header *message_of(const struct worker *worker)
{
	return (struct fuse_in_header *)(worker->buffer + REQUEST_START);
}

/* Read and forget; the part of the buffer before messages is free for it. */
static void discard(struct worker *worker, int pipe, size_t length)
{
	while (length) {
		size_t part = length < REQUEST_START ? length : REQUEST_START;
		ssize_t done = read(pipe, worker->buffer, part);

		if (done <= 0)
			return;
		length -= (size_t)done;
	}
}

/* There is no memory for it: answered, or told in the log. */
static ssize_t refuse(struct worker *worker, int pipe, size_t length)
{
	struct fuse_in_header in;

	if (length < sizeof(in) || read(pipe, &in, sizeof(in)) != sizeof(in)) {
		discard(worker, pipe, length);
		errno = EIO;
		return -1;
	}
	discard(worker, pipe, length - sizeof(in));
	transport_refuse(worker->transport, &in, -ENOMEM);
	errno = ENOMEM;
	return -1;
}

/* Of a message that is in there whole. */
static ssize_t take(struct worker *worker, size_t length)
{
	int pipe = worker->transport->ledger->pipe[0];

	/*
	 * A kill does not end the read before its end, now that no memory has
	 * to be got for it: the message is in one place or the other.
	 */
	if (length > BUFFER_SIZE - REQUEST_START ||
	    !make_resident(worker, REQUEST_START + length))
		return refuse(worker, pipe, length);
	return read(pipe, message_of(worker), length);
}

size_t transport_take_left(struct worker *worker)
{
	const struct ledger *ledger = worker->transport->ledger;
	ssize_t length;
	int waiting;

	while (ledger->pipe[0] >= 0 &&
	       !ioctl(ledger->pipe[0], FIONREAD, &waiting) && waiting > 0) {
		length = take(worker, (size_t)waiting);
		if (length >= (ssize_t)sizeof(struct fuse_in_header))
			return (size_t)length;
		log_line(LOG_ERR, "a request is lost: %s", strerror(errno));
	}
	return 0;
}

static ssize_t receive_by_pipe(struct worker *worker)
{
	struct transport *transport = worker->transport;
	ssize_t length = -1;

	pthread_mutex_lock(&transport->pipe_lock);
	/* The signal may have come while it waited for the lock. */
	errno = EINTR;
	if (!atomic_load_explicit(&transport->stopping, memory_order_relaxed))
		length = splice(transport->fd, NULL, transport->ledger->pipe[1],
				NULL, BUFFER_SIZE - REQUEST_START, 0);
	transport_spliced();
	if (length > 0) {
		fault_point("request in the pipe");
		length = take(worker, (size_t)length);
	}
	pthread_mutex_unlock(&transport->pipe_lock);
	return length;
}

/* --- both -------------------------------------------------------------- */

void transport_prepare_buffer(struct worker *worker)
{
	/* Linux 5.14 has what this takes. */
	worker->direct = worker->transport->ledger->pipe[0] < 0 ||
			 !make_resident(worker, PAGE);
}

static bool reads_directly(struct worker *worker)
{
	const size_t bytes = whole(worker->transport);

	if (worker->direct || worker->resident >= bytes)
		return true;
	if (worker->taken++ < MANY_REQUESTS)
		return false;
	worker->taken = 0;
	transport_keep_buffer(worker);
	return worker->resident >= bytes;
}

ssize_t transport_receive(struct worker *worker)
{
	if (!reads_directly(worker))
		return receive_by_pipe(worker);
	return read(worker->transport->fd, message_of(worker),
		    BUFFER_SIZE - REQUEST_START);
}
