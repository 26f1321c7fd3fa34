/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options_mount.c - the options of FUSE and of mount(8) that zramfs takes
 *
 * Knows them by name only. What they do is for libfuse and the kernel; that
 * they exist is checked here, as libfuse's own complaint does not say much.
 */
#include "options_private.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* What every libfuse from 3.14 on passes to the kernel or knows itself. */
static const char *const fuse_flags[] = {
	"ro",		"rw",	       "suid",	     "nosuid",
	"dev",		"nodev",       "exec",	     "noexec",
	"atime",	"noatime",     "sync",	     "async",
	"dirsync",	"allow_other", "allow_root", "default_permissions",
	"auto_unmount",
};

static const char *const fuse_values[] = {
	"fsname",    "subtype",	   "max_read",	  "context",
	"fscontext", "defcontext", "rootcontext",
};

/*
 * For mount(8) alone, or true of every mount without being said: libfuse does
 * not know them. A name with '=' has a value.
 */
static const char *const dropped[] = {
	"defaults", "auto",	  "noauto",	   "user",     "user=",
	"users",    "nouser",	  "owner",	   "noowner",  "group",
	"nogroup",  "nofail",	  "_netdev",	   "comment=", "relatime",
	"diratime", "nolazytime", "nostrictatime",
};

/* The kernel's, but libfuse has no way to pass them. */
static const char *const impossible[] = {
	"nodiratime",
	"norelatime",
	"strictatime",
	"lazytime",
};

static bool listed(const char *const *names, size_t count, const char *name,
		   size_t len)
{
	for (size_t i = 0; i < count; i++) {
		if (strlen(names[i]) == len && !memcmp(names[i], name, len))
			return true;
	}
	return false;
}

#define LISTED(names, name, len) \
	listed(names, sizeof(names) / sizeof(*(names)), name, len)

/*
 * The whole of what can be wrong with an option that is passed on: a value
 * too many or too few.
 */
static enum mount_option check_value(const char *option, size_t len,
				     const struct message *message)
{
	bool wants_value = LISTED(fuse_values, option, len);

	if (!wants_value && option[len])
		options_fail(message, -EINVAL,
			     "%.64s: %.*s takes no value, use %.*s", option,
			     (int)len, option, (int)len, option);
	else if (wants_value && (!option[len] || !option[len + 1]))
		options_fail(message, -EINVAL,
			     "%.*s needs a value: use %.*s=VALUE", (int)len,
			     option, (int)len, option);
	else
		return MOUNT_OPTION_PASS;
	return MOUNT_OPTION_WRONG;
}

enum mount_option options_mount(const char *option,
				const struct message *message)
{
	size_t len = strcspn(option, "=");

	if (LISTED(dropped, option, len + (option[len] == '=')) ||
	    !strncasecmp(option, "x-", 2))
		return MOUNT_OPTION_DROP;
	if (LISTED(fuse_flags, option, len) || LISTED(fuse_values, option, len))
		return check_value(option, len, message);
	if (!strcmp(option, "remount"))
		options_fail(message, -EINVAL,
			     "remount is not for zramfs to do: use mount -i -o "
			     "remount,..., and zramfsctl set for limits");
	else if (LISTED(impossible, option, strlen(option)))
		options_fail(message, -EINVAL,
			     "%s is not possible with FUSE: leave it out, or "
			     "use noatime",
			     option);
	else
		options_fail(message, -EINVAL,
			     "'%.64s' is no option of zramfs, FUSE or mount: "
			     "see zramfs --help",
			     option);
	return MOUNT_OPTION_WRONG;
}
