/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stress_shared.c - files that all threads write at once
 *
 * A file is cut into blocks, and each says what it is: file, number, owner and
 * sequence, from which the rest of its bytes follow. In most files a block is
 * only ever written by its owner, who therefore knows it exactly; others may
 * find it half-written, but not for long, and never find another's bytes in
 * it. Block sizes that are no multiple of a page make writers meet in pages.
 * In the wild files all threads write all blocks, cut the file off and punch
 * holes: there each byte is zero or what the block's head says.
 *
 * A file is opened in one way only: Linux promises little about O_DIRECT and
 * page cache at the same time.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stress.h"

#define SHARED_MAGIC   0x7a72616d66735348u
#define SHARED_RETRIES 2000

static const struct shared_kind {
	const char *name;
	size_t block;
	unsigned int blocks;
	bool direct, mapped, wild;
} kinds[] = {
	{"page", STRESS_PAGE, 512, false, false, false},
	{"odd", 1000, 1024, false, false, false},
	{"sector", 512, 2048, true, false, false},
	{"large", 65536, 48, false, false, false},
	{"direct", STRESS_PAGE, 512, true, false, false},
	{"mapped", 2048, 512, false, true, false},
	{"wild", STRESS_PAGE, 256, false, false, true},
	{"wild-direct", STRESS_PAGE, 256, true, false, true},
};
#define SHARED_FILES (sizeof(kinds) / sizeof(kinds[0]))

struct head {
	uint64_t magic;
	uint32_t file;
	uint32_t block;
	uint64_t owner;
	uint64_t sequence;
};

struct shared_view {
	int fd[SHARED_FILES];
	uint8_t *map[SHARED_FILES];
	uint64_t *sequence[SHARED_FILES]; /* of own blocks; 0: zeros */
	uint64_t next;
};

static void shared_path(unsigned int file, char path[STRESS_PATH])
{
	snprintf(path, STRESS_PATH, "%s/shared-%s", stress.directory,
		 kinds[file].name);
}

static void make_block(uint8_t *to, const struct head *head, size_t size)
{
	struct rng rng;

	rng_seed(&rng, stress.seed ^ head->sequence ^ head->owner << 48 ^
			       (uint64_t)head->block << 24);
	fill(to, size, 0, rng_below(&rng, FILL_KINDS), rng_next(&rng));
	memcpy(to, head, sizeof(*head));
}

/* Bytes of a block from the file, or from the mapping of it. */
static size_t get(struct stress_thread *thread, unsigned int file,
		  unsigned int block, void *to)
{
	const struct shared_kind *kind = &kinds[file];
	uint64_t offset = (uint64_t)block * kind->block;
	char path[STRESS_PATH];

	if (thread->shared->map[file] && rng_below(&thread->rng, 2)) {
		memcpy(to, thread->shared->map[file] + offset, kind->block);
		return kind->block;
	}
	shared_path(file, path);
	return stress_read(thread, thread->shared->fd[file], path, to,
			   kind->block, offset);
}

static bool all_zero(const uint8_t *bytes, size_t length)
{
	return length == 0 ||
	       (bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0);
}

/*
 * Is it a block that somebody wrote here? Where want is given, that very one.
 * Returns the first wrong byte, or length. Zeros are right where nothing or
 * (want->sequence 0) zero is wanted; holes where wild.
 */
static size_t judge(struct stress_thread *thread, unsigned int file,
		    unsigned int block, const uint8_t *got, size_t length,
		    const struct head *want)
{
	const struct shared_kind *kind = &kinds[file];
	uint8_t *made = thread->other;
	struct head head;
	size_t i;

	if (want && want->sequence == 0)
		memset(made, 0, length);
	else if (!want && all_zero(got, length))
		return length;
	else {
		if (length < sizeof(head))
			return kind->wild ? length : 0;
		memcpy(&head, got, sizeof(head));
		if (kind->wild && all_zero(got, sizeof(head)))
			return length;
		if (head.magic != SHARED_MAGIC || head.file != file ||
		    head.block != block || head.owner >= stress.threads)
			return 0;
		if (!kind->wild && head.owner != block % stress.threads)
			return 0;
		if (want && memcmp(want, &head, sizeof(head)) != 0)
			return offsetof(struct head, sequence);
		make_block(made, &head, kind->block);
	}
	i = first_difference(got, made, length);
	if (i == length || !kind->wild)
		return i;
	for (; i < length; i++)
		if (got[i] != made[i] && got[i] != 0)
			return i;
	return length;
}

