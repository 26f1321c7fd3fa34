/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options.h - the command line, as a struct
 *
 * Reads the command line only; touches nothing else but, for percentages, the
 * machine's memory size. Knows no other room but codec.h and pool.h, whose
 * names it looks up.
 */
#ifndef ZRAMFS_OPTIONS_H
#define ZRAMFS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "codec/codec.h"
#include "pool/pool.h"

struct options {
	const char *source;	/* "zramfs" if none was given */
	const char *mountpoint; /* as given */
	uint64_t size;		/* default 50% of RAM, as tmpfs; 0: no bound */
	uint64_t mem_limit;	/* 0: none */
	uint64_t hot;
	uint64_t nr_inodes; /* 0: none; default half of RAM's pages, as tmpfs */
	mode_t mode;	    /* default 01777 as root, 0755 else */
	bool mode_given;
	uid_t uid;
	gid_t gid;
	struct codec_choice codec; /* default lz4 */
	const struct pool_ops *pool;
	unsigned int cluster_pages; /* compressed together; 1: none */
	bool dedup;
	unsigned int threads; /* workers; default from the number of CPUs */
	bool writeback;
	bool noopen;	  /* the kernel need not tell of opening */
	bool keeper;	  /* one who starts another worker */
	bool low_latency; /* see awake.h */
	bool low_latency_given;
	bool noatime; /* these two are passed on to FUSE, too */
	bool auto_unmount;
	const char *block; /* ext4, xfs or btrfs; NULL: keep files */
	char *mkfs_opts;   /* words, for block; freed as below */
	char *mount_opts;  /* comma-separated, likewise */
	bool foreground;   /* -f */
	bool debug;	   /* -d: libfuse's own */
	bool help;
	bool version;
	/* What is left for libfuse and the kernel, comma-separated; freed by
	 * options_release(). */
	char *fuse_options;
};

/*
 * 0; or -EINVAL or -ENOMEM, with one line in message (no newline, no program
 * name) that names the argument that was wrong and what would be right. Then
 * nothing is left to release, but releasing does no harm. With help or version
 * set, nothing else is.
 */
int options_parse(struct options *options, int argc, char **argv, char *message,
		  size_t message_size);
void options_release(struct options *options);

/*
 * A size as options take it: digits with k, m, g, t (either case, powers of
 * 1024) or '%' of RAM. 0, -EINVAL, -ERANGE. Shared with zramfsctl set.
 */
int options_parse_size(const char *text, uint64_t *bytes);

/*
 * Likewise for hot=: what is not compressed cannot be more than the memory that
 * there is, so more than 100% is -ERANGE, and a mistake for something else.
 */
int options_parse_hot(const char *text, uint64_t *bytes);

/* What to use where these say -EINVAL, and -ERANGE. */
#define OPTIONS_SIZE_RIGHT \
	"a whole number, of bytes or with k, m, g, t or % (of RAM) behind it"
#define OPTIONS_SIZE_MOST "at most 8388607t"
#define OPTIONS_HOT_MOST  "at most 100%"

/* The text of --help, after the usage line. */
const char *options_help(void);

#endif
