/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * answer_private.h - what the answers' two files share
 *
 * answer.c notes what a thread does for its request; answer_resume.c goes on
 * from the notes of a process that has died.
 */
#ifndef ZRAMFS_FS_ANSWER_PRIVATE_H
#define ZRAMFS_FS_ANSWER_PRIVATE_H

#include "fs/answer.h"

/*
 * For the compiler: stands where the order of stores is what recovery relies
 * on.
 */
#define ordered() atomic_signal_fence(memory_order_seq_cst)

#define set(field, value) \
	atomic_store_explicit(&(field), value, memory_order_release)
#define get(field) atomic_load_explicit(&(field), memory_order_relaxed)

/* The calling thread notes in this answer, from now on, for a new request. */
void answer_begin(struct answer *answer, uint64_t request);
/* The same for one that another process has begun. NULL: it notes nothing. */
void answer_continue(struct answer *answer);

#endif
