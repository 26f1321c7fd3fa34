/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options_own.c - what each of zramfs's own options means
 *
 * A table of names, what they set, and the words for a value that was wrong.
 * Which of them go together is options.c's business.
 */
#include "options_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 256

static int set_size(struct parse *parse, const char *value)
{
	return options_parse_size(value, &parse->options->size);
}

static int set_mem_limit(struct parse *parse, const char *value)
{
	return options_parse_size(value, &parse->options->mem_limit);
}

static int set_hot(struct parse *parse, const char *value)
{
	parse->hot_given = true;
	return options_parse_hot(value, &parse->options->hot);
}

static int set_nr_inodes(struct parse *parse, const char *value)
{
	parse->nr_inodes_given = true;
	return options_multiple(value, &parse->options->nr_inodes);
}

static int set_mode(struct parse *parse, const char *value)
{
	uint64_t mode;
	int error = options_number(value, 8, 07777, &mode);

	parse->options->mode = (mode_t)mode;
	parse->options->mode_given = true;
	return error;
}

/* All but (uid_t)-1, which means "leave as it is" to chown(2). */
static int set_uid(struct parse *parse, const char *value)
{
	uint64_t id;
	int error = options_number(value, 10, UINT32_MAX - 1, &id);

	parse->options->uid = (uid_t)id;
	return error;
}

static int set_gid(struct parse *parse, const char *value)
{
	uint64_t id;
	int error = options_number(value, 10, UINT32_MAX - 1, &id);

	parse->options->gid = (gid_t)id;
	return error;
}

static int set_alg(struct parse *parse, const char *value)
{
	/* It has better words for what is wrong: they stay. */
	return codec_parse(value, &parse->options->codec, parse->message.text,
			   parse->message.size)
		       ? -ECANCELED
		       : 0;
}

static int set_pool(struct parse *parse, const char *value)
{
	parse->options->pool = pool_by_name(value);
	return parse->options->pool ? 0 : -EINVAL;
}

/* Powers of two, from a page to as much as a codec takes. */
static int set_cluster(struct parse *parse, const char *value)
{
	uint64_t bytes;
	int error = options_parse_size(value, &bytes);

	if (error)
		return error;
	if (bytes < PAGE_SIZE || bytes > CODEC_MOST)
		return -ERANGE;
	parse->options->cluster_pages = (unsigned int)(bytes / PAGE_SIZE);
	return bytes & (bytes - 1) ? -EINVAL : 0;
}

static int set_switch(const char *value, bool *is_on)
{
	*is_on = !strcmp(value, "on");
	return *is_on || !strcmp(value, "off") ? 0 : -EINVAL;
}

static int set_dedup(struct parse *parse, const char *value)
{
	return set_switch(value, &parse->options->dedup);
}

static int set_threads(struct parse *parse, const char *value)
{
	uint64_t threads;
	int error = options_number(value, 10, THREADS_MAX, &threads);

	parse->options->threads = (unsigned int)threads;
	return !error && !threads ? -ERANGE : error;
}

static int set_keeper(struct parse *parse, const char *value)
{
	return set_switch(value, &parse->options->keeper);
}

static int set_low_latency(struct parse *parse, const char *value)
{
	parse->options->low_latency_given = true;
	return set_switch(value, &parse->options->low_latency);
}

static int set_writeback(struct parse *parse, const char *value)
{
	parse->options->writeback = true;
	return 0;
}

static int set_noopen(struct parse *parse, const char *value)
{
	parse->options->noopen = true;
	return 0;
}

static int set_block(struct parse *parse, const char *value)
{
	static const char *const names[] = {"ext4", "xfs", "btrfs"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(value, names[i])) {
			parse->options->block = names[i];
			return 0;
		}
	return -EINVAL;
}

/* A copy in *text; a backslash there only kept a comma together with it. */
static int set_text(struct parse *parse, const char *value, char **text)
{
	char *copy = strdup(value);
	char *to = copy;

	if (!copy) {
		options_fail(&parse->message, -ENOMEM, "out of memory");
		return -ECANCELED;
	}
	for (; *value; value++) {
		if (*value == '\\' && value[1])
			value++;
		*to++ = *value;
	}
	*to = '\0';
	free(*text);
	*text = copy;
	return 0;
}

