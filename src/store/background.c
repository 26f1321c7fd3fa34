/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * background.c - the threads that compress
 *
 * Owns the compressor threads and decides when there is work. A page stays hot
 * until it is HOT_AGE_MS old or the tier is nearly full: what is overwritten
 * or deleted sooner never costs a compression. An eighth of the tier is kept
 * free for the next burst; with half of it, random writes to a file of twice
 * the tier by two clients were a fifth slower, as three pages of four, and not
 * two of four, were compressed before they were overwritten.
 *
 * While none is old, but the tier grows fast, they bring memory for the frames
 * that will be needed: getting it is the greater part of a writer's time.
 *
 * They run at nice 10: a writer that finds the tier full helps itself, so
 * nobody waits for them. They allocate nothing but from the arena, and in
 * order to free they need not even that.
 */
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "deadline.h"
#include "store/store_private.h"

#define HOT_AGE_MS	2000
#define SPARE		8 /* the part of the tier kept free, 1/8 */
#define BATCH		32
#define TICK_MS		200
#define BACKGROUND_NICE 10

/*
 * So many sparse clusters are repacked with each batch: who overwrites without
 * pause leaves no other time for it. Without, a file of 64 MiB written over at
 * random by two clients took up to 2.7 times what it had before; so, 1.4 times.
 */
#define REPACK_BESIDE 4

/* So often in vain, and who drains gives up. */
#define DRAIN_ATTEMPTS 3

/*
 * A tier that has grown by more than BRING_GROWTH frames in a tick will grow
 * on: idle threads bring memory for up to a BRING_PART of the tier, and again
 * when an eighth of that is left. What is left over is trimmed soon, but until
 * then it is waste: of a small tier it must be little. A file of half the tier
 * was written 1.8 times as fast so, 1 MiB at a time by one client.
 */
#define BRING_GROWTH 256
#define BRING_PART   64
#define BRING_BATCH  256

uint64_t store_hot_spare(const struct store *store)
{
	return hot_limit(&store->hot) / SPARE;
}

static bool nearly_full(const struct store *store)
{
	return hot_frames(&store->hot) >
	       hot_limit(&store->hot) - store_hot_spare(store);
}

/* How much the tier has grown in this tick, in frames. */
static uint64_t growth(const struct store *store)
{
	uint64_t before = atomic_load_explicit(&store->frames_at_tick,
					       memory_order_relaxed);
	uint64_t frames = hot_frames(&store->hot);

	return frames > before ? frames - before : 0;
}

/* For how many frames memory may lie ready. */
static uint64_t ready_most(const struct store *store)
{
	return hot_limit(&store->hot) / BRING_PART;
}

static bool needs_frames(const struct store *store)
{
	return arena_ready(store->arena, ARENA_HOT) < ready_most(store) / 8 &&
	       growth(store) > BRING_GROWTH;
}

/* As many as the tier has grown by are likely to be needed next. */
static void bring_frames(struct store *store)
{
	uint64_t ready = arena_ready(store->arena, ARENA_HOT);
	uint64_t want = growth(store);

	if (want <= BRING_GROWTH)
		return;
	if (want > ready_most(store))
		want = ready_most(store);
	while (ready < want && !nearly_full(store)) {
		uint64_t batch = want - ready;
		uint64_t brought =
			arena_bring(store->arena, ARENA_HOT,
				    batch < BRING_BATCH ? batch : BRING_BATCH);

		if (!brought)
			break;
		ready += brought;
	}
}

static void note_tick(struct store *store)
{
	/* Relaxed: what it was about then is enough. */
	atomic_store_explicit(&store->frames_at_tick, hot_frames(&store->hot),
			      memory_order_relaxed);
}

void store_wake(struct store *store)
{
	if (atomic_load_explicit(&store->idle, memory_order_relaxed) &&
	    (nearly_full(store) || needs_frames(store))) {
		pthread_mutex_lock(&store->wake_lock);
		pthread_cond_broadcast(&store->wake);
		pthread_mutex_unlock(&store->wake_lock);
	}
}

/* True when the thread is to go on; waits at most one tick. */
static bool nap(struct store *store, bool work_left)
{
	bool stopping;

	pthread_mutex_lock(&store->wake_lock);
	if (!store->stopping && !work_left) {
		const struct timespec until = deadline_after(TICK_MS);

		atomic_fetch_add_explicit(&store->idle, 1,
					  memory_order_relaxed);
		if (pthread_cond_timedwait(&store->wake, &store->wake_lock,
					   &until) == ETIMEDOUT)
			note_tick(store);
		atomic_fetch_sub_explicit(&store->idle, 1,
					  memory_order_relaxed);
	}
	stopping = store->stopping;
	pthread_mutex_unlock(&store->wake_lock);
	return !stopping;
}

