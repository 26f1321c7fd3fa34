/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * null_ops.h - the operations of a filesystem that stores nothing
 *
 * Files have a name, a size and attributes; what is written is dropped, what
 * is read is zeros. The userdata is a struct null_mount, complete before the
 * kernel's first request.
 */
#ifndef ZRAMFS_BENCH_NULL_OPS_H
#define ZRAMFS_BENCH_NULL_OPS_H

#include <sys/types.h>

#include "options.h"
#include "transport.h"

struct null_mount {
	const struct options *options;
	const struct transport *transport;
};

extern const struct fuse_lowlevel_ops null_ops;

/* Make the root directory, before anything is served. -ENOMEM. */
int null_ops_start(mode_t mode);

#endif
