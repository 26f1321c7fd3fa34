/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * service_limits.c - how much memory the whole may take
 *
 * Divides a limit among the process, the arena, and in block mode a reserve.
 * What the user asked for goes to the ledger, where the next worker finds it.
 */
#include "service.h"

#include <errno.h>

#include "process_memory.h"

/*
 * In block mode, so much of the limit is for what the filesystem on the device
 * writes over: its own tables above all, which it must not lose.
 */
#define BLOCK_RESERVE_SHIFT 4

void service_set_reserve(struct service *service)
{
	struct arena_usage usage;

	if (!service->block)
		return;
	arena_usage(service->arena, &usage);
	fs_set_reserve(service->fs, (unsigned int)(usage.limit / PAGE_SIZE >>
						   BLOCK_RESERVE_SHIFT));
}

/* The heap's and the stacks' growth, once all threads have worked. */
#define PROCESS_GROWTH (1u << 20)

/*
 * What has to be left for others than the arena: the process as it began, the
 * buffers and what compresses in full, for they are not in that, and what the
 * arena may take beyond its limit for a moment.
 */
static uint64_t process_needs(struct service *service)
{
	unsigned int threads = transport_threads(service->transport);
	uint64_t now = process_memory_bytes();

	if (!service->process_begin)
		service->process_begin = now;
	return service->process_begin +
	       transport_buffer_bytes(service->transport) +
	       store_threads_bytes(service->store, threads) + PROCESS_GROWTH +
	       ARENA_RESERVE_PAGES * PAGE_SIZE;
}

int service_set_mem_limit(struct service *service, uint64_t bytes)
{
	uint64_t others = process_needs(service);
	struct arena_usage usage;

	if (bytes) {
		arena_usage(service->arena, &usage);
		if (bytes <= others + usage.fixed)
			return -EINVAL;
		arena_set_limit(service->arena, bytes - others);
	} else {
		arena_set_limit(service->arena, 0);
	}
	service_set_reserve(service);
	atomic_store_explicit(&service->mem_limit, bytes, memory_order_relaxed);
	service->ledger.header->mem_limit = bytes;
	return 0;
}

/* With a MiB more, as the process may take that the next time it begins. */
uint64_t service_least_mem_limit(struct service *service)
{
	const uint64_t unit = 1u << 20;
	struct arena_usage usage;

	arena_usage(service->arena, &usage);
	return (process_needs(service) + usage.fixed + 2 * unit) / unit * unit;
}

int service_set_hot(struct service *service, uint64_t bytes)
{
	int error = store_set_hot(service->store, bytes);

	if (!error)
		service->ledger.header->hot = bytes;
	return error;
}
