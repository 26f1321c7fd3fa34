/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * upgrade.h - another program as the next worker, on the live state
 *
 * The worker that is asked looks whether the other program lays the memfds out
 * as it does (PROGRAM --layout-version), tells the keeper, and ends when it has
 * finished what it serves. The keeper starts the other program as the next
 * worker. That gets everything by descriptors, named in its environment:
 * UPGRADE_ENVIRONMENT, and finds the rest as after a death.
 */
#ifndef ZRAMFS_UPGRADE_H
#define ZRAMFS_UPGRADE_H

#include <stdbool.h>
#include <stddef.h>

#define UPGRADE_ENVIRONMENT "ZRAMFS_WORKER"
#define UPGRADE_OPTION	    "--layout-version"

/* What a worker inherits; the block root is -1 but in block mode. */
struct upgrade_descriptors {
	int fuse;
	int arena;
	int ledger;
	int pipe[2]; /* of the ledger; or -1 */
	int link;
	int block_root;
	const char *mountpoint; /* in full */
};

/* The layouts of arena, ledger and filesystem, as a word. */
const char *upgrade_layout(void);

/*
 * Ask the program at path for its layout. 0; -EPROTO: another one; -ENOEXEC:
 * no answer that makes sense, or none within two seconds; or why it cannot be
 * run. One line in message.
 */
int upgrade_check(const char *path, char *message, size_t size);

/*
 * Become the program, with the arguments of this one. Returns -errno when that
 * fails, and nothing has changed then.
 */
int upgrade_become(int program, char **argv,
		   const struct upgrade_descriptors *descriptors);

/*
 * What upgrade_become() has left for this program; false: it was started by
 * somebody else. To be called once, before children are started.
 */
bool upgrade_inherited(struct upgrade_descriptors *descriptors);

#endif
