/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * service_block.c - see service_block.h
 */
#include "service_block.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int attach(void *context)
{
	return service_attach_thread(context);
}

static void detach(void *context)
{
	service_detach_thread(context);
}

/* The image is the one file that there is. */
static uint64_t stored(void *context)
{
	struct service *service = context;
	struct fs_stats stats;

	fs_stats(service->fs, &stats);
	return stats.size_used;
}

static bool take_first(void *context, const char *name,
		       const struct fs_entry *entry, uint64_t cursor)
{
	ino_t *image = context;

	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return true;
	*image = entry->attr.st_ino;
	return false;
}

static off_t next_stored(void *context, off_t offset)
{
	struct service *service = context;
	ino_t image = 0;
	int error;

	error = fs_readdir(service->fs, FS_ROOT_INO, 0, false, take_first,
			   &image);
	if (error)
		return error;
	return image ? fs_seek(service->fs, image, offset, SEEK_DATA) : -ENXIO;
}

static uint64_t limit(void *context, uint64_t *left)
{
	struct service *service = context;
	struct arena_usage usage;
	uint64_t used;

	arena_usage(service->arena, &usage);
	used = usage.total - usage.dirty;
	*left = used < usage.limit ? usage.limit - used : 0;
	return usage.limit;
}

int service_watch_space(struct service *service, const char *mountpoint,
			dev_t device, bool again, bool trims, bool reserves,
			struct block_space **space)
{
	const struct block_space_config config = {
		.mountpoint = mountpoint,
		.device = device,
		.trims = trims,
		.reserves = reserves,
		.begin_with_trim = again,
		.context = service,
		.attach = attach,
		.detach = detach,
		.stored = stored,
		.next_stored = next_stored,
		.limit = limit,
	};

	return block_space_start(space, &config);
}
