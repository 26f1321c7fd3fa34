/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fault_malloc.c - allocations that fail where a test wants it: see fault.h
 *
 * Linked into the daemon of test builds only. Takes the place of the C
 * library's functions for all of the process, its libraries included, and does
 * what they do by their other names, which the GNU C library exports for this.
 * Under sanitizers, which do the same, it is not compiled.
 */
#include "fault.h"

#if defined(ZRAMFS_FAULTS) && !defined(__SANITIZE_ADDRESS__) && \
	!defined(__SANITIZE_THREAD__)

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

static bool fails(void)
{
	if (!fault_alloc())
		return false;
	errno = ENOMEM;
	return true;
}

static void *counted(void *block)
{
	if (block)
		fault_count_block(1);
	return block;
}

void *malloc(size_t size)
{
	return fails() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
	return fails() ? NULL : counted(__libc_calloc(count, size));
}

void *realloc(void *block, size_t size)
{
	void *moved;

	if (fails())
		return NULL;
	moved = __libc_realloc(block, size);
	if (!block)
		return counted(moved);
	if (!moved && !size)
		fault_count_block(-1);
	return moved;
}

void *memalign(size_t alignment, size_t size)
{
	return fails() ? NULL : counted(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
	void *block = memalign(alignment, size);

	if (!block)
		return ENOMEM;
	*result = block;
	return 0;
}

void free(void *block)
{
	if (block)
		fault_count_block(-1);
	__libc_free(block);
}

void *mmap(void *address, size_t length, int protection, int flags, int fd,
	   off_t offset)
{
	if (fails())
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, address, length, protection, flags, fd,
			       offset);
}

#endif
