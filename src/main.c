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
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "block.h"
#include "daemon.h"
#include "log.h"
#include "ops.h"
#include "options.h"
#include "service.h"
#include "transport.h"

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

/*
 * The last mount on a directory, from /proc/self/mountinfo: whether it is a
 * zramfs. It is not asked itself, for it may be one that does not answer.
 */
static bool is_zramfs(const char *directory)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;
	char where[PATH_MAX], type[64];
	bool found = false;

	if (!mounts)
		return false;
	while (getline(&line, &size, mounts) >= 0) {
		const char *dash = strstr(line, " - ");

		if (sscanf(line, "%*s %*s %*s %*s %4095s", where) == 1 &&
		    dash && sscanf(dash, " - %63s", type) == 1 &&
		    !strcmp(where, directory))
			found = !strcmp(type, "fuse.zramfs");
	}
	free(line);
	fclose(mounts);
	return found;
}

/* The mount point's full name, or NULL after saying what is wrong with it. */
static char *check_mountpoint(const char *given)
{
	struct stat stat_buf;
	char *full = NULL;

	if (stat(given, &stat_buf)) {
		if (errno == ENOTCONN)
			complain("%s: a mount whose daemon is gone; umount it "
				 "first",
				 given);
		else
			complain("%s: %s", given, strerror(errno));
		return NULL;
	}
	if (!S_ISDIR(stat_buf.st_mode)) {
		complain("%s: not a directory", given);
		return NULL;
	}
	full = realpath(given, NULL);
	if (!full) {
		complain("%s: %s", given, strerror(errno));
		return NULL;
	}
	if (is_zramfs(full)) {
		complain("%s: already a zramfs mount", given);
		free(full);
		return NULL;
	}
	return full;
}

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
		complain("/dev/fuse: %s", strerror(errno));
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
		.ops = &ops,
		.userdata = service,
		.attach = service_attach_thread,
		.detach = service_detach_thread,
	};
	char message[512];
	char *text = mount_options(options);
	int error;

	if (!text) {
		complain("%s", strerror(ENOMEM));
		return EXIT_WRONG;
	}
	config.options = text;
	error = transport_create(&service->transport, &config, message,
				 sizeof(message));
	free(text);
	if (!error)
		return 0;
	complain("%s", message);
	return error == -EINVAL ? EXIT_USAGE : EXIT_WRONG;
}

/* --- the daemon -------------------------------------------------------- */

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

static bool mount_answers(const char *mountpoint)
{
	struct stat stat_buf;

	if (!stat(mountpoint, &stat_buf) && stat_buf.st_ino == FS_ROOT_INO)
		return true;
	complain("%s: mounted, but does not answer: %s", mountpoint,
		 strerror(errno));
	return false;
}

/* In block mode: what this is for. */
static bool mount_block(struct block *block, const char *mountpoint)
{
	char message[512];

	if (!block || !block_mount(block, mountpoint, message, sizeof(message)))
		return true;
	complain("%s", message);
	return false;
}

static void unmount_block(struct block *block)
{
	if (block)
		block_unmount(block);
}

/* Serve until the end. The mount is there when ready() is called. */
static int serve(struct service *service, const struct options *options,
		 const char *mountpoint, struct block *block)
{
	struct transport *transport = service->transport;
	int error, end;

	error = transport_start(transport);
	if (error) {
		complain("cannot start %u worker threads: %s", options->threads,
			 strerror(-error));
		return EXIT_WRONG;
	}
	if (!mount_answers(block ? block_root(block) : mountpoint) ||
	    !mount_block(block, mountpoint)) {
		transport_stop(transport);
		return EXIT_WRONG;
	}
	if (!options->foreground) {
		error = daemon_ready();
		if (error) {
			complain("/dev/null: %s", strerror(-error));
			unmount_block(block);
			transport_stop(transport);
			return EXIT_WRONG;
		}
	}
	end = transport_wait(transport);
	if (end)
		unmount_block(block);
	transport_stop(transport);
	if (end)
		log_line(LOG_INFO, "%s: unmounted on signal %d", mountpoint,
			 end);
	return 0;
}

static int run(struct service *service, const struct options *options,
	       const char *mountpoint, struct block **block)
{
	const char *where = mountpoint;
	char message[512];
	int error;

	keep_heap_small();
	error = transport_block_signals();
	if (error) {
		complain("cannot block signals: %s", strerror(-error));
		return EXIT_WRONG;
	}
	if (service_start(service, options, message, sizeof(message))) {
		complain("%s", message);
		return EXIT_WRONG;
	}
	if (options->block) {
		if (block_create(block, options, message, sizeof(message))) {
			complain("%s", message);
			return EXIT_WRONG;
		}
		where = block_connection(*block);
	}
	if (transport_mount(service->transport, where, message,
			    sizeof(message))) {
		complain("cannot mount on %s: %s", mountpoint, message);
		return EXIT_WRONG;
	}
	return serve(service, options, mountpoint, *block);
}

static int mount_and_serve(const struct options *options)
{
	struct service service = {
		.owner = getuid(),
		.writeback = options->writeback,
		.block = options->block,
	};
	char *mountpoint = check_mountpoint(options->mountpoint);
	struct block *block = NULL;
	int status = EXIT_WRONG;
	int error;

	if (!mountpoint)
		return EXIT_WRONG;
	if (!check_device())
		goto out;
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
	status = run(&service, options, mountpoint, &block);
out:
	/* The mount ends first, then what it showed. */
	transport_destroy(service.transport);
	block_destroy(block);
	service_stop(&service);
	free(mountpoint);
	return status;
}

int main(int argc, char **argv)
{
	struct options options;
	char message[512];
	int status = 0;

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
		status = mount_and_serve(&options);
	options_release(&options);
	return status;
}
