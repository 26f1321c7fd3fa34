/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ctl_du.c - see ctl_du.h
 *
 * Walks each path as du(1) does: no symlink is followed, the walk stays on the
 * path's filesystem, and what has several names is counted by the first that
 * is met. Only the daemon is asked; no data is read.
 *
 * One's own files are asked about many at once, by number: a directory's, or
 * CONTROL_USAGES_MAX of them; and everybody's by root and the user who mounted.
 * Else each is opened, for which one needs permission, and asked for itself,
 * which takes many times as long: see control.h.
 */
#include "ctl_du.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <getopt.h>
#include <linux/magic.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "block.h"
#include "control.h"
#include "ctl.h"
#include "ctl_usage.h"

struct walk {
	struct ctl_usage_output output;
	bool summarize;
	int status;
	void *linked; /* (device, inode) of files with several names */
	/* Of the path at hand: */
	int mount;     /* its directory, to ask about many; -1: none */
	bool only_own; /* many, but own files only */
	dev_t device;
	bool not_zramfs;
	struct ctl_usage *sum; /* what the pending ones belong to */
	struct control_usages pending;
};

static void failed(struct walk *walk, const char *path, int error)
{
	walk->status =
		ctl_complain(EXIT_WRONG, "%s: %s", path, strerror(error));
}

/* --- asking ------------------------------------------------------------ */

/* With other errors than this one, it is no regular file any more. */
static void add_answers(struct walk *walk, const char *path)
{
	bool refused = false;
	uint32_t i;

	for (i = 0; i < walk->pending.count; i++) {
		const struct control_usage *file = &walk->pending.file[i];

		refused |= file->error == -EACCES;
		if (!file->error)
			ctl_usage_add_file(walk->sum, file);
	}
	if (refused)
		failed(walk, path, EACCES);
}

static void flush(struct walk *walk, const char *path)
{
	if (!walk->pending.count)
		return;
	if (ioctl(walk->mount, CONTROL_USAGES, &walk->pending))
		failed(walk, path, errno);
	else
		add_answers(walk, path);
	walk->pending.count = 0;
}

/* Is it zramfs, and whose files may be asked about? Asking about none tells. */
static int ask_about_none(struct walk *walk)
{
	walk->pending.count = 0;
	if (ioctl(walk->mount, CONTROL_USAGES, &walk->pending)) {
		/* Other FUSE filesystems know no ioctls, or not these. */
		walk->not_zramfs = errno == ENOTTY || errno == ENOSYS;
		return walk->not_zramfs ? 0 : errno;
	}
	walk->only_own = !walk->pending.all;
	return 0;
}

/* Not to be seen in its times, if we may say so. */
static int open_quietly(const char *name)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC;
	int fd = open(name, flags | O_NOATIME);

	return fd < 0 && errno == EPERM ? open(name, flags) : fd;
}

static void ask_one(struct walk *walk, const char *name, const char *path)
{
	struct control_usage usage = {0};
	int fd = open_quietly(name);

	if (fd < 0) {
		failed(walk, path, errno);
		return;
	}
	if (!ioctl(fd, CONTROL_USAGE, &usage))
		ctl_usage_add_file(walk->sum, &usage);
	else if (errno == ENOTTY || errno == ENOSYS)
		walk->not_zramfs = true;
	else
		failed(walk, path, errno);
	close(fd);
}

/* --- hard links -------------------------------------------------------- */

struct link {
	dev_t device;
	ino_t ino;
};

static int compare_links(const void *one, const void *two)
{
	const struct link *a = one, *b = two;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return a->ino < b->ino ? -1 : a->ino > b->ino;
}

/* Without memory to tell, as if it were new. */
static bool seen_before(struct walk *walk, const struct stat *stat)
{
	struct link *link, **found;

	if (stat->st_nlink < 2)
		return false;
	link = malloc(sizeof(*link));
	if (link)
		*link = (struct link){stat->st_dev, stat->st_ino};
	found = link ? tsearch(link, &walk->linked, compare_links) : NULL;
	if (found && *found == link)
		return false;
	free(link);
	if (!found)
		failed(walk, "hard links", ENOMEM);
	return found;
}

/* --- walking ----------------------------------------------------------- */

static void visit_file(struct walk *walk, const FTSENT *entry)
{
	const struct stat *stat = entry->fts_statp;
	struct control_usages *pending = &walk->pending;

	if (!S_ISREG(stat->st_mode) || stat->st_dev != walk->device ||
	    seen_before(walk, stat))
		return;
	if (walk->mount < 0 || (walk->only_own && stat->st_uid != geteuid())) {
		ask_one(walk, entry->fts_accpath, entry->fts_path);
		return;
	}
	pending->file[pending->count++].ino = stat->st_ino;
	if (pending->count == CONTROL_USAGES_MAX)
		flush(walk, entry->fts_path);
}

static void enter_directory(struct walk *walk, FTS *fts, FTSENT *entry)
{
	if (entry->fts_statp->st_dev != walk->device) {
		fts_set(fts, entry, FTS_SKIP);
		return;
	}
	flush(walk, entry->fts_path);
	entry->fts_pointer = calloc(1, sizeof(struct ctl_usage));
	if (!entry->fts_pointer) {
		failed(walk, entry->fts_path, ENOMEM);
		fts_set(fts, entry, FTS_SKIP);
		return;
	}
	walk->sum = entry->fts_pointer;
}

