/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * answer.c - see answer.h
 *
 * Owns the answers and all changes of lookup counts. The locks of those counts
 * are leaves; they come after the namespace lock.
 *
 * A fence for the compiler stands where the order of stores is what recovery
 * relies on.
 */
#include "fs/answer.h"

#include <errno.h>
#include <string.h>

#include "fault.h"
#include "fs/fs_private.h"
#include "fs/namespace.h"
#include "fs/pagetable.h"
#include "fs/xattr.h"

/* The thread's own; NULL: it has begun no request. */
static _Thread_local struct answer *own;
static _Thread_local bool own_again;	   /* done by another process */
static _Thread_local bool own_resumed;	   /* or begun */
static _Thread_local uint32_t own_forgets; /* seen of this request */

#define ordered() atomic_signal_fence(memory_order_seq_cst)

#define set(field, value) \
	atomic_store_explicit(&(field), value, memory_order_release)
#define get(field) atomic_load_explicit(&(field), memory_order_relaxed)

static pthread_mutex_t *count_lock(struct fs *fs, ino_t ino)
{
	return &fs->count_locks[ino / 8 % FS_COUNT_LOCKS].lock;
}

/* --- requests ---------------------------------------------------------- */

void fs_set_answers(struct fs *fs, struct answer *answers, unsigned int count)
{
	fs->answers = answers;
	fs->nr_answers = count;
}

static void start(struct answer *answer, uint64_t request)
{
	/* It must not be taken for the old one meanwhile. */
	set(answer->request, 0);
	ordered();
	set(answer->state, ANSWER_OPEN);
	set(answer->change, ANSWER_UNCHANGED);
	set(answer->faults, 0);
	set(answer->forgotten, 0);
	set(answer->lookups, 0);
	answer->entry = 0;
	ordered();
	set(answer->request, request);
	ordered();
	own = answer;
	own_again = own_resumed = false;
	own_forgets = 0;
}

void fs_begin(struct fs *fs, unsigned int slot, uint64_t request)
{
	if (slot < fs->nr_answers)
		start(&fs->answers[slot], request);
	else
		own = NULL;
	fault_point(FAULT_REQUEST);
}

/* The answer for a request, or with 0 one that is free. */
static struct answer *find(struct fs *fs, uint64_t request)
{
	unsigned int i;

	for (i = 0; i < fs->nr_answers; i++)
		if (get(fs->answers[i].request) == request)
			return &fs->answers[i];
	return NULL;
}

/*
 * Take all lookups back, the last one first. Whom nobody knows then is buried
 * as after a forget.
 */
static void uncount_lookups(struct fs *fs, struct answer *answer)
{
	uint32_t count;

	while ((count = get(answer->lookups))) {
		ino_t ino = answer->lookup[count - 1];
		struct inode *inode = inode_get(fs, ino);
		uint32_t dead;

		if (!inode) { /* damaged, and cut off */
			set(answer->lookups, count - 1);
			continue;
		}
		pthread_rwlock_wrlock(&fs->namespace_lock);
		answer->changed = (uint32_t)ino;
		answer->change_sets = count - 1;
		answer->change_to = inode->lookups - 1;
		ordered();
		set(answer->change, ANSWER_UNCOUNTED);
		ordered();
		fault_point("lookup to be taken back");
		inode->lookups = answer->change_to;
		fault_point("lookup taken back");
		ordered();
		set(answer->lookups, count - 1);
		ordered();
		set(answer->change, ANSWER_UNCHANGED);
		dead = inode_bury(fs, ino);
		pthread_rwlock_unlock(&fs->namespace_lock);
		inode_release(fs, dead);
	}
}

