/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * answer.c - see answer.h
 *
 * What a thread notes of the request that it serves; answer_resume.c is what
 * the next process makes of it. Owns the answers and all changes of lookup
 * counts. The locks of those counts are leaves; they come after the namespace
 * lock.
 */
#include "fs/answer_private.h"

#include "fault.h"
#include "fs/fs_private.h"

/* The thread's own; NULL: it has begun no request. */
static _Thread_local struct answer *own;
static _Thread_local bool own_again;	   /* done by another process */
static _Thread_local bool own_resumed;	   /* or begun */
static _Thread_local uint32_t own_forgets; /* seen of this request */

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

void answer_begin(struct answer *answer, uint64_t request)
{
	/* It must not be taken for the old one meanwhile. */
	set(answer->request, 0);
	ordered();
	set(answer->state, ANSWER_OPEN);
	set(answer->change, ANSWER_UNCHANGED);
	set(answer->faults, 0);
	set(answer->forgotten, 0);
	set(answer->lookups, 0);
	set(answer->awaited, false);
	answer->entry = 0;
	ordered();
	set(answer->request, request);
	ordered();
	own = answer;
	own_again = own_resumed = false;
	own_forgets = 0;
}

void answer_continue(struct answer *answer)
{
	own = answer;
	own_again = answer && get(answer->state) == ANSWER_DONE;
	own_resumed = true;
	own_forgets = 0;
}

void fs_begin(struct fs *fs, unsigned int slot, uint64_t request)
{
	if (slot < fs->nr_answers)
		answer_begin(&fs->answers[slot], request);
	else
		own = NULL;
	fault_point(FAULT_REQUEST);
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
