/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stress_own.c - files of one thread, each held against a model in memory
 *
 * One thread alone touches a file, so each byte of it is known: whatever way
 * it was written (buffered, O_DIRECT, mapped, copied, punched) and whatever
 * way it is read, the model says what must be there. The last operations on a
 * file are kept, and shown when it turns out wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stress.h"

#define OWN_FILES 4
#define OWN_MAX	  (2u << 20)
#define OWN_TRACE 12

struct trace {
	const char *what;
	uint64_t offset, length;
};

struct own_file {
	char path[STRESS_PATH];
	int fd;
	bool direct;
	bool unlinked;
	uint32_t generation; /* counts names */
	size_t size;
	uint8_t *model; /* OWN_MAX bytes, zero from size on */
	struct trace trace[OWN_TRACE];
	unsigned int traced;
};

struct own {
	struct own_file file[OWN_FILES];
};

static void trace(struct own_file *file, const char *what, uint64_t offset,
		  uint64_t length)
{
	struct trace *t = &file->trace[file->traced++ % OWN_TRACE];

	t->what = what;
	t->offset = offset;
	t->length = length;
}

static void wrong(struct stress_thread *thread, const struct own_file *file,
		  const char *how, uint64_t offset, unsigned int got,
		  unsigned int want)
{
	unsigned int i =
		file->traced > OWN_TRACE ? file->traced - OWN_TRACE : 0;

	for (; i < file->traced; i++) {
		const struct trace *t = &file->trace[i % OWN_TRACE];

		fprintf(stderr, "#   %-14s offset %#lx length %#lx\n", t->what,
			t->offset, t->length);
	}
	stress_fail(thread,
		    "%s%s: %s: byte %#lx (page %lu + %lu) is %02x, not %02x; "
		    "size %#zx",
		    file->path, file->unlinked ? " (unlinked)" : "", how,
		    offset, offset / STRESS_PAGE, offset % STRESS_PAGE, got,
		    want, file->size);
}

static void compare(struct stress_thread *thread, struct own_file *file,
		    const char *how, const uint8_t *got, size_t length,
		    uint64_t offset)
{
	size_t at = first_difference(got, file->model + offset, length);

	if (at < length)
		wrong(thread, file, how, offset + at, got[at],
		      file->model[offset + at]);
}

static void open_file(struct stress_thread *thread, struct own_file *file,
		      int flags)
{
	file->direct = stress.direct && rng_below(&thread->rng, 3) == 0;
	if (file->direct)
		flags |= O_DIRECT;
	file->fd = open(file->path, O_RDWR | O_CLOEXEC | flags, 0644);
	if (file->fd < 0)
		stress_fail(thread, "%s: open(%#x): %s", file->path, flags,
			    strerror(errno));
}

static void new_name(struct stress_thread *thread, struct own_file *file,
		     char path[STRESS_PATH])
{
	unsigned int number = file - thread->own->file;

	snprintf(path, STRESS_PATH, "%s/own-%u%s/file-%u-%u", stress.directory,
		 thread->number, rng_below(&thread->rng, 2) ? "/sub" : "",
		 number, file->generation++);
}

static void create(struct stress_thread *thread, struct own_file *file)
{
	new_name(thread, file, file->path);
	open_file(thread, file, O_CREAT | O_EXCL);
	memset(file->model, 0, OWN_MAX);
	file->size = 0;
	file->unlinked = false;
	file->traced = 0;
	trace(file, "create", 0, 0);
}

static void check_size(struct stress_thread *thread, struct own_file *file)
{
	struct stat st;

	if (fstat(file->fd, &st) < 0)
		stress_fail(thread, "%s: fstat: %s", file->path,
			    strerror(errno));
	if ((size_t)st.st_size != file->size ||
	    st.st_nlink != (file->unlinked ? 0 : 1))
		stress_fail(thread, "%s: size %#lx, not %#zx; nlink %lu",
			    file->path, st.st_size, file->size, st.st_nlink);
}

