/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options.c - reads the command line, once, before anything else happens
 *
 * Owns the form of the command line and the defaults; what an option means is
 * options_own.c's, and options_mount.c's if it is somebody else's. Nothing is
 * guessed and nothing is passed over: a word that is not known here is an
 * error, and so is one that libfuse would not take, before libfuse can say so
 * less clearly.
 */
#include "options_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS_DEFAULT_MIN 2
#define THREADS_DEFAULT_MAX 16
#define LOW_LATENCY_CPUS    8
#define HOT_DEFAULT_MAX	    (256ull << 20)

int options_fail(const struct message *message, int error, const char *format,
		 ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message->text, message->size, format, arguments);
	va_end(arguments);
	return error;
}

/* Appended as it is, escapes and all: libfuse splits it again. */
static int pass_on(struct parse *parse, const char *option)
{
	char **list = &parse->options->fuse_options, *longer;

	if (asprintf(&longer, "%s%s%s", *list, **list ? "," : "", option) < 0)
		return options_fail(&parse->message, -ENOMEM, "out of memory");
	free(*list);
	*list = longer;
	return 0;
}

/* Somebody else's: looked at here, so that libfuse need not refuse it. */
static int parse_foreign(struct parse *parse, const char *option)
{
	switch (options_mount(option, &parse->message)) {
	case MOUNT_OPTION_PASS:
		if (!strcmp(option, "noatime") || !strcmp(option, "atime"))
			parse->options->noatime = option[0] == 'n';
		if (!strcmp(option, "auto_unmount"))
			parse->options->auto_unmount = true;
		return pass_on(parse, option);
	case MOUNT_OPTION_DROP:
		return 0;
	case MOUNT_OPTION_WRONG:
		break;
	}
	return -EINVAL;
}

static int parse_option(struct parse *parse, const char *option)
{
	int error;

	return options_set_own(parse, option, &error)
		       ? error
		       : parse_foreign(parse, option);
}

/* The length up to a comma; a backslash takes the next character with it. */
static size_t option_length(const char *list)
{
	size_t len = 0;

	while (list[len] && list[len] != ',')
		len += list[len] == '\\' && list[len + 1] ? 2 : 1;
	return len;
}

static int parse_list(struct parse *parse, const char *text)
{
	char *list = strdup(text);
	int error = 0;

	if (!list)
		return options_fail(&parse->message, -ENOMEM, "out of memory");
	for (char *at = list; *at && !error;) {
		size_t len = option_length(at);
		bool last = !at[len];

		at[len] = '\0';
		/* mount(8) lets empty ones pass, as in "rw,,size=1g". */
		if (len)
			error = parse_option(parse, at);
		at += len + !last;
	}
	free(list);
	return error;
}

/*
 * One argument that starts with '-': letters, of which o ends it and takes
 * the rest or the next argument. Sets *used to how many arguments it was.
 */
static int parse_letters(struct parse *parse, char **argv, int *used)
{
	struct options *options = parse->options;

	*used = 1;
	for (const char *letter = argv[0] + 1; *letter; letter++) {
		switch (*letter) {
		case 'f':
			options->foreground = true;
			break;
		case 'd':
			options->debug = options->foreground = true;
			break;
		case 'h':
			options->help = true;
			break;
		case 'V':
			options->version = true;
			break;
		case 'o':
			if (letter[1])
				return parse_list(parse, letter + 1);
			if (!argv[1])
				return options_fail(
					&parse->message, -EINVAL,
					"-o needs a list of options, as in "
					"-o size=1g");
			*used = 2;
			return parse_list(parse, argv[1]);
		default:
			return options_fail(
				&parse->message, -EINVAL,
				"unknown option '-%c' in %.64s: use -o, "
				"-f, -d, -h or -V",
				*letter, argv[0]);
		}
	}
	return 0;
}

static int parse_dashed(struct parse *parse, char **argv, int *used)
{
	*used = 1;
	if (argv[0][1] != '-')
		return parse_letters(parse, argv, used);
	if (!strcmp(argv[0], "--help"))
		parse->options->help = true;
	else if (!strcmp(argv[0], "--version"))
		parse->options->version = true;
	else
		return options_fail(
			&parse->message, -EINVAL,
			"unknown option '%.64s': use -o OPT=VALUE, --help "
			"or --version",
			argv[0]);
	return 0;
}

