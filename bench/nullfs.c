/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nullfs.c - a FUSE filesystem that stores nothing: the limit of any daemon
 *
 *	nullfs MOUNTPOINT [-o OPT[,OPT...]]
 *
 * It serves requests by zramfs's own transport, with the same agreement with
 * the kernel and the same number of threads, and does nothing with them: files
 * have a name, a size and attributes, what is written is dropped, and what is
 * read is zeros. So what is measured on it is what the kernel, libfuse and the
 * transport cost.
 *
 * It stays in the foreground and ends when unmounted. Options are zramfs's:
 * threads=, writeback, mode= and those of FUSE have their meaning; those that
 * say how pages are kept have none, for none are kept.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ledger.h"
#include "options.h"
#include "support/null_ops.h"
#include "transport.h"

/* Nothing is to be done around requests: none outlives this process. */
static int attach(void *userdata)
{
	return 0;
}

static void nothing(void *userdata)
{
}

static void begin(void *userdata, unsigned int thread, uint64_t request)
{
}

static int resume(void *userdata, uint64_t request)
{
	return -EIO;
}

static void withdraw(void *userdata, uint64_t request)
{
}

static void await(void *userdata, bool (*waits)(void *caller, uint64_t request),
		  void *caller)
{
}

static void resumed(void *userdata, bool all)
{
}

static int wait_for_end(struct transport *transport)
{
	int error = transport_start(transport);

	if (error)
		return error;
	transport_wait(transport, -1, NULL);
	transport_stop(transport);
	return 0;
}

/* The workers' buffers lie in a ledger. */
static int serve_mount(struct transport *transport, unsigned int threads)
{
	static const int no_pipe[2] = {-1, -1};
	struct ledger ledger = {0};
	int fd = ledger_create(threads);
	int error = fd < 0 ? fd : ledger_map(&ledger, fd, no_pipe);

	if (!error)
		error = transport_attach(transport, &ledger);
	if (!error)
		error = wait_for_end(transport);
	ledger_unmap(&ledger);
	if (fd >= 0)
		close(fd);
	return error;
}

static int serve(const struct options *options, char *message, size_t size)
{
	char text[1024];
	struct null_mount mount = {.options = options};
	struct transport_config config = {
		.options = text,
		.threads = options->threads,
		.low_latency = options->low_latency,
		.ops = &null_ops,
		.userdata = &mount,
		.attach = attach,
		.detach = nothing,
		.begin = begin,
		.resume = resume,
		.withdraw = withdraw,
		.await = await,
		.resumed = resumed,
		.served = nothing,
	};
	struct transport *transport;
	int error;

	snprintf(text, sizeof(text), "default_permissions,subtype=nullfs%s%s%s",
		 geteuid() == 0 ? ",allow_other,suid,dev" : "",
		 options->fuse_options && options->fuse_options[0] ? "," : "",
		 options->fuse_options ? options->fuse_options : "");
	error = transport_block_signals();
	if (error)
		return error;
	error = transport_create(&transport, &config, message, size);
	if (error)
		return error;
	mount.transport = transport;
	error = transport_mount(transport, options->mountpoint, message, size);
	if (!error)
		error = serve_mount(transport, options->threads);
	transport_destroy(transport);
	return error;
}

int main(int argc, char **argv)
{
	struct options options;
	char message[512] = "";
	int error;

	if (options_parse(&options, argc, argv, message, sizeof(message)) ||
	    options.help || options.version) {
		fprintf(stderr, "%s\nusage: nullfs MOUNTPOINT [-o OPT,...]\n",
			message);
		return 2;
	}
	error = null_ops_start(options.mode);
	if (!error)
		error = serve(&options, message, sizeof(message));
	if (error)
		fprintf(stderr, "nullfs: %s: %s\n", options.mountpoint,
			message[0] ? message : strerror(-error));
	options_release(&options);
	return error ? 1 : 0;
}
