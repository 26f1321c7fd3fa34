/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block_space.c - see block_space.h
 *
 * Two things tell of what was freed: more blocks are free than were at some
 * time since the last trim; or more pages are stored, by more than then, than
 * the filesystem says it uses. The first sees a single block, but not what was
 * freed and used again elsewhere between two looks; the second sees that.
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
/* While files come and go all the time, trim so often at most for little. */
#define PATIENCE_MS 10000
/* What is much: this, and this part of all that is stored. */
#define MUCH_FLOOR (UINT64_C(4) << 20)
#define MUCH_SHIFT 4
/* The second sign counts above this: metadata grows too. */
#define SIGN_FLOOR (UINT64_C(1) << 20)
#define SIGN_SHIFT 6

/*
 * Only where something is stored can something be discarded; ext4 would load
 * the bitmap of each of its block groups, which are of this size.
 */
#define GROUP_SIZE (INT64_C(128) << 20)
#define RANGES_MAX 256

#define STACK_SIZE (256 * 1024)

struct block_space {
	struct block_space_config config;
	pthread_t thread;
	/* Guards what is below; nothing is locked inside. */
	pthread_mutex_t lock;
	pthread_cond_t wake; /* stopping was set */
	bool stopping;
	pid_t trimming; /* the process that does; 0: none */
};

/* Bytes, at one look. */
struct look {
	uint64_t used;
	uint64_t free;
	uint64_t stored;
	unsigned int block_size;
	uint64_t limit; /* of memory; 0: none */
	uint64_t left;
};

/* What the thread remembers. */
struct memory {
	bool known;   /* last is the look before */
	bool refused; /* the filesystem cannot be trimmed */
	bool warned;  /* of memory that is nearly full */
	bool wanted;  /* trim whatever the signs say */
	bool anew;    /* the next trim is to miss nothing */
	struct look last;
	uint64_t lowest;  /* of free, since the last trim */
	int64_t baseline; /* stored - used, after the last trim */
	int64_t since;	  /* ms: when there was something first; 0: nothing */
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static bool take_look(const struct block_space *space, struct look *look)
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

/* --- when -------------------------------------------------------------- */

static uint64_t at_least(uint64_t floor, uint64_t value)
{
	return value > floor ? value : floor;
}

/* How much there seems to be to discard. */
static uint64_t estimate(const struct memory *memory, const struct look *look)
{
	uint64_t freed = look->free - memory->lowest;
	int64_t excess =
		(int64_t)(look->stored - look->used) - memory->baseline;

	if (excess > 0 &&
	    (uint64_t)excess >=
		    at_least(SIGN_FLOOR, look->stored >> SIGN_SHIFT) &&
	    (uint64_t)excess > freed)
		return excess;
	return freed;
}

static bool is_due(struct memory *memory, const struct look *look, bool scarce)
{
	uint64_t much = at_least(MUCH_FLOOR, look->stored >> MUCH_SHIFT);
	uint64_t amount;

	if (look->free < memory->lowest)
		memory->lowest = look->free;
	if (memory->wanted)
		return true;
	amount = estimate(memory, look);
	if (!amount) {
		memory->since = 0;
		return false;
	}
	if (!memory->since)
		memory->since = now_ms();
	return scarce || amount >= much || look->free == memory->last.free ||
	       now_ms() - memory->since >= PATIENCE_MS;
}

/* --- room -------------------------------------------------------------- */

/* Less than a quarter is left: what was freed is wanted back at once. */
static bool is_scarce(const struct look *look)
{
	return look->left < look->limit / 4;
}

/*
 * Room for new data: each page is taken to need a page of memory, as nobody
 * knows how it will compress, and what is written but not stored needs that
 * too. An eighth of the limit is left alone: half for what the filesystem
 * writes about it, half for what is written over (fs_set_reserve()).
 */
static void give_room(struct memory *memory, struct block_room *room,
		      const struct look *look)
{
	uint64_t kept = look->limit / 8;
	uint64_t pending =
		look->used > look->stored ? look->used - look->stored : 0;
	uint64_t most = look->left > kept ? look->left - kept : 0;

	if (look->limit && !most && !memory->warned)
		log_line(LOG_WARNING,
			 "memory is full but for a reserve, %" PRIu64
			 " of %" PRIu64 " KiB are left: delete something, or "
			 "raise mem_limit",
			 look->left / 1024, look->limit / 1024);
	memory->warned = look->limit && look->left < 2 * kept &&
			 (memory->warned || !most);
	block_room_set(room, look->limit, most > pending ? most - pending : 0,
		       look->free, look->block_size);
}

/* --- what -------------------------------------------------------------- */

/* The groups in which something is stored. How many ranges they are. */
static size_t find_ranges(const struct block_space *space,
			  struct block_range ranges[RANGES_MAX])
{
	const struct block_space_config *config = &space->config;
	struct block_range *range = NULL;
	off_t at = 0;
	size_t count = 0;

	while ((at = config->next_stored(config->context, at)) >= 0) {
		uint64_t start = at / GROUP_SIZE * GROUP_SIZE;

		at = start + GROUP_SIZE;
		/* The last of too many covers what is in between as well. */
		if (range && (start == range->start + range->length ||
			      count == RANGES_MAX)) {
			range->length = at - range->start;
			continue;
		}
		range = &ranges[count++];
		range->start = start;
		range->length = GROUP_SIZE;
	}
	return count;
}

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
	struct block_range ranges[RANGES_MAX];
	size_t count = find_ranges(space, ranges);
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

static void remember(struct memory *memory, const struct look *look)
{
	memory->known = true;
	memory->wanted = false;
	memory->anew = false;
	memory->since = 0;
	memory->last = *look;
	memory->lowest = look->free;
	memory->baseline = (int64_t)(look->stored - look->used);
}

/*
 * What is freed while a trim is under way may have been missed by it: then
 * there is something left, however little it seems.
 */
static void suspect(struct memory *memory, const struct look *before,
		    const struct look *after)
{
	if (before->free == after->free)
		return;
	if (before->free < memory->lowest)
		memory->lowest = before->free;
	if (memory->lowest)
		memory->lowest--;
	memory->anew = true;
}

static void try_trim(struct block_space *space, struct memory *memory,
		     const struct look *before)
{
	struct look look;
	int error = trim(space, memory->anew);

	/* Short of memory, or unmounted meanwhile: at the next look, if at all.
	 */
	if (error == -EOPNOTSUPP || error == -ENOTTY || error == -EPERM) {
		log_line(LOG_WARNING,
			 "memory of deleted files is not given back: cannot "
			 "trim %s: %s",
			 space->config.mountpoint, strerror(-error));
		memory->refused = true;
	}
	if (!error && take_look(space, &look)) {
		remember(memory, &look);
		suspect(memory, before, &look);
	}
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
	struct memory memory = {0};
	struct block_room room;
	struct look look;

	block_room_open(&room, config->device, config->reserves);
	do {
		if (!take_look(space, &look))
			continue;
		give_room(&memory, &room, &look);
		if (!memory.known) {
			remember(&memory, &look);
			memory.wanted = config->begin_with_trim;
			memory.anew = config->begin_with_trim;
			continue;
		}
		if (config->trims && !memory.refused &&
		    is_due(&memory, &look, is_scarce(&look)))
			try_trim(space, &memory, &look);
		else
			memory.last = look;
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
