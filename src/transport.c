/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * transport.c - see transport.h
 *
 * One descriptor of /dev/fuse serves all workers: cloned descriptors
 * (FUSE_DEV_IOC_CLONE) save the kernel a little contention on many cores, but
 * a request read through a clone is lost when that clone is closed.
 *
 * There are no locks here. A worker's counters are written by it alone and
 * read by anybody, so they are relaxed atomics that cost no more than plain
 * ones.
 */
#include "transport_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "log.h"

/* Enough for libfuse, a directory operation and the codecs' small frames. */
#define STACK_SIZE (256 * 1024)

/*
 * Messages above this make a buffer worth giving back, once none came for the
 * time of one to two ticks.
 */
#define LARGE_MESSAGE (64 * 1024)
#define TICK_MS	      400

/* Interrupts a worker's read(); does nothing else. */
#define WAKE_SIGNAL SIGUSR2

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

/* --- signals ----------------------------------------------------------- */

/* Those that ask the daemon to end. */
static void end_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
}

int transport_block_signals(void)
{
	sigset_t set;

	end_signals(&set);
	sigaddset(&set, WAKE_SIGNAL);
	return -pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* --- life -------------------------------------------------------------- */

struct own_options {
	unsigned int max_read;
};

static const struct fuse_opt own_options[] = {
	{"max_read=%u", offsetof(struct own_options, max_read), 1},
	/* libfuse has to see it too. */
	FUSE_OPT_KEY("max_read=", FUSE_OPT_KEY_KEEP),
	FUSE_OPT_END};

static int create_session(struct transport *transport,
			  const struct transport_config *config, char *message,
			  size_t message_size)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct own_options own = {0};
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

static int create_workers(struct transport *transport, unsigned int threads)
{
	size_t size = threads * sizeof(struct worker);
	unsigned int i;

	transport->workers = aligned_alloc(_Alignof(struct worker), size);
	if (!transport->workers)
		return -ENOMEM;
	memset(transport->workers, 0, size);
	transport->threads = threads;
	for (i = 0; i < threads; i++) {
		struct worker *worker = &transport->workers[i];

		worker->transport = transport;
		worker->request.agreement = &transport->agreement;
	}
	return 0;
}

int transport_create(struct transport **result,
		     const struct transport_config *config, char *message,
		     size_t message_size)
{
	struct transport *transport = calloc(1, sizeof(*transport));
	int error = -ENOMEM;

	if (!transport)
		goto fail;
	transport->fd = transport->event = transport->signals = -1;
	transport->attach = config->attach;
	transport->detach = config->detach;
	transport->served = config->served;
	transport->userdata = config->userdata;
	transport->owner = true;

	error = create_session(transport, config, message, message_size);
	if (error)
		goto fail;
	error = create_workers(transport, config->threads);
	if (error)
		goto fail;
	*result = transport;
	return 0;

fail:
	if (!message[0])
		snprintf(message, message_size, "%s", strerror(-error));
	transport_destroy(transport);
	return error;
}

unsigned int transport_max_read(const struct transport *transport)
{
	return transport->max_read;
}

void transport_destroy(struct transport *transport)
{
	if (!transport)
		return;
	if (transport->mounted && transport->owner)
		fuse_session_unmount(transport->session);
	if (transport->session)
		fuse_session_destroy(transport->session);
	free(transport->workers);
	if (transport->event >= 0)
		close(transport->event);
	if (transport->signals >= 0)
		close(transport->signals);
	free(transport);
}

void transport_disown(struct transport *transport)
{
	transport->owner = false;
}

void transport_own(struct transport *transport)
{
	transport->owner = true;
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

static ssize_t send_reply(int fd, struct iovec *iov, int count, void *userdata)
{
	struct request *request = request_current();
	ssize_t sent;

	if (request)
		request_adjust_reply(request, iov, count);
	if (request && request->keep)
		return keep_reply(request, iov, count);
	sent = writev(fd, iov, count);
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
	if (fuse_session_custom_io(session, &io, transport->fd)) {
		snprintf(message, message_size, "out of memory");
		return -ENOMEM;
	}
	return 0;
}

/* --- workers ----------------------------------------------------------- */

static void notify(struct transport *transport)
{
	uint64_t one = 1;

	/* Fails only when the count is at its end: then it is readable. */
	if (write(transport->event, &one, sizeof(one)) < 0)
		return;
}

/* The owner alone writes these: no read-modify-write is needed. */
static void count_one(_Atomic uint64_t *counter)
{
	atomic_store_explicit(
		counter,
		atomic_load_explicit(counter, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

static void note_large(struct worker *worker, size_t length)
{
	if (length <= LARGE_MESSAGE)
		return;
	count_one(&worker->large_served);
	if (atomic_load_explicit(&worker->large, memory_order_relaxed))
		return;
	atomic_store_explicit(&worker->large, true, memory_order_relaxed);
	notify(worker->transport);
}

static void give_buffer_back(struct worker *worker)
{
	if (!atomic_load_explicit(&worker->give_back, memory_order_relaxed))
		return;
	atomic_store_explicit(&worker->give_back, false, memory_order_relaxed);
	ledger_release_buffer(worker->transport->ledger,
			      worker - worker->transport->workers);
	atomic_store_explicit(&worker->large, false, memory_order_relaxed);
}

void transport_serve(struct worker *worker, void *message, size_t length)
{
	struct request *request = &worker->request;
	struct transport *transport = worker->transport;
	struct fuse_in_header *in = message;
	struct fuse_buf buf = {0};
	size_t received = length;
	uint32_t opcode;

	opcode = in->opcode < TRANSPORT_OPCODES ? in->opcode : 0;
	count_one(&worker->requests[opcode]);
	if (opcode == FUSE_INIT) {
		transport_agree(transport, message, length);
	} else {
		buf.mem = request_receive(request, message, &length);
		buf.size = length;
		fuse_session_process_buf(transport->session, &buf);
	}
	count_one(&worker->served);
	/* Nothing is left to do of it, should this be the last. */
	in->len = 0;
	note_large(worker, received > request->reply_length
				   ? received
				   : request->reply_length);
}

/* Once, after the first request. */
static void tell_served(struct transport *transport)
{
	if (atomic_load_explicit(&transport->has_served,
				 memory_order_relaxed) ||
	    atomic_exchange_explicit(&transport->has_served, true,
				     memory_order_relaxed))
		return;
	if (transport->served)
		transport->served(transport->userdata);
}

static void serve_all(struct worker *worker)
{
	struct transport *transport = worker->transport;
	char *message = worker->buffer + REQUEST_START;
	const size_t room = BUFFER_SIZE - REQUEST_START;
	ssize_t length;

	while (!atomic_load_explicit(&transport->stopping,
				     memory_order_relaxed)) {
		give_buffer_back(worker);
		length = read(transport->fd, message, room);
		if (length >= (ssize_t)sizeof(struct fuse_in_header)) {
			transport_serve(worker, message, length);
			tell_served(transport);
			continue;
		}
		if (length >= 0)
			errno = EIO;
		switch (errno) {
		case EINTR:  /* Woken, to look at the flags. */
		case ENOENT: /* The request was given up while we read it. */
		case EAGAIN:
			break;
		case ENODEV: /* Unmounted. */
			return;
		default:
			log_line(LOG_ERR, "cannot read requests: %s",
				 strerror(errno));
			usleep(100 * 1000);
		}
	}
}

static void *worker_main(void *argument)
{
	struct worker *worker = argument;
	struct transport *transport = worker->transport;
	sigset_t wake;
	int error;

	sigemptyset(&wake);
	sigaddset(&wake, WAKE_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &wake, NULL);
	request_set_current(&worker->request);
	error = transport->attach(transport->userdata);
	atomic_store_explicit(&worker->attached, error ? error : 1,
			      memory_order_release);
	if (!error) {
		notify(transport);
		serve_all(worker);
		transport->detach(transport->userdata);
	}
	atomic_store_explicit(&worker->ended, true, memory_order_release);
	notify(transport);
	return NULL;
}

static void on_wake(int signal)
{
}

static int start_worker(struct worker *worker, const pthread_attr_t *attributes)
{
	int error;

	error = pthread_create(&worker->thread, attributes, worker_main,
			       worker);
	if (error)
		return -error;
	worker->started = true;
	return 0;
}

static void wait_event(struct transport *transport, int timeout)
{
	struct pollfd poll_event = {.fd = transport->event, .events = POLLIN};
	uint64_t count;

	if (poll(&poll_event, 1, timeout) > 0 &&
	    read(transport->event, &count, sizeof(count)) < 0)
		return;
}

/* The first worker's error; 0 once all are attached. */
static int wait_attached(struct transport *transport)
{
	unsigned int i;
	int attached;

	for (i = 0; i < transport->threads; i++) {
		struct worker *worker = &transport->workers[i];

		for (;;) {
			attached = atomic_load_explicit(&worker->attached,
							memory_order_acquire);
			if (attached)
				break;
			wait_event(transport, -1);
		}
		if (attached < 0)
			return attached;
	}
	return 0;
}

static int start_workers(struct transport *transport)
{
	pthread_attr_t attributes;
	unsigned int i;
	int error;

	error = -pthread_attr_init(&attributes);
	if (error)
		return error;
	error = -pthread_attr_setstacksize(&attributes, STACK_SIZE);
	for (i = 0; !error && i < transport->threads; i++)
		error = start_worker(&transport->workers[i], &attributes);
	pthread_attr_destroy(&attributes);
	return error ? error : wait_attached(transport);
}

int transport_start(struct transport *transport)
{
	struct sigaction wake = {.sa_handler = on_wake};
	sigset_t signals;
	int error;

	/* No SA_RESTART: read() has to come back. */
	if (sigaction(WAKE_SIGNAL, &wake, NULL))
		return -errno;
	end_signals(&signals);
	transport->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (transport->signals < 0)
		return -errno;
	error = start_workers(transport);
	if (error)
		transport_stop(transport);
	return error;
}

void transport_stop(struct transport *transport)
{
	unsigned int i;

	atomic_store_explicit(&transport->stopping, true, memory_order_relaxed);
	for (i = 0; i < transport->threads; i++) {
		struct worker *worker = &transport->workers[i];

		if (!worker->started)
			continue;
		/*
		 * The signal is lost when it comes between the look at
		 * stopping and the read(): so again, until it has ended.
		 */
		while (!atomic_load_explicit(&worker->ended,
					     memory_order_acquire)) {
			pthread_kill(worker->thread, WAKE_SIGNAL);
			wait_event(transport, 10);
		}
		pthread_join(worker->thread, NULL);
		worker->started = false;
	}
}

/* --- waiting ----------------------------------------------------------- */

static bool any_ended(const struct transport *transport)
{
	unsigned int i;

	for (i = 0; i < transport->threads; i++)
		if (atomic_load_explicit(&transport->workers[i].ended,
					 memory_order_acquire))
			return true;
	return false;
}

static bool any_large(const struct transport *transport)
{
	unsigned int i;

	for (i = 0; i < transport->threads; i++)
		if (atomic_load_explicit(&transport->workers[i].large,
					 memory_order_relaxed))
			return true;
	return false;
}

/*
 * Ask workers that have had no large request since the last look to give their
 * buffers back. One that serves small requests sees it after the next; one that
 * sleeps has to be woken.
 */
static void look_at_buffers(struct transport *transport)
{
	unsigned int i;
	uint64_t served, large;

	for (i = 0; i < transport->threads; i++) {
		struct worker *worker = &transport->workers[i];

		served = atomic_load_explicit(&worker->served,
					      memory_order_relaxed);
		large = atomic_load_explicit(&worker->large_served,
					     memory_order_relaxed);
		if (large == worker->seen_large &&
		    atomic_load_explicit(&worker->large,
					 memory_order_relaxed)) {
			atomic_store_explicit(&worker->give_back, true,
					      memory_order_relaxed);
			if (served == worker->seen_served)
				pthread_kill(worker->thread, WAKE_SIGNAL);
		}
		worker->seen_served = served;
		worker->seen_large = large;
	}
}

void transport_end(struct transport *transport)
{
	atomic_store_explicit(&transport->ledger->header->ending, 1,
			      memory_order_relaxed);
	notify(transport);
}

int transport_wait(struct transport *transport, int link,
		   bool (*on_link)(void *userdata))
{
	struct pollfd fds[] = {
		{.fd = transport->signals, .events = POLLIN},
		{.fd = transport->event, .events = POLLIN},
		{.fd = link, .events = POLLIN},
	};
	struct signalfd_siginfo signal;
	uint64_t count;
	int ready;

	while (!any_ended(transport) &&
	       !atomic_load_explicit(&transport->ledger->header->ending,
				     memory_order_relaxed)) {
		ready = poll(fds, 3, any_large(transport) ? TICK_MS : -1);
		if (ready == 0) {
			look_at_buffers(transport);
			continue;
		}
		if (read(transport->signals, &signal, sizeof(signal)) ==
		    sizeof(signal))
			return signal.ssi_signo;
		if (fds[2].revents && !on_link(transport->userdata))
			fds[2].fd = -1;
		/* Only to empty it; the loop looks at everything. */
		if (read(transport->event, &count, sizeof(count)) < 0)
			continue;
	}
	return 0;
}

size_t transport_buffer_bytes(const struct transport *transport)
{
	return transport->threads * BUFFER_SIZE;
}

void transport_requests(const struct transport *transport,
			uint64_t requests[TRANSPORT_OPCODES])
{
	unsigned int i, opcode;

	memset(requests, 0, TRANSPORT_OPCODES * sizeof(*requests));
	for (i = 0; i < transport->threads; i++)
		for (opcode = 0; opcode < TRANSPORT_OPCODES; opcode++)
			requests[opcode] += atomic_load_explicit(
				&transport->workers[i].requests[opcode],
				memory_order_relaxed);
}
