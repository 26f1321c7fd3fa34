/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * service.c - see service.h
 */
#include "service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "crash.h"
#include "keeper.h"
#include "log.h"
#include "process_memory.h"
#include "request.h"

/* Half of the CPUs may be kept busy in the background, within reason. */
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

/* --- the memfds -------------------------------------------------------- */

static int hold_arena(struct service *service, char *message, size_t size)
{
	struct arena_config config = {0};
	struct arena *arena;
	int error = arena_create(&arena, &config);

	if (error == -ENOMEM) {
		snprintf(message, size,
			 "not enough memory: the system gives no address space "
			 "for the data (see ulimit -v, vm.overcommit_memory)");
		return error;
	}
	if (error)
		return explain(error, message, size,
			       "cannot make a place for the data");
	service->arena_fd = fcntl(arena_fd(arena), F_DUPFD_CLOEXEC, 3);
	if (service->arena_fd < 0)
		error = explain(-errno, message, size,
				"cannot keep the place for the data");
	arena_destroy(arena);
	return error;
}

int service_hold(struct service *service, const struct options *options,
		 char *message, size_t message_size)
{
	int error = hold_arena(service, message, message_size);

	if (error)
		return error;
	service->ledger_fd = ledger_create(options->threads);
	if (service->ledger_fd < 0)
		return explain(service->ledger_fd, message, message_size,
			       "cannot make a place for requests");
	/* Nobody goes on after a death without a keeper. */
	if (options->keeper)
		ledger_open_pipe(service->pipe);
	return 0;
}

void service_release(struct service *service)
{
	if (service->arena_fd >= 0)
		close(service->arena_fd);
	if (service->ledger_fd >= 0)
		close(service->ledger_fd);
	if (service->pipe[0] >= 0) {
		close(service->pipe[0]);
		close(service->pipe[1]);
	}
	service->arena_fd = service->ledger_fd = -1;
	service->pipe[0] = service->pipe[1] = -1;
}

/* --- starting ---------------------------------------------------------- */

static int map_memfds(struct service *service, char *message, size_t size)
{
	int error =
		ledger_map(&service->ledger, service->ledger_fd, service->pipe);

	if (!error)
		error = arena_attach(&service->arena, service->arena_fd);
	if (error)
		return explain(error, message, size,
			       "cannot map the place for the data");
	return 0;
}

static struct store_config store_config(const struct options *options)
{
	return (struct store_config){
		.codec = options->codec,
		.pool = options->pool,
		.hot = options->hot,
		.dedup = options->dedup,
		.compressors = compressors(),
		.cluster_pages = options->cluster_pages,
	};
}

