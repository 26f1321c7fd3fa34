/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * transport_session.c - libfuse's session: options, mounting, replies
 *
 * Options and mounting end with one line that says what was wrong: libfuse and
 * fusermount3 only print, to standard error, what is caught here. What libfuse
 * has to say later goes to the log.
 */
#include "transport_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fault.h"
#include "log.h"

/* --- what libfuse has to say ------------------------------------------- */

/* Where libfuse's messages go while a caller wants them; else to the log. */
static char *capture;
static size_t capture_size;

static void on_fuse_log(enum fuse_log_level level, const char *format,
			va_list arguments)
{
	char line[512];
	size_t used;

	if (capture) {
		used = strlen(capture);
		vsnprintf(capture + used, capture_size - used, format,
			  arguments);
		return;
	}
	vsnprintf(line, sizeof(line), format, arguments);
	line[strcspn(line, "\n")] = '\0';
	/* The levels are syslog's. */
	log_line((int)level, "%s", line);
}

static void capture_begin(char *message, size_t size)
{
	message[0] = '\0';
	capture_size = size;
	capture = message;
}

/* Leave the first line, without the program's name. */
static void capture_end(char *message)
{
	static const char *const prefixes[] = {
		"fuse: ", "error: ", "fusermount3: "};
	size_t i;

	capture = NULL;
	message[strcspn(message, "\n")] = '\0';
	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(message, prefixes[i], strlen(prefixes[i])))
			memmove(message, message + strlen(prefixes[i]),
				strlen(message + strlen(prefixes[i])) + 1);
}

/* --- making it --------------------------------------------------------- */

/*
 * What is read in one request, unless the user says otherwise. A large read is
 * several, so that several workers serve it: of 1 MiB, past the page cache, by
 * one client of a machine with two processors, 4.6 GiB/s became 6.9. In
 * quarters it was 6.3, and two clients lost a third and not a fifth of what
 * they had.
 */
#define READ_MAX (512u << 10)
#define NOT_SAID UINT_MAX

struct own_options {
	unsigned int max_read;
};

static const struct fuse_opt own_options[] = {
	{"max_read=%u", offsetof(struct own_options, max_read), 1},
	/* libfuse has to see it too. */
	FUSE_OPT_KEY("max_read=", FUSE_OPT_KEY_KEEP),
	FUSE_OPT_END};

int transport_create_session(struct transport *transport,
			     const struct transport_config *config,
			     char *message, size_t message_size)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct own_options own = {NOT_SAID};
	char read_max[32];
	int error = -ENOMEM;

	fuse_set_log_func(on_fuse_log);
	capture_begin(message, message_size);
	if (fuse_opt_add_arg(&args, "zramfs") ||
	    fuse_opt_add_arg(&args, "-o") ||
	    fuse_opt_add_arg(&args, config->options))
		goto out;
	error = -EINVAL;
	if (fuse_opt_parse(&args, &own, own_options, NULL))
		goto out;
	if (own.max_read == NOT_SAID) {
		own.max_read = READ_MAX;
		snprintf(read_max, sizeof(read_max), "-omax_read=%u", READ_MAX);
		error = -ENOMEM;
		if (fuse_opt_add_arg(&args, read_max))
			goto out;
		error = -EINVAL;
	}
	transport->max_read = own.max_read;
	transport->session = fuse_session_new(
		&args, config->ops, sizeof(*config->ops), config->userdata);
	if (transport->session)
		error = 0;
out:
	capture_end(message);
	fuse_opt_free_args(&args);
	return error;
}

/* --- mounting ---------------------------------------------------------- */

/* The reply is not for the kernel: it has one. */
static ssize_t keep_reply(struct request *request, const struct iovec *iov,
			  int count)
{
	size_t length = 0;
	int i;

	for (i = 0; i < count; i++) {
		size_t part = iov[i].iov_len;

		if (part > LEDGER_MESSAGE_MAX - length)
			part = LEDGER_MESSAGE_MAX - length;
		memcpy(request->keep + length, iov[i].iov_base, part);
		length += part;
	}
	request->kept = length;
	return (ssize_t)length;
}

/*
 * libfuse answers ENOMEM when it has no memory for a request, and so it does
 * with forgets, which have no answer: who sent it to libfuse has to know.
 */
static bool is_for_nobody(const struct request *request)
{
	return request->opcode == FUSE_FORGET ||
	       request->opcode == FUSE_BATCH_FORGET;
}

static ssize_t send_reply(int fd, struct iovec *iov, int count, void *userdata)
{
	struct request *request = request_current();
	ssize_t sent;

	if (request)
		request_adjust_reply(request, iov, count);
	if (request && request->keep)
		return keep_reply(request, iov, count);
	if (request && is_for_nobody(request)) {
		request->undone = true;
		return ((const struct fuse_out_header *)iov[0].iov_base)->len;
	}
	fault_point("answer to be sent");
	transport_answering();
	sent = writev(fd, iov, count);
	fault_point("answer sent");
	/*
	 * ENOENT: nobody waits for this answer any more. ENODEV: unmounted.
	 * Others would be a fault of ours; the request then stays unanswered,
	 * which the log should tell.
	 */
	if (sent < 0 && errno != ENOENT && errno != ENODEV) {
		int error = errno;

		log_line(LOG_ERR, "cannot answer the kernel: %s",
			 strerror(error));
		errno = ENOENT;
	}
	return sent;
}

/* Workers read by themselves; libfuse wants one to be there. */
static ssize_t receive(int fd, void *buffer, size_t size, void *userdata)
{
	return read(fd, buffer, size);
}

/*
 * libfuse and fusermount3 tell what went wrong on standard error only. Catch
 * it, so that one line can be made of it.
 */
static int mount_session(struct fuse_session *session, const char *mountpoint,
			 char *message, size_t message_size)
{
	int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	int caught = memfd_create("zramfs-stderr", MFD_CLOEXEC);
	bool redirected;
	ssize_t length;
	int status;

	redirected = kept >= 0 && caught >= 0 &&
		     dup2(caught, STDERR_FILENO) == STDERR_FILENO;
	capture_begin(message, message_size);
	status = fuse_session_mount(session, mountpoint);
	if (redirected) {
		dup2(kept, STDERR_FILENO);
		if (!message[0]) {
			length = pread(caught, message, message_size - 1, 0);
			message[length > 0 ? length : 0] = '\0';
		}
	}
	capture_end(message);
	if (kept >= 0)
		close(kept);
	if (caught >= 0)
		close(caught);
	return status;
}

/*
 * With auto_unmount, fusermount3 waits at a socket for the death of whoever
 * holds the other end, which libfuse leaves open, and then looks whether the
 * mount is dead too. It is when /dev/fuse is closed; which has to be before the
 * socket is. What a process that is killed has open is closed for good in the
 * order of last opened, first closed: so it is opened last.
 */
#define LAST_FD 32 /* above all that is open by then */

static int open_last(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, LAST_FD);
}

int transport_mount(struct transport *transport, const char *mountpoint,
		    char *message, size_t message_size)
{
	static const struct fuse_custom_io io = {
		.writev = send_reply,
		.read = receive,
	};
	struct fuse_session *session = transport->session;

	if (mount_session(session, mountpoint, message, message_size)) {
		if (!message[0])
			snprintf(message, message_size, "the mount failed");
		return -EIO;
	}
	transport->mounted = true;
	transport->fd = fuse_session_fd(session);
	transport->last_fd = open_last(transport->fd);
	if (fuse_session_custom_io(session, &io, transport->fd)) {
		snprintf(message, message_size, "out of memory");
		return -ENOMEM;
	}
	return 0;
}