/* Somewhere in the file: pages, odd bytes, its end; length stays below MAX. */
static void place(struct stress_thread *thread, struct own_file *file,
		  uint64_t *offset, size_t *length)
{
	*length = stress_length(&thread->rng, STRESS_IO_MAX);
	switch (rng_below(&thread->rng, 4)) {
	case 0:
		*offset = file->size;
		break;
	case 1:
		*offset = rng_below(&thread->rng, OWN_MAX / STRESS_PAGE) *
			  STRESS_PAGE;
		break;
	case 2: /* keep to the head, where pages meet again and again */
		*offset = rng_below(&thread->rng, 8 * STRESS_PAGE);
		break;
	default:
		*offset = rng_below(&thread->rng, OWN_MAX);
	}
	if (file->direct && stress.strict_direct) {
		*offset &= ~511ul;
		*length = (*length + 511) & ~511ul;
	}
	if (*offset >= OWN_MAX)
		*offset = 0;
	if (*length > OWN_MAX - *offset)
		*length = OWN_MAX - *offset;
}

static void grow(struct own_file *file, uint64_t end)
{
	if (end > file->size)
		file->size = end;
}

static void do_write(struct stress_thread *thread, struct own_file *file)
{
	uint64_t offset;
	size_t length;

	place(thread, file, &offset, &length);
	fill(file->model + offset, length, offset,
	     rng_below(&thread->rng, FILL_KINDS), rng_next(&thread->rng));
	memcpy(thread->buffer, file->model + offset, length);
	trace(file, file->direct ? "write direct" : "write", offset, length);
	stress_write(thread, file->fd, file->path, thread->buffer, length,
		     offset);
	grow(file, offset + length);
}

static void do_read(struct stress_thread *thread, struct own_file *file)
{
	uint64_t offset;
	size_t length, want, got;

	place(thread, file, &offset, &length);
	got = stress_read(thread, file->fd, file->path, thread->buffer, length,
			  offset);
	want = offset >= file->size ? 0 : file->size - offset;
	if (want > length)
		want = length;
	if (got != want)
		stress_fail(thread, "%s: read %zu of %zu at %#lx, size %#zx",
			    file->path, got, want, offset, file->size);
	compare(thread, file, file->direct ? "read direct" : "read",
		thread->buffer, got, offset);
}

static void verify(struct stress_thread *thread, struct own_file *file)
{
	uint64_t offset;
	size_t got;

	check_size(thread, file);
	for (offset = 0; offset < file->size; offset += got) {
		got = stress_read(thread, file->fd, file->path, thread->buffer,
				  STRESS_IO_MAX, offset);
		if (got == 0)
			stress_fail(thread, "%s: ends at %#lx, not %#zx",
				    file->path, offset, file->size);
		compare(thread, file, "verify", thread->buffer, got, offset);
	}
}

static void do_truncate(struct stress_thread *thread, struct own_file *file)
{
	size_t size = rng_below(&thread->rng, OWN_MAX);

	if (rng_below(&thread->rng, 3) == 0)
		size = file->size ? file->size - 1 : 0;
	trace(file, "truncate", size, 0);
	if (ftruncate(file->fd, size) < 0)
		stress_fail(thread, "%s: truncate to %#zx: %s", file->path,
			    size, strerror(errno));
	if (size < file->size)
		memset(file->model + size, 0, file->size - size);
	file->size = size;
}