static int create_store(struct service *service, const struct options *options,
			char *message, size_t size)
{
	const struct store_config config = store_config(options);
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
		/* The device bounds it, in block mode: the image is its size.
		 */
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

/* Without a keeper nobody comes to read the notes. */
static void note_requests(struct service *service)
{
	if (service->link >= 0)
		fs_set_answers(service->fs, service->ledger.answers,
			       service->ledger.header->answers);
}

/* Nothing in the arena is in use: what a worker left there that died early. */
static int clear_arena(struct service *service, char *message, size_t size)
{
	struct arena_map *map;
	int error = arena_map_create(&map, service->arena);

	if (!error) {
		error = arena_settle(service->arena, map);
		arena_map_destroy(map);
	}
	if (error)
		return explain(error, message, size,
			       "cannot make a place for the data");
	memset(arena_root(service->arena, ARENA_ROOT_STORE), 0, PAGE_SIZE);
	memset(arena_root(service->arena, ARENA_ROOT_FS), 0, PAGE_SIZE);
	return 0;
}

static int make(struct service *service, const struct options *options,
		char *message, size_t size)
{
	int error = clear_arena(service, message, size);

	if (!error)
		error = create_store(service, options, message, size);
	if (!error)
		error = create_fs(service, options, message, size);
	if (error)
		return error;
	error = service_set_mem_limit(service, options->mem_limit);
	if (error) {
		snprintf(message, size,
			 "mem_limit=%llu is less than zramfs needs when "
			 "empty: use at least %lluk",
			 (unsigned long long)options->mem_limit,
			 (unsigned long long)service_least_mem_limit(service) /
				 1024);
		return error;
	}
	note_requests(service);
	service->ledger.header->hot = options->hot;
	/* Release: now there is something to recover. */
	atomic_store_explicit(&service->ledger.header->made, 1,
			      memory_order_release);
	return 0;
}

static void report_line(void *context, const char *line)
{
	log_line(LOG_ERR, "recovery: %s", line);
}

static double milliseconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static int recover(struct service *service, const struct options *options,
		   char *message, size_t size)
{
	const struct ledger_header *header = service->ledger.header;
	struct store_config config = store_config(options);
	double begin = milliseconds(CLOCK_MONOTONIC);
	double begin_cpu = milliseconds(CLOCK_THREAD_CPUTIME_ID);
	struct fs_check check;
	int error;

	config.hot = header->hot;
	error = store_attach(&service->store, service->arena, &config);
	if (!error)
		error = fs_attach(&service->fs, service->arena, service->store);
	if (!error)
		note_requests(service);
	if (!error)
		error = fs_recover(service->fs, &check, report_line, NULL);
	if (error)
		return explain(error, message, size, "cannot recover");
	atomic_store_explicit(&service->mem_limit, header->mem_limit,
			      memory_order_relaxed);
	service_set_reserve(service);
	log_line(LOG_WARNING,
		 "recovered in %.1f ms, CPU %.1f ms: %llu inodes, %llu names, "
		 "%llu pages, %llu damaged",
		 milliseconds(CLOCK_MONOTONIC) - begin,
		 milliseconds(CLOCK_THREAD_CPUTIME_ID) - begin_cpu,
		 (unsigned long long)check.inodes,
		 (unsigned long long)check.entries,
		 (unsigned long long)check.pages,
		 (unsigned long long)check.errors);
	return 0;
}

/*
 * So much of the hot tier is there whatever happens: what the largest request
 * may write. A page that is written back is one that the kernel can use again,
 * and takes less once it is compressed: then there is room for the next.
 */
static int set_aside(struct service *service)
{
	uint64_t hot = store_hot_limit(service->store) / PAGE_SIZE;
	uint32_t pages = REQUEST_DATA_BLOCK / PAGE_SIZE;

	return arena_set_aside(service->arena, ARENA_HOT,
			       hot < pages ? (uint32_t)hot : pages);
}

int service_start(struct service *service, const struct options *options,
		  char *message, size_t message_size)
{
	int error = map_memfds(service, message, message_size);

	if (error)
		return error;
	process_memory_include(service->link >= 0 ? getppid() : 0,
			       service->ledger.fd);
	/* Acquire: pairs with the end of make(). */
	if (atomic_load_explicit(&service->ledger.header->made,
				 memory_order_acquire))
		error = recover(service, options, message, message_size);
	else
		error = make(service, options, message, message_size);
	if (error)
		return error;
	if (options->block)
		error = set_aside(service);
	if (error)
		return explain(error, message, message_size,
			       "cannot set memory aside");
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
	ledger_unmap(&service->ledger);
}

int service_attach_thread(void *service)
{
	crash_begin_thread();
	return fs_attach_thread(((struct service *)service)->fs);
}

void service_detach_thread(void *service)
{
	fs_detach_thread(((struct service *)service)->fs);
	crash_end_thread();
}

void service_rest_thread(void *service)
{
	store_rest_thread(((struct service *)service)->store);
}

void service_begin(void *service, unsigned int thread, uint64_t request)
{
	fs_begin(((struct service *)service)->fs, thread, request);
}

int service_resume(void *service, uint64_t request)
{
	return fs_resume(((struct service *)service)->fs, request);
}

void service_withdraw(void *service, uint64_t request)
{
	fs_withdraw(((struct service *)service)->fs, request);
}

void service_await(void *service, bool (*waits)(void *caller, uint64_t request),
		   void *caller)
{
	fs_await(((struct service *)service)->fs, waits, caller);
}

void service_resumed(void *service, bool all)
{
	fs_resumed(((struct service *)service)->fs, all);
}

void service_served(void *service)
{
	keeper_tell(((struct service *)service)->link, KEEPER_SERVED, NULL, 0);
}
