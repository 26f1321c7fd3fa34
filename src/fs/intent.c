/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * intent.c - operations that need more than one store, made whole
 *
 * Owns the records in the filesystem's root page. It stores cells of
 * directories and nothing else: what is derived from them is the caller's, or
 * rebuilt after a crash.
 */
#include "fs/intent.h"

#include "fault.h"
#include "fs/directory.h"
#include "fs/fs_private.h"

static void redo(struct fs *fs, const struct intent *intent)
{
	for (unsigned int i = 0; i < intent->steps; i++) {
		const struct intent_step *step = &intent->step[i];
		struct inode *directory = slab_address(fs->inodes, step->block);

		fault_point("intent step");
		directory_store(fs, directory, step->cookie, step->value);
	}
}

/*
 * The exclusive namespace lock admits one operation at a time, so there is
 * always a free slot.
 */
static struct intent *free_slot(struct fs *fs)
{
	struct intent *intent = fs->root->intents;

	while (atomic_load_explicit(&intent->state, memory_order_relaxed) !=
	       INTENT_FREE)
		intent++;
	return intent;
}

void intent_run(struct fs *fs, const struct intent_step *step,
		unsigned int steps)
{
	struct intent *intent = free_slot(fs);

	atomic_store_explicit(&intent->state, INTENT_FILLING,
			      memory_order_relaxed);
	intent->steps = steps;
	for (unsigned int i = 0; i < steps; i++)
		intent->step[i] = step[i];
	fault_point("intent filled");
	/* Release: the steps, and all that they name, are there before. */
	atomic_store_explicit(&intent->state, INTENT_COMMITTED,
			      memory_order_release);
	/* Not to be reordered before the commit, though no thread reads it. */
	atomic_signal_fence(memory_order_seq_cst);
	redo(fs, intent);
	fault_point("intent done");
	/* Release: after the steps were done. */
	atomic_store_explicit(&intent->state, INTENT_FREE,
			      memory_order_release);
}

void intent_replay(struct fs *fs)
{
	for (unsigned int i = 0; i < INTENT_SLOTS; i++) {
		struct intent *intent = &fs->root->intents[i];

		/* Acquire: pairs with the commit. */
		if (atomic_load_explicit(&intent->state,
					 memory_order_acquire) ==
		    INTENT_COMMITTED)
			redo(fs, intent);
		atomic_store_explicit(&intent->state, INTENT_FREE,
				      memory_order_release);
	}
}
