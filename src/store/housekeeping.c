/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * housekeeping.c - the thread that keeps memory near what the data needs
 *
 * Owns the housekeeper, which compacts the pool when holes in it have grown,
 * and gives freed pages back to the system. It looks
 *
 *   - each TICK_MS
 *   - at once when much has been freed. If there are fewer pages then, much is
 *     being deleted: who deletes a fifth of all files in 50 ms leaves more
 *     holes than a tick can wait for. So it follows, each FOLLOW_MS at least,
 *     until that is over. If there are not, somebody writes over what is there,
 *     and takes again what he frees: for him, giving it back would be work for
 *     nothing, a third of what a random write costs
 *   - when nothing old is left in the hot tier, and what it took lies free
 *
 * What may stay free is as much as was put of late, within bounds: so much is
 * likely to be taken again, and costs no system call. When nothing was put, or
 * much was deleted since, all goes back.
 *
 * Who frees does nothing but add to a counter, and wakes the housekeeper when
 * that passes what is due: one wake-up, and a few punches of holes, for each
 * 128th of the memory in use, or of FOLLOW_DUE while it follows.
 *
 * It is not nice: it works for some milliseconds after much was freed, and
 * until it has had its turn that memory is nobody's.
 */
#include <errno.h>

#include "deadline.h"
#include "store/store_private.h"

#define TICK_MS	  300
#define FOLLOW_MS 10

/*
 * Compact when more than this part of the pool, and more than the floor, is
 * holes: on a tick on which nothing was put, while much is deleted, and else.
 * That is little, as it costs little: while trees came and went, 12 compactions
 * a second took 6 ms of CPU for 3,200 pages that were given back, and giving
 * them back took 14 ms (tests/acceptance/66-churn.sh). While much is deleted a
 * zspage that is left alone may still run empty by itself.
 */
#define QUIET_SHIFT   8
#define FOLLOW_SHIFT  6
#define COMPACT_SHIFT 7
#define COMPACT_FLOOR (256u << 10)

/*
 * So many pages are compacted before they are given back, so that there are
 * never many more on their way.
 */
#define COMPACT_PAGES 256

/* Of what was put, that in this time counts: the older, the less. */
#define RECENT_MS 300

/* What may stay free when something was put of late: at least, and at most. */
#define KEEP_LEAST (256u << 10)
#define KEEP_SHIFT 6
#define KEEP_FLOOR (4u << 20)

/* While much is deleted, this part goes back with more. */
#define DELETING_SHIFT 8

/* So much freed is worth a look. */
#define DUE_SHIFT 7
#define DUE_FLOOR (1u << 20)

/* While it follows, so much is. */
#define FOLLOW_DUE (512u << 10)

/* So many pages fewer, and no new ones in their place: much was deleted. */
#define SHRUNK_SHIFT 7
#define SHRUNK_FLOOR 256

/* What a thread has freed is told in portions. */
#define FREED_PORTION (64u << 10)

/* Who has freed within this time is likely to free more. */
#define FREEING_MS 10

struct housekeeping {
	int64_t ticked;
	int64_t looked;
	int64_t pages;	    /* most since much was deleted */
	int64_t puts;	    /* when it last looked */
	int64_t recent;	    /* of them, those that count */
	uint64_t freed;	    /* bytes, since something was put */
	bool following;	    /* much was deleted at the last look */
	bool quiet;	    /* that was on a tick, and nothing was put */
	bool more;	    /* there are holes left */
	uint64_t fruitless; /* object bytes when compacting gave nothing */
};

static unsigned int holes_shift(const struct housekeeping *keeping)
{
	if (keeping->following)
		return FOLLOW_SHIFT;
	return keeping->quiet ? QUIET_SHIFT : COMPACT_SHIFT;
}

/* True when there is more to be won. */
static bool compact(struct store *store, struct housekeeping *keeping)
{
	struct pool_stats stats;
	uint64_t bytes, holes, freed;

	store->pool_ops->stats(store->pool, &stats);
	bytes = stats.pages << PAGE_SHIFT;
	holes = bytes > stats.object_bytes ? bytes - stats.object_bytes : 0;
	if (holes < COMPACT_FLOOR || holes < bytes >> holes_shift(keeping) ||
	    stats.object_bytes == keeping->fruitless)
		return false;
	freed = store->pool_ops->compact(store->pool, COMPACT_PAGES);
	keeping->fruitless = freed ? 0 : stats.object_bytes;
	return freed >= COMPACT_PAGES / 4;
}

static uint64_t part(uint64_t bytes, unsigned int shift, uint64_t floor)
{
	return bytes >> shift > floor ? bytes >> shift : floor;
}

/* Bytes that may stay free. */
static uint64_t may_stay(struct store *store,
			 const struct housekeeping *keeping, uint64_t total)
{
	uint64_t recent = (uint64_t)keeping->recent << PAGE_SHIFT;
	uint64_t most = part(total, KEEP_SHIFT, KEEP_FLOOR);

	if (keeping->freed > most)
		recent = 0;
	if (most < store_hot_spare(store) << PAGE_SHIFT)
		most = store_hot_spare(store) << PAGE_SHIFT;
	if (keeping->following && recent < total >> DELETING_SHIFT)
		return total >> DELETING_SHIFT;
	if (!recent)
		return 0;
	if (recent < KEEP_LEAST)
		return KEEP_LEAST;
	return recent < most ? recent : most;
}

static void trim(struct store *store, const struct housekeeping *keeping)
{
	struct arena_usage usage;
	uint64_t keep;

	arena_usage(store->arena, &usage);
	keep = may_stay(store, keeping, usage.total);
	if (usage.trimmable > keep)
		arena_trim(store->arena,
			   (usage.trimmable - keep / 2) >> PAGE_SHIFT);
}

