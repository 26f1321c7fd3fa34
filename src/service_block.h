/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * service_block.h - what block mode's filesystem has to know of the store
 *
 * Joins block_space.h, which knows neither files nor memory, and the service.
 */
#ifndef ZRAMFS_SERVICE_BLOCK_H
#define ZRAMFS_SERVICE_BLOCK_H

#include <stdbool.h>
#include <sys/types.h>

#include "block_space.h"
#include "service.h"

/*
 * Watch over the space of what is mounted; mountpoint and service have to stay
 * until block_space_stop(). again: another worker did so before; the others
 * are block_space.h's. Errors as
 * block_space_start().
 */
int service_watch_space(struct service *service, const char *mountpoint,
			dev_t device, bool again, bool trims, bool reserves,
			struct block_space **space);

#endif
