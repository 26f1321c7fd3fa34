/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * transport.c - see transport.h
 *
 * One descriptor of /dev/fuse serves all workers: cloned descriptors
 * (FUSE_DEV_IOC_CLONE) save the kernel a little contention on many cores, but
 * a request read through a clone is lost when that clone is closed.
 *
 * Workers and the thread that waits for them share the atomics in struct worker
 * and an eventfd. The one lock is the pipe's, among workers; none is taken
 * while it is held.
 */
#include "transport_private.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Enough for libfuse, a directory operation and the codecs' small frames. */
#define STACK_SIZE (256 * 1024)

/* --- signals ----------------------------------------------------------- */

/* Those that ask the daemon to end. */
static void end_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
}

int transport_block_signals(void)
{
	sigset_t set;

	end_signals(&set);
	sigaddset(&set, WAKE_SIGNAL);
	return -pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* --- life -------------------------------------------------------------- */

static int create_workers(struct transport *transport, unsigned int threads)
{
	size_t size = threads * sizeof(struct worker);
	unsigned int i;

	transport->workers = aligned_alloc(_Alignof(struct worker), size);
	if (!transport->workers)
		return -ENOMEM;
	memset(transport->workers, 0, size);
	transport->threads = threads;
	for (i = 0; i < threads; i++) {
		struct worker *worker = &transport->workers[i];

		worker->transport = transport;
		worker->request.agreement = &transport->agreement;
	}
	return 0;
}

int transport_create(struct transport **result,
		     const struct transport_config *config, char *message,
		     size_t message_size)
{
	struct transport *transport = calloc(1, sizeof(*transport));
	int error = -ENOMEM;

	if (!transport)
		goto fail;
	transport->fd = transport->last_fd = transport->event =
		transport->signals = -1;
	transport->awake.fd = -1;
	transport->config = *config;
	transport->config.options = NULL; /* the caller's */
	transport->owner = true;
	error = -pthread_mutex_init(&transport->pipe_lock, NULL);
	if (error) {
		free(transport);
		transport = NULL;
		goto fail;
	}

	error = transport_create_session(transport, config, message,
					 message_size);
	if (error)
		goto fail;
	if (!config->resident)
		transport->agreement.read_pages = REQUEST_DATA_MAX / PAGE;
	error = create_workers(transport, config->threads);
	if (error)
		goto fail;
	*result = transport;
	return 0;

fail:
	if (!message[0])
		snprintf(message, message_size, "%s", strerror(-error));
	transport_destroy(transport);
	return error;
}

unsigned int transport_max_read(const struct transport *transport)
{
	return transport->max_read;
}

void transport_destroy(struct transport *transport)
{
	if (!transport)
		return;
	/* First, as unmounting must not find anybody who might answer. */
	if (transport->last_fd >= 0)
		close(transport->last_fd);
	if (transport->mounted && transport->owner)
		fuse_session_unmount(transport->session);
	if (transport->session)
		fuse_session_destroy(transport->session);
	free(transport->workers);
	awake_close(&transport->awake);
	pthread_mutex_destroy(&transport->pipe_lock);
	if (transport->event >= 0)
		close(transport->event);
	if (transport->signals >= 0)
		close(transport->signals);
	free(transport);
}

void transport_disown(struct transport *transport)
{
	transport->owner = false;
}

void transport_own(struct transport *transport)
{
	transport->owner = true;
}

/* --- starting and stopping --------------------------------------------- */

static void wait_event(struct transport *transport, int timeout)
{
	struct pollfd poll_event = {.fd = transport->event, .events = POLLIN};
	uint64_t count;

	if (poll(&poll_event, 1, timeout) > 0 &&
	    read(transport->event, &count, sizeof(count)) < 0)
		return;
}

/* The first worker's error; 0 once all are attached. */
static int wait_attached(struct transport *transport)
{
	unsigned int i;
	int attached;

	for (i = 0; i < transport->threads; i++) {
		struct worker *worker = &transport->workers[i];

		for (;;) {
			attached = atomic_load_explicit(&worker->attached,
							memory_order_acquire);
			if (attached)
				break;
			wait_event(transport, -1);
		}
		if (attached < 0)
			return attached;
	}
	return 0;
}

static int start_workers(struct transport *transport)
{
	pthread_attr_t attributes;
	unsigned int i;
	int error;

	error = -pthread_attr_init(&attributes);
	if (error)
		return error;
	error = -pthread_attr_setstacksize(&attributes, STACK_SIZE);
	for (i = 0; !error && i < transport->threads; i++)
		error = transport_start_worker(&transport->workers[i],
					       &attributes);
	pthread_attr_destroy(&attributes);
	return error ? error : wait_attached(transport);
}

static void on_wake(int signal)
{
}

int transport_start(struct transport *transport)
{
	struct sigaction wake = {.sa_handler = on_wake};
	sigset_t signals;
	int error;

	/* No SA_RESTART: read() has to come back. */
	if (sigaction(WAKE_SIGNAL, &wake, NULL))
		return -errno;
	end_signals(&signals);
	transport->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (transport->signals < 0)
		return -errno;
	/* Who may not do that does without. */
	if (transport->config.low_latency &&
	    awake_open(&transport->awake, AWAKE_DEVICE))
		transport->config.low_latency = false;
	error = start_workers(transport);
	if (error)
		transport_stop(transport);
	return error;
}

/* Wake those that have not ended; false: there are none. */
static bool wake_workers(struct transport *transport)
{
	bool any = false;
	unsigned int i;

	for (i = 0; i < transport->threads; i++) {
		struct worker *worker = &transport->workers[i];

		if (!worker->started ||
		    atomic_load_explicit(&worker->ended, memory_order_acquire))
			continue;
		pthread_kill(worker->thread, WAKE_SIGNAL);
		any = true;
	}
	return any;
}

void transport_stop(struct transport *transport)
{
	unsigned int i;

	atomic_store_explicit(&transport->stopping, true, memory_order_relaxed);
	/*
	 * The signal is lost when it comes between the look at stopping and
	 * the read(): so again, until it has ended. All of them, as one may
	 * wait for the pipe that another holds.
	 */
	while (wake_workers(transport))
		wait_event(transport, 10);
	for (i = 0; i < transport->threads; i++) {
		struct worker *worker = &transport->workers[i];

		if (worker->started)
			pthread_join(worker->thread, NULL);
		worker->started = false;
	}
}

/* --- what others ask for ------------------------------------------------ */

int transport_fd(const struct transport *transport)
{
	return transport->fd;
}

int transport_signals(const struct transport *transport)
{
	return transport->signals;
}

void transport_shed(struct transport *transport)
{
	unsigned int i;

	for (i = 0; i < transport->threads; i++)
		transport_shed_worker(&transport->workers[i]);
}

unsigned int transport_threads(const struct transport *transport)
{
	return transport->threads;
}

size_t transport_buffer_bytes(const struct transport *transport)
{
	return transport->threads * BUFFER_SIZE;
}

void transport_requests(const struct transport *transport,
			uint64_t requests[TRANSPORT_OPCODES])
{
	unsigned int i, opcode;

	memset(requests, 0, TRANSPORT_OPCODES * sizeof(*requests));
	for (i = 0; i < transport->threads; i++)
		for (opcode = 0; opcode < TRANSPORT_OPCODES; opcode++)
			requests[opcode] += atomic_load_explicit(
				&transport->workers[i].requests[opcode],
				memory_order_relaxed);
}
