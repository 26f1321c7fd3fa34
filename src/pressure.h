/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pressure.h - how the daemon goes on while memory is short
 *
 * When memory is short the kernel writes dirty pages back, and where those
 * belong to a device of ours, it is we who have to take them before it gets
 * any memory. So a thread of ours that needs memory must not be made to wait
 * for a write-back; our own pages must be there; and that we are killed would
 * free nothing, as the data is in memfds that others hold too.
 *
 * All of this is the kernel's to allow, and root's only. Where it does not,
 * things go on without, and the log tells.
 */
#ifndef ZRAMFS_PRESSURE_H
#define ZRAMFS_PRESSURE_H

/*
 * Before any thread or process is started, which all inherit it: memory that
 * they get is never waited for by way of a filesystem. Without
 * CAP_SYS_RESOURCE that is not allowed. It is needed in one case then, for a
 * memory cgroup of version 1: its limit is enforced by waiting for write-back,
 * by whoever asks for memory. So this process leaves it.
 */
void pressure_begin(void);

/*
 * Keep this process's pages in memory, those to come too, and let it be the
 * last that is killed for memory. A child has to ask for itself.
 */
void pressure_stay(void);

#endif
