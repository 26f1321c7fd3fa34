/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mountinfo.c - see mountinfo.h
 */
#include "mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

int mountinfo_place(const char *path, struct mountinfo *info)
{
	struct statx statx_buf;

	/* What else statx() fills in is what the kernel has at hand. */
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
		  STATX_MNT_ID, &statx_buf))
		return -errno;
	if (!(statx_buf.stx_mask & STATX_MNT_ID))
		return -ENOTSUP;
	*info = (struct mountinfo){
		.id = statx_buf.stx_mnt_id,
		.is_root = statx_buf.stx_attributes & STATX_ATTR_MOUNT_ROOT,
		.device = makedev(statx_buf.stx_dev_major,
				  statx_buf.stx_dev_minor),
		.inode = statx_buf.stx_ino,
	};
	return 0;
}

/* Type and source in one line; false: not this mount's. */
static bool take_line(const char *line, struct mountinfo *info)
{
	const char *dash = strstr(line, " - ");
	uint64_t id;

	return sscanf(line, "%" SCNu64, &id) == 1 && id == info->id && dash &&
	       sscanf(dash, " - %63s %63s", info->type, info->source) == 2;
}

int mountinfo_of(const char *path, struct mountinfo *info)
{
	int error = mountinfo_place(path, info);
	char *line = NULL;
	size_t size = 0;
	FILE *mounts;

	if (error)
		return error;
	mounts = fopen(MOUNTINFO_PATH, "re");
	if (!mounts)
		return -errno;
	error = -ENOTSUP;
	while (error && getline(&line, &size, mounts) >= 0)
		if (take_line(line, info))
			error = 0;
	free(line);
	fclose(mounts);
	return error;
}
