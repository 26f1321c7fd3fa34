/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * serve.c - see serve.h
 *
 * What the keeper does, what a worker does, and with keeper=off the one
 * process that is both.
 */
#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "block.h"
#include "cancel.h"
#include "crash.h"
#include "daemon.h"
#include "fault.h"
#include "keeper.h"
#include "log.h"
#include "options.h"
#include "pressure.h"
#include "service.h"
#include "service_block.h"
#include "transport.h"
#include "upgrade.h"

struct server {
	struct service *service;
	const struct options *options;
	const char *mountpoint;
	const struct mountpoint *place; /* the same, as it was at the start */
	char **argv;
	struct block *block; /* NULL: not in block mode */
};

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

/* --- being a worker ---------------------------------------------------- */

static bool mount_answers(const char *root)
{
	struct stat stat_buf;

	if (!stat(root, &stat_buf) && stat_buf.st_ino == FS_ROOT_INO)
		return true;
	log_line(LOG_ERR, "%s: mounted, but does not answer: %s", root,
		 strerror(errno));
	return false;
}

/*
 * With noopen the kernel learns by the first file that is opened that it need
 * not ask, nor tell of closing. Let this be one without a name, now. Where
 * there is no place for it (a mount with ro), it learns later.
 */
static void open_once(const char *root)
{
	int fd = open(root, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char name[32];
	int again;

	if (fd < 0)
		return;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	again = open(name, O_RDONLY | O_CLOEXEC);
	if (again >= 0)
		close(again);
	close(fd);
}

/* In block mode: what this is for. */
static bool mount_block(struct server *server, const struct cancel *cancel)
{
	char message[512];

	if (block_mount(server->block, cancel, message, sizeof(message))) {
		log_line(LOG_ERR, "%s", message);
		return false;
	}
	server->service->ledger.header->block_device =
		block_device(server->block);
	return true;
}

/* What another worker has mounted. */
static bool adopt_block(struct server *server)
{
	dev_t device = server->service->ledger.header->block_device;

	if (!server->block || !device ||
	    !block_adopt(server->block, server->mountpoint, device))
		return true;
	log_line(LOG_ERR, "%s", strerror(ENOMEM));
	return false;
}

static void unmount_block(struct server *server)
{
	if (server->block)
		block_unmount(server->block);
}

/* Without it, all works but for what its absence costs: that is told. */
static struct block_space *watch_space(struct server *server, bool first)
{
	struct block_space *space = NULL;
	int error;

	if (!server->block || !block_device(server->block))
		return NULL;
	error = service_watch_space(server->service, server->mountpoint,
				    block_device(server->block), !first,
				    block_needs_trim(server->block),
				    block_can_reserve(server->block), &space);
	if (error)
		log_line(LOG_WARNING,
			 "memory of deleted files is not given back: %s",
			 strerror(-error));
	return space;
}

/* Let go of the terminal, and of who waits for the mount. */
static bool become_ready(const struct server *server)
{
	int link = server->service->link;
	int error = 0;

	if (link >= 0)
		daemon_disown();
	if (!server->options->foreground)
		error = link >= 0 ? daemon_detach() : daemon_ready();
	if (error)
		log_line(LOG_ERR, "/dev/null: %s", strerror(-error));
	else
		keeper_tell(link, KEEPER_READY, NULL, 0);
	return !error;
}

/* Whether to go on; why not is told. */
static bool is_wanted(const struct cancel *cancel)
{
	char why[256];

	if (!cancel_wait(cancel, -1, why, sizeof(why)))
		return true;
	log_line(LOG_ERR, "%s", why);
	return false;
}

/* Until there is something to be ready with. */
static bool make_ready(struct server *server)
{
	const char *root =
		server->block ? block_root(server->block) : server->mountpoint;
	struct cancel cancel = {
		.signals = transport_signals(server->service->transport),
		.link = server->service->link,
		.starter = daemon_starter(),
		/* Else it is mounted there already. */
		.mountpoint = server->block ? server->place : NULL,
	};
	bool ready;
	int error;

	if (!mount_answers(root))
		return false;
	error = cancel_open(&cancel);
	if (error) {
		log_line(LOG_ERR, "%s", strerror(-error));
		return false;
	}
	ready = server->block ? mount_block(server, &cancel)
			      : is_wanted(&cancel);
	cancel_close(&cancel);
	return ready;
}

/* The first worker: there is somebody who waits for the mount. */
static bool begin(struct server *server)
{
	if (!make_ready(server))
		return false;
	if (server->options->noopen)
		open_once(server->mountpoint);
	if (become_ready(server))
		return true;
	unmount_block(server);
	return false;
}

/* The keeper says nothing; but when it dies, that can be read. */
static bool on_link(void *userdata)
{
	struct service *service = userdata;
	char byte;

	ssize_t length = recv(service->link, &byte, 1, MSG_DONTWAIT);

	if (length == 1 && byte == KEEPER_HAND_OVER) {
		service->handing_over = true;
		transport_end(service->transport, false);
	}
	if (length != 0)
		return true;
	log_line(LOG_WARNING,
		 "the keeper is gone: serving on, but for no longer than this "
		 "process lives");
	transport_own(service->transport);
	return false;
}

/* In a signal handler. */
static void on_fault(void *context)
{
	fs_fault();
}

/* Likewise. Without a keeper, a lock of the log may be in the way. */
static void say(void *context, const char *line, size_t length)
{
	const struct server *server = context;

	if (server->service->link >= 0)
		keeper_tell(server->service->link, KEEPER_LINE, line, length);
	else
		log_line(LOG_ERR, "%.*s", (int)length, line);
}

static void install_crash_report(struct server *server)
{
	const struct crash_config config = {
		.say = say,
		.fault = on_fault,
		.context = server,
	};

	crash_install(&config);
}

static int start_serving(struct server *server)
{
	struct service *service = server->service;
	char message[512];
	int error;

	if (service_start(service, server->options, message, sizeof(message))) {
		log_line(LOG_ERR, "%s", message);
		return EXIT_FAILURE;
	}
	error = transport_attach(service->transport, &service->ledger);
	if (!error)
		error = transport_start(service->transport);
	if (!error)
		return 0;
	log_line(LOG_ERR, "cannot start %u worker threads: %s",
		 server->options->threads, strerror(-error));
	return EXIT_FAILURE;
}

/* Until the end. */
static int be_worker(struct server *server, bool first)
{
	struct service *service = server->service;
	struct transport *transport = service->transport;
	struct block_space *space;
	int status, end;

	install_crash_report(server);
	fault_start();
	status = start_serving(server);
	if (status)
		return status;
	if (!(first ? begin(server) : adopt_block(server))) {
		transport_stop(transport);
		return EXIT_FAILURE;
	}
	/* Not sooner: mkfs is not to inherit it. */
	if (server->block)
		pressure_stay();
	space = watch_space(server, first);
	end = transport_wait(transport, service->link, on_link);
	block_space_stop(space);
	if (end)
		unmount_block(server);
	transport_stop(transport);
	if (end)
		log_line(LOG_INFO, "%s: unmounted on signal %d",
			 server->mountpoint, end);
	return service->handing_over ? KEEPER_HANDED_OVER : 0;
}

/* In a process of its own. */
static int work(void *context, int link, bool first)
{
	struct server *server = context;
	struct service *service = server->service;
	int status;

	resist_oom(OOM_WORKER);
	service->link = link;
	transport_disown(service->transport);
	status = be_worker(server, first);
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
		log_line(LOG_ERR, "cannot mount on %s: %s", server->mountpoint,
			 message);
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
	return server->options->keeper ? keep(server) : be_worker(server, true);
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
