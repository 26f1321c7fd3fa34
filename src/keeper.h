/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * keeper.h - the process that outlives the one that serves
 *
 * The keeper holds what must not be lost: the descriptor of /dev/fuse, and the
 * memfds of the arena and the ledger. It starts a worker, waits, and starts
 * another when the worker has died. It has no other thread, maps neither
 * memfd, reads no request, and its memory is locked where that is allowed: so
 * there is next to nothing that it could die of.
 *
 * A worker that exits has ended in order (it was asked to, or the filesystem
 * was unmounted), and then so does the keeper. Signals that ask for an end are
 * passed on to the worker. Of workers that die one after the other within
 * KEEPER_DEATHS_SECONDS, with no request served between them, the
 * KEEPER_DEATHS-th is the last.
 *
 * When the keeper dies, the worker serves on alone.
 *
 * A worker may name another program; then it has to end, and from then on
 * workers are that program. Should the first of them fail before it has served
 * a request, it is the present program again.
 */
#ifndef ZRAMFS_KEEPER_H
#define ZRAMFS_KEEPER_H

#include <stdbool.h>
#include <stddef.h>

#define KEEPER_DEATHS	      3
#define KEEPER_DEATHS_SECONDS 10

/* What a worker under a keeper is called, as ps and top show it. */
#define KEEPER_WORKER_NAME "zramfs-worker"

/* What a worker says through its link: the first byte of a message. */
enum keeper_message {
	KEEPER_READY = 'r',  /* it serves; only the first has to say so */
	KEEPER_SERVED = 's', /* it has served a request */
	KEEPER_LINE = 'l',   /* a line for the log follows */
	KEEPER_UPGRADE = 'u' /* the full name of the next program follows */
};

/* What the keeper says to a worker: to end, for another program. */
#define KEEPER_HAND_OVER 'h'

/* With which exit status a worker does so. */
#define KEEPER_HANDED_OVER 77

#define KEEPER_MESSAGE_MAX 1024

struct keeper_config {
	/*
	 * In the new process: serve, and return its exit status. link is its
	 * end of a socket; its other end closes when the keeper dies. first:
	 * no worker was ready before.
	 */
	int (*work)(void *context, int link, bool first);
	/* The same by another program. Returns when that cannot be run. */
	void (*become)(void *context, int program, int link);
	/* In the keeper, once the first worker is ready: 0 or an exit status.
	 */
	int (*ready)(void *context);
	void *context;
};

/*
 * Keep workers running until the end; returns the exit status. lost: the last
 * one died, and what is mounted will not answer any more. The signals of
 * transport_block_signals() are blocked.
 */
int keeper_run(const struct keeper_config *config, bool *lost);

/* For workers: never waits, never fails. Safe in signal handlers. */
void keeper_tell(int link, enum keeper_message what, const char *text,
		 size_t length);

#endif