static int set_mkfs_opts(struct parse *parse, const char *value)
{
	return set_text(parse, value, &parse->options->mkfs_opts);
}

static int set_mount_opts(struct parse *parse, const char *value)
{
	return set_text(parse, value, &parse->options->mount_opts);
}

#define SIZE_RIGHT OPTIONS_SIZE_RIGHT "; 0 for "
#define ID_RIGHT   "a number from 0 to 4294967294"

static const struct own_option {
	const char *name;
	/* -EINVAL, -ERANGE; -ECANCELED when the message is there already. */
	int (*set)(struct parse *parse, const char *value);
	/* "use ..."; NULL for an option without a value. */
	const char *right;
	/* The same for what is out of range, if that does not tell the range.
	 */
	const char *most;
} own_options[] = {
	{"size", set_size, SIZE_RIGHT "no bound", OPTIONS_SIZE_MOST},
	{"mem_limit", set_mem_limit, SIZE_RIGHT "no limit", OPTIONS_SIZE_MOST},
	{"hot", set_hot, SIZE_RIGHT "no hot tier", OPTIONS_HOT_MOST},
	{"nr_inodes", set_nr_inodes,
	 "a whole number, k, m, g or t may follow; 0 for no bound",
	 OPTIONS_SIZE_MOST},
	{"mode", set_mode, "an octal number from 0 to 7777", NULL},
	{"uid", set_uid, ID_RIGHT, NULL},
	{"gid", set_gid, ID_RIGHT, NULL},
	{"alg", set_alg, "lz4, lz4hc, lzo, zstd, deflate or none", NULL},
	{"pool", set_pool, "zsmalloc, z3fold or zbud", NULL},
	{"cluster", set_cluster, "4k, 8k, 16k, 32k, 64k or 128k", NULL},
	{"dedup", set_dedup, "on or off", NULL},
	{"threads", set_threads, "a whole number from 1 to 256", NULL},
	{"writeback", set_writeback, NULL, NULL},
	{"noopen", set_noopen, NULL, NULL},
	{"block", set_block, "ext4, xfs or btrfs", NULL},
	{"mkfs_opts", set_mkfs_opts, "words for mkfs, with spaces between",
	 NULL},
	{"mount_opts", set_mount_opts, "options for mount, as in a\\,b", NULL},
	{"keeper", set_keeper, "on or off", NULL},
	{"low_latency", set_low_latency, "on or off", NULL},
};

static int set_own(struct parse *parse, const struct own_option *own,
		   const char *value)
{
	const char *name = own->name;
	int error;

	if (!own->right && value)
		return options_fail(&parse->message, -EINVAL,
				    "%s=%.64s: %s takes no value, use %s", name,
				    value, name, name);
	if (own->right && (!value || !*value))
		return options_fail(&parse->message, -EINVAL,
				    "%s needs a value: use %s", name,
				    own->right);
	error = own->set(parse, value);
	if (!error || error == -ECANCELED)
		return error ? -EINVAL : 0;
	if (error == -ERANGE)
		return options_fail(&parse->message, -EINVAL,
				    "%s=%.64s is out of range: use %s", name,
				    value, own->most ? own->most : own->right);
	return options_fail(&parse->message, -EINVAL,
			    "%s=%.64s is not possible: use %s", name, value,
			    own->right);
}

bool options_set_own(struct parse *parse, const char *option, int *error)
{
	size_t len = strcspn(option, "=");

	for (size_t i = 0; i < sizeof(own_options) / sizeof(*own_options);
	     i++) {
		const struct own_option *own = &own_options[i];

		if (strlen(own->name) != len || memcmp(own->name, option, len))
			continue;
		*error = set_own(parse, own,
				 option[len] ? option + len + 1 : NULL);
		return true;
	}
	return false;
}