static void wrong(struct stress_thread *thread, unsigned int file,
		  unsigned int block, const uint8_t *got, size_t at,
		  size_t length, const char *how)
{
	struct head head = {0};
	char path[STRESS_PATH];

	shared_path(file, path);
	if (length >= sizeof(head))
		memcpy(&head, got, sizeof(head));
	stress_fail(thread,
		    "%s: %s: block %u (%zu bytes at %#lx, owner %u) is wrong "
		    "at byte %zu of %zu: has %02x; its head: magic %s, file "
		    "%u, block %u, owner %lu, sequence %lu",
		    path, how, block, kinds[file].block,
		    (uint64_t)block * kinds[file].block, block % stress.threads,
		    at, length, at < length ? got[at] : 0,
		    head.magic == SHARED_MAGIC ? "right" : "wrong", head.file,
		    head.block, head.owner, head.sequence);
}

static void own_head(struct stress_thread *thread, unsigned int file,
		     unsigned int block, struct head *head)
{
	memset(head, 0, sizeof(*head));
	head->magic = SHARED_MAGIC;
	head->file = file;
	head->block = block;
	head->owner = thread->number;
	head->sequence = thread->shared->sequence[file][block];
}

static void check_block(struct stress_thread *thread, unsigned int file,
			unsigned int block, const char *how)
{
	bool own =
		!kinds[file].wild && block % stress.threads == thread->number;
	uint8_t *got = thread->buffer;
	unsigned int tries = 0;
	size_t length, at;
	struct head head;

	if (own)
		own_head(thread, file, block, &head);
	for (;;) {
		length = get(thread, file, block, got);
		if (length < kinds[file].block && !kinds[file].wild)
			wrong(thread, file, block, got, length, length,
			      "short read");
		at = judge(thread, file, block, got, length,
			   own ? &head : NULL);
		if (at == length)
			return;
		if (own || ++tries > SHARED_RETRIES)
			wrong(thread, file, block, got, at, length, how);
		sched_yield();
	}
}

static void put_block(struct stress_thread *thread, unsigned int file,
		      unsigned int block)
{
	const struct shared_kind *kind = &kinds[file];
	struct shared_view *view = thread->shared;
	uint64_t offset = (uint64_t)block * kind->block;
	char path[STRESS_PATH];
	struct head head;

	view->sequence[file][block] = ++view->next;
	own_head(thread, file, block, &head);
	make_block(thread->buffer, &head, kind->block);
	shared_path(file, path);
	if (view->map[file] && rng_below(&thread->rng, 2))
		memcpy(view->map[file] + offset, thread->buffer, kind->block);
	else
		stress_write(thread, view->fd[file], path, thread->buffer,
			     kind->block, offset);
}

static void punch(struct stress_thread *thread, unsigned int file,
		  uint64_t offset, uint64_t length)
{
	if (fallocate(thread->shared->fd[file],
		      FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset,
		      length) < 0)
		stress_fail(thread, "shared-%s: punch %#lx+%#lx: %s",
			    kinds[file].name, offset, length, strerror(errno));
}

/* Heads stay whole: everything wild is cut at multiples of 64 bytes. */
static void wild_step(struct stress_thread *thread, unsigned int file)
{
	uint64_t bytes = (uint64_t)kinds[file].block * kinds[file].blocks;
	uint64_t offset = rng_below(&thread->rng, bytes) & ~63ul;

	switch (rng_below(&thread->rng, 8)) {
	case 0:
		if (ftruncate(thread->shared->fd[file], offset) < 0)
			stress_fail(thread, "shared-%s: truncate: %s",
				    kinds[file].name, strerror(errno));
		break;
	case 1:
		punch(thread, file, offset,
		      64 + (rng_below(&thread->rng, 65536) & ~63ul));
		break;
	case 2:
	case 3:
	case 4:
		put_block(thread, file, offset / kinds[file].block);
		break;
	default:
		check_block(thread, file, offset / kinds[file].block, "wild");
	}
}

