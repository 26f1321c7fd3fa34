/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * main.c - the command zramfs: mount, serve, end
 *
 *	zramfs MOUNTPOINT [-f] [-o OPT[,OPT...]]
 *	zramfs SOURCE MOUNTPOINT -o OPT[,OPT...]
 *
 * It returns when the mount answers: 0. Else one line on standard error tells
 * why, and the exit status is 1, or 2 for a bad command line.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "awake.h"
#include "daemon.h"
#include "log.h"
#include "mountpoint.h"
#include "ops.h"
#include "options.h"
#include "request.h"
#include "serve.h"
#include "service.h"
#include "transport.h"
#include "upgrade.h"

enum {
	EXIT_WRONG = 1,
	EXIT_USAGE = 2
};

static void complain(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

static void complain(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_vline(LOG_ERR, format, arguments);
	va_end(arguments);
}

/* --- before anything is made ------------------------------------------- */

static bool check_device(void)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd >= 0) {
		close(fd);
		return true;
	}
	if (errno == ENOENT || errno == ENODEV || errno == ENXIO)
		complain("/dev/fuse: %s; is the fuse module loaded? (modprobe "
			 "fuse)",
			 strerror(errno));
	else
		complain("/dev/fuse: %s%s", strerror(errno),
			 errno == EACCES || errno == EPERM
				 ? "; users need fusermount3 (package fuse3) "
				   "and mode 666 of /dev/fuse"
				 : "");
	return false;
}

static bool check_user(const struct options *options)
{
	if (!options->block || geteuid() == 0)
		return true;
	complain("only root may use block=%s, as a device is mounted: be root, "
		 "or leave it out",
		 options->block);
	return false;
}

/* Whoever names two directories may want two mounts, and gets one. */
static void warn_of_directory(const struct options *options)
{
	struct stat stat_buf;

	if (strchr(options->source, '/') &&
	    strcmp(options->source, options->mountpoint) &&
	    !stat(options->source, &stat_buf) && S_ISDIR(stat_buf.st_mode))
		log_line(LOG_WARNING,
			 "%s is a directory, but nothing is mounted there: of "
			 "two arguments the first is only a name for the mount "
			 "at %s",
			 options->source, options->mountpoint);
}

/* By default it is done where it can be; who asks for it is to have it. */
static bool check_low_latency(const struct options *options)
{
	if (!options->low_latency || !options->low_latency_given ||
	    !access(AWAKE_DEVICE, W_OK))
		return true;
	complain("low_latency=on needs " AWAKE_DEVICE
		 ": %s; use low_latency=off or be root",
		 strerror(errno));
	return false;
}

/* As an option's value: commas and backslashes escaped. */
static void append_escaped(FILE *to, const char *value)
{
	for (; *value; value++) {
		if (*value == ',' || *value == '\\')
			putc('\\', to);
		putc(*value, to);
	}
}

/*
 * What libfuse and the kernel are told. Root mounts as mount(8) does any other
 * filesystem: for all users, with devices and set-user-id programs. Options
 * given by the user come later, and win.
 */
static char *mount_options(const struct options *options)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return NULL;
	fputs("default_permissions,subtype=zramfs,fsname=", stream);
	append_escaped(stream, options->source);
	if (geteuid() == 0)
		fputs(",allow_other,suid,dev", stream);
	if (options->fuse_options && options->fuse_options[0])
		fprintf(stream, ",%s", options->fuse_options);
	if (options->debug)
		fputs(",debug", stream);
	if (fclose(stream)) {
		free(text);
		return NULL;
	}
	return text;
}

static int create_transport(struct service *service,
			    const struct options *options)
{
	struct transport_config config = {
		.threads = options->threads,
		.low_latency = options->low_latency,
		.ops = &ops,
		.userdata = service,
		.attach = service_attach_thread,
		.detach = service_detach_thread,
		.rest = service_rest_thread,
		.begin = service_begin,
		.resume = service_resume,
		.withdraw = service_withdraw,
		.await = service_await,
		.resumed = service_resumed,
		.served = service_served,
	};
	char message[512];
	char *text = mount_options(options);
	int error;

	if (!text) {
		complain("%s", strerror(ENOMEM));
		return EXIT_WRONG;
	}
	/* A device may not fail: see transport.h. */
	config.resident = options->block ? REQUEST_DATA_BLOCK : 0;
	config.options = text;
	error = transport_create(&service->transport, &config, message,
				 sizeof(message));
	free(text);
	if (!error)
		return 0;
	complain("%s", message);
	return error == -EINVAL ? EXIT_USAGE : EXIT_WRONG;
}

/* --- serving ----------------------------------------------------------- */

static struct service new_service(const struct options *options)
{
	return (struct service){
		.arena_fd = -1,
		.ledger_fd = -1,
		.pipe = {-1, -1},
		.link = -1,
		.owner = getuid(),
		.writeback = options->writeback,
		.noopen = options->noopen,
		.block = options->block,
		.noatime = options->noatime,
		/*
		 * fusermount3, when it is to unmount what died, opens the root
		 * to see whether it has: so this must not be without asking.
		 */
		.opens_directories = options->auto_unmount,
	};
}

/* As the next worker of a keeper that is another program. */
static int go_on(const struct options *options,
		 const struct upgrade_descriptors *descriptors)
{
	struct service service = new_service(options);
	int status = create_transport(&service, options);

	if (status)
		return status;
	service.max_read = transport_max_read(service.transport);
	return serve_on(&service, options, descriptors);
}

static int mount_and_serve(const struct options *options, char **argv)
{
	struct service service = new_service(options);
	struct mountpoint mountpoint;
	int status = EXIT_WRONG;
	char message[512];
	int error;

	if (mountpoint_open(&mountpoint, options->mountpoint, message,
			    sizeof(message))) {
		complain("%s", message);
		return EXIT_WRONG;
	}
	if (!check_user(options) || !check_device() ||
	    !check_low_latency(options))
		goto out;
	warn_of_directory(options);
	status = create_transport(&service, options);
	if (status)
		goto out;
	service.max_read = transport_max_read(service.transport);
	if (!options->foreground) {
		error = daemon_begin();
		if (error) {
			complain("cannot start the daemon: %s",
				 strerror(-error));
			status = EXIT_WRONG;
			goto out;
		}
	}
	status = serve(&service, options, &mountpoint, argv);
out:
	transport_destroy(service.transport);
	mountpoint_close(&mountpoint);
	return status;
}

int main(int argc, char **argv)
{
	struct upgrade_descriptors inherited;
	struct options options;
	char message[512];
	int status = 0;

	if (argc == 2 && !strcmp(argv[1], UPGRADE_OPTION)) {
		puts(upgrade_layout());
		return 0;
	}
	if (options_parse(&options, argc, argv, message, sizeof(message))) {
		complain("%s", message);
		return EXIT_USAGE;
	}
	signal(SIGPIPE, SIG_IGN);
	if (options.help)
		printf("usage: zramfs MOUNTPOINT [-f] [-o "
		       "OPTION[,OPTION...]]\n%s",
		       options_help());
	else if (options.version)
		printf("zramfs %s\n", ZRAMFS_VERSION);
	else
		status = upgrade_inherited(&inherited)
				 ? go_on(&options, &inherited)
				 : mount_and_serve(&options, argv);
	options_release(&options);
	return status;
}
