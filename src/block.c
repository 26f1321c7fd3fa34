/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block.c - block mode, step by step. See block.h.
 *
 * Undoing is letting go: the device clears itself when its last user closes
 * it, mounts that are in no tree end with their last descriptor, and the
 * image is gone with the zramfs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "block_private.h"
#include "log.h"

struct block {
	const struct options *options;
	const struct block_type *type;
	int root;     /* of the zramfs, O_PATH */
	pid_t keeper; /* a process that has it for as long as it serves */
	char connection[32];
	char root_path[32];
	char *mountpoint; /* NULL: not mounted */
	dev_t device;	  /* as stat() shows the mount */
};

int block_fail(const struct block_error *error, int code, const char *step,
	       const char *format, ...)
{
	va_list arguments;
	int length;

	length = snprintf(error->text, error->size, "%s: ", step);
	if (length >= 0 && (size_t)length < error->size) {
		va_start(arguments, format);
		vsnprintf(error->text + length, error->size - length, format,
			  arguments);
		va_end(arguments);
	}
	return -code;
}

void block_name_step(char *step, size_t size, const char *what,
		     const char *option, const char *value)
{
	if (*value)
		snprintf(step, size, "%s with %s=%.100s", what, option, value);
	else
		snprintf(step, size, "%s", what);
}

static int mount_zramfs(struct block *block, const struct block_error *error)
{
	int connection = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (connection < 0)
		return block_fail(error, errno, "/dev/fuse", "%s",
				  strerror(errno));
	block->root = block_attach_zramfs(connection, error);
	if (block->root < 0) {
		close(connection);
		return block->root;
	}
	snprintf(block->connection, sizeof(block->connection), "/dev/fd/%d",
		 connection);
	snprintf(block->root_path, sizeof(block->root_path), "/proc/self/fd/%d",
		 block->root);
	return 0;
}

int block_create(struct block **result, const struct options *options,
		 char *message, size_t message_size)
{
	const struct block_error failure = {message, message_size};
	struct block *block = calloc(1, sizeof(*block));
	int error;

	if (!block)
		return block_fail(&failure, ENOMEM, "block", "out of memory");
	block->options = options;
	block->type = block_type_by_name(options->block);
	block->root = -1;
	block->keeper = getpid();
	error = mount_zramfs(block, &failure);
	if (error) {
		block_destroy(block);
		return error;
	}
	*result = block;
	return 0;
}

const char *block_connection(const struct block *block)
{
	return block->connection;
}

const char *block_root(const struct block *block)
{
	return block->root_path;
}

/* The last moment to give up. */
static int attach(int mount, const struct cancel *cancel,
		  const struct block_error *failure)
{
	char why[256];

	if (cancel_wait(cancel, -1, why, sizeof(why)))
		return block_fail(failure, ECANCELED, "mounting", "%s", why);
	return block_attach_at(mount, cancel->mountpoint->path, failure);
}

/* Make the filesystem on device, and put it in its place. */
static int mount_device(struct block *block, const char *device,
			const struct cancel *cancel,
			const struct block_error *failure)
{
	const struct options *options = block->options;
	struct stat stat_buf;
	int mount, error;

	error = block_mkfs(block->type, options, device, cancel, failure);
	if (error)
		return error;
	mount = block_attach_device(block->type, options, device, failure);
	if (mount < 0)
		return mount;
	if (fstat(mount, &stat_buf))
		error = block_fail(failure, errno, "mounting", "%s",
				   strerror(errno));
	else
		error = attach(mount, cancel, failure);
	if (!error)
		block->device = stat_buf.st_dev;
	close(mount);
	return error;
}

int block_mount(struct block *block, const struct cancel *cancel, char *message,
		size_t message_size)
{
	const struct block_error failure = {message, message_size};
	char device[BLOCK_DEVICE_NAME];
	int loop, error;

	block->mountpoint = strdup(cancel->mountpoint->path);
	if (!block->mountpoint)
		return block_fail(&failure, ENOMEM, "block", "out of memory");
	loop = block_loop_create(block->root, block->keeper,
				 block->options->size, device, &failure);
	error = loop;
	if (loop >= 0) {
		error = mount_device(block, device, cancel, &failure);
		/* From here on, the mount is what keeps the device. */
		close(loop);
	}
	if (error) {
		free(block->mountpoint);
		block->mountpoint = NULL;
	}
	return error;
}

int block_root_fd(const struct block *block)
{
	return block->root;
}

int block_inherit(struct block **result, const struct options *options,
		  int root)
{
	struct block *block = calloc(1, sizeof(*block));

	if (!block)
		return -ENOMEM;
	block->options = options;
	block->type = block_type_by_name(options->block);
	block->root = root;
	block->keeper = getppid();
	snprintf(block->root_path, sizeof(block->root_path), "/proc/self/fd/%d",
		 root);
	*result = block;
	return 0;
}

dev_t block_device(const struct block *block)
{
	return block->device;
}

int block_adopt(struct block *block, const char *mountpoint, dev_t device)
{
	block->mountpoint = strdup(mountpoint);
	block->device = device;
	return block->mountpoint ? 0 : -ENOMEM;
}

void block_unmount(struct block *block)
{
	struct stat stat_buf;

	/* Something else may have been mounted there since. */
	if (!block->mountpoint || stat(block->mountpoint, &stat_buf) ||
	    stat_buf.st_dev != block->device)
		return;
	if (umount2(block->mountpoint, MNT_DETACH | UMOUNT_NOFOLLOW))
		log_line(LOG_WARNING, "cannot unmount %s: %s",
			 block->mountpoint, strerror(errno));
}

bool block_needs_trim(const struct block *block)
{
	return block->type->discard_option;
}

bool block_can_reserve(const struct block *block)
{
	/* Clusters that are not blocks would have to be counted otherwise. */
	return block->type->reserves &&
	       !strstr(block->options->mkfs_opts, "bigalloc");
}

void block_destroy(struct block *block)
{
	if (!block)
		return;
	if (block->root >= 0)
		close(block->root);
	free(block->mountpoint);
	free(block);
}
