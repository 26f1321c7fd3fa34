/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control.c - the daemon's side of control.h
 */
#include "control.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "ops_private.h"
#include "process_memory.h"

_Static_assert(CONTROL_OPCODES == TRANSPORT_OPCODES,
	       "control.h and transport.h count the same opcodes");

/* --- statistics -------------------------------------------------------- */

static void stat_store(struct service *service, struct control_stat *stat)
{
	struct store_stats stats;

	store_stats(service->store, &stats);
	/* As the kernel has it: every page that is no hole, same-filled too. */
	stat->orig_data_size = stats.references * PAGE_SIZE;
	stat->compr_data_size = stats.compr_data_size;
	stat->same_pages = stats.same_pages;
	stat->pages_compacted = stats.pool.pages_compacted;
	stat->huge_pages = stats.huge_pages;
	stat->huge_pages_since = stats.huge_pages_since;
	stat->stored_pages = stats.stored_pages;
	stat->dedup_pages = stats.dedup_pages;
	stat->hot_pages = stats.hot_pages;
	stat->compr_failed = stats.compr_failed;
	stat->checksum_errors = stats.checksum_errors;
	stat->writer_compressions = stats.writer_compressions;
	stat->background_compressions = stats.background_compressions;
}

static void stat_memory(struct service *service, struct control_stat *stat)
{
	struct arena_usage usage;
	uint64_t data;

	arena_usage(service->arena, &usage);
	stat->process_bytes = process_memory_bytes();
	stat->mem_used_total = usage.total + stat->process_bytes;
	stat->mem_used_max = usage.peak + process_memory_most();
	stat->mem_limit =
		atomic_load_explicit(&service->mem_limit, memory_order_relaxed);
	data = usage.resident[ARENA_POOL] + usage.resident[ARENA_HOT];
	stat->meta_bytes = usage.total - data + stat->process_bytes;
}

static void stat_limits(struct service *service, struct control_stat *stat)
{
	struct fs_stats stats;

	fs_stats(service->fs, &stats);
	stat->size = stats.size;
	stat->size_used = stats.size_used;
	stat->inodes = stats.inodes;
	stat->inodes_used = stats.inodes_used;
}

static void control_stat(fuse_req_t req)
{
	struct service *service = ops_service(req);
	struct control_stat stat = {.version = CONTROL_VERSION};
	struct codec_choice codec;
	const struct pool *pool;

	stat.pid = getpid();
	store_codec(service->store, &codec);
	codec_format(&codec, stat.codec, sizeof(stat.codec));
	snprintf(stat.pool, sizeof(stat.pool), "%s",
		 store_pool(service->store, &pool)->name);
	stat.hot_limit = store_hot_limit(service->store);
	stat_store(service, &stat);
	stat_memory(service, &stat);
	stat_limits(service, &stat);
	transport_requests(service->transport, stat.requests);
	fuse_reply_ioctl(req, 0, &stat, sizeof(stat));
}

/* --- changes ----------------------------------------------------------- */

static void control_compact(fuse_req_t req)
{
	struct store *store = ops_service(req)->store;
	struct control_compact compact = {0};

	compact.error = store_drain(store);
	compact.pages = store_compact(store);
	malloc_trim(0);
	fuse_reply_ioctl(req, 0, &compact, sizeof(compact));
}

static int set(struct service *service, const struct control_set *set)
{
	if (!strncmp(set->key, "size", sizeof(set->key)))
		return fs_set_size(service->fs, set->value);
	if (!strncmp(set->key, "mem_limit", sizeof(set->key)))
		return service_set_mem_limit(service, set->value);
	if (!strncmp(set->key, "hot", sizeof(set->key)))
		return service_set_hot(service, set->value);
#ifdef ZRAMFS_FAULTS
	if (!strncmp(set->key, "fault", sizeof(set->key))) {
		fault_arm_request(set->value);
		return 0;
	}
#endif
	return -ENOENT;
}

static void control_set(fuse_req_t req, const struct control_set *change)
{
	int error = set(ops_service(req), change);

	if (error)
		ops_reply_error(req, error);
	else
		fuse_reply_ioctl(req, 0, NULL, 0);
}

/* --- check ------------------------------------------------------------- */

static void report(void *context, const char *line)
{
	struct control_check *check = context;

	if (check->lines < CONTROL_CHECK_LINES)
		snprintf(check->line[check->lines++], sizeof(check->line[0]),
			 "%s", line);
}

static void control_check(fuse_req_t req, const struct control_check *asked)
{
	struct control_check check = {.flags = asked->flags};
	struct fs_check result;
	int error;

	error = fs_check(ops_fs(req), asked->flags & CONTROL_CHECK_VERIFY,
			 &result, report, &check);
	if (error) {
		ops_reply_error(req, error);
		return;
	}
	check.inodes = result.inodes;
	check.entries = result.entries;
	check.pages = result.pages;
	check.errors = result.errors;
	check.differences = result.differences;
	fuse_reply_ioctl(req, 0, &check, sizeof(check));
}

/* --- dispatch ---------------------------------------------------------- */

static bool may_change(fuse_req_t req)
{
	uid_t uid = fuse_req_ctx(req)->uid;

	return uid == 0 || uid == ops_service(req)->owner;
}

/*
 * The kernel gives and takes as many bytes as the command's number says. A
 * process whose pointers are of another size has the same structs.
 */
void control_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int command,
		   void *argument, struct fuse_file_info *fi,
		   unsigned int flags, const void *in, size_t in_size,
		   size_t out_size)
{
	const bool reading = command == CONTROL_STAT;

	if (command != CONTROL_STAT && command != CONTROL_COMPACT &&
	    command != CONTROL_SET && command != CONTROL_CHECK) {
		fuse_reply_err(req, ENOTTY);
		return;
	}
	if (in_size <
		    (_IOC_DIR(command) & _IOC_WRITE ? _IOC_SIZE(command) : 0) ||
	    out_size <
		    (_IOC_DIR(command) & _IOC_READ ? _IOC_SIZE(command) : 0)) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	if (!reading && !may_change(req)) {
		fuse_reply_err(req, EPERM);
		return;
	}
	switch (command) {
	case CONTROL_STAT:
		control_stat(req);
		break;
	case CONTROL_COMPACT:
		control_compact(req);
		break;
	case CONTROL_SET:
		control_set(req, in);
		break;
	case CONTROL_CHECK:
		control_check(req, in);
		break;
	}
}