int fs_resume(struct fs *fs, uint64_t request)
{
	struct answer *answer = find(fs, request);

	if (!answer) {
		answer = find(fs, 0);
		if (answer)
			start(answer, request);
		else
			own = NULL;
		return 0;
	}
	own = answer;
	own_forgets = 0;
	own_resumed = true;
	own_again = get(answer->state) == ANSWER_DONE;
	fault_point("request resumed");
	fs_enter(fs);
	if (!own_again)
		uncount_lookups(fs, answer);
	fs_leave(fs);
	/* Each time the same thread of execution has crashed in it. */
	return get(answer->faults) >= ANSWER_FAULTS ? -EIO : 0;
}

void fs_withdraw(struct fs *fs, uint64_t request)
{
	struct answer *answer = find(fs, request);

	if (!answer)
		return;
	fs_enter(fs);
	uncount_lookups(fs, answer);
	fs_leave(fs);
	set(answer->request, 0);
}

void fs_resumed(struct fs *fs)
{
	unsigned int i;

	for (i = 0; i < fs->nr_answers; i++)
		set(fs->answers[i].request, 0);
	own = NULL;
}

void fs_fault(void)
{
	if (own)
		atomic_fetch_add_explicit(&own->faults, 1,
					  memory_order_relaxed);
}

/* --- results ----------------------------------------------------------- */

bool answer_again(int64_t *result)
{
	if (!own || !own_again)
		return false;
	own_again = false;
	*result = own->result;
	return true;
}

bool answer_is_resumed(void)
{
	return own && own_resumed;
}

ino_t answer_entry(void)
{
	return own->entry;
}

static void publish(enum answer_proof proof, ino_t ino, uint64_t cookie,
		    uint32_t value, ino_t entry)
{
	own->proof = proof;
	own->inode = (uint32_t)ino;
	own->value = value;
	own->cookie = cookie;
	own->entry = (uint32_t)entry;
	ordered();
	set(own->state, ANSWER_PUBLISHING);
	ordered();
	fault_point("about to publish");
}

void answer_publish_cell(ino_t directory, uint64_t cookie, uint32_t value,
			 ino_t entry, const struct answer_times *times)
{
	if (!own)
		return;
	own->times = times ? *times : (struct answer_times){};
	publish(ANSWER_CELL, directory, cookie, value, entry);
}

void answer_publish_xattr(ino_t ino, uint32_t block, bool removed)
{
	if (!own)
		return;
	own->times = (struct answer_times){.inode = {(uint32_t)ino}};
	publish(removed ? ANSWER_XATTR_REMOVED : ANSWER_XATTR, ino, 0, block,
		0);
}

void answer_publish_unnamed(ino_t ino)
{
	if (!own)
		return;
	own->times = (struct answer_times){};
	publish(ANSWER_LOOKUP, ino, 0, 0, ino);
}

void answer_done(int64_t result)
{
	if (!own)
		return;
	fault_point("published");
	own->result = result;
	ordered();
	set(own->state, ANSWER_DONE);
	ordered();
	fault_point("done");
}

/* --- lookup counts ----------------------------------------------------- */

bool answer_has_room(void)
{
	return !own || get(own->lookups) < ANSWER_LOOKUPS;
}

/* Under the count's lock: note the change, and make it. */
static void change(enum answer_change change, ino_t ino, struct inode *inode,
		   uint64_t to, _Atomic uint32_t *field, uint32_t sets)
{
	own->changed = (uint32_t)ino;
	own->change_to = to;
	own->change_sets = sets;
	ordered();
	set(own->change, change);
	ordered();
	fault_point("count to be changed");
	inode->lookups = to;
	fault_point("count changed");
	ordered();
	set(*field, sets);
	ordered();
	set(own->change, ANSWER_UNCHANGED);
	fault_point("change noted");
}

void answer_count_lookup(struct fs *fs, ino_t ino, struct inode *inode)
{
	pthread_mutex_t *lock = count_lock(fs, ino);
	uint32_t count = own ? get(own->lookups) : ANSWER_LOOKUPS;

	pthread_mutex_lock(lock);
	if (count < ANSWER_LOOKUPS) {
		own->lookup[count] = (uint32_t)ino;
		change(ANSWER_COUNTED, ino, inode, inode->lookups + 1,
		       &own->lookups, count + 1);
	} else {
		inode->lookups++;
	}
	pthread_mutex_unlock(lock);
}

