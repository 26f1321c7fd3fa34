/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * serve.c - see serve.h
 *
 * The keeper, the processes that it starts, and with keeper=off the one process
 * that is both.
 */
#include "serve_private.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "block.h"
#include "daemon.h"
#include "keeper.h"
#include "log.h"
#include "options.h"
#include "pressure.h"
#include "service.h"
#include "transport.h"
#include "upgrade.h"

/*
 * Each malloc arena costs memory that is mostly empty: one is enough, for what
 * the daemon allocates while it serves is small and short-lived. What it frees
 * goes back soon.
 */
static void keep_heap_small(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_TRIM_THRESHOLD, 64 * 1024);
	mallopt(M_TOP_PAD, 16 * 1024);
}

/*
 * Killing these gives no memory back: it is in the memfds. The keeper is as
 * good as never chosen; a worker, before there is nobody else left. Others
 * than root may not ask for that, and do without.
 */
#define OOM_KEEPER "-1000"
#define OOM_WORKER "-900"

static void resist_oom(const char *score)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, score, strlen(score)) < 0) {
		/* As said. */
	}
	close(fd);
}

/* --- starting a worker -------------------------------------------------- */

/* In a process of its own. */
static int work(void *context, int link, bool first)
{
	struct server *server = context;
	struct service *service = server->service;
	int status;

	resist_oom(OOM_WORKER);
	service->link = link;
	transport_disown(service->transport);
	status = serve_as_worker(server, first);
	transport_destroy(service->transport);
	service_stop(service);
	return status;
}

/* Likewise, of another program. */
static void become(void *context, int program, int link)
{
	struct server *server = context;
	struct service *service = server->service;
	const struct upgrade_descriptors descriptors = {
		.fuse = transport_fd(service->transport),
		.arena = service->arena_fd,
		.ledger = service->ledger_fd,
		.pipe = {service->pipe[0], service->pipe[1]},
		.link = link,
		.block_root = server->block ? block_root_fd(server->block) : -1,
		.mountpoint = server->mountpoint,
	};
	int error = upgrade_become(program, server->argv, &descriptors);

	log_line(LOG_ERR, "cannot run the other program: %s", strerror(-error));
}

int serve_on(struct service *service, const struct options *options,
	     const struct upgrade_descriptors *descriptors)
{
	struct server server = {
		.service = service,
		.options = options,
		.mountpoint = descriptors->mountpoint,
	};
	char where[32], message[512];
	int status = EXIT_FAILURE;

	service->arena_fd = descriptors->arena;
	service->ledger_fd = descriptors->ledger;
	service->pipe[0] = descriptors->pipe[0];
	service->pipe[1] = descriptors->pipe[1];
	snprintf(where, sizeof(where), "/dev/fd/%d", descriptors->fuse);
	/* Starting this program has called it after its file. */
	prctl(PR_SET_NAME, KEEPER_WORKER_NAME);
	keep_heap_small();
	if (!options->foreground)
		log_to_syslog();
	transport_block_signals();
	if (transport_mount(service->transport, where, message,
			    sizeof(message)))
		log_line(LOG_ERR, "cannot go on: %s", message);
	else if (options->block &&
		 block_inherit(&server.block, options, descriptors->block_root))
		log_line(LOG_ERR, "cannot go on: %s", strerror(ENOMEM));
	else
		status = work(&server, descriptors->link, false);
	block_destroy(server.block);
	service_release(service);
	return status;
}

/* --- being the keeper -------------------------------------------------- */

static int report_ready(void *context)
{
	const struct server *server = context;
	int error;

	if (!server->options->foreground) {
		error = daemon_ready();
		if (error) {
			log_line(LOG_ERR, "/dev/null: %s", strerror(-error));
			return EXIT_FAILURE;
		}
	}
	if (server->block)
		pressure_stay();
	return 0;
}

static int keep(struct server *server)
{
	const struct keeper_config config = {
		.work = work,
		.become = become,
		.ready = report_ready,
		.context = server,
	};
	bool lost;
	int status;

	resist_oom(OOM_KEEPER);
	status = keeper_run(&config, &lost);

	/* Whoever uses it is to see an error, and not an empty directory. */
	if (lost)
		transport_disown(server->service->transport);
	return status;
}

/* --- both -------------------------------------------------------------- */

static int mount_transport(struct server *server)
{
	struct transport *transport = server->service->transport;
	const char *where = server->mountpoint;
	char message[512];

	if (server->options->block) {
		if (block_create(&server->block, server->options, message,
				 sizeof(message))) {
			log_line(LOG_ERR, "%s", message);
			return EXIT_FAILURE;
		}
		where = block_connection(server->block);
	}
	if (transport_mount(transport, where, message, sizeof(message))) {
		/* So libfuse puts what mount(2) says, which is little. */
		log_line(LOG_ERR, "cannot mount on %s: %s%s",
			 server->mountpoint, message,
			 strstr(message, "mount failed")
				 ? "; dmesg may tell why"
				 : "");
		return EXIT_FAILURE;
	}
	return 0;
}

static int run(struct server *server)
{
	char message[512];
	int status, error;

	if (server->options->block)
		pressure_begin();
	keep_heap_small();
	error = transport_block_signals();
	if (error) {
		log_line(LOG_ERR, "cannot block signals: %s", strerror(-error));
		return EXIT_FAILURE;
	}
	if (service_hold(server->service, server->options, message,
			 sizeof(message))) {
		log_line(LOG_ERR, "%s", message);
		return EXIT_FAILURE;
	}
	status = mount_transport(server);
	if (status)
		return status;
	return server->options->keeper ? keep(server)
				       : serve_as_worker(server, true);
}

int serve(struct service *service, const struct options *options,
	  const struct mountpoint *mountpoint, char **argv)
{
	struct server server = {
		.service = service,
		.options = options,
		.mountpoint = mountpoint->path,
		.place = mountpoint,
		.argv = argv,
	};
	int status = run(&server);

	/* The mount ends first, then what it showed. */
	transport_destroy(service->transport);
	service->transport = NULL;
	block_destroy(server.block);
	service_stop(service);
	service_release(service);
	return status;
}
