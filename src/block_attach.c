/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block_attach.c - the mounts of block mode
 *
 * Made with fsopen(2) and its kin: a mount is then made first and put into the
 * tree later, or never, and the kernel tells in words what it did not like.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "block_private.h"

/* What the kernel has to say about a failure, else the errno's words. */
static int fail_context(int context, int code, const char *step,
			const struct block_error *error)
{
	char line[256];
	ssize_t length;

	/* One message for each read(); "e " marks errors. */
	for (;;) {
		length = read(context, line, sizeof(line) - 1);
		if (length <= 0)
			break;
		line[length] = '\0';
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "e ", 2))
			return block_fail(error, code, step, "%s (%s)",
					  line + 2, strerror(code));
	}
	return block_fail(error, code, step, "%s; dmesg may tell why",
			  strerror(code));
}

/* --- the zramfs -------------------------------------------------------- */

static const char zramfs_step[] = "mounting the private zramfs";

int block_attach_zramfs(int connection, const struct block_error *error)
{
	const struct {
		const char *name;
		char value[16];
	} parameters[] = {
		{"source", "zramfs"},  {"subtype", "zramfs"},
		{"rootmode", "40000"}, {"user_id", "0"},
		{"group_id", "0"},
	};
	char number[16];
	int context = fsopen("fuse", FSOPEN_CLOEXEC);
	int mount = -1;
	size_t i;

	if (context < 0)
		return block_fail(error, errno, zramfs_step, "%s",
				  strerror(errno));
	snprintf(number, sizeof(number), "%d", connection);
	if (fsconfig(context, FSCONFIG_SET_STRING, "fd", number, 0))
		goto fail;
	for (i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++)
		if (fsconfig(context, FSCONFIG_SET_STRING, parameters[i].name,
			     parameters[i].value, 0))
			goto fail;
	if (fsconfig(context, FSCONFIG_SET_FLAG, "default_permissions", NULL,
		     0) ||
	    fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		goto fail;
	mount = fsmount(context, FSMOUNT_CLOEXEC,
			MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
				MOUNT_ATTR_NOEXEC);
	if (mount < 0)
		goto fail;
	close(context);
	return mount;

fail:
	mount = fail_context(context, errno, zramfs_step, error);
	close(context);
	return mount;
}

/* --- the device's filesystem ------------------------------------------- */

/* What concerns the mount, not the filesystem. */
static const struct attribute {
	const char *name;
	unsigned int clear;
	unsigned int set;
} attributes[] = {
	{"ro", 0, MOUNT_ATTR_RDONLY},
	{"rw", MOUNT_ATTR_RDONLY, 0},
	{"nosuid", 0, MOUNT_ATTR_NOSUID},
	{"suid", MOUNT_ATTR_NOSUID, 0},
	{"nodev", 0, MOUNT_ATTR_NODEV},
	{"dev", MOUNT_ATTR_NODEV, 0},
	{"noexec", 0, MOUNT_ATTR_NOEXEC},
	{"exec", MOUNT_ATTR_NOEXEC, 0},
	{"nodiratime", 0, MOUNT_ATTR_NODIRATIME},
	{"diratime", MOUNT_ATTR_NODIRATIME, 0},
	{"atime", MOUNT_ATTR__ATIME, MOUNT_ATTR_RELATIME},
	{"relatime", MOUNT_ATTR__ATIME, MOUNT_ATTR_RELATIME},
	{"noatime", MOUNT_ATTR__ATIME, MOUNT_ATTR_NOATIME},
	{"strictatime", MOUNT_ATTR__ATIME, MOUNT_ATTR_STRICTATIME},
};

/* Those that mount(8) passes, and the filesystem has to know. */
static bool is_for_superblock(const char *option)
{
	return !strcmp(option, "sync") || !strcmp(option, "async") ||
	       !strcmp(option, "dirsync");
}

static const struct attribute *find_attribute(const char *option)
{
	size_t i;

	for (i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (!strcmp(option, attributes[i].name))
			return &attributes[i];
	return NULL;
}

/* A mount being made. */
struct making {
	int context;
	unsigned int attributes;
	const char *step;
	const struct block_error *error;
};

/* One of "name" or "name=value". */
static int configure(struct making *making, char *option)
{
	char *value = strchr(option, '=');

	if (value)
		*value++ = '\0';
	if (fsconfig(making->context,
		     value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, option,
		     value, 0))
		return fail_context(making->context, errno, making->step,
				    making->error);
	return 0;
}

/*
 * Take what is in a comma-separated list. common: the filesystem is to know
 * only those that all do; what else is there is true of it anyway.
 */
static int take_options(struct making *making, const char *list, bool common)
{
	char *copy = strdup(list);
	char *option, *rest;
	int status = 0;

	if (!copy)
		return block_fail(making->error, ENOMEM, making->step,
				  "out of memory");
	for (option = strtok_r(copy, ",", &rest); option && !status;
	     option = strtok_r(NULL, ",", &rest)) {
		const struct attribute *found = find_attribute(option);

		if (found) {
			making->attributes &= ~found->clear;
			making->attributes |= found->set;
		} else if (!common || is_for_superblock(option)) {
			status = configure(making, option);
		}
	}
	free(copy);
	return status;
}

static int create_superblock(struct making *making,
			     const struct block_type *type,
			     const struct options *options, const char *device)
{
	int status;

	if (fsconfig(making->context, FSCONFIG_SET_STRING, "source", device, 0))
		return fail_context(making->context, errno, making->step,
				    making->error);
	status = take_options(making, type->mount_options, false);
	/* With a bound, a deleted file's memory is wanted back at once. */
	if (!status && options->mem_limit && type->discard_option)
		status = take_options(making, type->discard_option, false);
	if (!status)
		status = take_options(making, options->fuse_options, true);
	if (!status)
		status = take_options(making, options->mount_opts, false);
	if (!status &&
	    fsconfig(making->context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		status = fail_context(making->context, errno, making->step,
				      making->error);
	return status;
}

/* As with tmpfs. Ownership first: changing it would clear mode bits. */
static int set_root(int mount, const struct options *options, const char *step,
		    const struct block_error *error)
{
	int root = openat(mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int code = 0;

	if (root < 0)
		return block_fail(error, errno, step, "%s", strerror(errno));
	if (fchown(root, options->uid, options->gid) ||
	    fchmod(root, options->mode))
		code = errno;
	close(root);
	return code ? block_fail(error, code, step,
				 "mode and owner of its root: %s",
				 strerror(code))
		    : 0;
}

static int mount_superblock(struct making *making,
			    const struct options *options)
{
	struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
	const bool ro = making->attributes & MOUNT_ATTR_RDONLY;
	int status, mount;

	mount = fsmount(making->context, FSMOUNT_CLOEXEC,
			making->attributes & ~MOUNT_ATTR_RDONLY);
	if (mount < 0)
		return fail_context(making->context, errno, making->step,
				    making->error);
	status = set_root(mount, options, making->step, making->error);
	if (!status && ro &&
	    mount_setattr(mount, "", AT_EMPTY_PATH, &read_only,
			  sizeof(read_only)))
		status = block_fail(making->error, errno, making->step,
				    "ro: %s", strerror(errno));
	if (!status)
		return mount;
	close(mount);
	return status;
}

int block_attach_device(const struct block_type *type,
			const struct options *options, const char *device,
			const struct block_error *error)
{
	char what[32], step[160];
	struct making making = {.step = step, .error = error};
	int status;

	snprintf(what, sizeof(what), "mounting %s", type->name);
	block_name_step(step, sizeof(step), what, "mount_opts",
			options->mount_opts);
	making.context = fsopen(type->name, FSOPEN_CLOEXEC);
	if (making.context < 0)
		return block_fail(error, errno, what, "%s%s", strerror(errno),
				  errno == ENODEV ? "; the kernel does not "
						    "have it"
						  : "");
	status = create_superblock(&making, type, options, device);
	if (!status)
		status = mount_superblock(&making, options);
	close(making.context);
	return status;
}

int block_attach_at(int mount, const char *mountpoint,
		    const struct block_error *error)
{
	if (move_mount(mount, "", AT_FDCWD, mountpoint,
		       MOVE_MOUNT_F_EMPTY_PATH))
		return block_fail(error, errno, "mounting", "on %s: %s",
				  mountpoint, strerror(errno));
	return 0;
}
