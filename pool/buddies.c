/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buddies.c - pools of a few objects to a page: allocate and free
 *
 * Theory
 *
 * A page is cut into 64 chunks. An object has a run of them, which it shares
 * with nobody, and stands at the beginning of the page, at its end, or (where
 * there are three) between the others. For a new object a page is sought whose
 * room is enough for it and not much more, *best fit*; an object too large to
 * leave a chunk to another gets a page alone.
 *
 * There are no size classes, so that nothing is lost for want of objects of
 * one size, and the first object of a pool costs one page and not twelve. But
 * a page's room is lost when no object is as small. With objects of many sizes
 * that is not much: the 32933 pages of /usr/include take 35.5 MB by lz4 in
 * zsmalloc, tables included, 36.7 in z3fold and 45.3 in zbud. With objects of
 * one size it is what is left of a page: 200 MiB of pages of which
 *
 *				  zsmalloc   z3fold	zbud
 *	75 % compress (1055 bytes)    54.5     68.6    102.1 MiB
 *	66 % compress (1425 bytes)    72.6    102.1    102.1
 *	50 % compress (2083 bytes)   106.6    202.5    202.5
 *
 * (bench/pools.py). Three objects fit up to 1340 bytes, two up to 2044.
 *
 * Truth
 *
 * A handle names the page and the chunk where an object begins; with its size,
 * which the owner keeps too, that is all there is to know. In the pages there
 * are the owners' numbers, each in its object's last chunk, and in the frames
 * their kind, written before the page's first object is given out. The rest of
 * a frame is derived:
 *
 *	inuse	    objects in use
 *	owner	    struct buddies: which, and where; or, in a whole page, the
 *		    owner's number, which is truth
 *	prev, next  circle of the pages with as many objects and as much room
 *
 * Locks
 *
 * One for each pool, which guards all of it; it is held for a search in a few
 * lists, or the moves that empty one page. The arena's lock is not taken under
 * it: pages are got before and given back after. An allocation or a free takes
 * 0.2 to 0.3 us (zsmalloc: 0.1), and to compress a page takes at least 5: ten
 * threads that compress at once are about as many as it can bear.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "arena/lock.h"
#include "pool/buddies.h"

size_t buddies_largest(const struct pool *pool)
{
	return BUDDY_LARGEST;
}

int buddies_create(struct pool **result, struct arena *arena,
		   const struct pool_owner_ops *owner_ops, void *context,
		   unsigned int per_page)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return -ENOMEM;
	pool->arena = arena;
	pool->owner_ops = owner_ops;
	pool->context = context;
	pool->per_page = per_page;
	lock_init(&pool->lock);
	for (unsigned int count = 0; count < BUDDY_SLOTS; count++)
		for (unsigned int room = 0; room < CHUNKS; room++)
			pool->lists[count].list[room] = ARENA_NIL;
	*result = pool;
	return 0;
}

