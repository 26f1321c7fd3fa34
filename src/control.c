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

#include "keeper.h"
#include "ops_private.h"
#include "process_memory.h"
#include "upgrade.h"

_Static_assert(CONTROL_OPCODES == TRANSPORT_OPCODES,
	       "control.h and transport.h count the same opcodes");

/* Or see what is others'. */
static bool may_change(fuse_req_t req)
{
	uid_t uid = fuse_req_ctx(req)->uid;

	return uid == 0 || uid == ops_service(req)->owner;
}

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
	stat->clusters = stats.clusters;
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

/* --- size classes ------------------------------------------------------ */

static void copy_class(const struct pool_class_stats *from,
		       struct control_class *to)
{
	_Static_assert(sizeof(to->zspages) == sizeof(from->zspages),
		       "the same columns");
	*to = (struct control_class){
		.size = from->size,
		.pages_per_zspage = from->pages_per_zspage,
		.objects_per_zspage = from->objects_per_zspage,
		.objects_allocated = from->objects_allocated,
		.objects_used = from->objects_used,
		.pages_used = from->pages_used,
		.pages_freeable = from->pages_freeable,
	};
	memcpy(to->zspages, from->zspages, sizeof(to->zspages));
}

static void control_classes(fuse_req_t req, const struct control_classes *asked)
{
	struct control_classes answer = {.first = asked->first};
	struct pool_class_stats stats[POOL_CLASSES_MAX];
	const struct pool_ops *ops;
	const struct pool *pool;
	uint32_t at = asked->first;

	ops = store_pool(ops_service(req)->store, &pool);
	snprintf(answer.pool, sizeof(answer.pool), "%s", ops->name);
	answer.all = ops->class_stats(pool, stats);
	for (; at < answer.all && answer.count < CONTROL_CLASSES_MAX; at++)
		copy_class(&stats[at], &answer.classes[answer.count++]);
	fuse_reply_ioctl(req, 0, &answer, sizeof(answer));
}

/* --- what files cost --------------------------------------------------- */

_Static_assert(CODEC_COUNT <= CONTROL_CODECS, "control.h has all codecs");

/* owner: whose it has to be; NULL: anybody's. */
static void usage_of(struct fs *fs, uint64_t ino, const uid_t *owner,
		     struct control_usage *to)
{
	struct fs_usage from;

	*to = (struct control_usage){.ino = ino};
	to->error = fs_usage(fs, ino, &from);
	if (!to->error && owner && from.uid != *owner)
		to->error = -EACCES;
	if (to->error)
		return;
	to->size = from.size;
	to->pages = from.pages;
	to->same_pages = from.fill_pages;
	to->hot_pages = from.hot_pages;
	to->compressed_pages = from.compressed_pages;
	to->huge_pages = from.huge_pages;
	to->shared_pages = from.shared_pages;
	to->stored_bytes = from.stored_bytes;
	to->share_bytes = from.share_bytes;
	memcpy(to->codec_pages, from.codec_pages, sizeof(to->codec_pages));
}

static void control_usage(fuse_req_t req, fuse_ino_t ino)
{
	struct control_usage usage;

	usage_of(ops_fs(req), ino, NULL, &usage);
	if (usage.error)
		ops_reply_error(req, usage.error);
	else
		fuse_reply_ioctl(req, 0, &usage, sizeof(usage));
}

static void control_usages(fuse_req_t req, const struct control_usages *asked)
{
	struct control_usages answer;
	uint32_t i;

	if (asked->count > CONTROL_USAGES_MAX) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	memset(&answer, 0, sizeof(answer));
	answer.count = asked->count;
	answer.all = may_change(req);
	for (i = 0; i < asked->count; i++)
		usage_of(ops_fs(req), asked->file[i].ino,
			 answer.all ? NULL : &fuse_req_ctx(req)->uid,
			 &answer.file[i]);
	fuse_reply_ioctl(req, 0, &answer, sizeof(answer));
}

/* --- changes ----------------------------------------------------------- */

static void control_compact(fuse_req_t req)
{
	struct store *store = ops_service(req)->store;
	struct control_compact compact = {0};

	compact.error = store_compact(store, &compact.pages);
	malloc_trim(0);
	transport_shed(ops_service(req)->transport);
	fuse_reply_ioctl(req, 0, &compact, sizeof(compact));
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

/* --- upgrade ----------------------------------------------------------- */

static int upgrade(struct service *service, struct control_upgrade *upgrade)
{
	size_t length = strnlen(upgrade->program, sizeof(upgrade->program));
	int error;

	if (!length || length == sizeof(upgrade->program) ||
	    upgrade->program[0] != '/') {
		snprintf(upgrade->message, sizeof(upgrade->message),
			 "the program's full name is needed");
		return -EINVAL;
	}
	if (service->link < 0 ||
	    atomic_load_explicit(&service->keeper_gone, memory_order_relaxed)) {
		snprintf(upgrade->message, sizeof(upgrade->message),
			 "there is no keeper %sto start another program",
			 service->link < 0 ? "" : "any more ");
		return -ENOTSUP;
	}
	error = upgrade_check(upgrade->program, upgrade->message,
			      sizeof(upgrade->message));
	if (!error)
		keeper_tell(service->link, KEEPER_UPGRADE, upgrade->program,
			    length);
	return error;
}

static void control_upgrade(fuse_req_t req, const struct control_upgrade *asked)
{
	struct control_upgrade answer = *asked;

	answer.message[0] = '\0';
	answer.error = upgrade(ops_service(req), &answer);
	fuse_reply_ioctl(req, 0, &answer, sizeof(answer));
}

/* --- dispatch ---------------------------------------------------------- */

static bool is_for_all(unsigned int command)
{
	return command == CONTROL_STAT || command == CONTROL_CLASSES ||
	       command == CONTROL_USAGE || command == CONTROL_USAGES;
}

static bool is_known(unsigned int command)
{
	return is_for_all(command) || command == CONTROL_COMPACT ||
	       command == CONTROL_SET || command == CONTROL_CHECK ||
	       command == CONTROL_UPGRADE;
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
	if (!is_known(command)) {
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
	if (!is_for_all(command) && !may_change(req)) {
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
		control_set(req, ino, in);
		break;
	case CONTROL_CHECK:
		control_check(req, in);
		break;
	case CONTROL_CLASSES:
		control_classes(req, in);
		break;
	case CONTROL_USAGE:
		control_usage(req, ino);
		break;
	case CONTROL_USAGES:
		control_usages(req, in);
		break;
	case CONTROL_UPGRADE:
		control_upgrade(req, in);
		break;
	}
}
