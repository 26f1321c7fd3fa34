/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control_set.c - the daemon's side of zramfsctl set
 */
#include <errno.h>
#include <string.h>

#include "control.h"
#include "fault.h"
#include "fs/damage.h"
#include "ops_private.h"
#include "process_memory.h"

/* As the kernel has it: the highest is from now on, and only 0 says so. */
static int reset_most(struct service *service, uint64_t value)
{
	if (value)
		return -EINVAL;
	arena_reset_peak(service->arena);
	process_memory_reset_most();
	return 0;
}

#ifdef ZRAMFS_FAULTS
/* See fault.h. -ENOENT: no such key. */
static int set_fault(struct service *service, fuse_ino_t ino, const char *key,
		     uint64_t value)
{
	if (!strcmp(key, "fault"))
		fault_arm_request(value, 0);
	else if (!strcmp(key, "fault_alloc") && value)
		fault_arm_request(0, value);
	else if (!strcmp(key, "fault_alloc"))
		return fault_disarm_alloc();
	else if (!strcmp(key, "fault_blocks"))
		return fault_blocks() <= (long)value ? 0 : -ERANGE;
	else if (!strcmp(key, "fault_flip"))
		return fs_damage(service->fs, ino, value);
	else
		return -ENOENT;
	return 0;
}
#endif

static int set(struct service *service, fuse_ino_t ino,
	       const struct control_set *set)
{
#ifdef ZRAMFS_FAULTS
	int error = set_fault(service, ino, set->key, set->value);

	if (error != -ENOENT)
		return error;
#endif
	if (!strncmp(set->key, "size", sizeof(set->key)))
		return fs_set_size(service->fs, set->value);
	if (!strncmp(set->key, "mem_limit", sizeof(set->key)))
		return service_set_mem_limit(service, set->value);
	if (!strncmp(set->key, "hot", sizeof(set->key)))
		return service_set_hot(service, set->value);
	if (!strncmp(set->key, "mem_used_max", sizeof(set->key)))
		return reset_most(service, set->value);
	return -ENOENT;
}

void control_set(fuse_req_t req, fuse_ino_t ino,
		 const struct control_set *wanted)
{
	struct service *service = ops_service(req);
	struct control_set answer = *wanted;
	struct fs_stats stats;

	answer.error = set(service, ino, wanted);
	if (answer.error == -EBUSY) {
		fs_stats(service->fs, &stats);
		answer.value = stats.size_used;
	} else if (answer.error == -EINVAL) {
		answer.value = service_least_mem_limit(service);
	}
	fuse_reply_ioctl(req, 0, &answer, sizeof(answer));
}
