/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block_room.c - tell the mounted filesystem how much it may take
 *
 * A page that finds no memory when it is written back is lost long after
 * write(2) said that it is kept, and it may be one of the filesystem's own.
 * Two knobs of the kernel's help, both in sysfs, both without waiting:
 *
 * - /sys/class/bdi/MAJOR:MINOR bounds what is written and not yet stored, so
 *   that what is stored tells how much room there is. (max_bytes, Linux 6.2.)
 * - /sys/fs/ext4/NAME/reserved_clusters keeps free space from data, but not
 *   from metadata: with all there is no memory for set aside, write(2) fails
 *   with ENOSPC as on a full disk, and df(1) shows what is left. The kernel's
 *   Documentation/ABI/testing/sysfs-fs-ext4.
 *
 * Where the kernel lacks one, it is as without.
 *
 * The second goes with the filesystem. The first stays with the device, which
 * others will use: so it is undone at the end, and whoever is next undoes what
 * a daemon that was killed has left.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "block_private.h"

/* Of the limit, this part may be on its way, within these bounds. */
#define PENDING_SHIFT 4
#define PENDING_MIN   (UINT64_C(4) << 20)
#define PENDING_MAX   (UINT64_C(256) << 20)

static int write_number(const char *path, uint64_t number)
{
	char text[24];
	int length = snprintf(text, sizeof(text), "%" PRIu64 "\n", number);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int error = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, length) != length)
		error = -errno;
	close(fd);
	return error;
}

static bool read_number(const char *path, uint64_t *number)
{
	char text[24];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return false;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return false;
	text[length] = '\0';
	*number = strtoull(text, NULL, 10);
	return true;
}

static void bound_pending(dev_t device, const char *knob, uint64_t number)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/%s", major(device),
		 minor(device), knob);
	/* It may not be there: as said above. */
	write_number(path, number);
}

/* Where ext4 has its knob for the device; false: nowhere. */
static bool find_reserved(dev_t device, char *path, size_t size)
{
	char link[64], target[PATH_MAX];
	const char *name;
	ssize_t length;

	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(device),
		 minor(device));
	length = readlink(link, target, sizeof(target) - 1);
	if (length < 0)
		return false;
	target[length] = '\0';
	name = strrchr(target, '/');
	return name && snprintf(path, size, "/sys/fs/ext4%s/reserved_clusters",
				name) < (int)size;
}

static void bound_none(dev_t device)
{
	bound_pending(device, "strict_limit", 0);
	bound_pending(device, "max_ratio", 100);
}

static bool is_bound(dev_t device)
{
	uint64_t strict;
	char path[64];

	snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/strict_limit",
		 major(device), minor(device));
	return read_number(path, &strict) && strict;
}

void block_room_open(struct block_room *room, dev_t device, bool reserves)
{
	*room = (struct block_room){.device = device};
	if (is_bound(device))
		bound_none(device);
	if (!reserves ||
	    !find_reserved(device, room->path, sizeof(room->path)) ||
	    !read_number(room->path, &room->usual))
		room->path[0] = '\0';
	room->reserved = room->usual;
}

static void set_limit(struct block_room *room, uint64_t limit)
{
	uint64_t pending = limit >> PENDING_SHIFT;

	if (limit == room->limit)
		return;
	room->limit = limit;
	if (pending < PENDING_MIN)
		pending = PENDING_MIN;
	if (pending > PENDING_MAX)
		pending = PENDING_MAX;
	if (limit) {
		bound_pending(room->device, "max_bytes", pending);
		bound_pending(room->device, "strict_limit", 1);
	} else {
		bound_none(room->device);
	}
}

void block_room_close(struct block_room *room)
{
	set_limit(room, 0);
}

void block_room_set(struct block_room *room, uint64_t limit, uint64_t room_for,
		    uint64_t free, unsigned int block_size)
{
	uint64_t reserved = room->usual;

	set_limit(room, limit);
	if (!room->path[0])
		return;
	if (limit && free > room_for &&
	    (free - room_for) / block_size > reserved)
		reserved = (free - room_for) / block_size;
	if (reserved != room->reserved && !write_number(room->path, reserved))
		room->reserved = reserved;
}