/* MOUNTPOINT, or SOURCE MOUNTPOINT. */
static int take_operands(struct parse *parse, char *const operand[2],
			 unsigned int operands)
{
	struct options *options = parse->options;

	if (operands == 2)
		options->source = operand[0];
	options->mountpoint = operands ? operand[operands - 1] : "";
	if (!*options->mountpoint)
		return options_fail(
			&parse->message, -EINVAL,
			"no mountpoint given: use zramfs MOUNTPOINT [-o "
			"OPT[,OPT...]]");
	return 0;
}

static int parse_arguments(struct parse *parse, int argc, char **argv)
{
	struct options *options = parse->options;
	char *operand[2] = {NULL, NULL};
	unsigned int operands = 0;
	bool dashes = true;
	int used, error;

	for (int i = 1; i < argc; i += used) {
		used = 1;
		if (dashes && !strcmp(argv[i], "--")) {
			dashes = false;
		} else if (dashes && argv[i][0] == '-' && argv[i][1]) {
			error = parse_dashed(parse, argv + i, &used);
			/* Who asks for help gets it, whatever else is there. */
			if (error || options->help || options->version)
				return error;
		} else if (operands < 2) {
			operand[operands++] = argv[i];
		} else {
			return options_fail(
				&parse->message, -EINVAL,
				"'%.64s' is one argument too many: use "
				"zramfs [SOURCE] MOUNTPOINT",
				argv[i]);
		}
	}
	return take_operands(parse, operand, operands);
}

static unsigned int default_threads(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (cpus < THREADS_DEFAULT_MIN)
		return THREADS_DEFAULT_MIN;
	return cpus < THREADS_DEFAULT_MAX ? (unsigned int)cpus
					  : THREADS_DEFAULT_MAX;
}

/* A small part of RAM, and of what zramfs may take of it. */
static uint64_t default_hot(uint64_t mem_limit)
{
	uint64_t hot = options_ram_bytes() / 32;

	if (hot > HOT_DEFAULT_MAX)
		hot = HOT_DEFAULT_MAX;
	if (mem_limit && hot > mem_limit / 4)
		hot = mem_limit / 4;
	return hot;
}

/* Whether fuse_options has it; "name=" stands for any value. */
static bool was_given(const struct options *options, const char *name)
{
	size_t name_len = strlen(name);
	bool any_value = name[name_len - 1] == '=';

	for (const char *at = options->fuse_options; *at;) {
		size_t len = option_length(at);

		if ((len == name_len || (any_value && len > name_len)) &&
		    !memcmp(at, name, name_len))
			return true;
		at += len + (at[len] == ',');
	}
	return false;
}

/*
 * A page of a file takes 4 bytes of its table, whatever it holds: a device
 * that is larger than this can never be full, for its table alone would not
 * fit into the machine's memory. Making a filesystem on it may take long, and
 * much memory, all the same.
 */
#define BLOCK_SIZE_MAX_RAM 1024

static int check_block_size(const struct parse *parse)
{
	const struct options *options = parse->options;
	uint64_t most;

	if (!options->size)
		return options_fail(&parse->message, -EINVAL,
				    "size=0 is not possible with block=: a "
				    "device has a size");
	if (__builtin_mul_overflow(options_ram_bytes(), BLOCK_SIZE_MAX_RAM,
				   &most) ||
	    options->size <= most)
		return 0;
	return options_fail(&parse->message, -EINVAL,
			    "size=%llug is too large with block=: use at most "
			    "%llug, %u times the machine's memory, as its "
			    "tables alone would take all of that",
			    (unsigned long long)(options->size >> 30),
			    (unsigned long long)(most >> 30),
			    BLOCK_SIZE_MAX_RAM);
}

/*
 * Options that say something of the zramfs as a mount have no meaning where
 * nobody sees that mount. (Open to all users it is anyway.)
 */
