/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * service.c - see service.h
 */
#include "service.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "process_memory.h"
#include "request.h"

/* A quarter of the CPUs' worth of background, within reason. */
#define COMPRESSORS_MAX 8

static unsigned int compressors(void)
{
	unsigned int cpus = get_nprocs();
	unsigned int count = cpus / 2;

	if (count < 1)
		return 1;
	return count < COMPRESSORS_MAX ? count : COMPRESSORS_MAX;
}

static int explain(int error, char *message, size_t size, const char *what)
{
	snprintf(message, size, "%s: %s", what, strerror(-error));
	return error;
}

static int create_arena(struct service *service, char *message, size_t size)
{
	struct arena_config config = {0};
	int error;

	error = arena_create(&service->arena, &config);
	if (error == -ENOMEM) {
		snprintf(message, size,
			 "not enough memory: the system gives no address space "
			 "for the data (see ulimit -v, vm.overcommit_memory)");
		return error;
	}
	if (error)
		return explain(error, message, size,
			       "cannot make a place for the data");
	return 0;
}

static int create_store(struct service *service, const struct options *options,
			char *message, size_t size)
{
	struct store_config config = {
		.codec = options->codec,
		.pool = options->pool,
		.hot = options->hot,
		.dedup = options->dedup,
		.compressors = compressors(),
	};
	int error;

	error = store_create(&service->store, service->arena, &config);
	if (error)
		return explain(error, message, size,
			       "cannot make the page store");
	return 0;
}

static int create_fs(struct service *service, const struct options *options,
		     char *message, size_t size)
{
	struct fs_config config = {
		/* The device bounds it, in block mode: the image is its size. */
		.size = options->block ? 0 : options->size,
		.nr_inodes = options->block ? 0 : options->nr_inodes,
		.mode = options->mode,
		.uid = options->uid,
		.gid = options->gid,
	};
	int error;

	error = fs_create(&service->fs, service->arena, service->store,
			  &config);
	if (error)
		return explain(error, message, size,
			       "cannot make the filesystem");
	return 0;
}

int service_start(struct service *service, const struct options *options,
		  char *message, size_t message_size)
{
	int error;

	error = create_arena(service, message, message_size);
	if (!error)
		error = create_store(service, options, message, message_size);
	if (!error)
		error = create_fs(service, options, message, message_size);
	if (error)
		return error;
	error = service_set_mem_limit(service, options->mem_limit);
	if (error) {
		snprintf(message, message_size,
			 "mem_limit=%llu is less than zramfs needs when empty",
			 (unsigned long long)options->mem_limit);
		return error;
	}
	error = store_start(service->store);
	if (error)
		return explain(error, message, message_size,
			       "cannot start the background threads");
	return 0;
}

void service_stop(struct service *service)
{
	if (service->store)
		store_stop(service->store);
	if (service->fs)
		fs_destroy(service->fs);
	if (service->store)
		store_destroy(service->store);
	if (service->arena)
		arena_destroy(service->arena);
}

/* The heap's and the stacks' growth, once all threads have worked. */
#define PROCESS_GROWTH (1u << 20)

/*
 * What has to be left for others than the arena: the process as it began, the
 * buffers in full, for they are not in that, and what the arena may take beyond
 * its limit for a moment.
 */
static uint64_t process_needs(struct service *service)
{
	uint64_t threads = transport_buffer_bytes(service->transport);
	uint64_t now = process_memory_bytes();

	if (!service->process_begin)
		service->process_begin = now;
	return service->process_begin + threads + PROCESS_GROWTH +
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
	atomic_store_explicit(&service->mem_limit, bytes, memory_order_relaxed);
	return 0;
}

int service_attach_thread(void *service)
{
	return fs_attach_thread(((struct service *)service)->fs);
}

void service_detach_thread(void *service)
{
	fs_detach_thread(((struct service *)service)->fs);
}