void buddies_destroy(struct pool *pool)
{
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

/* In a page that is there already. */
static int alloc_existing(struct pool *pool, unsigned int chunks,
			  uint32_t owner, uint64_t *handle)
{
	uint32_t page;
	bool taken;

	pthread_mutex_lock(&pool->lock);
	page = buddies_find(pool, chunks, ARENA_NIL, ARENA_NIL);
	taken = page != ARENA_NIL &&
		buddies_take(pool, page, chunks, owner, handle);
	pthread_mutex_unlock(&pool->lock);
	return taken ? 0 : -ENOSPC;
}

static int alloc_new(struct pool *pool, unsigned int chunks, uint32_t owner,
		     unsigned int flags, uint64_t *handle)
{
	uint32_t page;
	bool taken;
	int err;

	err = buddies_page_create(pool, KIND_BUDDIES, flags, &page);
	if (err)
		return err;
	pthread_mutex_lock(&pool->lock);
	taken = buddies_take(pool, page, chunks, owner, handle);
	pthread_mutex_unlock(&pool->lock);
	assert(taken);
	return 0;
}

/* At the limit no page is passed over because another's owner refuses. */
static int alloc_anywhere(struct pool *pool, unsigned int chunks,
			  uint32_t owner, uint64_t *handle)
{
	bool taken;

	pthread_mutex_lock(&pool->lock);
	taken = buddies_take_anywhere(pool, chunks, owner, handle);
	pthread_mutex_unlock(&pool->lock);
	return taken ? 0 : -ENOSPC;
}

static int alloc_whole(struct pool *pool, uint32_t owner, unsigned int flags,
		       uint64_t *handle)
{
	struct arena_frame *frame;
	uint32_t page;
	int err;

	err = buddies_page_create(pool, KIND_WHOLE, flags, &page);
	if (err)
		return err;
	frame = pool_frame(pool->arena, page);
	frame->owner = owner;
	frame->inuse = 1;
	pthread_mutex_lock(&pool->lock);
	pool->whole++;
	pthread_mutex_unlock(&pool->lock);
	*handle = buddy_handle(page, 0);
	return 0;
}

int buddies_alloc(struct pool *pool, size_t size, uint32_t owner,
		  unsigned int flags, uint64_t *handle)
{
	unsigned int chunks;
	int err;

	if (size == 0 || size > PAGE_SIZE)
		return -EINVAL;
	flags &= ARENA_RESERVE;
	if (size > BUDDY_LARGEST)
		return alloc_whole(pool, owner, flags, handle);
	chunks = buddy_chunks(size);
	err = alloc_existing(pool, chunks, owner, handle);
	if (err)
		err = alloc_new(pool, chunks, owner, 0, handle);
	if (err)
		err = alloc_anywhere(pool, chunks, owner, handle);
	if (err && flags)
		err = alloc_new(pool, chunks, owner, flags, handle);
	return err;
}

void buddies_free(struct pool *pool, uint64_t handle, size_t size)
{
	uint32_t page = buddy_handle_page(handle);
	bool empty = true;

	assert(size > 0 && size <= PAGE_SIZE);
	pthread_mutex_lock(&pool->lock);
	if (size > BUDDY_LARGEST)
		pool->whole--;
	else
		empty = buddies_put(pool, page, buddy_handle_start(handle),
				    buddy_chunks(size));
	pthread_mutex_unlock(&pool->lock);
	if (empty)
		buddies_page_destroy(pool, page);
}

void *buddies_map(const struct pool *pool, uint64_t handle, size_t size)
{
	unsigned int start = buddy_handle_start(handle);

	assert(size <= PAGE_SIZE - start * CHUNK_SIZE);
	return buddy_chunk(pool, buddy_handle_page(handle), start);
}

void buddies_stats(const struct pool *const_pool, struct pool_stats *stats)
{
	struct pool *pool = (struct pool *)const_pool;

	pthread_mutex_lock(&pool->lock);
	*stats = (struct pool_stats){
		.objects = pool->whole,
		.object_bytes =
			pool->whole * PAGE_SIZE + pool->chunks * CHUNK_SIZE,
		.pages = pool->whole,
		.pages_compacted = pool->pages_compacted,
		.objects_moved = pool->objects_moved,
	};
	for (unsigned int count = 1; count <= pool->per_page; count++) {
		stats->objects += pool->pages[count] * count;
		stats->pages += pool->pages[count];
	}
	pthread_mutex_unlock(&pool->lock);
}

/*
 * The pages with as many objects. Their size is the most that all of them can
 * have: there are no classes here.
 */
static struct pool_class_stats row(unsigned int count, unsigned int per_page,
				   uint64_t pages)
{
	struct pool_class_stats stats = {
		.size = PAGE_SIZE / count,
		.pages_per_zspage = 1,
		.objects_per_zspage = per_page,
		.objects_allocated = pages * per_page,
		.objects_used = pages * count,
		.pages_used = pages,
	};
	unsigned int column = count == per_page		  ? 4
			      : count * 4 >= per_page * 3 ? 3
			      : count * 2 >= per_page	  ? 2
							  : 1;

	stats.zspages[column] = pages;
	return stats;
}

/* A row by number of objects; and last, as with zsmalloc, whole pages. */
unsigned int buddies_class_stats(const struct pool *const_pool,
				 struct pool_class_stats *stats)
{
	struct pool *pool = (struct pool *)const_pool;
	unsigned int nr = pool->per_page;

	pthread_mutex_lock(&pool->lock);
	for (unsigned int count = nr; count > 0; count--)
		stats[nr - count] = row(count, nr, pool->pages[count]);
	stats[nr - 1].pages_freeable = buddies_freeable(pool);
	stats[nr] = row(1, 1, pool->whole);
	pthread_mutex_unlock(&pool->lock);
	return nr + 1;
}