static int check_block(const struct parse *parse)
{
	static const char *const impossible[] = {
		"allow_root", "auto_unmount", "fsname=",
		"subtype=",   "max_read=",    "context=",
		"fscontext=", "defcontext=",  "rootcontext=",
	};
	const struct options *options = parse->options;
	const char *wrong = NULL;
	size_t i;
	int error;

	if (!options->block) {
		if (*options->mkfs_opts || *options->mount_opts)
			return options_fail(&parse->message, -EINVAL,
					    "%s needs block=: use block=ext4, "
					    "xfs or btrfs",
					    *options->mkfs_opts
						    ? "mkfs_opts="
						    : "mount_opts=");
		return 0;
	}
	error = check_block_size(parse);
	if (error)
		return error;
	for (i = 0; i < sizeof(impossible) / sizeof(impossible[0]); i++)
		if (was_given(options, impossible[i]))
			wrong = impossible[i];
	if (options->writeback)
		wrong = "writeback";
	if (options->noopen)
		wrong = "noopen";
	if (parse->nr_inodes_given)
		wrong = "nr_inodes=";
	return wrong ? options_fail(&parse->message, -EINVAL,
				    "%s is not possible with block=: leave it "
				    "out",
				    wrong)
		     : 0;
}

/*
 * Pages wait in the hot tier to be compressed together: a few clusters must
 * have room there, or each page would be compressed by itself.
 */
#define HOT_CLUSTERS 4

static int check_cluster(const struct parse *parse)
{
	const struct options *options = parse->options;
	unsigned int kib = options->cluster_pages * (PAGE_SIZE >> 10);

	if (options->cluster_pages == 1)
		return 0;
	if (options->codec.ops == &codec_none)
		return options_fail(
			&parse->message, -EINVAL,
			"cluster=%uk is not possible with alg=none, "
			"which compresses nothing: leave it out",
			kib);
	if (options->hot < (uint64_t)kib * HOT_CLUSTERS << 10)
		return options_fail(&parse->message, -EINVAL,
				    "cluster=%uk needs a hot tier, where pages "
				    "wait to be compressed together: use "
				    "hot=%uk or more",
				    kib, kib * HOT_CLUSTERS);
	return 0;
}

/* What goes with what. */
static int check_together(const struct parse *parse)
{
	int error = check_block(parse);

	return error ? error : check_cluster(parse);
}

/* What was wrong is quoted in the message, which goes to a terminal or a log.
 */
static void make_printable(char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
	}
}

int options_parse(struct options *options, int argc, char **argv, char *message,
		  size_t message_size)
{
	struct parse parse = {options, {message, message_size}, false, false};
	int error;

	*options = (struct options){
		.source = "zramfs",
		.size = options_ram_bytes() / 2,
		.nr_inodes = (uint64_t)sysconf(_SC_PHYS_PAGES) / 2,
		.mode = geteuid() ? 0755 : 01777,
		.uid = geteuid(),
		.gid = getegid(),
		.codec = {&codec_lz4, codec_lz4.level_default},
		.pool = &pool_zsmalloc,
		.cluster_pages = 1,
		.dedup = true,
		.threads = default_threads(),
		.keeper = true,
		.low_latency =
			sysconf(_SC_NPROCESSORS_ONLN) <= LOW_LATENCY_CPUS,
		.fuse_options = strdup(""),
		.mkfs_opts = strdup(""),
		.mount_opts = strdup(""),
	};
	if (!options->fuse_options || !options->mkfs_opts ||
	    !options->mount_opts) {
		options_release(options);
		return options_fail(&parse.message, -ENOMEM, "out of memory");
	}
	error = parse_arguments(&parse, argc, argv);
	if (!error && !parse.hot_given)
		options->hot = default_hot(options->mem_limit);
	if (!error && !options->help && !options->version)
		error = check_together(&parse);
	if (error) {
		make_printable(message);
		options_release(options);
		return error;
	}
	return 0;
}

void options_release(struct options *options)
{
	free(options->fuse_options);
	free(options->mkfs_opts);
	free(options->mount_opts);
	options->fuse_options = options->mkfs_opts = options->mount_opts = NULL;
}