static void do_fallocate(struct stress_thread *thread, struct own_file *file)
{
	static const struct {
		int mode;
		const char *name;
	} kinds[] = {
		{FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, "punch"},
		{FALLOC_FL_ZERO_RANGE, "zero"},
		{FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, "zero keep"},
		{0, "allocate"},
		{FALLOC_FL_KEEP_SIZE, "allocate keep"},
	};
	unsigned int kind = rng_below(&thread->rng, 5);
	uint64_t offset, end;
	size_t length;

	place(thread, file, &offset, &length);
	end = offset + length;
	if (fallocate(file->fd, kinds[kind].mode, offset, length) < 0) {
		if (errno == EOPNOTSUPP)
			return;
		stress_fail(thread, "%s: fallocate %s %#lx+%#zx: %s",
			    file->path, kinds[kind].name, offset, length,
			    strerror(errno));
	}
	trace(file, kinds[kind].name, offset, length);
	if (kind <= 2)
		memset(file->model + offset, 0, length);
	if (!(kinds[kind].mode & FALLOC_FL_KEEP_SIZE))
		grow(file, end);
}

static void do_map(struct stress_thread *thread, struct own_file *file)
{
	bool writing = rng_below(&thread->rng, 2) == 0;
	uint64_t offset;
	size_t length;
	uint8_t *map;

	if (!stress.mapped || file->size == 0)
		return;
	map = mmap(NULL, file->size, PROT_READ | (writing ? PROT_WRITE : 0),
		   MAP_SHARED, file->fd, 0);
	if (map == MAP_FAILED)
		stress_fail(thread, "%s: mmap: %s", file->path,
			    strerror(errno));
	place(thread, file, &offset, &length);
	offset %= file->size;
	if (length > file->size - offset)
		length = file->size - offset;
	compare(thread, file, "mapped", map + offset, length, offset);
	if (writing) {
		fill(file->model + offset, length, offset,
		     rng_below(&thread->rng, FILL_KINDS),
		     rng_next(&thread->rng));
		trace(file, "write mapped", offset, length);
		memcpy(map + offset, file->model + offset, length);
		if (rng_below(&thread->rng, 2) &&
		    msync(map, file->size, MS_SYNC) < 0)
			stress_fail(thread, "%s: msync: %s", file->path,
				    strerror(errno));
	}
	munmap(map, file->size);
}

/* Both ends' parity decides between sharing whole pages and copying bytes. */
static void do_copy(struct stress_thread *thread, struct own_file *to)
{
	struct own_file *from =
		&thread->own->file[rng_below(&thread->rng, OWN_FILES)];
	uint64_t source, target;
	size_t length, done = 0;

	if (from == to || from->size == 0)
		return;
	place(thread, to, &target, &length);
	source = rng_below(&thread->rng, from->size);
	if (rng_below(&thread->rng, 2)) {
		source &= ~(STRESS_PAGE - 1ul);
		target &= ~(STRESS_PAGE - 1ul);
	}
	if (length > from->size - source)
		length = from->size - source;
	if (length > OWN_MAX - target)
		length = OWN_MAX - target;
	trace(to, "copy", target, length);
	while (done < length) {
		off_t in = source + done, out = target + done;
		ssize_t n = copy_file_range(from->fd, &in, to->fd, &out,
					    length - done, 0);

		if (n <= 0)
			stress_fail(thread,
				    "%s: copy %#zx bytes from %s at %#lx to "
				    "%#lx: %s after %#zx",
				    to->path, length, from->path, source,
				    target, n ? strerror(errno) : "end of file",
				    done);
		done += n;
	}
	memmove(to->model + target, from->model + source, length);
	grow(to, target + length);
}

static void do_rename(struct stress_thread *thread, struct own_file *file)
{
	char path[STRESS_PATH];

	if (file->unlinked)
		return;
	new_name(thread, file, path);
	trace(file, "rename", 0, 0);
	if (rename(file->path, path) < 0)
		stress_fail(thread, "rename %s to %s: %s", file->path, path,
			    strerror(errno));
	if (access(file->path, F_OK) == 0 || errno != ENOENT)
		stress_fail(thread, "%s: is still there", file->path);
	strcpy(file->path, path);
}