/* A long read across many owners' blocks: lengths only, then each block. */
static void check_run(struct stress_thread *thread, unsigned int file)
{
	unsigned int block = rng_below(&thread->rng, kinds[file].blocks);
	unsigned int last = block + 1 + rng_below(&thread->rng, 32);

	posix_fadvise(thread->shared->fd[file], 0, 0, POSIX_FADV_DONTNEED);
	for (; block < last && block < kinds[file].blocks; block++)
		check_block(thread, file, block, "run");
}

void shared_step(struct stress_thread *thread)
{
	unsigned int file = rng_below(&thread->rng, SHARED_FILES);
	unsigned int chance = rng_below(&thread->rng, 100);
	unsigned int any = rng_below(&thread->rng, kinds[file].blocks);
	unsigned int own = any - any % stress.threads + thread->number;

	if ((kinds[file].direct && !stress.direct) ||
	    (kinds[file].mapped && !stress.mapped))
		return;
	if (kinds[file].wild) {
		wild_step(thread, file);
		return;
	}
	if (own >= kinds[file].blocks)
		own = thread->number;
	if (own >= kinds[file].blocks)
		return;
	if (chance < 45) {
		put_block(thread, file, own);
		if (chance < 10)
			check_block(thread, file, own, "read back");
	} else if (chance < 65) {
		check_block(thread, file, own, "own");
	} else if (chance < 92) {
		check_block(thread, file, any, "others'");
	} else if (chance < 97) {
		punch(thread, file, (uint64_t)own * kinds[file].block,
		      kinds[file].block);
		thread->shared->sequence[file][own] = 0;
	} else {
		check_run(thread, file);
	}
}

void shared_create(void)
{
	struct stress_thread nobody = {0};
	char path[STRESS_PATH];
	unsigned int i;
	int fd;

	for (i = 0; i < SHARED_FILES; i++) {
		shared_path(i, path);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd < 0 ||
		    ftruncate(fd, kinds[i].block * kinds[i].blocks) < 0)
			stress_fail(&nobody, "%s: %s", path, strerror(errno));
		close(fd);
	}
}

void shared_start(struct stress_thread *thread)
{
	struct shared_view *view = calloc(1, sizeof(*view));
	char path[STRESS_PATH];
	unsigned int i;

	thread->shared = view;
	for (i = 0; view && i < SHARED_FILES; i++) {
		bool direct = kinds[i].direct && stress.direct;

		shared_path(i, path);
		view->fd[i] = open(path, O_RDWR | O_CLOEXEC |
						 (direct ? O_DIRECT : 0));
		if (view->fd[i] < 0)
			stress_fail(thread, "%s: %s", path, strerror(errno));
		view->sequence[i] = calloc(kinds[i].blocks, sizeof(uint64_t));
		if (!view->sequence[i])
			stress_fail(thread, "out of memory");
		if (!kinds[i].mapped || !stress.mapped)
			continue;
		view->map[i] = mmap(NULL, kinds[i].block * kinds[i].blocks,
				    PROT_READ | PROT_WRITE, MAP_SHARED,
				    view->fd[i], 0);
		if (view->map[i] == MAP_FAILED)
			stress_fail(thread, "mmap %s: %s", path,
				    strerror(errno));
	}
	if (!view)
		stress_fail(thread, "out of memory");
}

/* When all threads are done, each block is right at the first look. */
void shared_finish(struct stress_thread *thread)
{
	struct shared_view *view = thread->shared;
	unsigned int i, block;

	for (i = 0; i < SHARED_FILES; i++) {
		posix_fadvise(view->fd[i], 0, 0, POSIX_FADV_DONTNEED);
		for (block = 0; block < kinds[i].blocks; block++)
			if (kinds[i].wild ||
			    block % stress.threads == thread->number)
				check_block(thread, i, block, "at the end");
		if (view->map[i])
			munmap(view->map[i], kinds[i].block * kinds[i].blocks);
		close(view->fd[i]);
		free(view->sequence[i]);
	}
	free(view);
}
