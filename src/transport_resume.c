/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * transport_resume.c - to go on where a dead worker has stopped
 *
 * All in the main thread, before any other serves. The order matters:
 *
 *   1. The agreement: libfuse gets the kernel's FUSE_INIT once more, from the
 *      ledger; what it answers is kept and not sent.
 *   2. Forgets that were read and not done, from the dead worker's buffers
 *      and the pipe: the kernel sends them once.
 *   3. The kernel puts what was read and not answered back into its queue, in
 *      front, and marks it (FUSE_NOTIFY_RESEND, Linux 6.9). It is served here
 *      up to the first request that has no mark. Older kernels get an error
 *      for each.
 *
 * In the queue, but not before, a request goes away when its client is killed:
 * whom to tell of what was done for it then is nobody. So before 3 the kernel
 * is asked, for each request that was begun, whether it waits for the answer.
 * There is no such question; but an answer to an *interrupt* of a request,
 * other than the two that mean something, is taken when that request was read
 * and not answered, is ENOENT else, and does nothing. Requests leave the queue
 * from its front, to be read, or by that kill, and new ones are put at its end.
 * So when one without a mark is read, or the queue is empty, each that waited
 * was read, or is wanted by nobody.
 *
 * Protocol: <linux/fuse.h>, versions 7.38 to 7.40.
 */
#include "transport_private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fault.h"
#include "log.h"

/* Since 7.39 and 7.40; not in every header yet. */
#define NOTIFY_RESEND 7
#define HAS_RESEND    (1ULL << 39)
#define UNIQUE_RESEND (1ULL << 63)

/* In an interrupt's number, and its answer's. */
#define UNIQUE_INTERRUPT 1ULL

/* --- the agreement ----------------------------------------------------- */

static const struct fuse_init_in *init_body(const struct ledger_header *header)
{
	return (const void *)(header->init + sizeof(struct fuse_in_header));
}

static uint32_t init_length(const struct ledger_header *header)
{
	/* Acquire: the message is whole. */
	return atomic_load_explicit(&header->init_length, memory_order_acquire);
}

static bool can_resend(const struct ledger_header *header)
{
	const struct fuse_init_in *in = init_body(header);

	return !fault_old_kernel() && (in->flags & FUSE_INIT_EXT) &&
	       ((uint64_t)in->flags2 << 32 & HAS_RESEND);
}

/*
 * Have libfuse answer the kernel's FUSE_INIT, and keep the answer. The error
 * that is the answer: libfuse will serve no request then.
 */
static int replay_init(struct transport *transport)
{
	struct ledger_header *header = transport->ledger->header;
	_Alignas(8) char message[LEDGER_MESSAGE_MAX];
	struct request *request = request_current();
	size_t length = init_length(header);
	struct fuse_buf buf = {0};

	memcpy(message, header->init, length);
	buf.mem = request_receive(request, message, &length);
	buf.size = length;
	request->keep = header->reply;
	fuse_session_process_buf(transport->session, &buf);
	request->keep = NULL;
	header->reply_length = (uint32_t)request->kept;
	return ((const struct fuse_out_header *)header->reply)->error;
}

void transport_agree(struct transport *transport, const void *message,
		     size_t length)
{
	struct ledger_header *header = transport->ledger->header;
	const struct fuse_in_header *in = message;

	if (!init_length(header)) {
		if (length > LEDGER_MESSAGE_MAX)
			length = LEDGER_MESSAGE_MAX;
		memcpy(header->init, message, length);
		/* Release: the message is whole before its length is there. */
		atomic_store_explicit(&header->init_length, (uint32_t)length,
				      memory_order_release);
		replay_init(transport);
	}
	((struct fuse_out_header *)header->reply)->unique = in->unique;
	if (write(transport->fd, header->reply, header->reply_length) < 0)
		log_line(LOG_ERR, "cannot agree with the kernel: %s",
			 strerror(errno));
}

/* --- what was left behind ---------------------------------------------- */

/* NULL: the worker had finished what it served. */
static struct fuse_in_header *left_behind(const struct worker *worker)
{
	struct fuse_in_header *in =
		(struct fuse_in_header *)(worker->buffer + REQUEST_START);

	return in->len >= sizeof(*in) && in->len <= BUFFER_SIZE ? in : NULL;
}

static bool is_forget(const struct fuse_in_header *in)
{
	return in->opcode == FUSE_FORGET || in->opcode == FUSE_BATCH_FORGET;
}

static void serve_here(struct transport *transport, void *message,
		       size_t length)
{
	const struct fuse_in_header *in = message;
	int error = transport->config.resume(transport->config.userdata,
					     in->unique & ~UNIQUE_RESEND);

	if (error)
		log_line(LOG_ERR,
			 "a request (opcode %u) in which workers died is "
			 "refused",
			 in->opcode);
	transport_serve(&transport->workers[0], message, length, error);
	if (!error && !is_forget(in))
		transport_tell_served(transport);
}

static void do_forgets(struct transport *transport)
{
	unsigned int i;

	for (i = 0; i < transport->threads; i++) {
		struct fuse_in_header *in = left_behind(&transport->workers[i]);

		if (in && is_forget(in))
			serve_here(transport, in, in->len);
	}
}

