/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * process_memory.h - what the daemon itself costs, beside the arena
 *
 * Private memory (heap, stacks, buffers) and the process's share of the text
 * of programs and libraries, as the kernel counts them: Pss_Anon and Pss_File
 * of /proc/PID/smaps_rollup, of this process and of the keeper beside it; and
 * the memory of the ledger. The arena is shared memory and not in it.
 *
 * The kernel walks all page tables for an answer, the arena's too, which takes
 * about 10 ms for each GiB. So an answer is kept for PROCESS_MEMORY_SHARE
 * times as long as it took: asking, however often, takes less than 2 % of a
 * CPU. With little in memory, when this share matters, answers are fresh.
 */
#ifndef ZRAMFS_PROCESS_MEMORY_H
#define ZRAMFS_PROCESS_MEMORY_H

#include <stdint.h>
#include <sys/types.h>

#define PROCESS_MEMORY_SHARE 50

/*
 * What else to count: another process (0: none), and a memfd (-1: none). Both
 * are kept in mind. Before any thread asks.
 */
void process_memory_include(pid_t other, int memfd);

/* Bytes; 0 when the kernel does not tell. Thread-safe. */
uint64_t process_memory_bytes(void);
/* The most that process_memory_bytes() gave, ever or since. Thread-safe. */
uint64_t process_memory_most(void);
void process_memory_reset_most(void);

/*
 * Unmap the pages of program and libraries that only a start needed: those that
 * are needed still come back from the page cache, with a fault for each few.
 * Changes nothing but what the system counts as this process's. Any thread.
 */
void process_memory_let_code_go(void);

#endif