/* Its sum becomes part of that of the directory it is in. */
static void leave_directory(struct walk *walk, FTSENT *entry)
{
	struct ctl_usage *sum = entry->fts_pointer;

	if (!sum)
		return; /* it was not entered */
	flush(walk, entry->fts_path);
	if (!walk->not_zramfs &&
	    (entry->fts_level == FTS_ROOTLEVEL || !walk->summarize))
		ctl_usage_show(&walk->output, entry->fts_path, sum);
	walk->sum = entry->fts_parent->fts_pointer;
	if (walk->sum)
		ctl_usage_add(walk->sum, sum);
	free(sum);
	entry->fts_pointer = NULL;
}

static void visit(struct walk *walk, FTS *fts, FTSENT *entry)
{
	switch (entry->fts_info) {
	case FTS_D:
		enter_directory(walk, fts, entry);
		break;
	case FTS_DNR:
		failed(walk, entry->fts_path, entry->fts_errno);
		leave_directory(walk, entry);
		break;
	case FTS_DP:
		leave_directory(walk, entry);
		break;
	case FTS_NS:
	case FTS_ERR:
		failed(walk, entry->fts_path, entry->fts_errno);
		break;
	default:
		visit_file(walk, entry);
	}
}

static void walk_tree(struct walk *walk, char *path)
{
	char *const paths[] = {path, NULL};
	struct ctl_usage file = {0}; /* if path is one */
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_XDEV, NULL);
	bool is_directory = false;
	FTSENT *entry;
	int before = walk->status;

	if (!fts) {
		failed(walk, path, errno);
		return;
	}
	walk->sum = &file;
	walk->status = 0;
	for (errno = 0; (entry = fts_read(fts)); errno = 0) {
		is_directory |= entry->fts_info == FTS_D;
		visit(walk, fts, entry);
	}
	if (errno)
		failed(walk, path, errno);
	if (!is_directory && !walk->status && !walk->not_zramfs)
		ctl_usage_show(&walk->output, path, &file);
	walk->status |= before;
	fts_close(fts);
}

/* --- paths ------------------------------------------------------------- */

/* What is no zramfs may have one behind it. */
static const char *why_not(const char *path)
{
	struct stat stat_buf;
	uint64_t device_size = 0;
	int fd;

	if (!lstat(path, &stat_buf) && S_ISLNK(stat_buf.st_mode))
		return "a symbolic link, and not in a zramfs mount itself: "
		       "name what it leads to";
	fd = block_open_behind(path, &device_size);

	if (fd < 0 && fd != -EACCES && fd != -EPERM)
		return "not in a zramfs mount";
	if (fd >= 0)
		close(fd);
	return "files there are the device's, not zramfs's (see zramfsctl "
	       "stat)";
}

/* The filesystem that has the path, which may be a symlink. 0 or an errno. */
static int look_at(struct walk *walk, const char *path)
{
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct statfs statfs_buf;
	struct stat stat_buf;
	int error = 0;

	if (fd < 0)
		return errno;
	if (fstatfs(fd, &statfs_buf) || fstat(fd, &stat_buf))
		error = errno;
	close(fd);
	if (error)
		return error;
	walk->device = stat_buf.st_dev;
	walk->not_zramfs = statfs_buf.f_type != FUSE_SUPER_MAGIC;
	if (!walk->not_zramfs && S_ISDIR(stat_buf.st_mode))
		walk->mount = open_quietly(path);
	return 0;
}

static void visit_path(struct walk *walk, char *path)
{
	int error;

	walk->mount = -1;
	error = look_at(walk, path);
	if (!error && walk->mount >= 0)
		error = ask_about_none(walk);
	if (error)
		failed(walk, path, error);
	else if (!walk->not_zramfs)
		walk_tree(walk, path);
	if (walk->mount >= 0)
		close(walk->mount);
	if (walk->not_zramfs)
		walk->status =
			ctl_complain(EXIT_WRONG, "%s: %s", path, why_not(path));
}

/* False after a line: no such option, or no path. */
static bool parse(int argc, char **argv, struct walk *walk)
{
	static const struct option long_options[] = {
		{"json", no_argument, NULL, 'j'}, {0}};
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "sh", long_options, NULL)) !=
	       -1) {
		switch (option) {
		case 's':
			walk->summarize = true;
			break;
		case 'h':
			walk->output.human = true;
			break;
		case 'j':
			walk->output.json = true;
			break;
		default:
			ctl_bad_usage("du: no such option: %s",
				      argv[optind - 1]);
			return false;
		}
	}
	if (optind == argc)
		ctl_bad_usage("du: want %s", "a PATH");
	return optind < argc;
}

int ctl_du(int argc, char **argv)
{
	static struct walk walk;
	int i;

	walk.output.stream = stdout;
	if (!parse(argc, argv, &walk))
		return EXIT_USAGE;
	for (i = optind; i < argc; i++)
		visit_path(&walk, argv[i]);
	ctl_usage_end(&walk.output);
	tdestroy(walk.linked, free);
	return ctl_finish_output() || walk.status ? EXIT_WRONG : 0;
}
