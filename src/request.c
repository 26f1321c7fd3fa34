/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * request.c - see request.h
 */
#include "request.h"

#include <linux/fuse.h>
#include <string.h>

/* Since 7.39; not in every header yet. */
#ifndef FUSE_DIRECT_IO_ALLOW_MMAP
#define FUSE_DIRECT_IO_ALLOW_MMAP (1ULL << 36)
#endif

static __thread struct request *current;

struct request *request_current(void)
{
	return current;
}

void request_set_current(struct request *request)
{
	current = request;
}

static uint64_t init_offered(const struct fuse_init_in *in)
{
	uint64_t offered = in->flags;

	if (offered & FUSE_INIT_EXT)
		offered |= (uint64_t)in->flags2 << 32;
	return offered;
}

/*
 * A setxattr request in its longer form has eight more bytes before the name.
 * Moving header and fixed part up by them leaves the form that all versions of
 * libfuse know.
 */
static void *shorten_setxattr(struct fuse_in_header *in, size_t *length)
{
	const size_t extra =
		sizeof(struct fuse_setxattr_in) - FUSE_COMPAT_SETXATTR_IN_SIZE;
	char *moved = (char *)in + extra;

	in->len -= extra;
	*length -= extra;
	memmove(moved, in, sizeof(*in) + FUSE_COMPAT_SETXATTR_IN_SIZE);
	return moved;
}

void *request_receive(struct request *request, void *message, size_t *length)
{
	struct fuse_in_header *in = message;
	const void *body = in + 1;

	request->opcode = in->opcode;
	request->kill_priv = false;
	request->parallel_direct_writes = false;
	request->reply_length = 0;

	switch (in->opcode) {
	case FUSE_INIT:
		request->offered = init_offered(body);
		break;
	case FUSE_WRITE:
		request->kill_priv =
			((const struct fuse_write_in *)body)->write_flags &
			FUSE_WRITE_KILL_SUIDGID;
		break;
	case FUSE_SETATTR:
		request->kill_priv =
			((const struct fuse_setattr_in *)body)->valid &
			FATTR_KILL_SUIDGID;
		break;
	case FUSE_OPEN:
		request->kill_priv =
			((const struct fuse_open_in *)body)->open_flags &
			FUSE_OPEN_KILL_SUIDGID;
		break;
	case FUSE_SETXATTR:
		if (!atomic_load_explicit(&request->agreement->setxattr_ext,
					  memory_order_acquire))
			break;
		request->kill_priv = ((const struct fuse_setxattr_in *)body)
					     ->setxattr_flags &
				     FUSE_SETXATTR_ACL_KILL_SGID;
		return shorten_setxattr(in, length);
	case FUSE_TMPFILE:
		/*
		 * Its body and its reply are those of a create. The op tells
		 * them apart by request->opcode.
		 */
		in->opcode = FUSE_CREATE;
		break;
	}
	return message;
}

/*
 * HANDLE_KILLPRIV_V2: the kernel tells when to take suid away, and need not
 * ask for security.capability before each write. SETXATTR_EXT: the same for
 * set-group-id when an ACL is set. DIRECT_IO_ALLOW_MMAP: files opened with
 * O_DIRECT can be mapped shared, as on other filesystems.
 */
static void adjust_init(struct request *request, struct fuse_init_out *out)
{
	uint64_t flags = request->offered &
			 (FUSE_HANDLE_KILLPRIV_V2 | FUSE_SETXATTR_EXT);

	out->flags |= flags;
	if (out->flags & FUSE_INIT_EXT)
		out->flags2 |=
			(request->offered & FUSE_DIRECT_IO_ALLOW_MMAP) >> 32;
	/* libfuse has it from max_write, which is less where a pipe is. */
	if (request->agreement->read_pages && (out->flags & FUSE_MAX_PAGES))
		out->max_pages = request->agreement->read_pages;
	atomic_store_explicit(&request->agreement->setxattr_ext,
			      flags & FUSE_SETXATTR_EXT, memory_order_release);
}

void request_adjust_reply(struct request *request, struct iovec *iov, int count)
{
	const struct fuse_out_header *header = iov[0].iov_base;
	struct fuse_open_out *open;
	char *body;

	request->reply_length = header->len;
	/* Nothing below is in a notification, an error, or an empty reply. */
	if (header->unique == 0 || header->error || count < 2)
		return;

	body = iov[1].iov_base;
	switch (request->opcode) {
	case FUSE_INIT:
		if (iov[1].iov_len >= sizeof(struct fuse_init_out))
			adjust_init(request, (struct fuse_init_out *)body);
		break;
	case FUSE_CREATE:
	case FUSE_TMPFILE:
		body += sizeof(struct fuse_entry_out);
		/* fall through */
	case FUSE_OPEN:
		open = (struct fuse_open_out *)body;
		if (request->parallel_direct_writes)
			open->open_flags |= FOPEN_PARALLEL_DIRECT_WRITES;
		break;
	}
}
