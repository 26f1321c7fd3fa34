/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ctl_upgrade.c - see ctl_upgrade.h
 */
#include "ctl_upgrade.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "ctl.h"

/* How long to wait for the next worker, and how often to look. */
#define UPGRADE_MS	10000
#define UPGRADE_POLL_MS 10

/* Beside this program, as they are installed. */
static char *default_program(void)
{
	char *own = realpath("/proc/self/exe", NULL);
	char *slash = own ? strrchr(own, '/') : NULL;
	char *program = NULL;

	if (slash &&
	    asprintf(&program, "%.*s/zramfs", (int)(slash - own), own) < 0)
		program = NULL;
	free(own);
	return program;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* Until another worker answers: 0, or -1 after UPGRADE_MS. */
static int await_worker(const char *path, uint32_t old)
{
	const int64_t until = now_ms() + UPGRADE_MS;
	struct control_stat stat;

	do {
		if (ctl_ask(path, CONTROL_STAT, &stat))
			return -1;
		if (stat.pid != old)
			return 0;
		usleep(UPGRADE_POLL_MS * 1000);
	} while (now_ms() < until);
	ctl_complain(EXIT_WRONG,
		     "%s: the old program serves still; see the log", path);
	return -1;
}

/*
 * Then the kernel would ask the new program for its own pages, before it runs.
 * False when it cannot be told: the daemon will find what is wrong.
 */
static bool lies_within(const char *path, const char *program)
{
	struct stat mount, file;

	return !stat(path, &mount) && !stat(program, &file) &&
	       mount.st_dev == file.st_dev;
}

static int upgrade(const char *path, const char *program)
{
	struct control_upgrade upgrade = {0};
	struct control_stat stat;
	int error;

	if (strlen(program) >= sizeof(upgrade.program))
		return ctl_complain(EXIT_WRONG, "%s: %s", program,
				    strerror(ENAMETOOLONG));
	error = ctl_ask(path, CONTROL_STAT, &stat);
	if (error)
		return ctl_ask_failed(path, error);
	if (lies_within(path, program))
		return ctl_complain(EXIT_WRONG,
				    "%s: is in what it would serve: "
				    "copy it out of %s first",
				    program, path);
	strcpy(upgrade.program, program);
	error = ctl_ask(path, CONTROL_UPGRADE, &upgrade);
	if (error)
		return ctl_ask_failed(path, error);
	if (upgrade.error)
		return ctl_complain(EXIT_WRONG, "%s: not upgraded: %.*s", path,
				    (int)sizeof(upgrade.message),
				    upgrade.message);
	return await_worker(path, stat.pid) ? EXIT_WRONG : 0;
}

int ctl_upgrade(int argc, char **argv)
{
	const char *path = NULL, *binary = NULL;
	char *program;
	int status, i;

	for (i = 0; i < argc; i++) {
		if (!strcmp(argv[i], "--binary") && !binary && i + 1 < argc)
			binary = argv[++i];
		else if (argv[i][0] != '-' && !path)
			path = argv[i];
		else
			break;
	}
	if (!path || i < argc)
		return ctl_bad_usage("upgrade: want %s",
				     "MOUNTPOINT [--binary PROGRAM]");
	program = binary ? realpath(binary, NULL) : default_program();
	if (!program)
		return ctl_complain(EXIT_WRONG, "%s: %s",
				    binary ? binary : "zramfs",
				    strerror(errno));
	status = upgrade(path, program);
	free(program);
	return status;
}