bool answer_was_forgotten(void)
{
	return own && own_forgets++ < get(own->forgotten);
}

uint64_t answer_forget(struct fs *fs, ino_t ino, struct inode *inode,
		       uint64_t count)
{
	pthread_mutex_t *lock = count_lock(fs, ino);
	uint64_t left;

	pthread_mutex_lock(lock);
	left = inode->lookups > count ? inode->lookups - count : 0;
	if (own)
		change(ANSWER_FORGOTTEN, ino, inode, left, &own->forgotten,
		       own_forgets);
	else
		inode->lookups = left;
	pthread_mutex_unlock(lock);
	return left;
}

void answer_forget_nothing(void)
{
	if (own)
		set(own->forgotten, own_forgets);
}

/* --- recovery ---------------------------------------------------------- */

static void settle_change(struct fs *fs, struct answer *answer)
{
	const struct inode *inode = inode_get(fs, answer->changed);
	uint32_t change = get(answer->change);

	if (change != ANSWER_UNCHANGED && inode &&
	    inode->lookups == answer->change_to)
		set(*(change == ANSWER_FORGOTTEN ? &answer->forgotten
						 : &answer->lookups),
		    answer->change_sets);
	ordered();
	set(answer->change, ANSWER_UNCHANGED);
}

static bool has_xattr(struct fs *fs, const struct answer *answer)
{
	const struct inode *inode = inode_get(fs, answer->inode);

	return inode && xattr_is_in(fs, inode, answer->value);
}

static bool has_cell(struct fs *fs, const struct answer *answer)
{
	struct inode *directory = inode_get(fs, answer->inode);
	pagetable_cell *cell;

	if (!directory)
		return false;
	cell = pagetable_find(fs->blocks, &directory->table, answer->cookie);
	return (cell ? *cell : SLAB_NONE) == answer->value;
}

static bool was_published(struct fs *fs, const struct answer *answer)
{
	switch (answer->proof) {
	case ANSWER_CELL:
		return has_cell(fs, answer);
	case ANSWER_XATTR:
		return has_xattr(fs, answer);
	case ANSWER_XATTR_REMOVED:
		return !has_xattr(fs, answer);
	case ANSWER_LOOKUP:
		return get(answer->lookups) == 1;
	}
	return false;
}

/* They would have followed. */
static void renew_times(struct fs *fs, const struct answer_times *times)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct inode *directory = inode_get(fs, times->directory[i]);
		struct inode *inode = inode_get(fs, times->inode[i]);

		if (directory)
			directory_touch(directory);
		if (inode)
			inode->ctime = inode_now();
	}
}

static void settle_state(struct fs *fs, struct answer *answer)
{
	if (get(answer->state) != ANSWER_PUBLISHING)
		return;
	if (!was_published(fs, answer)) {
		set(answer->state, ANSWER_OPEN);
		return;
	}
	renew_times(fs, &answer->times);
	answer->result = 0;
	ordered();
	set(answer->state, ANSWER_DONE);
}

/* It has to live until it is given, whoever removes its name before. */
static void settle_entry(struct fs *fs, struct answer *answer)
{
	struct inode *inode;

	if (get(answer->state) != ANSWER_DONE || !answer->entry ||
	    get(answer->lookups))
		return;
	inode = inode_get(fs, answer->entry);
	own = answer;
	if (inode)
		answer_count_lookup(fs, answer->entry, inode);
	own = NULL;
}

void answers_settle(struct fs *fs)
{
	unsigned int i;

	for (i = 0; i < fs->nr_answers; i++) {
		struct answer *answer = &fs->answers[i];

		if (!get(answer->request))
			continue;
		settle_change(fs, answer);
		settle_state(fs, answer);
		settle_entry(fs, answer);
	}
}