/* A request that the kernel will not send again, and waits for. */
static void refuse_request(struct transport *transport,
			   struct fuse_in_header *in)
{
	struct fuse_out_header out = {
		.len = sizeof(out),
		.error = -EIO,
		.unique = in->unique,
	};

	if (is_forget(in) || in->opcode == FUSE_INTERRUPT ||
	    in->opcode == FUSE_INIT)
		return;
	/* ENOENT: it was answered before the death. */
	if (write(transport->fd, &out, sizeof(out)) == (ssize_t)sizeof(out)) {
		log_line(LOG_WARNING,
			 "a request (opcode %u) was lost with the worker",
			 in->opcode);
		transport->config.withdraw(transport->config.userdata,
					   in->unique);
	}
	in->len = 0;
}

static void refuse_requests(struct transport *transport)
{
	unsigned int i;

	for (i = 0; i < transport->threads; i++) {
		struct fuse_in_header *in = left_behind(&transport->workers[i]);

		if (in)
			refuse_request(transport, in);
	}
}

/*
 * What had come as far as the pipe. Nothing is in the buffers any more. What
 * is no forget is asked for again.
 */
static void empty_pipe(struct transport *transport)
{
	struct worker *worker = &transport->workers[0];
	char *message = worker->buffer + REQUEST_START;
	struct fuse_in_header *in = (struct fuse_in_header *)message;
	size_t length;

	while ((length = transport_take_left(worker))) {
		if (is_forget(in))
			serve_here(transport, message, length);
		else if (!can_resend(transport->ledger->header))
			refuse_request(transport, in);
		in->len = 0;
	}
}

static int ask_again(struct transport *transport)
{
	struct fuse_out_header out = {
		.len = sizeof(out),
		.error = NOTIFY_RESEND,
	};

	if (write(transport->fd, &out, sizeof(out)) < 0 && errno != ENODEV)
		return -errno;
	return 0;
}

static bool is_unanswered(struct transport *transport, uint64_t unique)
{
	struct fuse_out_header out = {
		.len = sizeof(out),
		.unique = unique | UNIQUE_INTERRUPT,
	};

	return write(transport->fd, &out, sizeof(out)) == (ssize_t)sizeof(out);
}

/* It may have been sent again to another worker, and have the mark. */
static bool waits(void *caller, uint64_t request)
{
	struct transport *transport = caller;

	return is_unanswered(transport, request) ||
	       is_unanswered(transport, request | UNIQUE_RESEND);
}

static int set_blocking(struct transport *transport, bool blocking)
{
	int flags = fcntl(transport->fd, F_GETFL);

	if (flags < 0)
		return -errno;
	flags = blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK;
	return fcntl(transport->fd, F_SETFL, flags) < 0 ? -errno : 0;
}

/*
 * Up to the first request that was not sent before. True when there can be none
 * after it that was.
 */
static bool serve_resent(struct transport *transport)
{
	char *message = transport->workers[0].buffer + REQUEST_START;
	const struct fuse_in_header *in = (const void *)message;
	bool more = true;

	while (more) {
		ssize_t length = read(transport->fd, message,
				      BUFFER_SIZE - REQUEST_START);

		if (length < 0 && (errno == EINTR || errno == ENOENT))
			continue;
		if (length < (ssize_t)sizeof(*in))
			return length < 0 && errno == EAGAIN;
		/* Those have no answer, and so no mark, and come in between. */
		more = is_forget(in) || in->opcode == FUSE_INTERRUPT ||
		       (in->unique & UNIQUE_RESEND);
		serve_here(transport, message, (size_t)length);
	}
	return true;
}

/* all: as transport_config's resumed(). */
static int resume_requests(struct transport *transport, bool *all)
{
	int error;

	if (!can_resend(transport->ledger->header))
		refuse_requests(transport);
	empty_pipe(transport);
	if (!can_resend(transport->ledger->header))
		return 0;
	transport->config.await(transport->config.userdata, waits, transport);
	error = set_blocking(transport, false);
	if (!error)
		error = ask_again(transport);
	fault_point("requests asked for");
	if (!error)
		*all = serve_resent(transport);
	return error;
}

static int resume(struct transport *transport)
{
	bool all = false;
	int error = transport->config.attach(transport->config.userdata);

	if (error)
		return error;
	request_set_current(&transport->workers[0].request);
	error = replay_init(transport);
	if (!error) {
		transport_keep_buffer(&transport->workers[0]);
		do_forgets(transport);
		error = resume_requests(transport, &all);
		transport->config.resumed(transport->config.userdata, all);
	}
	request_set_current(NULL);
	transport->config.detach(transport->config.userdata);
	return error;
}

int transport_attach(struct transport *transport, const struct ledger *ledger)
{
	unsigned int i;
	int error = 0;

	transport->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (transport->event < 0)
		return -errno;
	transport->ledger = ledger;
	for (i = 0; i < transport->threads; i++) {
		struct worker *worker = &transport->workers[i];

		worker->buffer = ledger_buffer(ledger, i);
		worker->request.reply = worker->buffer + REPLY_START;
		transport_prepare_buffer(worker);
	}
	if (init_length(ledger->header))
		error = resume(transport);
	/* A worker that died in between has left it otherwise. */
	if (!error)
		error = set_blocking(transport, true);
	return error;
}
