/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * answer_resume.c - requests that a dead process has left. See answer.h
 *
 * All of it runs while no other thread is there.
 */
#include <errno.h>

#include "fault.h"
#include "fs/answer_private.h"
#include "fs/fs_private.h"
#include "fs/namespace.h"
#include "fs/pagetable.h"
#include "fs/xattr.h"

/* --- settling ----------------------------------------------------------- */

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
	answer_continue(answer);
	if (inode)
		answer_count_lookup(fs, answer->entry, inode);
	answer_continue(NULL);
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

/* --- resuming ----------------------------------------------------------- */

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
	bool refused;

	if (!answer) {
		answer = find(fs, 0);
		if (answer)
			answer_begin(answer, request);
		else
			answer_continue(NULL);
		return 0;
	}
	answer_continue(answer);
	set(answer->awaited, false);
	fault_point("request resumed");
	/* Each time the same thread of execution has crashed in it. */
	refused = get(answer->faults) >= ANSWER_FAULTS;
	fs_enter(fs);
	if (refused || get(answer->state) != ANSWER_DONE)
		uncount_lookups(fs, answer);
	fs_leave(fs);
	return refused ? -EIO : 0;
}

static void withdraw(struct fs *fs, struct answer *answer)
{
	fs_enter(fs);
	uncount_lookups(fs, answer);
	fs_leave(fs);
	set(answer->request, 0);
}

void fs_withdraw(struct fs *fs, uint64_t request)
{
	struct answer *answer = find(fs, request);

	if (answer)
		withdraw(fs, answer);
}

/* Those that waited before another process was asked, and died, still do. */
void fs_await(struct fs *fs, bool (*waits)(void *caller, uint64_t request),
	      void *caller)
{
	unsigned int i;

	for (i = 0; i < fs->nr_answers; i++) {
		struct answer *answer = &fs->answers[i];
		uint64_t request = get(answer->request);

		if (request && waits(caller, request))
			set(answer->awaited, true);
	}
	fault_point("requests awaited");
}

void fs_resumed(struct fs *fs, bool all)
{
	unsigned int i;

	for (i = 0; i < fs->nr_answers; i++) {
		struct answer *answer = &fs->answers[i];

		if (all && get(answer->request) && get(answer->awaited))
			withdraw(fs, answer);
		set(answer->request, 0);
	}
	answer_continue(NULL);
}
