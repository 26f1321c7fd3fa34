/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block_mkfs.c - the filesystems of block mode, and how they are made
 *
 * Their own programs make them, with options for a device that starts as
 * zeros, is as fast at any place, never outlives a crash of the machine, and
 * checks what it stores itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "block_private.h"

extern char **environ;

/*
 * No journal: there is nothing to recover. No reserve for root, no room to
 * grow, no checksums of metadata: the store has its own. The device is known
 * to be zeros, so inode tables are cleared neither by mkfs nor, as
 * noinit_itable is given, by the kernel later; uninit_bg lets them be.
 */
static const char *const ext4_options[] = {
	"-q", "-F",
	"-b", "4096",
	"-m", "0",
	"-i", "8192",
	"-O", "^has_journal,^resize_inode,^metadata_csum,uninit_bg",
	"-E", "nodiscard,lazy_itable_init=1",
	NULL,
};

/*
 * The log is written round and round, and so all of it is kept. mkfs.xfs wants
 * 64 MiB, for the sake of speed on disks, and a size of 300 MiB; it can do with
 * less, and does when it believes to be tested by its own tests. It lies in one
 * allocation group, which has 16 MiB where the device has 32 or 64.
 */
static const char *const xfs_options[] = {
	"-q", "-f", "-K", "-s", "size=4096", "-l", "size=15m", NULL,
};

static char *const xfs_environment[] = {
	"TEST_DIR=/",
	"TEST_DEV=/",
	"QA_CHECK_FS=1",
	NULL,
};

static const char *const btrfs_options[] = {
	"-q", "-f", "-K", "-m", "single", "-d", "single", NULL,
};

static const struct block_type types[] = {
	{"ext4", "mkfs.ext4", "e2fsprogs", ext4_options, NULL,
	 "barrier=0,noinit_itable,noauto_da_alloc,errors=remount-ro", "discard",
	 true},
	{"xfs", "mkfs.xfs", "xfsprogs", xfs_options, xfs_environment, "discard",
	 NULL, false},
	{"btrfs", "mkfs.btrfs", "btrfs-progs", btrfs_options, NULL,
	 "discard=sync,nobarrier,nodatacow", NULL, false},
};

#define WORDS_MAX 128

/*
 * A size that is enough for each of them: with Debian 12's programs ext4 needs
 * less than 1 MiB, xfs 16 and btrfs less than 48. What a program says when a
 * device is too small seldom tells what would do.
 */
#define SIZE_ENOUGH (UINT64_C(64) << 20)
#define SIZE_ADVICE ": use size=64m or more"

/* One run of a program. */
struct making {
	const struct block_type *type;
	const struct cancel *cancel;
	const struct block_error *error;
	const char *words; /* that the user has given for it */
	bool small;	   /* the device may be too small */
};

const struct block_type *block_type_by_name(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(types[i].name, name))
			return &types[i];
	return NULL;
}

/*
 * The command line: ours first, so that of an option given twice the user's
 * counts. words is what the user's are cut from. False: too many.
 */
static bool compose(const char *argv[WORDS_MAX], const struct block_type *type,
		    char *words, const char *device)
{
	const char *const *option;
	char *word, *rest;
	size_t count = 0;

	argv[count++] = type->program;
	for (option = type->options; *option; option++)
		argv[count++] = *option;
	for (word = strtok_r(words, " \t", &rest); word;
	     word = strtok_r(NULL, " \t", &rest)) {
		if (count == WORDS_MAX - 2)
			return false;
		argv[count++] = word;
	}
	argv[count++] = device;
	argv[count] = NULL;
	return true;
}

/* Ours, and what the type wants besides; to be freed, not what is in it. */
static char **compose_environment(const struct block_type *type)
{
	size_t own = 0, more = 0;
	char **result;

	while (environ[own])
		own++;
	while (type->environment && type->environment[more])
		more++;
	result = calloc(own + more + 1, sizeof(*result));
	if (!result)
		return NULL;
	memcpy(result, environ, own * sizeof(*result));
	if (more)
		memcpy(result + own, type->environment, more * sizeof(*result));
	return result;
}

/*
 * In the child, by system calls alone: this process has threads. Nothing to
 * read, all that it says to output, none of the signals blocked that are here;
 * and whoever starts it, when that is killed, it is, too. An errno.
 */