static void run(struct store *store)
{
	struct store_thread *thread = store_thread(store);
	unsigned int done, compressed = 0;
	int64_t age;

	thread->background = true;
	do {
		pthread_rwlock_rdlock(&store->work_lock);
		age = nearly_full(store) ||
				      atomic_load_explicit(&store->urgent,
							   memory_order_relaxed)
			      ? 0
			      : HOT_AGE_MS;
		done = compress_hot(store, thread, BATCH, age, NULL);
		compressed += age ? done : 0;
		repack_sparse(store, thread, done ? REPACK_BESIDE : BATCH);
		if (!done) {
			cluster_room_rest(&thread->room);
			bring_frames(store);
			if (compressed)
				housekeeping_cooled(store);
			compressed = 0;
		}
		pthread_rwlock_unlock(&store->work_lock);
	} while (nap(store, done > 0));
}

struct start {
	struct store *store;
	int result; /* 1: not known yet; under wake_lock */
};

static void *background(void *argument)
{
	struct start *start = argument;
	struct store *store = start->store;
	int ret = store_attach_thread_for(store, CODEC_TO_COMPRESS);

	/* Being nice is a courtesy: it need not succeed. */
	setpriority(PRIO_PROCESS, (id_t)gettid(), BACKGROUND_NICE);
	pthread_mutex_lock(&store->wake_lock);
	start->result = ret;
	pthread_cond_broadcast(&store->wake);
	pthread_mutex_unlock(&store->wake_lock);
	if (!ret) {
		run(store);
		store_detach_thread(store);
	}
	return NULL;
}

/* Returns once the thread has the memory it needs. */
static int start_thread(struct store *store, pthread_t *thread)
{
	struct start start = {store, 1};
	int ret = -pthread_create(thread, NULL, background, &start);

	if (ret)
		return ret;
	pthread_mutex_lock(&store->wake_lock);
	while (start.result == 1)
		pthread_cond_wait(&store->wake, &store->wake_lock);
	pthread_mutex_unlock(&store->wake_lock);
	if (start.result)
		pthread_join(*thread, NULL);
	return start.result;
}

int store_start(struct store *store)
{
	int ret;

	store->stopping = false;
	ret = housekeeping_start(store);
	while (!ret && store->started < store->compressors) {
		ret = start_thread(store, &store->threads[store->started]);
		if (!ret)
			store->started++;
	}
	if (ret)
		store_stop(store);
	return ret;
}

void store_stop(struct store *store)
{
	pthread_mutex_lock(&store->wake_lock);
	store->stopping = true;
	pthread_cond_broadcast(&store->wake);
	pthread_mutex_unlock(&store->wake_lock);
	while (store->started)
		pthread_join(store->threads[--store->started], NULL);
	housekeeping_stop(store);
}

void store_pause(struct store *store)
{
	pthread_rwlock_wrlock(&store->work_lock);
}

void store_resume(struct store *store)
{
	pthread_rwlock_unlock(&store->work_lock);
}

/*
 * Compress what is hot now until at most frames are left, with all hands. What
 * others write meanwhile is not waited for, nor what they are reading. Like the
 * background's, this work holds the work lock, so that store_pause() stops it.
 */
static int drain_to(struct store *store, uint64_t frames)
{
	struct store_thread *thread = store_thread(store);
	const int64_t begun = store_clock();
	unsigned int done, refused = 0, fruitless = 0;

	atomic_fetch_add_explicit(&store->urgent, 1, memory_order_relaxed);
	pthread_mutex_lock(&store->wake_lock);
	pthread_cond_broadcast(&store->wake);
	pthread_mutex_unlock(&store->wake_lock);
	while (hot_frames(&store->hot) > frames && fruitless < DRAIN_ATTEMPTS) {
		pthread_rwlock_rdlock(&store->work_lock);
		done = compress_hot(store, thread, BATCH, store_clock() - begun,
				    &refused);
		pthread_rwlock_unlock(&store->work_lock);
		if (done)
			continue;
		/* The rest is in other hands: wait until they are through. */
		store_pause(store);
		store_resume(store);
		fruitless++;
	}
	atomic_fetch_sub_explicit(&store->urgent, 1, memory_order_relaxed);
	/* Who drains does not compress again soon. */
	codec_streams_rest(&thread->streams);
	cluster_room_rest(&thread->room);
	return refused && hot_frames(&store->hot) > frames ? -ENOSPC : 0;
}

int store_drain(struct store *store)
{
	return drain_to(store, 0);
}

int store_set_hot(struct store *store, uint64_t bytes)
{
	const uint64_t before = hot_limit(&store->hot) << PAGE_SHIFT;
	int ret;

	hot_set_limit(&store->hot, bytes);
	ret = drain_to(store, hot_limit(&store->hot));
	if (ret)
		hot_set_limit(&store->hot, before);
	return ret;
}
