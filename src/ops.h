/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ops.h - one FUSE request in, one reply out
 *
 * The low-level operations, with a struct service as their userdata. They
 * translate between FUSE's terms and those of fs.h and have no policy of their
 * own. Each answers its request exactly once, from the worker that got it.
 *
 * What is not here is answered ENOSYS by libfuse, which the kernel remembers:
 * flush, fsync, fsyncdir (memory is as safe as it gets), access (the kernel
 * checks permissions itself, by default_permissions), locks (it keeps them).
 */
#ifndef ZRAMFS_OPS_H
#define ZRAMFS_OPS_H

#include <stdbool.h>

#include "transport.h"

extern const struct fuse_lowlevel_ops ops;

/*
 * Whether a file is opened past the page cache. Writers with O_DIRECT are
 * served at the same time only so. Who only reads gets its data past it in any
 * case; and so that the kernel asks for all pieces of a large read at once, and
 * not for one after the other, it must not be told.
 */
bool ops_writes_directly(const struct fuse_file_info *fi);

#endif
