/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ledger.h - what of the requests under way outlives the worker
 *
 * A memfd beside the arena, with all that a new worker has to know of the one
 * before it and that is not the filesystem itself:
 *
 *   header   settings as last changed, and the agreement with the kernel
 *   answers  for each thread, what it was doing (fs/answer.h)
 *   buffers  for each thread, the message that it was serving
 *
 * and a pipe, through which a message may come to its buffer.
 *
 * The buffers are here because the kernel sends forgets once and wants no
 * answer: one that was read and not yet done is done by the next worker, from
 * the dead one's buffer, or the pipe.
 *
 * Whoever holds the memfd and the pipe holds no more than descriptors; the
 * worker maps the one and uses the other.
 * Errors are negative errno. Not thread-safe; what is mapped is its users'.
 */
#ifndef ZRAMFS_LEDGER_H
#define ZRAMFS_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Changes with the layout of anything in the ledger. */
#define LEDGER_VERSION 3

#define LEDGER_MESSAGE_MAX 1024

struct answer;

/* One page. */
struct ledger_header {
	uint64_t magic;
	uint32_t version;
	uint32_t threads; /* buffers */
	uint32_t answers;
	_Atomic uint32_t made;	 /* the filesystem in the arena is complete */
	_Atomic uint32_t ending; /* nobody needs it any more */
	/* Block mode: st_dev of what was mounted on the device; 0: nothing. */
	_Atomic uint64_t block_device;
	/* As asked for last; valid once made. */
	_Atomic uint64_t mem_limit;
	_Atomic uint64_t hot;
	/* The kernel's FUSE_INIT and our answer to it; of length 0: none yet.
	 */
	_Atomic uint32_t init_length;
	_Atomic uint32_t reply_length;
	_Alignas(8) char init[LEDGER_MESSAGE_MAX];
	_Alignas(8) char reply[LEDGER_MESSAGE_MAX];
};

struct ledger {
	int fd;
	size_t size;
	struct ledger_header *header;
	struct answer *answers;
	char *buffers;
	const int *pipe; /* its holder's two ends; -1: there is none */
	size_t data_max; /* that a message may have for it, of whole pages */
};

/* A buffer: see transport.c. */
#define LEDGER_DATA_MAX	   (1u << 20)
#define LEDGER_BUFFER_SIZE (LEDGER_DATA_MAX + 2 * 4096u)

/* A new ledger's descriptor, with nothing mapped. */
int ledger_create(unsigned int threads);

/*
 * A pipe that takes any message, or one with next to a megabyte, which is what
 * the system allows to those without CAP_SYS_RESOURCE. -1 in both ends: it
 * allows neither (pipe-max-size, pipe-user-pages-soft: proc(5)).
 */
void ledger_open_pipe(int ends[2]);

/* fd is duplicated, pipe is not. -EPROTO: not a ledger of this version. */
int ledger_map(struct ledger *ledger, int fd, const int pipe[2]);
void ledger_unmap(struct ledger *ledger);

char *ledger_buffer(const struct ledger *ledger, unsigned int thread);
/*
 * Give a buffer's memory back to the system, but for its first page; what is
 * given back reads as zeros then.
 */
void ledger_release_buffer(const struct ledger *ledger, unsigned int thread);

#endif
