/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zramfsctl.c - the command zramfsctl: ask and steer a mounted zramfs
 *
 *	zramfsctl stat [--json|--mm-stat|--prometheus] MOUNTPOINT
 *	zramfsctl compact MOUNTPOINT
 *	zramfsctl set MOUNTPOINT KEY=VALUE
 *	zramfsctl check [--verify] MOUNTPOINT
 *
 * Exit status: 0; 1 with one line on standard error (or, from check, with the
 * findings on standard output); 2 for a bad command line.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "block.h"
#include "control.h"
#include "ctl_stat.h"
#include "options.h"

enum {
	EXIT_WRONG = 1,
	EXIT_USAGE = 2
};

static const char usage_text[] =
	"usage: zramfsctl stat [--json|--mm-stat|--prometheus] MOUNTPOINT\n"
	"       zramfsctl compact MOUNTPOINT\n"
	"       zramfsctl set MOUNTPOINT KEY=VALUE\n"
	"       zramfsctl check [--verify] MOUNTPOINT\n";

static const char help_text[] =
	"\n"
	"stat     what is stored and what it takes; for programs as JSON, as "
	"the\n"
	"         kernel's nine mm_stat columns, or for Prometheus\n"
	"compact  compress what is still hot, move pages together, and give "
	"the\n"
	"         memory that this frees back to the system\n"
	"set      change size, mem_limit or hot: bytes, k, m, g, t, or N% of "
	"RAM\n"
	"check    rebuild all bookkeeping and compare; --verify reads every "
	"page\n"
	"\n"
	"compact, set and check need root or the user who mounted.\n"
	"Exit status: 0; 1 when it failed or check found something; 2 for a "
	"bad\n"
	"command line.\n";

