/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zramfsctl.c - the command zramfsctl: ask and steer a mounted zramfs
 *
 *	zramfsctl stat [--classes|--json|--mm-stat|--prometheus] MOUNTPOINT
 *	zramfsctl du [-s] [-h|--json] PATH...
 *	zramfsctl compact MOUNTPOINT
 *	zramfsctl set MOUNTPOINT KEY=VALUE
 *	zramfsctl check [--verify] MOUNTPOINT
 *	zramfsctl upgrade MOUNTPOINT [--binary PROGRAM]
 *
 * Exit status: 0; 1 with one line on standard error (or, from check, with the
 * findings on standard output); 2 for a bad command line.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "ctl.h"
#include "ctl_classes.h"
#include "ctl_du.h"
#include "ctl_stat.h"
#include "ctl_upgrade.h"
#include "options.h"

static const char usage_text[] =
	"usage: zramfsctl stat [--classes|--json|--mm-stat|--prometheus] "
	"MOUNTPOINT\n"
	"       zramfsctl du [-s] [-h|--json] PATH...\n"
	"       zramfsctl compact MOUNTPOINT\n"
	"       zramfsctl set MOUNTPOINT KEY=VALUE\n"
	"       zramfsctl check [--verify] MOUNTPOINT\n"
	"       zramfsctl upgrade MOUNTPOINT [--binary PROGRAM]\n";

static const char help_text[] =
	"\n"
	"stat     what is stored and what it takes; for programs as JSON, as "
	"the\n"
	"         kernel's nine mm_stat columns, or for Prometheus; or the "
	"pool's\n"
	"         size classes, as the kernel shows zsmalloc's\n"
	"du       what files and trees cost: size, pages, bytes held for them, "
	"and\n"
	"         how many pages are same-filled, equal, incompressible; -s "
	"shows\n"
	"         each PATH alone, -h sizes in binary units\n"
	"compact  compress what is still hot, move pages together, and give "
	"the\n"
	"         memory that this frees back to the system\n"
	"set      change size, mem_limit or hot: bytes, k, m, g, t, or N% of "
	"RAM;\n"
	"         or let mem_used_max begin anew, with 0\n"
	"check    rebuild all bookkeeping and compare; --verify reads every "
	"page\n"
	"upgrade  go on with another zramfs, on what is there: PROGRAM, or "
	"the\n"
	"         zramfs beside this command\n"
	"\n"
	"compact, set, check and upgrade need root or the user who mounted.\n"
	"Exit status: 0; 1 when it failed or check found something; 2 for a "
	"bad\n"
	"command line.\n";

/* --- commands ---------------------------------------------------------- */

static int stat_classes(const char *path)
{
	struct control_classes classes = {0};
	struct control_class sum = {0};
	uint32_t i;
	int error;

	do {
		error = ctl_ask(path, CONTROL_CLASSES, &classes);
		if (error)
			return ctl_ask_failed(path, error);
		if (!classes.first)
			ctl_classes_head(stdout);
		for (i = 0; i < classes.count && i < CONTROL_CLASSES_MAX; i++) {
			ctl_classes_row(stdout, &classes.classes[i]);
			ctl_classes_add(&sum, &classes.classes[i]);
		}
		classes.first += i;
	} while (i && classes.first < classes.all);
	ctl_classes_sum(stdout, &sum);
	return ctl_finish_output();
}

static int command_stat(int argc, char **argv)
{
	enum {
		TABLE,
		CLASSES,
		JSON,
		MM_STAT,
		PROMETHEUS
	} format = TABLE;
	struct control_stat stat;
	const char *path;
	int error;

	if (argc > 1 && !strncmp(argv[0], "--", 2)) {
		if (!strcmp(argv[0], "--classes"))
			format = CLASSES;
		else if (!strcmp(argv[0], "--json"))
			format = JSON;
		else if (!strcmp(argv[0], "--mm-stat"))
			format = MM_STAT;
		else if (!strcmp(argv[0], "--prometheus"))
			format = PROMETHEUS;
		else
			return ctl_bad_usage("stat: no such option: %s",
					     argv[0]);
		argc--;
		argv++;
	}
	if (argc > 1 && !strncmp(argv[0], "--", 2))
		return ctl_bad_usage("stat: %s: only one of --classes, --json, "
				     "--mm-stat and --prometheus",
				     argv[0]);
	if (argc != 1)
		return ctl_bad_usage("stat: want %s", "one MOUNTPOINT");
	path = argv[0];
	if (format == CLASSES)
		return stat_classes(path);
	error = ctl_ask(path, CONTROL_STAT, &stat);
	if (error)
		return ctl_ask_failed(path, error);
	if (format == JSON)
		ctl_stat_json(stdout, &stat);
	else if (format == MM_STAT)
		ctl_stat_mm_stat(stdout, &stat);
	else if (format == PROMETHEUS)
		ctl_stat_prometheus(stdout, &stat, path);
	else
		ctl_stat_table(stdout, &stat);
	return ctl_finish_output();
}

/* It takes its name for that of the program, as getopt(3) does. */
static int command_du(int argc, char **argv)
{
	return ctl_du(argc + 1, argv - 1);
}

static int command_compact(int argc, char **argv)
{
	struct control_compact compact;
	char size[16];
	int error;

	if (argc != 1)
		return ctl_bad_usage("compact: want %s", "one MOUNTPOINT");
	error = ctl_ask(argv[0], CONTROL_COMPACT, &compact);
	if (error)
		return ctl_ask_failed(argv[0], error);
	ctl_format_size(size, sizeof(size), compact.pages * 4096);
	printf("%" PRIu64 " pages (%s) given back\n", compact.pages, size);
	if (compact.error)
		return ctl_complain(EXIT_WRONG,
				    "%s: no memory to compress some pages: "
				    "delete something, or raise mem_limit",
				    argv[0]);
	return ctl_finish_output();
}

