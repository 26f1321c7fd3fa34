/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * intent.h - operations that need more than one store, made whole
 *
 * A redo record. Whoever has to change several cells of directories together
 * (rename, exchange) fills a slot with the new values, marks it committed by
 * one store, does the changes, and clears it. After a crash, a committed slot
 * is done again: storing a value twice is the same as once. A slot that was
 * not yet committed never happened.
 */
#ifndef ZRAMFS_INTENT_H
#define ZRAMFS_INTENT_H

#include <stdint.h>

#define INTENT_SLOTS 8
#define INTENT_STEPS 4

/* Cell `cookie` of directory `block` gets `value` (an entry's block, or 0). */
struct intent_step {
	uint32_t block; /* the directory's inode block */
	uint32_t value;
	uint64_t cookie;
};

enum intent_state {
	INTENT_FREE = 0,
	INTENT_FILLING,	  /* taken, not yet valid */
	INTENT_COMMITTED
};

/* In the arena. */
struct intent {
	_Atomic uint32_t state;
	uint32_t steps;
	struct intent_step step[INTENT_STEPS];
};

struct fs;

/*
 * Do all the steps, or after a crash have them done. Cells must exist
 * (pagetable_reserve()). Under the exclusive namespace lock. Cannot fail: the
 * lock leaves at least one slot free.
 */
void intent_run(struct fs *fs, const struct intent_step *step,
		unsigned int steps);

/* After an attach: do again what was committed. */
void intent_replay(struct fs *fs);

#endif
