/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * write_pages.c - the pages of a write, until they are published
 *
 * Whole pages are made from the caller's buffer, partial ones from a base, the
 * page that is there, with the caller's bytes in it. Changes no cell.
 */
#include <string.h>

#include "fs/write.h"

static const char *write_data(const struct write *write, uint64_t index)
{
	return index == write->first ? write->buffer
				     : write->buffer + ((index << PAGE_SHIFT) -
							write->offset);
}

void write_begin(struct write *write)
{
	uint64_t index;

	write->first = write->offset >> PAGE_SHIFT;
	write->last = (write->end - 1) >> PAGE_SHIFT;
	write->nr_partial = 0;
	write->base[0] = write->base[1] = STORE_HOLE;
	for (index = write->first; index <= write->last; index++) {
		*write_ref(write, index) = STORE_HOLE;
		if (write_to(write, index) - write_from(write, index) <
		    PAGE_SIZE)
			write->partial[write->nr_partial++] = index;
	}
}

void write_drop_partial_pages(struct write *write)
{
	unsigned int i;

	for (i = 0; i < write->nr_partial; i++) {
		store_ref *ref = write_ref(write, write->partial[i]);

		store_drop(write->fs->store, *ref);
		store_drop(write->fs->store, write->base[i]);
		*ref = write->base[i] = STORE_HOLE;
	}
}

void write_drop(struct write *write)
{
	write_drop_partial_pages(write);
	store_drop_all(write->fs->store, write->ref,
		       (unsigned int)(write->last - write->first + 1));
}

int write_put_whole_pages(struct write *write)
{
	uint64_t first = write->first, last = write->last;

	/* Only the first and the last can be partial, and they may be one. */
	if (write_to(write, first) - write_from(write, first) < PAGE_SIZE)
		first++;
	if (last >= first &&
	    write_to(write, last) - write_from(write, last) < PAGE_SIZE)
		last--;
	if (first > last)
		return 0;
	return store_put_all(write->fs->store, write_data(write, first),
			     (unsigned int)(last - first + 1), 0,
			     write_ref(write, first));
}

/* cell: the base, NULL for none. */
static int put_patched_page(struct write *write, uint64_t index,
			    const store_cell *cell)
{
	_Alignas(64) char page[PAGE_SIZE];
	unsigned int from = write_from(write, index);
	int err = 0;

	if (cell)
		err = store_read(write->fs->store, cell, page, 0, PAGE_SIZE);
	else
		memset(page, 0, PAGE_SIZE);
	if (err)
		return err;
	memcpy(page + from, write_data(write, index),
	       write_to(write, index) - from);
	return store_put(write->fs->store, page, 0, write_ref(write, index));
}

int write_share_bases(struct write *write)
{
	unsigned int i;
	int err = 0;

	inode_lock_shared(write->fs, write->ino);
	for (i = 0; !err && i < write->nr_partial; i++) {
		store_cell *cell = write_cell(write, write->partial[i]);
		store_ref base = STORE_HOLE;

		if (cell)
			err = store_share(write->fs->store, cell, &base);
		if (!err)
			write->base[i] = base;
	}
	inode_unlock(write->fs, write->ino);
	return err;
}

int write_put_partial_pages(struct write *write, bool locked)
{
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < write->nr_partial; i++) {
		uint64_t index = write->partial[i];
		store_cell base = write->base[i];

		err = put_patched_page(write, index,
				       locked ? write_cell(write, index)
					      : &base);
	}
	return err;
}