static int set_failed(const char *path, const char *argument,
		      const struct control_set *answer)
{
	const char *why = "too little to work with";

	if (answer->error == -ENOSPC)
		return ctl_complain(EXIT_WRONG,
				    "%s: %s: no memory to compress what is "
				    "hot: delete something, or raise mem_limit",
				    path, argument);
	if (answer->error == -EBUSY)
		why = "more than that is in use";
	else if (answer->error != -EINVAL)
		return ctl_complain(EXIT_WRONG, "%s: %s: %s", path, argument,
				    strerror(-answer->error));
	return ctl_complain(EXIT_WRONG, "%s: %s: %s: use at least %" PRIu64 "k",
			    path, argument, why, (answer->value + 1023) / 1024);
}

/*
 * A limit below what is in use is taken, and means that nothing new is stored:
 * who set it by mistake would otherwise learn of it from a failing write.
 */
static int tell_if_over_limit(const char *path)
{
	struct control_stat stat;
	char limit[16], used[16];
	int error = ctl_ask(path, CONTROL_STAT, &stat);

	if (error)
		return ctl_ask_failed(path, error);
	if (!stat.mem_limit || stat.mem_used_total <= stat.mem_limit)
		return 0;
	ctl_format_size(limit, sizeof(limit), stat.mem_limit);
	ctl_format_size(used, sizeof(used), stat.mem_used_total);
	printf("%s: mem_limit is %s, but %s are in use: no more can be written "
	       "until enough is deleted or compressed\n",
	       path, limit, used);
	return ctl_finish_output();
}

static int parse_value(const char *argument, struct control_set *set)
{
	const char *text = strchr(argument, '=') + 1;
	const bool hot = !strcmp(set->key, "hot");
	int error = hot ? options_parse_hot(text, &set->value)
			: options_parse_size(text, &set->value);

	if (error == -ERANGE)
		return ctl_complain(EXIT_USAGE,
				    "set: %s is out of range: use %s", argument,
				    hot ? OPTIONS_HOT_MOST : OPTIONS_SIZE_MOST);
	if (error)
		return ctl_complain(EXIT_USAGE,
				    "set: %s is not possible: use %s", argument,
				    OPTIONS_SIZE_RIGHT);
	if (set->value && !strcmp(set->key, "mem_used_max"))
		return ctl_bad_usage("set: %s: it can only be set to 0",
				     argument);
	return 0;
}

static int command_set(int argc, char **argv)
{
	static const char *const keys[] = {
		"size",	 "mem_limit",	"hot",		"mem_used_max",
#ifdef ZRAMFS_FAULTS
		"fault", "fault_alloc", "fault_blocks", "fault_flip",
#endif
	};
	struct control_set set = {0};
	const char *equals;
	size_t length, i;
	int error;

	if (argc > 2 && strchr(argv[1], '='))
		return ctl_bad_usage("set: %s: one KEY=VALUE at a time",
				     argv[2]);
	if (argc != 2)
		return ctl_bad_usage("set: want %s", "MOUNTPOINT KEY=VALUE");
	equals = strchr(argv[1], '=');
	if (!equals)
		return ctl_bad_usage("set: %s: want KEY=VALUE", argv[1]);
	length = equals - argv[1];
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (length == strlen(keys[i]) &&
		    !memcmp(argv[1], keys[i], length))
			strcpy(set.key, keys[i]);
	if (!set.key[0])
		return ctl_bad_usage(
			"set: %s: the key is not size, mem_limit, hot or "
			"mem_used_max",
			argv[1]);
	error = parse_value(argv[1], &set);
	if (error)
		return error;
	error = ctl_ask(argv[0], CONTROL_SET, &set);
	if (error)
		return ctl_ask_failed(argv[0], error);
	if (set.error)
		return set_failed(argv[0], argv[1], &set);
	if (!strcmp(set.key, "mem_limit"))
		return tell_if_over_limit(argv[0]);
	return 0;
}

static int command_check(int argc, char **argv)
{
	struct control_check check = {0};
	uint32_t i;
	int error;

	if (argc > 1 && !strncmp(argv[0], "--", 2)) {
		if (strcmp(argv[0], "--verify"))
			return ctl_bad_usage("check: no such option: %s",
					     argv[0]);
		check.flags |= CONTROL_CHECK_VERIFY;
		argc--;
		argv++;
	}
	if (argc != 1)
		return ctl_bad_usage("check: want %s", "one MOUNTPOINT");
	error = ctl_ask(argv[0], CONTROL_CHECK, &check);
	if (error)
		return ctl_ask_failed(argv[0], error);
	for (i = 0; i < check.lines && i < CONTROL_CHECK_LINES; i++)
		printf("%.*s\n", (int)sizeof(check.line[i]), check.line[i]);
	printf("%" PRIu64 " inodes, %" PRIu64 " names, %" PRIu64
	       " pages: %" PRIu64 " errors, %" PRIu64 " differences\n",
	       check.inodes, check.entries, check.pages, check.errors,
	       check.differences);
	error = ctl_finish_output();
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
		{"stat", command_stat},	      {"du", command_du},
		{"compact", command_compact}, {"set", command_set},
		{"check", command_check},     {"upgrade", ctl_upgrade},
	};
	size_t i;

	if (argc < 2)
		return ctl_bad_usage("want %s", "a command");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		fputs(usage_text, stdout);
		fputs(help_text, stdout);
		return ctl_finish_output();
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("zramfsctl %s\n", ZRAMFS_VERSION);
		return ctl_finish_output();
	}
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 2, argv + 2);
	return ctl_bad_usage("no such command: %s", argv[1]);
}
