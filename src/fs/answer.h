/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * answer.h - requests that were done but not answered when the process died
 *
 * The caller names each request by a number that is never used twice, and
 * brings it again when nobody has answered it. Doing it again must not do it
 * twice: a directory that was made does not exist already, a name that was
 * removed is not missing, and an entry that is given again was looked up once.
 *
 * So each thread has an answer, in memory that outlives the process (the
 * ledger), in which it notes what it is about to do:
 *
 *   ANSWER_OPEN        nothing was published yet: it may be done from the start
 *   ANSWER_PUBLISHING  the store that publishes it is next, or was last. The
 *                      answer says which word tells, and what is in it then.
 *                      It was stored under a lock that nobody else has taken
 *                      since, or else the state would be:
 *   ANSWER_DONE        done, with this result. Stored before that lock is
 *                      given back.
 *
 * Lookup counts are truth. A count and the note that it was changed are two
 * stores; so a change is first noted with the new value, under a lock for that
 * inode's count. After a crash the count itself tells whether it was made, for
 * nobody else can have changed it since. What a request has counted is taken
 * back when it has to be done once more. Forgets have no answer and are
 * brought again by the caller from the same message; how many of the message's
 * were done is noted in the same way.
 *
 * A request may be brought again by nobody: because it was answered, and then
 * what it has counted is its caller's; or because it was given up, and then
 * that is nobody's, and has to be taken back. From here the two look alike. So
 * the caller says which requests wait for their answers, before it is asked to
 * bring any; that is noted until the request is brought. One that waited and
 * was not brought when all have been was given up.
 *
 * Only this process's order of stores matters here, not what other processors
 * see: a thread that is killed has done all of its instructions up to one, and
 * none after it.
 *
 * An answer belongs to the thread that has begun a request with it. Operations
 * of a thread that has begun none are not noted.
 */
#ifndef ZRAMFS_FS_ANSWER_H
#define ZRAMFS_FS_ANSWER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Entries that one request can give. */
#define ANSWER_LOOKUPS 104

/* A request that so many workers have crashed in is refused. */
#define ANSWER_FAULTS 2

enum answer_state {
	ANSWER_OPEN = 0,
	ANSWER_PUBLISHING,
	ANSWER_DONE
};

/* How to find out whether it was published. */
enum answer_proof {
	ANSWER_CELL = 1, /* cell `cookie` of directory `inode` is `value` */
	ANSWER_XATTR,	 /* block `value` is in the xattrs of `inode` */
	ANSWER_XATTR_REMOVED, /* it is not */
	ANSWER_LOOKUP	      /* the lookup was counted */
};

enum answer_change {
	ANSWER_UNCHANGED = 0,
	ANSWER_COUNTED,	  /* a lookup; sets `lookups` */
	ANSWER_UNCOUNTED, /* one taken back; sets `lookups` */
	ANSWER_FORGOTTEN  /* sets `forgotten` */
};

/* Whose times go with a change of names: numbers, 0 for none. */
struct answer_times {
	uint32_t directory[2];
	uint32_t inode[2];
};

/* Persistent; all zero when new. */
struct answer {
	_Atomic uint64_t request; /* 0: none */
	_Atomic uint32_t state;
	uint32_t proof;
	int64_t result;
	uint32_t inode; /* number */
	uint32_t value; /* block number, SLAB_NONE in an empty cell */
	uint64_t cookie;
	struct answer_times times;
	uint32_t entry; /* inode number that the answer gives; 0: none */

	/* The change of a lookup count that is under way. */
	_Atomic uint32_t change;
	uint32_t changed;     /* inode number */
	uint32_t change_sets; /* what `lookups` or `forgotten` will be */
	uint64_t change_to;   /* the new count */

	_Atomic uint32_t faults; /* how often its thread has crashed in it */
	_Atomic uint32_t forgotten;
	_Atomic uint32_t lookups;
	uint32_t lookup[ANSWER_LOOKUPS]; /* inode numbers */
	_Atomic uint32_t awaited; /* not answered, and not brought again yet */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct answer) == 512, "ledger layout");

struct fs;
struct inode;

/*
 * --- for operations, of the calling thread's request
 */

/* It was done before, with this result; true once for each request. */
bool answer_again(int64_t *result);
/* Another process may have begun it, and left it half done. */
bool answer_is_resumed(void);
/* The inode that was then given; 0: none. */
ino_t answer_entry(void);

/*
 * The next store is the one that publishes, under an exclusive lock that is
 * held until answer_done(): a directory's cell, or an inode's xattr. entry:
 * what the answer will give, 0 for nothing. times may be NULL.
 */
void answer_publish_cell(ino_t directory, uint64_t cookie, uint32_t value,
			 ino_t entry, const struct answer_times *times);
void answer_publish_xattr(ino_t ino, uint32_t block, bool removed);
/* An inode without a name: the lookup is what makes it. */
void answer_publish_unnamed(ino_t ino);
void answer_done(int64_t result);

/* Whether one more lookup can be noted. */
bool answer_has_room(void);

/* Count a lookup. The inode must be kept from dying meanwhile. */
void answer_count_lookup(struct fs *fs, ino_t ino, struct inode *inode);
/*
 * The thread's next forget: true when it was done before. Else one of the two
 * has to follow; lookups never go below zero. Returns what is left.
 */
bool answer_was_forgotten(void);
uint64_t answer_forget(struct fs *fs, ino_t ino, struct inode *inode,
		       uint64_t count);
void answer_forget_nothing(void);

/*
 * --- for recovery
 */

/*
 * After intents were replayed and before anything is rebuilt: decide all that
 * was under way. Entries that are to be given again are looked up then.
 */
void answers_settle(struct fs *fs);

#endif
