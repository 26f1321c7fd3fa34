/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block_space.c - see block_space.h
 *
 * The thread: it looks, has it decided (block_decide.c), and has it done.
 */
#include "block_space.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>

#include "block_decide.h"
#include "block_private.h"
#include "deadline.h"
#include "log.h"

/*
 * Two looks of this distance that find the same: freeing has stopped. Two
 * system calls of some microseconds each.
 */
#define LOOK_MS 400
/* The same where memory has a limit. */
#define LOOK_SOON_MS 100
#define STACK_SIZE   (256 * 1024)

struct block_space {
	struct block_space_config config;
	pthread_t thread;
	/* Guards what is below; nothing is locked inside. */
	pthread_mutex_t lock;
	pthread_cond_t wake; /* stopping was set */
	bool stopping;
	pid_t trimming; /* the process that does; 0: none */
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static bool take_look(const struct block_space *space, struct block_look *look)
{
	const struct block_space_config *config = &space->config;
	struct statfs statfs_buf;
	struct statx statx_buf;

	/* Something else, which may not answer, can be mounted there since. */
	if (statx(AT_FDCWD, config->mountpoint,
		  AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE,
		  &statx_buf) ||
	    makedev(statx_buf.stx_dev_major, statx_buf.stx_dev_minor) !=
		    config->device ||
	    statfs(config->mountpoint, &statfs_buf))
		return false;
	look->free = (uint64_t)statfs_buf.f_bfree * statfs_buf.f_bsize;
	look->used =
		(uint64_t)statfs_buf.f_blocks * statfs_buf.f_bsize - look->free;
	look->block_size = statfs_buf.f_bsize;
	look->stored = config->stored(config->context);
	look->limit = config->limit(config->context, &look->left);
	return true;
}

static void give_room(struct block_memory *memory, struct block_room *room,
		      const struct block_look *look)
{
	if (block_decide_warning(memory, look))
		log_line(LOG_WARNING,
			 "memory is full but for a reserve, %" PRIu64
			 " of %" PRIu64 " KiB are left: delete something, or "
			 "raise mem_limit",
			 look->left / 1024, look->limit / 1024);
	block_room_set(room, look->limit, block_decide_room(look), look->free,
		       look->block_size);
}

/* --- trimming ---------------------------------------------------------- */

/* False: it is to end. */
static bool begin_trim(struct block_space *space,
		       const struct block_range *ranges, size_t count,
		       bool anew, pid_t *pid)
{
	bool stopping;

	pthread_mutex_lock(&space->lock);
	stopping = space->stopping;
	if (!stopping) {
		*pid = block_trim_begin(space->config.mountpoint,
					space->config.device, ranges, count,
					anew);
		space->trimming = *pid > 0 ? *pid : 0;
	}
	pthread_mutex_unlock(&space->lock);
	return !stopping;
}

static int trim(struct block_space *space, bool anew)
{
	struct block_range ranges[BLOCK_RANGES_MAX];
	size_t count = block_trim_ranges(space->config.next_stored,
					 space->config.context, ranges);
	pid_t pid;
	int error;

	if (!count || !begin_trim(space, ranges, count, anew, &pid))
		return 0;
	if (pid < 0)
		return pid;
	block_trim_wait(pid);
	pthread_mutex_lock(&space->lock);
	error = block_trim_end(pid);
	space->trimming = 0;
	pthread_mutex_unlock(&space->lock);
	return error;
}

/* False: the filesystem cannot be trimmed. */
static bool try_trim(struct block_space *space, struct block_memory *memory,
		     const struct block_look *before)
{
	struct block_look look;
	int error = trim(space, memory->anew);

	if (error == -EOPNOTSUPP || error == -ENOTTY || error == -EPERM) {
		log_line(LOG_WARNING,
			 "memory of deleted files is not given back: cannot "
			 "trim %s: %s",
			 space->config.mountpoint, strerror(-error));
		return false;
	}
	/* Short of memory, or unmounted meanwhile: at the next look, if at all.
	 */
	if (!error && take_look(space, &look)) {
		block_decide_trimmed(memory, &look);
		block_decide_missed(memory, before, &look);
	}
	return true;
}

/* --- the thread -------------------------------------------------------- */

/* False: it is to end. */
static bool wait_for_look(struct block_space *space, bool soon)
{
	const struct timespec until =
		deadline_after(soon ? LOOK_SOON_MS : LOOK_MS);
	bool stopping;

	pthread_mutex_lock(&space->lock);
	while (!space->stopping &&
	       pthread_cond_timedwait(&space->wake, &space->lock, &until) !=
		       ETIMEDOUT)
		;
	stopping = space->stopping;
	pthread_mutex_unlock(&space->lock);
	return !stopping;
}

static void watch(struct block_space *space)
{
	const struct block_space_config *config = &space->config;
	struct block_memory memory = {0};
	bool trims = config->trims;
	struct block_room room;
	struct block_look look;

	block_room_open(&room, config->device, config->reserves);
	do {
		if (!take_look(space, &look))
			continue;
		give_room(&memory, &room, &look);
		if (!memory.known) {
			block_decide_trimmed(&memory, &look);
			memory.wanted = config->begin_with_trim;
			memory.anew = config->begin_with_trim;
			continue;
		}
		if (trims && block_decide_trim(&memory, &look, now_ms()))
			trims = try_trim(space, &memory, &look);
	} while (wait_for_look(space, room.limit));
	block_room_close(&room);
}

static void *space_main(void *argument)
{
	struct block_space *space = argument;
	const struct block_space_config *config = &space->config;
	int error = config->attach(config->context);

	if (error) {
		log_line(LOG_WARNING,
			 "memory of deleted files is not given back: %s",
			 strerror(-error));
		return NULL;
	}
	watch(space);
	config->detach(config->context);
	return NULL;
}

static int create_thread(struct block_space *space)
{
	pthread_attr_t attributes;
	int error = -pthread_attr_init(&attributes);

	if (error)
		return error;
	error = -pthread_attr_setstacksize(&attributes, STACK_SIZE);
	if (!error)
		error = -pthread_create(&space->thread, &attributes, space_main,
					space);
	pthread_attr_destroy(&attributes);
	return error;
}

int block_space_start(struct block_space **result,
		      const struct block_space_config *config)
{
	struct block_space *space = calloc(1, sizeof(*space));
	int error;

	if (!space)
		return -ENOMEM;
	space->config = *config;
	error = deadline_cond_init(&space->wake);
	if (error) {
		free(space);
		return error;
	}
	pthread_mutex_init(&space->lock, NULL);
	error = create_thread(space);
	if (error) {
		pthread_mutex_destroy(&space->lock);
		pthread_cond_destroy(&space->wake);
		free(space);
		return error;
	}
	*result = space;
	return 0;
}

void block_space_stop(struct block_space *space)
{
	if (!space)
		return;
	pthread_mutex_lock(&space->lock);
	space->stopping = true;
	/* Until it is waited for, with this lock, the number is its own. */
	if (space->trimming)
		kill(space->trimming, SIGKILL);
	pthread_cond_signal(&space->wake);
	pthread_mutex_unlock(&space->lock);
	pthread_join(space->thread, NULL);
	pthread_mutex_destroy(&space->lock);
	pthread_cond_destroy(&space->wake);
	free(space);
}
