/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * serve_worker.c - from what is in the memfds to a mount that is served
 *
 * The first worker makes the mount usable and says so; those after it go on.
 */
#include "serve_private.h"

#include <errno.h>
#include <fcntl.h>
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
#include "process_memory.h"
#include "service.h"
#include "service_block.h"
#include "transport.h"

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
	process_memory_let_code_go();
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
	atomic_store_explicit(&service->keeper_gone, true,
			      memory_order_relaxed);
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

int serve_as_worker(struct server *server, bool first)
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