/* Are there many fewer pages than there were? */
static bool has_shrunk(struct store *store, struct housekeeping *keeping)
{
	int64_t pages = store_counted(store, COUNT_OBJECTS);
	int64_t many = keeping->pages >> SHRUNK_SHIFT;
	bool shrunk =
		pages <=
		keeping->pages - (many > SHRUNK_FLOOR ? many : SHRUNK_FLOOR);

	if (shrunk || pages > keeping->pages)
		keeping->pages = pages;
	return shrunk;
}

static void note_puts(struct store *store, struct housekeeping *keeping,
		      int64_t now, uint64_t freed)
{
	int64_t puts = store_counted(store, COUNT_PUTS);
	int64_t passed = now - keeping->looked;

	keeping->freed = puts > keeping->puts ? 0 : keeping->freed + freed;
	if (passed > RECENT_MS)
		passed = RECENT_MS;
	keeping->recent -= keeping->recent * passed / RECENT_MS;
	keeping->recent += puts - keeping->puts;
	keeping->puts = puts;
	keeping->looked = now;
}

static void keep_house(struct store *store, struct housekeeping *keeping,
		       bool cooled)
{
	struct housekeeper *housekeeper = &store->housekeeper;
	int64_t now = store_clock();
	bool tick = now - keeping->ticked >= TICK_MS;
	uint64_t freed;
	bool due;
	struct arena_usage usage;

	/* First, so that what is freed from now on counts for the next time. */
	freed = atomic_exchange_explicit(&housekeeper->freed, 0,
					 memory_order_relaxed);
	note_puts(store, keeping, now, freed);
	due = tick || keeping->following || keeping->more;
	keeping->following = has_shrunk(store, keeping);
	arena_usage(store->arena, &usage);
	atomic_store_explicit(&housekeeper->due,
			      keeping->following
				      ? FOLLOW_DUE
				      : part(usage.total, DUE_SHIFT, DUE_FLOOR),
			      memory_order_relaxed);
	due |= keeping->following;
	keeping->quiet = tick && !keeping->recent;
	if (tick)
		keeping->ticked = now;
	keeping->more = due && compact(store, keeping);
	if (due || cooled)
		trim(store, keeping);
}

/* True when the thread is to go on. */
static bool wait_for_work(struct housekeeper *housekeeper, unsigned int most_ms,
			  bool *cooled)
{
	const struct timespec until = deadline_after(most_ms);
	bool stopping;

	pthread_mutex_lock(&housekeeper->lock);
	while (!housekeeper->stopping && !housekeeper->called &&
	       pthread_cond_timedwait(&housekeeper->wake, &housekeeper->lock,
				      &until) != ETIMEDOUT)
		;
	housekeeper->called = false;
	*cooled = housekeeper->cooled;
	housekeeper->cooled = false;
	stopping = housekeeper->stopping;
	pthread_mutex_unlock(&housekeeper->lock);
	return !stopping;
}

static unsigned int until_next(const struct housekeeping *keeping)
{
	if (keeping->more)
		return 0;
	return keeping->following ? FOLLOW_MS : TICK_MS;
}

static void *housekeep(void *argument)
{
	struct housekeeping keeping = {0};
	struct store *store = argument;
	bool cooled;

	while (wait_for_work(&store->housekeeper, until_next(&keeping),
			     &cooled)) {
		pthread_rwlock_rdlock(&store->work_lock);
		keep_house(store, &keeping, cooled);
		pthread_rwlock_unlock(&store->work_lock);
	}
	return NULL;
}

static void call(struct housekeeper *housekeeper, bool to_stop, bool cooled)
{
	pthread_mutex_lock(&housekeeper->lock);
	housekeeper->called = true;
	housekeeper->stopping |= to_stop;
	housekeeper->cooled |= cooled;
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
	atomic_store_explicit(&housekeeper->freed_at, store_clock(),
			      memory_order_relaxed);
	before = atomic_fetch_add_explicit(&housekeeper->freed, bytes,
					   memory_order_relaxed);
	due = atomic_load_explicit(&housekeeper->due, memory_order_relaxed);

	/* Only who passes the mark calls. */
	if (before < due && before + bytes >= due)
		call(housekeeper, false, false);
}

bool housekeeping_is_freeing(struct store *store)
{
	return store_clock() -
		       atomic_load_explicit(&store->housekeeper.freed_at,
					    memory_order_relaxed) <=
	       FREEING_MS;
}

void housekeeping_cooled(struct store *store)
{
	if (arena_ready(store->arena, ARENA_HOT) > KEEP_LEAST >> PAGE_SHIFT)
		call(&store->housekeeper, false, true);
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
	call(housekeeper, true, false);
	pthread_join(housekeeper->thread, NULL);
	housekeeper->running = false;
}

int store_compact(struct store *store, uint64_t *pages)
{
	uint64_t freed;
	int ret;

	pthread_rwlock_rdlock(&store->work_lock);
	while (repack_sparse(store, store_thread(store), 1))
		;
	pthread_rwlock_unlock(&store->work_lock);
	ret = store_drain(store);
	pthread_rwlock_rdlock(&store->work_lock);
	freed = store->pool_ops->compact(store->pool, UINT64_MAX);
	arena_trim(store->arena, UINT64_MAX);
	hot_trim(&store->hot);
	pthread_rwlock_unlock(&store->work_lock);
	if (pages)
		*pages = freed;
	return ret;
}