static int become(const char *const argv[], char **environment, int output,
		  pid_t parent)
{
	int input = open("/dev/null", O_RDONLY);
	sigset_t none;

	sigemptyset(&none);
	if (setpgid(0, 0) || prctl(PR_SET_PDEATHSIG, SIGKILL) || input < 0 ||
	    dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
	    dup2(output, STDERR_FILENO) < 0 ||
	    sigprocmask(SIG_SETMASK, &none, NULL))
		return errno;
	if (getppid() != parent)
		return ESRCH;
	execvpe(argv[0], (char *const *)argv, environment);
	return errno;
}

/* A child that has become the program: its number; or -errno. */
static pid_t spawn(const char *const argv[], char **environment, int output)
{
	pid_t parent = getpid(), pid;
	int fds[2];
	int error = 0;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid == 0) {
		error = become(argv, environment, output, parent);
		_exit(write(fds[1], &error, sizeof(error)) < 0);
	}
	if (pid < 0)
		error = errno;
	close(fds[1]);
	/* The other end closes when the program begins. */
	while (pid > 0 && read(fds[0], &error, sizeof(error)) < 0 &&
	       errno == EINTR)
		;
	close(fds[0]);
	if (!error)
		return pid;
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return -error;
}

/* The first line that it said which is not empty, without its own name. */
static void first_line(int output, const char *program, char *line, size_t size)
{
	ssize_t length = pread(output, line, size - 1, 0);
	size_t name = strlen(program), skip;

	line[length > 0 ? length : 0] = '\0';
	skip = strspn(line, " \t\r\n");
	if (!strncmp(line + skip, program, name) && line[skip + name] == ':')
		skip += name + 1 + strspn(line + skip + name + 1, " ");
	memmove(line, line + skip, strlen(line + skip) + 1);
	line[strcspn(line, "\r\n")] = '\0';
}

/* What waitpid(2) told. */
static int judge(int status, const struct making *making, int output)
{
	const struct block_type *type = making->type;
	const struct block_error *error = making->error;
	char line[256], step[160];

	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	if (WIFSIGNALED(status))
		return block_fail(error, EIO, type->program, "killed: %s",
				  strsignal(WTERMSIG(status)));
	first_line(output, type->program, line, sizeof(line));
	block_name_step(step, sizeof(step), type->program, "mkfs_opts",
			making->words);
	return block_fail(error, EIO, step, "%s (exit status %d)%s",
			  line[0] ? line : "it said nothing",
			  WEXITSTATUS(status),
			  making->small ? SIZE_ADVICE : "");
}

static int wait_for(pid_t pid, const struct making *making, int output)
{
	const struct block_type *type = making->type;
	const struct block_error *error = making->error;
	int end = pidfd_open(pid, 0);
	char why[256] = "";
	int status;

	if (end < 0)
		snprintf(why, sizeof(why), "%s", strerror(errno));
	if (end < 0 || cancel_wait(making->cancel, end, why, sizeof(why)))
		/* It may be a script that has started others. */
		kill(-pid, SIGKILL);
	if (end >= 0)
		close(end);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return block_fail(error, errno, type->program, "%s",
					  strerror(errno));
	if (why[0])
		return block_fail(error, ECANCELED, type->program, "%s", why);
	return judge(status, making, output);
}

static int run(const struct making *making, const char *const argv[])
{
	const struct block_type *type = making->type;
	const struct block_error *error = making->error;
	int output = memfd_create("zramfs-mkfs", MFD_CLOEXEC);
	char **environment;
	int status;
	pid_t pid;

	if (output < 0)
		return block_fail(error, errno, type->program, "%s",
				  strerror(errno));
	environment = compose_environment(type);
	pid = environment ? spawn(argv, environment, output) : -ENOMEM;
	free(environment);
	if (pid == -ENOENT)
		status = block_fail(error, ENOENT, type->program,
				    "not found; is the package %s installed?",
				    type->package);
	else if (pid < 0)
		status = block_fail(error, -pid, type->program, "%s",
				    strerror(-pid));
	else
		status = wait_for(pid, making, output);
	close(output);
	return status;
}

int block_mkfs(const struct block_type *type, const struct options *options,
	       const char *device, const struct cancel *cancel,
	       const struct block_error *error)
{
	const struct making making = {
		.type = type,
		.cancel = cancel,
		.error = error,
		.words = options->mkfs_opts,
		.small = options->size < SIZE_ENOUGH,
	};
	const char *argv[WORDS_MAX];
	char *words = strdup(options->mkfs_opts);
	int status;

	if (!words)
		return block_fail(error, ENOMEM, type->program,
				  "out of memory");
	if (compose(argv, type, words, device))
		status = run(&making, argv);
	else
		status = block_fail(error, E2BIG, type->program,
				    "too many words in mkfs_opts");
	free(words);
	return status;
}
