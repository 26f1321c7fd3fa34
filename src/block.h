/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block.h - block mode: another filesystem, on a device that is kept in memory
 *
 *	MOUNTPOINT: ext4, xfs or btrfs
 *	  /dev/loopN, direct I/O, autoclear
 *	    "zramfs-PID", the one file of a zramfs that is mounted nowhere
 *
 * The zramfs is a mount of its own that never was in anybody's tree. Two hold
 * it: the loop device, by the open image, and this process, by a descriptor
 * of its root, through which zramfsctl finds it (block_open_behind()). When
 * the filesystem at MOUNTPOINT is unmounted and nobody uses it any more, the
 * loop device clears itself and closes the image. That is told by a RELEASE of
 * the handle that made it (HANDLE_BLOCK in ops_private.h), upon which the
 * daemon ends, and with its descriptor the zramfs. A daemon that is killed
 * leaves its descriptor the same way: there is nothing to tidy up, ever.
 *
 * A struct block is used by one thread. Errors are negative errno, with one
 * line in message that tells the step that failed and why.
 */
#ifndef ZRAMFS_BLOCK_H
#define ZRAMFS_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cancel.h"
#include "options.h"

struct block;

/*
 * Mount a zramfs where nobody can see it; requests queue in the kernel until
 * it is served. options must stay.
 */
int block_create(struct block **block, const struct options *options,
		 char *message, size_t message_size);

/* The connection to serve, as libfuse takes it: "/dev/fd/N". */
const char *block_connection(const struct block *block);

/* The root of the zramfs, by a name that is good in this process. */
const char *block_root(const struct block *block);

/*
 * While the zramfs is being served by others: make image, device and
 * filesystem, and mount it on cancel's mount point. When this fails, or is
 * given up (-ECANCELED), all of it is gone.
 */
int block_mount(struct block *block, const struct cancel *cancel, char *message,
		size_t message_size);

/*
 * What is mounted, as st_dev; and how another process than the one that called
 * block_mount() comes to know of it. -ENOMEM.
 */
int block_root_fd(const struct block *block);
/* What another program has created; root is its block_root_fd(). -ENOMEM. */
int block_inherit(struct block **block, const struct options *options,
		  int root);

dev_t block_device(const struct block *block);
int block_adopt(struct block *block, const char *mountpoint, dev_t device);

/*
 * Unmount, unless that was done, whoever is still in there: for them, nothing
 * works any more. Call it while the zramfs is being served.
 */
void block_unmount(struct block *block);

/* Whether the mounted filesystem is for block_space.h to trim. */
bool block_needs_trim(const struct block *block);
/* Whether it can be told to reserve blocks. */
bool block_can_reserve(const struct block *block);

/* Let go of the zramfs, and free. The mount at MOUNTPOINT is left alone. */
void block_destroy(struct block *block);

/* --- from outside -------------------------------------------------------- */

/*
 * The root directory of the zramfs whose image is the device of the filesystem
 * that path is in, as a descriptor to send control.h's ioctls to. Sets
 * *device_size, in bytes, where block mode has made that device. -ENOTBLK:
 * there is no such thing behind path; -EACCES or -EPERM: only root may look;
 * -ESRCH: its daemon is not to be found.
 */
int block_open_behind(const char *path, uint64_t *device_size);

#endif
