/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fs_private.h - what the files in fs/ share, and nobody else sees
 */
#ifndef ZRAMFS_FS_PRIVATE_H
#define ZRAMFS_FS_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "arena/index.h"
#include "arena/slab.h"
#include "fs/answer.h"
#include "fs/fs.h"
#include "fs/inode.h"
#include "fs/intent.h"

/* Inode locks are striped: a lock for each inode would cost as much as it. */
#define FS_INODE_LOCKS 256

/* Operations under way are counted in as many places: see fs_enter(). */
#define FS_GATES 64

/* Lookup counts' locks, striped likewise. */
#define FS_COUNT_LOCKS 64

/* st_nlink's bound; far from what the regions can hold. */
#define FS_LINK_MAX INT32_MAX

/* Persistent; lies in the arena's root page for the filesystem. */
struct fs_root {
	uint32_t root_block;	      /* the root directory's inode */
	_Atomic uint32_t generation;  /* of the last inode made */
	_Atomic uint64_t size_pages;  /* limit; 0: none */
	_Atomic uint64_t nr_inodes;   /* limit; 0: none */
	_Atomic uint64_t used_pages;  /* (derived) */
	_Atomic uint64_t used_inodes; /* (derived) */
	uint64_t name_seed;	      /* of the name index's hash */
	struct intent intents[INTENT_SLOTS];
};

/* Each alone in its cache lines. */
struct inode_lock {
	pthread_rwlock_t lock;
} __attribute__((aligned(64)));

struct count_lock {
	pthread_mutex_t lock;
} __attribute__((aligned(64)));

struct gate {
	_Atomic uint32_t inside; /* operations that came in by it */
} __attribute__((aligned(64)));

struct fs {
	struct arena *arena;
	struct store *store;
	struct slab *inodes;
	struct slab *blocks;
	struct index *names; /* under the namespace lock */
	struct fs_root *root;
	pthread_rwlock_t namespace_lock; /* prefers writers */
	struct inode_lock inode_locks[FS_INODE_LOCKS];
	struct count_lock count_locks[FS_COUNT_LOCKS]; /* see answer.c */
	struct gate gates[FS_GATES];
	pthread_mutex_t stop_lock; /* guards stops; see gate.c */
	pthread_cond_t stop_changed;
	_Atomic uint32_t stops; /* wanted or under way */
	bool stopped;
	_Atomic unsigned int reserve; /* pages: fs_set_reserve() */
	struct answer *answers; /* NULL: no requests are noted */
	unsigned int nr_answers;
};

/* --- gate.c ------------------------------------------------------------ */

/*
 * Every operation is between these two: while fs_stop() holds, none is under
 * way. So nothing is then between two of an operation's steps, such as a page
 * put and not yet in a cell, and nobody waits for a lock or holds one.
 * Not nested. Costs two uncontended atomic operations.
 */
void fs_enter(struct fs *fs);
void fs_leave(struct fs *fs);
void fs_stop(struct fs *fs);
void fs_continue(struct fs *fs);

/* The calling thread gets a gate that few others use. */
void gate_choose(void);
int gates_init(struct fs *fs);
void gates_exit(struct fs *fs);

/* --- inode.c ----------------------------------------------------------- */

/*
 * The live inode of a number, NULL if there is none (out of range, free). The
 * caller's lookup count keeps it alive, so the pointer needs no lock; who has
 * no lookup holds the namespace lock.
 */
struct inode *inode_get(const struct fs *fs, ino_t ino);
ino_t inode_number(const struct fs *fs, uint32_t block);
uint32_t inode_block(const struct fs *fs, ino_t ino);

void inode_lock_shared(struct fs *fs, ino_t ino);
void inode_lock_exclusive(struct fs *fs, ino_t ino);
void inode_unlock(struct fs *fs, ino_t ino);
/* Two inodes, lower stripe first; the same stripe is locked once. */
void inode_lock_two(struct fs *fs, ino_t exclusive, ino_t other,
		    bool other_exclusive);
void inode_unlock_two(struct fs *fs, ino_t one, ino_t other);

/*
 * A new inode, all zero but its number of generation; live once its mode is
 * stored. Counted against nr_inodes=. -ENOSPC. inode_discard() takes it back,
 * with the xattrs that it was given. Under the exclusive namespace lock.
 */
int inode_alloc(struct fs *fs, uint32_t *block);
void inode_discard(struct fs *fs, uint32_t block);

/*
 * Under the exclusive namespace lock: when the inode has neither names nor
 * lookups it is dead from now on. Returns its block if there is something to
 * free yet, which inode_release() does after the lock was dropped; else
 * SLAB_NONE.
 */
uint32_t inode_bury(struct fs *fs, ino_t ino);
void inode_release(struct fs *fs, uint32_t block);

/* Under at least the shared inode lock. */
void inode_stat(const struct fs *fs, ino_t ino, struct inode *inode,
		struct stat *attr);

/* It may neither lose its name nor get another one. */
static inline bool inode_is_fixed(const struct inode *inode)
{
	return inode->mode & (INODE_IMMUTABLE | INODE_APPEND);
}

/* --- times.c ----------------------------------------------------------- */

/* The clock of file times, for what is new. */
int64_t inode_now(void);
/* Set ctime to now, which is returned: later than any that was shown. */
int64_t inode_changed(struct inode *inode);
struct timespec inode_show_ctime(struct inode *inode);
/* Seconds and nanoseconds as inodes keep them: clamped to what fits. */
int64_t inode_time(const struct timespec *time);
struct timespec inode_timespec(int64_t ns);

/* --- file.c ------------------------------------------------------------ */

/*
 * Set a regular file's size, under its exclusive lock: drops pages beyond,
 * zeroes the tail of the last page. Touches no times. -EFBIG, -ENOSPC (the
 * tail's new page, beyond the reserve), -EIO (the tail cannot be read).
 */
int file_truncate(struct fs *fs, struct inode *inode, uint64_t size);

/* Drop all pages and nodes of an inode that nobody can reach any more. */
void file_release(struct fs *fs, struct inode *inode);

/* --- attributes.c ------------------------------------------------------ */

/*
 * What a write takes away: security.capability always, as from whoever writes;
 * with kill_priv suid and sgid (when group-executable), too. Killing is under
 * the exclusive inode lock and touches no times. Asking needs no lock.
 */
bool attributes_has_privileges(const struct fs *fs, const struct inode *inode,
			       bool kill_priv);
void attributes_kill_privileges(struct fs *fs, struct inode *inode,
				bool kill_priv);

/* --- limits.c ---------------------------------------------------------- */

/* Count pages against size=; -ENOSPC changes nothing. */
int limits_charge_pages(struct fs *fs, uint64_t pages);
void limits_uncharge_pages(struct fs *fs, uint64_t pages);
int limits_charge_inode(struct fs *fs);
void limits_uncharge_inode(struct fs *fs);
/*
 * As in tmpfs each name of a file counts as an inode, but the first, which goes
 * with the inode itself. Charged before nlink tells of the name, and uncharged
 * when it no longer does; under the exclusive namespace lock.
 */
int limits_charge_name(struct fs *fs, const struct inode *inode);
void limits_uncharge_name(struct fs *fs, const struct inode *inode);

#endif