static int complain(int status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int complain(int status, const char *format, ...)
{
	va_list arguments;

	fputs("zramfsctl: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	putc('\n', stderr);
	return status;
}

static int bad_usage(const char *format, const char *argument)
{
	fputs("zramfsctl: ", stderr);
	fprintf(stderr, format, argument);
	fputs(" (see zramfsctl --help)\n", stderr);
	return EXIT_USAGE;
}

/* What was printed must have arrived. */
static int finish_output(void)
{
	if (fflush(stdout) || ferror(stdout))
		return complain(EXIT_WRONG, "standard output: %s",
				strerror(errno));
	return 0;
}

/* --- asking the daemon ------------------------------------------------- */

static int not_zramfs(const char *path)
{
	complain(EXIT_WRONG,
		 "%s: not a zramfs mount (mount one with: zramfs MOUNTPOINT)",
		 path);
	return -1;
}

/* What is no zramfs itself may have one behind it, as in block mode. */
static int open_behind(const char *path, uint64_t *device_size)
{
	int fd = block_open_behind(path, device_size);

	if (fd >= 0)
		return fd;
	if (fd == -ENOTBLK)
		return not_zramfs(path);
	complain(EXIT_WRONG, "%s: %s", path,
		 fd == -ESRCH ? "its daemon is gone"
		 : fd == -EACCES || fd == -EPERM
			 ? "only root may look at the zramfs behind it"
			 : strerror(-fd));
	return -1;
}

/*
 * A descriptor to send ioctls to, or -1 after a line. Only a FUSE filesystem
 * is opened: opening a device or a FIFO elsewhere could do something. Where it
 * is in block mode, sets *device_size.
 */
static int open_mount(const char *path, uint64_t *device_size)
{
	struct statfs statfs_buf;
	int fd;

	if (statfs(path, &statfs_buf)) {
		if (errno == ENOTCONN)
			complain(EXIT_WRONG, "%s: its daemon is gone", path);
		else
			complain(EXIT_WRONG, "%s: %s", path, strerror(errno));
		return -1;
	}
	if (statfs_buf.f_type != FUSE_SUPER_MAGIC)
		return open_behind(path, device_size);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		complain(EXIT_WRONG, "%s: %s", path, strerror(errno));
	return fd;
}

/* 0, or the errno of the ioctl; -1 after a line was printed. */
static int ask(const char *path, unsigned long command, void *argument)
{
	uint64_t device_size = 0;
	int fd = open_mount(path, &device_size);
	int error = 0;

	if (fd < 0)
		return -1;
	if (device_size && command == CONTROL_SET &&
	    !strcmp(((struct control_set *)argument)->key, "size")) {
		close(fd);
		complain(EXIT_WRONG, "%s: a device stays as large as it is",
			 path);
		return -1;
	}
	if (ioctl(fd, command, argument) < 0)
		error = errno;
	else if (device_size && command == CONTROL_STAT)
		((struct control_stat *)argument)->size = device_size;
	close(fd);
	/* Other FUSE filesystems know no ioctls, or not these. */
	if (error == ENOTTY || error == ENOSYS)
		return not_zramfs(path);
	if (error == EPERM) {
		complain(
			EXIT_WRONG,
			"%s: only root and the user who mounted it may do that",
			path);
		return -1;
	}
	return error;
}

static int ask_failed(const char *path, int error)
{
	if (error > 0)
		complain(EXIT_WRONG, "%s: %s", path, strerror(error));
	return EXIT_WRONG;
}

/* --- commands ---------------------------------------------------------- */

static int command_stat(int argc, char **argv)
{
	enum {
		TABLE,
		JSON,
		MM_STAT,
		PROMETHEUS
	} format = TABLE;
	struct control_stat stat;
	const char *path;
	int error;

	if (argc > 1 && !strncmp(argv[0], "--", 2)) {
		if (!strcmp(argv[0], "--json"))
			format = JSON;
		else if (!strcmp(argv[0], "--mm-stat"))
			format = MM_STAT;
		else if (!strcmp(argv[0], "--prometheus"))
			format = PROMETHEUS;
		else
			return bad_usage("stat: no such option: %s", argv[0]);
		argc--;
		argv++;
	}
	if (argc != 1)
		return bad_usage("stat: want %s", "one MOUNTPOINT");
	path = argv[0];
	error = ask(path, CONTROL_STAT, &stat);
	if (error)
		return ask_failed(path, error);
	if (format == JSON)
		ctl_stat_json(stdout, &stat);
	else if (format == MM_STAT)
		ctl_stat_mm_stat(stdout, &stat);
	else if (format == PROMETHEUS)
		ctl_stat_prometheus(stdout, &stat, path);
	else
		ctl_stat_table(stdout, &stat);
	return finish_output();
}

static int command_compact(int argc, char **argv)
{
	struct control_compact compact;
	char size[16];
	int error;

	if (argc != 1)
		return bad_usage("compact: want %s", "one MOUNTPOINT");
	error = ask(argv[0], CONTROL_COMPACT, &compact);
	if (error)
		return ask_failed(argv[0], error);
	ctl_format_size(size, sizeof(size), compact.pages * 4096);
	printf("%" PRIu64 " pages (%s) given back\n", compact.pages, size);
	if (compact.error)
		return complain(EXIT_WRONG,
				"%s: some pages stay uncompressed: %s", argv[0],
				strerror(-compact.error));
	return finish_output();
}

static int set_failed(const char *path, const char *argument, int error)
{
	const char *why = error > 0 ? strerror(error) : NULL;

	if (error == EBUSY)
		why = "more than that is in use";
	else if (error == EINVAL)
		why = "too little to work with";
	if (why)
		complain(EXIT_WRONG, "%s: %s: %s", path, argument, why);
	return EXIT_WRONG;
}

static int command_set(int argc, char **argv)
{
	static const char *const keys[] = {
		"size",
		"mem_limit",
		"hot",
#ifdef ZRAMFS_FAULTS
		"fault",
#endif
	};
	struct control_set set = {0};
	const char *equals;
	size_t length, i;
	int error;

	if (argc != 2)
		return bad_usage("set: want %s", "MOUNTPOINT KEY=VALUE");
	equals = strchr(argv[1], '=');
	if (!equals)
		return bad_usage("set: %s: want KEY=VALUE", argv[1]);
	length = equals - argv[1];
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (length == strlen(keys[i]) &&
		    !memcmp(argv[1], keys[i], length))
			strcpy(set.key, keys[i]);
	if (!set.key[0])
		return bad_usage(
			"set: %s: the key is not size, mem_limit or hot",
			argv[1]);
	if (options_parse_size(equals + 1, &set.value))
		return bad_usage("set: %s: want bytes, or a number with k, m, "
				 "g, t or %%",
				 argv[1]);
	error = ask(argv[0], CONTROL_SET, &set);
	return error ? set_failed(argv[0], argv[1], error) : 0;
}

static int command_check(int argc, char **argv)
{
	struct control_check check = {0};
	uint32_t i;
	int error;

	if (argc > 1 && !strncmp(argv[0], "--", 2)) {
		if (strcmp(argv[0], "--verify"))
			return bad_usage("check: no such option: %s", argv[0]);
		check.flags |= CONTROL_CHECK_VERIFY;
		argc--;
		argv++;
	}
	if (argc != 1)
		return bad_usage("check: want %s", "one MOUNTPOINT");
	error = ask(argv[0], CONTROL_CHECK, &check);
	if (error)
		return ask_failed(argv[0], error);
	for (i = 0; i < check.lines && i < CONTROL_CHECK_LINES; i++)
		printf("%.*s\n", (int)sizeof(check.line[i]), check.line[i]);
	printf("%" PRIu64 " inodes, %" PRIu64 " names, %" PRIu64
	       " pages: %" PRIu64 " errors, %" PRIu64 " differences\n",
	       check.inodes, check.entries, check.pages, check.errors,
	       check.differences);
	error = finish_output();
	if (error)
		return error;
	return check.errors || check.differences ? EXIT_WRONG : 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} commands[] = {
		{"stat", command_stat},
		{"compact", command_compact},
		{"set", command_set},
		{"check", command_check},
	};
	size_t i;

	if (argc < 2)
		return bad_usage("want %s", "a command");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		fputs(usage_text, stdout);
		fputs(help_text, stdout);
		return finish_output();
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("zramfsctl %s\n", ZRAMFS_VERSION);
		return finish_output();
	}
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 2, argv + 2);
	return bad_usage("no such command: %s", argv[1]);
}
