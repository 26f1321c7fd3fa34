/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ledger.c - see ledger.h
 */
#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/answer.h"

#define LEDGER_MAGIC 0x317265676c617a7aull /* "zzalger1" */

#define LEDGER_PAGE 4096u

_Static_assert(sizeof(struct ledger_header) <= LEDGER_PAGE, "is one page");

/*
 * Those that are left when a worker dies, and as many that serve then; and some
 * more, for workers that die while they serve what was left.
 */
static unsigned int answers_for(unsigned int threads)
{
	return 2 * threads + 4;
}

static size_t answers_bytes(unsigned int threads)
{
	size_t bytes = answers_for(threads) * sizeof(struct answer);

	return (bytes + LEDGER_PAGE - 1) & ~(size_t)(LEDGER_PAGE - 1);
}

static size_t ledger_size(unsigned int threads)
{
	return LEDGER_PAGE + answers_bytes(threads) +
	       (size_t)threads * LEDGER_BUFFER_SIZE;
}

int ledger_create(unsigned int threads)
{
	struct ledger_header header = {
		.magic = LEDGER_MAGIC,
		.version = LEDGER_VERSION,
		.threads = threads,
		.answers = answers_for(threads),
	};
	int fd = memfd_create("zramfs-ledger", MFD_CLOEXEC);
	int error;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)ledger_size(threads)) < 0) {
		error = -errno;
	} else if (pwrite(fd, &header, sizeof(header), 0) != sizeof(header)) {
		error = -ENOMEM; /* of which there is too little for a page */
	} else {
		return fd;
	}
	close(fd);
	return error;
}

/*
 * What a message takes of a pipe besides its data: a page for its header, and
 * one as data need not begin where a page does.
 */
#define PIPE_BESIDES (2 * LEDGER_PAGE)

void ledger_open_pipe(int ends[2])
{
	if (!pipe2(ends, O_CLOEXEC)) {
		if (fcntl(ends[1], F_SETPIPE_SZ,
			  LEDGER_DATA_MAX + PIPE_BESIDES) > 0 ||
		    fcntl(ends[1], F_SETPIPE_SZ, LEDGER_DATA_MAX) > 0)
			return;
		close(ends[0]);
		close(ends[1]);
	}
	ends[0] = ends[1] = -1;
}

static size_t data_max(const int pipe[2])
{
	int size = pipe[0] < 0 ? 0 : fcntl(pipe[0], F_GETPIPE_SZ);

	if (size <= 0 || (size_t)size >= LEDGER_DATA_MAX + PIPE_BESIDES)
		return LEDGER_DATA_MAX;
	return (size_t)size - PIPE_BESIDES;
}

static bool is_ledger(const struct ledger_header *header, size_t size)
{
	return header->magic == LEDGER_MAGIC &&
	       header->version == LEDGER_VERSION &&
	       header->answers == answers_for(header->threads) &&
	       size == ledger_size(header->threads);
}

int ledger_map(struct ledger *ledger, int fd, const int pipe[2])
{
	struct ledger_header header;
	struct stat stat_buf;
	void *base;

	if (fstat(fd, &stat_buf) < 0)
		return -errno;
	if (pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    !is_ledger(&header, (size_t)stat_buf.st_size))
		return -EPROTO;
	*ledger = (struct ledger){
		.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3),
		.size = (size_t)stat_buf.st_size,
		.pipe = pipe,
		.data_max = data_max(pipe),
	};
	if (ledger->fd < 0)
		return -errno;
	base = mmap(NULL, ledger->size, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_NORESERVE, ledger->fd, 0);
	if (base == MAP_FAILED) {
		int error = -errno;

		close(ledger->fd);
		return error;
	}
	/* What clients write is in there; a dump is no place for it. */
	madvise(base, ledger->size, MADV_DONTDUMP);
	ledger->header = base;
	ledger->answers = (struct answer *)((char *)base + LEDGER_PAGE);
	ledger->buffers =
		(char *)base + LEDGER_PAGE + answers_bytes(header.threads);
	return 0;
}

void ledger_unmap(struct ledger *ledger)
{
	if (!ledger->header)
		return;
	munmap(ledger->header, ledger->size);
	close(ledger->fd);
	ledger->header = NULL;
}

char *ledger_buffer(const struct ledger *ledger, unsigned int thread)
{
	return ledger->buffers + (size_t)thread * LEDGER_BUFFER_SIZE;
}

void ledger_release_buffer(const struct ledger *ledger, unsigned int thread)
{
	/* Where the system cannot, the memory just stays. */
	madvise(ledger_buffer(ledger, thread) + LEDGER_PAGE,
		LEDGER_BUFFER_SIZE - LEDGER_PAGE, MADV_REMOVE);
}
