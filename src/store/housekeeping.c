/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * housekeeping.c - the thread that keeps memory near what the data needs
 *
 * Owns the housekeeper, which compacts the pool when holes in it have grown,
 * and gives freed pages back to the system. It does so
 *
 *   - each TICK_MS: compacts when a little is to be gained, and trims pages
 *     that have been free for a tick or two, or while much is written, for
 *     BUSY_TICKS. What is freed and taken again within that time, as while a
 *     file is written anew, costs no system call. After much was written or
 *     deleted, the first quiet tick trims all
 *   - at once when much has been freed, and not been taken again: who deletes
 *     a fifth of all files in 50 ms leaves more holes than a tick can wait for.
 *     Then all freed pages but a few go back, whatever their age. Who writes
 *     over what is there frees as much, but takes it again: for him, giving it
 *     back would be work for nothing, a third of what a random write costs
 *
 * Who frees does nothing but add to a counter, and wakes the housekeeper when
 * that passes what is due: one wake-up, and a few punches of holes, for each
 * 64th of the memory in use.
 *
 * It is not nice: it works for some milliseconds after much was freed, and
 * until it has had its turn that memory is nobody's.
 */
#include <errno.h>

#include "deadline.h"
#include "store/store_private.h"

#define TICK_MS	   300
#define TRIM_PAGES 262144

/*
 * Compact when more than this part of the pool, and more than the floor, is
 * holes: on a tick, and when much was freed. That is little, as it costs
 * little: while trees came and went, looking 204 times took 173 ms of CPU for
 * 75,000 pages that were given back (tests/acceptance/66-churn.sh).
 */
#define TICK_SHIFT    6
#define CALLED_SHIFT  5
#define COMPACT_FLOOR (256u << 10)

/* What may stay free but not given back when much was freed, or is written. */
#define KEEP_SHIFT 6
#define KEEP_FLOOR (4u << 20)

/* So much freed is worth a look. */
#define DUE_SHIFT 6
#define DUE_FLOOR (2u << 20)

/* Pages put in a tick by one who writes much: then trim each so many ticks. */
#define BUSY_PUTS  1024
#define BUSY_TICKS 7

/* So many pages fewer, and no new ones in their place: much was deleted. */
#define SHRUNK_SHIFT 7
#define SHRUNK_FLOOR 256

/* What a thread has freed is told in portions. */
#define FREED_PORTION (64u << 10)

struct housekeeping {
	int64_t ticked;
	int64_t pages;	      /* when it last looked */
	int64_t puts;	      /* at the last tick, or deletion since */
	unsigned int put_off; /* ticks without trimming */
	bool stirred;	      /* much put or deleted since all was trimmed */
	uint64_t fruitless;   /* object bytes when compacting gave nothing */
};

static void compact(struct store *store, struct housekeeping *keeping,
		    unsigned int shift)
{
	struct pool_stats stats;
	uint64_t bytes, holes;

	store->pool_ops->stats(store->pool, &stats);
	bytes = stats.pages << PAGE_SHIFT;
	holes = bytes > stats.object_bytes ? bytes - stats.object_bytes : 0;
	if (holes < COMPACT_FLOOR || holes < bytes >> shift ||
	    stats.object_bytes == keeping->fruitless)
		return;
	keeping->fruitless =
		store->pool_ops->compact(store->pool) ? 0 : stats.object_bytes;
}

static uint64_t part(uint64_t bytes, unsigned int shift, uint64_t floor)
{
	return bytes >> shift > floor ? bytes >> shift : floor;
}

static void trim_excess(struct store *store)
{
	struct arena_usage usage;
	uint64_t keep;

	arena_usage(store->arena, &usage);
	keep = part(usage.total, KEEP_SHIFT, KEEP_FLOOR);
	if (usage.trimmable > keep)
		arena_trim(store->arena,
			   (usage.trimmable - keep / 2) >> PAGE_SHIFT, true);
}

/* Are there many fewer pages than at the last look? */
static bool has_shrunk(struct store *store, struct housekeeping *keeping)
{
	int64_t before = keeping->pages;
	int64_t pages = store_counted(store, COUNT_OBJECTS);
	int64_t many = before >> SHRUNK_SHIFT;

	keeping->pages = pages;
	return pages <= before - (many > SHRUNK_FLOOR ? many : SHRUNK_FLOOR);
}

/* While much is written, what is free soon is not: it may stay for longer. */
static bool may_stay(struct store *store, struct housekeeping *keeping)
{
	struct arena_usage usage;

	arena_usage(store->arena, &usage);
	return ++keeping->put_off < BUSY_TICKS &&
	       usage.trimmable <= part(usage.total, KEEP_SHIFT, KEEP_FLOOR);
}

