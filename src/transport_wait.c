/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * transport_wait.c - the thread that waits while workers serve
 *
 * Waits for the end, whoever brings it: a signal, the kernel, or
 * transport_end(). Meanwhile it watches what workers must not do for
 * themselves: keep memory in large buffers that they use no more, and the
 * processors awake for requests that come no more. While neither is, it sleeps.
 */
#include "transport_private.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* How often workers with large buffers are watched. */
#define TICK_MS 400

static bool any_ended(const struct transport *transport)
{
	unsigned int i;

	for (i = 0; i < transport->threads; i++)
		if (atomic_load_explicit(&transport->workers[i].ended,
					 memory_order_acquire))
			return true;
	return false;
}

static bool any_large(const struct transport *transport)
{
	unsigned int i;

	for (i = 0; i < transport->threads; i++)
		if (atomic_load_explicit(&transport->workers[i].large,
					 memory_order_relaxed))
			return true;
	return false;
}

static uint64_t served(const struct transport *transport)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < transport->threads; i++)
		sum += atomic_load_explicit(&transport->workers[i].served,
					    memory_order_relaxed);
	return sum;
}

static void hold_awake(struct transport *transport)
{
	if (atomic_load_explicit(&transport->busy, memory_order_relaxed))
		awake_hold(&transport->awake, served(transport));
}

/* How long to wait for something to happen. */
static int patience(const struct transport *transport)
{
	if (transport->awake.held)
		return AWAKE_TICK_MS;
	return any_large(transport) ? TICK_MS : -1;
}

/* Nothing has happened for so many ms. */
static void tick(struct transport *transport, int waited)
{
	unsigned int i;

	if (transport->awake.held) {
		awake_tick(&transport->awake, served(transport));
		atomic_store_explicit(&transport->busy, transport->awake.held,
				      memory_order_relaxed);
	}
	transport->waited += waited;
	if (transport->waited < TICK_MS)
		return;
	transport->waited = 0;
	for (i = 0; i < transport->threads; i++)
		transport_watch_worker(&transport->workers[i]);
}

void transport_end(struct transport *transport, bool for_good)
{
	if (for_good)
		atomic_store_explicit(&transport->ledger->header->ending, 1,
				      memory_order_relaxed);
	atomic_store_explicit(&transport->ending, true, memory_order_relaxed);
	transport_notify(transport);
}

static bool is_ending(const struct transport *transport)
{
	return atomic_load_explicit(&transport->ending, memory_order_relaxed) ||
	       atomic_load_explicit(&transport->ledger->header->ending,
				    memory_order_relaxed);
}

int transport_wait(struct transport *transport, int link,
		   bool (*on_link)(void *userdata))
{
	struct pollfd fds[] = {
		{.fd = transport->signals, .events = POLLIN},
		{.fd = transport->event, .events = POLLIN},
		{.fd = link, .events = POLLIN},
	};
	struct signalfd_siginfo signal;
	uint64_t count;
	int timeout;

	while (!any_ended(transport) && !is_ending(transport)) {
		timeout = patience(transport);
		if (poll(fds, 3, timeout) == 0) {
			tick(transport, timeout);
			continue;
		}
		/* First: whose mount it is decides what a signal ends. */
		if (fds[2].revents && !on_link(transport->config.userdata))
			fds[2].fd = -1;
		if (read(transport->signals, &signal, sizeof(signal)) ==
		    sizeof(signal))
			return signal.ssi_signo;
		hold_awake(transport);
		/* Only to empty it; the loop looks at everything. */
		if (read(transport->event, &count, sizeof(count)) < 0)
			continue;
	}
	return 0;
}
