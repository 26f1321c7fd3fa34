/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * request.h - the raw request under the one that libfuse shows
 *
 * libfuse hides parts of the FUSE protocol, or does not know them yet. This
 * file is the one place that reads and changes raw messages: it notes what is
 * hidden before libfuse parses a request, turns what libfuse cannot parse into
 * something that it can, and sets the flags that libfuse has no name for in
 * replies. So one source works with every libfuse from 3.12 on.
 *
 * Protocol: <linux/fuse.h>, version 7.38.
 *
 * A struct request belongs to one worker thread, which serves one request at
 * a time.
 */
#ifndef ZRAMFS_REQUEST_H
#define ZRAMFS_REQUEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Longest data of a read or a write, and so of any reply. */
#define REQUEST_DATA_MAX (1u << 20)

/* In block mode, where buffers stay in memory and large requests are split. */
#define REQUEST_DATA_BLOCK (256u << 10)

/* What was agreed with the kernel beyond what libfuse knows. */
struct request_agreement {
	atomic_bool setxattr_ext; /* setxattr requests have their longer form */
	uint16_t read_pages; /* at most in a read; 0: as in a write */
};

struct request {
	struct request_agreement *agreement;
	uint32_t opcode; /* as the kernel sent it */
	bool busy;	 /* it is being served */
	bool undone;	 /* libfuse had no memory for one without an answer */
	/* The kernel asks that suid, sgid (and capabilities) be taken away. */
	bool kill_priv;
	/* The op's: several may write directly to this open file at once. */
	bool parallel_direct_writes;
	/* FUSE_INIT: what the kernel offers. */
	uint64_t offered;
	/*
	 * Where to keep the reply instead of sending it: LEDGER_MESSAGE_MAX
	 * bytes; and how long it was. NULL: it is sent.
	 */
	char *keep;
	size_t kept;
	/* Room for a reply, REQUEST_DATA_MAX bytes, page-aligned. */
	char *reply;
	size_t reply_length; /* of the whole message, once sent */
};

/* Of the calling worker; NULL in other threads. */
struct request *request_current(void);
void request_set_current(struct request *request);

/*
 * Look at a message from the kernel and prepare it for libfuse. Returns where
 * it now starts, with its new length in *length. The message has its header
 * whole; it is changed in place.
 */
void *request_receive(struct request *request, void *message, size_t *length);

/* Change a reply, as libfuse is about to send it, in place. */
void request_adjust_reply(struct request *request, struct iovec *iov,
			  int count);

#endif