static void trim_on_tick(struct store *store, struct housekeeping *keeping)
{
	int64_t puts = store_counted(store, COUNT_PUTS);
	bool busy = puts - keeping->puts >= BUSY_PUTS;

	keeping->puts = puts;
	keeping->stirred |= busy;
	if (busy && may_stay(store, keeping))
		return;
	keeping->put_off = 0;
	arena_trim(store->arena, TRIM_PAGES, keeping->stirred && !busy);
	keeping->stirred = busy;
}

static void keep_house(struct store *store, struct housekeeping *keeping)
{
	struct housekeeper *housekeeper = &store->housekeeper;
	int64_t now = store_clock();
	bool tick = now - keeping->ticked >= TICK_MS;
	struct arena_usage usage;
	bool shrunk;

	/* First, so that what is freed from now on counts for the next time. */
	arena_usage(store->arena, &usage);
	atomic_store_explicit(&housekeeper->due,
			      part(usage.total, DUE_SHIFT, DUE_FLOOR),
			      memory_order_relaxed);
	atomic_store_explicit(&housekeeper->freed, 0, memory_order_relaxed);

	shrunk = has_shrunk(store, keeping);
	if (tick || shrunk)
		compact(store, keeping, tick ? TICK_SHIFT : CALLED_SHIFT);
	if (shrunk) {
		trim_excess(store);
		keeping->stirred = true;
		keeping->puts = store_counted(store, COUNT_PUTS);
	}
	if (tick) {
		keeping->ticked = now;
		trim_on_tick(store, keeping);
	}
}

/* True when the thread is to go on; waits at most one tick. */
static bool wait_for_work(struct housekeeper *housekeeper)
{
	const struct timespec until = deadline_after(TICK_MS);
	bool stopping;

	pthread_mutex_lock(&housekeeper->lock);
	while (!housekeeper->stopping && !housekeeper->called &&
	       pthread_cond_timedwait(&housekeeper->wake, &housekeeper->lock,
				      &until) != ETIMEDOUT)
		;
	housekeeper->called = false;
	stopping = housekeeper->stopping;
	pthread_mutex_unlock(&housekeeper->lock);
	return !stopping;
}

static void *housekeep(void *argument)
{
	struct housekeeping keeping = {0};
	struct store *store = argument;

	while (wait_for_work(&store->housekeeper)) {
		pthread_rwlock_rdlock(&store->work_lock);
		keep_house(store, &keeping);
		pthread_rwlock_unlock(&store->work_lock);
	}
	return NULL;
}

static void call(struct housekeeper *housekeeper, bool to_stop)
{
	pthread_mutex_lock(&housekeeper->lock);
	housekeeper->called = true;
	housekeeper->stopping |= to_stop;
	pthread_cond_signal(&housekeeper->wake);
	pthread_mutex_unlock(&housekeeper->lock);
}

void housekeeping_freed(struct store *store, unsigned int bytes)
{
	struct housekeeper *housekeeper = &store->housekeeper;
	struct store_thread *thread = store_thread(store);
	uint64_t before, due;

	if (thread) {
		thread->freed += bytes;
		if (thread->freed < FREED_PORTION)
			return;
		bytes = thread->freed;
		thread->freed = 0;
	}
	before = atomic_fetch_add_explicit(&housekeeper->freed, bytes,
					   memory_order_relaxed);
	due = atomic_load_explicit(&housekeeper->due, memory_order_relaxed);

	/* Only who passes the mark calls. */
	if (before < due && before + bytes >= due)
		call(housekeeper, false);
}

void housekeeping_init(struct store *store)
{
	struct housekeeper *housekeeper = &store->housekeeper;

	deadline_cond_init(&housekeeper->wake);
	pthread_mutex_init(&housekeeper->lock, NULL);
	atomic_init(&housekeeper->freed, 0);
	atomic_init(&housekeeper->due, DUE_FLOOR);
}

void housekeeping_exit(struct store *store)
{
	pthread_cond_destroy(&store->housekeeper.wake);
	pthread_mutex_destroy(&store->housekeeper.lock);
}

int housekeeping_start(struct store *store)
{
	struct housekeeper *housekeeper = &store->housekeeper;
	int ret;

	if (housekeeper->running)
		return 0;
	housekeeper->stopping = false;
	ret = -pthread_create(&housekeeper->thread, NULL, housekeep, store);
	housekeeper->running = !ret;
	return ret;
}

void housekeeping_stop(struct store *store)
{
	struct housekeeper *housekeeper = &store->housekeeper;

	if (!housekeeper->running)
		return;
	call(housekeeper, true);
	pthread_join(housekeeper->thread, NULL);
	housekeeper->running = false;
}

int store_compact(struct store *store, uint64_t *pages)
{
	int ret = store_drain(store);
	uint64_t freed;

	pthread_rwlock_rdlock(&store->work_lock);
	freed = store->pool_ops->compact(store->pool);
	arena_trim(store->arena, UINT64_MAX, true);
	hot_trim(&store->hot);
	pthread_rwlock_unlock(&store->work_lock);
	if (pages)
		*pages = freed;
	return ret;
}