static void do_link(struct stress_thread *thread, struct own_file *file)
{
	char path[STRESS_PATH];
	struct stat st;

	if (file->unlinked)
		return;
	new_name(thread, file, path);
	if (link(file->path, path) < 0)
		stress_fail(thread, "link %s to %s: %s", file->path, path,
			    strerror(errno));
	if (stat(path, &st) < 0 || st.st_nlink != 2 ||
	    (size_t)st.st_size != file->size)
		stress_fail(thread, "%s: nlink %lu size %#lx, not 2 and %#zx",
			    path, st.st_nlink, st.st_size, file->size);
	if (unlink(file->path) < 0)
		stress_fail(thread, "unlink %s: %s", file->path,
			    strerror(errno));
	strcpy(file->path, path);
}

/* From here on the file lives by its descriptor; or, if it did, is gone. */
static void do_delete(struct stress_thread *thread, struct own_file *file)
{
	if (!file->unlinked) {
		trace(file, "unlink", 0, 0);
		if (unlink(file->path) < 0)
			stress_fail(thread, "unlink %s: %s", file->path,
				    strerror(errno));
		file->unlinked = true;
	}
	if (rng_below(&thread->rng, 2))
		return;
	verify(thread, file);
	close(file->fd);
	create(thread, file);
}

static void do_reopen(struct stress_thread *thread, struct own_file *file)
{
	if (rng_below(&thread->rng, 4) == 0 && fsync(file->fd) < 0)
		stress_fail(thread, "%s: fsync: %s", file->path,
			    strerror(errno));
	if (file->unlinked)
		return;
	if (close(file->fd) < 0)
		stress_fail(thread, "%s: close: %s", file->path,
			    strerror(errno));
	open_file(thread, file, 0);
	trace(file, file->direct ? "reopen direct" : "reopen", 0, 0);
}

static void do_forget_cache(struct stress_thread *thread, struct own_file *file)
{
	trace(file, "drop cache", 0, 0);
	fdatasync(file->fd);
	posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
	check_size(thread, file);
}

void own_step(struct stress_thread *thread)
{
	struct own_file *file =
		&thread->own->file[rng_below(&thread->rng, OWN_FILES)];
	unsigned int chance = rng_below(&thread->rng, 100);

	if (chance < 35)
		do_write(thread, file);
	else if (chance < 58)
		do_read(thread, file);
	else if (chance < 65)
		do_truncate(thread, file);
	else if (chance < 74)
		do_fallocate(thread, file);
	else if (chance < 80)
		do_map(thread, file);
	else if (chance < 84)
		do_copy(thread, file);
	else if (chance < 87)
		do_rename(thread, file);
	else if (chance < 89)
		do_link(thread, file);
	else if (chance < 91)
		do_delete(thread, file);
	else if (chance < 95)
		do_reopen(thread, file);
	else if (chance < 98)
		do_forget_cache(thread, file);
	else
		verify(thread, file);
}

void own_start(struct stress_thread *thread)
{
	char path[STRESS_PATH];
	unsigned int i;

	thread->own = calloc(1, sizeof(*thread->own));
	if (!thread->own)
		stress_fail(thread, "out of memory");
	snprintf(path, sizeof(path), "%s/own-%u", stress.directory,
		 thread->number);
	if (mkdir(path, 0755) < 0)
		stress_fail(thread, "mkdir %s: %s", path, strerror(errno));
	strcat(path, "/sub");
	if (mkdir(path, 0755) < 0)
		stress_fail(thread, "mkdir %s: %s", path, strerror(errno));
	for (i = 0; i < OWN_FILES; i++) {
		struct own_file *file = &thread->own->file[i];

		file->model = malloc(OWN_MAX);
		if (!file->model)
			stress_fail(thread, "out of memory");
		create(thread, file);
	}
}

void own_finish(struct stress_thread *thread)
{
	unsigned int i;

	for (i = 0; i < OWN_FILES; i++) {
		struct own_file *file = &thread->own->file[i];

		do_forget_cache(thread, file);
		verify(thread, file);
		close(file->fd);
		free(file->model);
	}
	free(thread->own);
}
