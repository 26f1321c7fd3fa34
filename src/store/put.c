/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * put.c - from a page to a reference
 *
 * Owns the making of objects. It may not know what a cell belongs to.
 *
 * An object is made complete (bytes, checksum, location) before its count says
 * that it has a reference; store.c frees it in the reverse order, after it can
 * no longer be found.
 */
#include <errno.h>
#include <string.h>

#include "store/store_private.h"

/* How often a writer at the limit makes room and tries again. */
#define RELIEF_ATTEMPTS 8
/* How often a writer that lost a race for the same new page looks again. */
#define TWIN_ATTEMPTS 3

/* So many pages are looked at before the first of them is put. */
#define PUT_AHEAD 16

/* What is known of a page that is to be put. */
struct page_ahead {
	bool one_word;
	uint32_t checksum; /* if it is not */
	uint64_t word;	   /* if it is */
};

/* A page to put lies in somebody's buffer, anywhere. */
typedef uint64_t unaligned_word __attribute__((aligned(1)));

/* Cheap to refuse: most pages differ in their first or last words. */
static bool page_is_one_word(const void *page, uint64_t *word)
{
	const unaligned_word *words = page;
	const unsigned int count = PAGE_SIZE / sizeof(*words);
	unsigned int i;

	*word = words[0];
	if (words[count - 1] != *word || words[1] != *word)
		return false;
	for (i = 0; i < count; i += 8) {
		uint64_t differs = 0;
		unsigned int k;

		for (k = 0; k < 8; k++)
			differs |= words[i + k] ^ *word;
		if (differs)
			return false;
	}
	return true;
}

/*
 * Whoever fills a page with a word often fills the next one with it too. One
 * more reference to the fill object made last, if it is of this word and lives.
 */
static bool share_last_fill(struct store *store, uint64_t word, uint32_t *slot)
{
	struct object *object;

	*slot = atomic_load_explicit(&store->last_fill, memory_order_relaxed);
	if (*slot == SLAB_NONE)
		return false;
	object = slab_address(store->objects, *slot);
	if (!object_pin(object))
		return false;
	if (store_is_fill(object) && object->word == word &&
	    object_pin_to_reference(object))
		return true;
	if (object_unpin(object))
		store_free_object(store, *slot, object);
	return false;
}

static int make_fill(struct store *store, uint64_t word, uint32_t *slot)
{
	struct object *object;
	int ret = slab_alloc(store->objects, sizeof(*object), 0, slot);

	if (ret)
		return ret;
	object = slab_address(store->objects, *slot);
	object->word = word;
	atomic_store_explicit(&object->location,
			      location_pack(OBJECT_FILL, 0, 0, 0),
			      memory_order_relaxed);
	/* Release: whoever pins it sees the word. */
	atomic_store_explicit(&object->count, OBJECT_REFERENCE,
			      memory_order_release);
	atomic_store_explicit(&store->last_fill, *slot, memory_order_relaxed);
	return 0;
}

int store_fill(struct store *store, uint64_t word, store_ref *ref)
{
	uint32_t slot;
	int ret;

	*ref = reference_to_word(word);
	if (!*ref) {
		if (!share_last_fill(store, word, &slot)) {
			ret = make_fill(store, word, &slot);
			if (ret)
				return ret;
		}
		*ref = reference_to_object(slot);
	}
	store_count(store, COUNT_FILL_REFERENCES, 1);
	return 0;
}

/*
 * Compress the oldest pages together, as the background does, and with its
 * lock: who waits until it stands still waits for this, too.
 */
static bool make_room(struct store *store, struct store_thread *thread)
{
	bool made;

	if (pthread_rwlock_tryrdlock(&store->work_lock))
		return false;
	made = compress_hot(store, thread, store->cluster_pages, 0, NULL);
	pthread_rwlock_unlock(&store->work_lock);
	return made;
}

/* Room in the hot tier. -EAGAIN, -ENOSPC as hot_take_frame(). */
static int take_frame(struct store *store, struct store_thread *thread,
		      unsigned int flags, uint32_t *frame)
{
	int ret = hot_take_frame(&store->hot, flags, frame);

	/* A page that is compressed alone is in no cluster. */
	if (ret == -EAGAIN && store->cluster_pages > 1 &&
	    make_room(store, thread))
		ret = hot_take_frame(&store->hot, flags, frame);
	return ret;
}

/* The page's first home: a hot frame, or the pool. -ENOSPC at the limit. */
static int place_page(struct store *store, struct store_thread *thread,
		      const void *page, uint32_t slot, unsigned int flags,
		      uint64_t *location)
{
	uint32_t frame;
	int ret;

	ret = take_frame(store, thread, flags, &frame);
	if (!ret) {
		memcpy(hot_page(&store->hot, frame), page, PAGE_SIZE);
		*location = location_pack(OBJECT_HOT, 0, PAGE_SIZE, frame);
		return 0;
	}
	ret = compress_page(store, thread, page, slot, flags, location);
	if (!ret)
		store_count(store, COUNT_WRITER_COMPRESSIONS, 1);
	return ret;
}

static int make_object(struct store *store, struct store_thread *thread,
		       const void *page, uint32_t checksum, unsigned int flags,
		       uint32_t *slot)
{
	struct object *object;
	unsigned int attempt = 0;
	uint64_t location;
	int ret;

	while ((ret = slab_alloc(store->objects, sizeof(*object), flags,
				 slot)) == -ENOSPC &&
	       attempt++ < RELIEF_ATTEMPTS && compress_relieve(store, thread))
		;
	if (ret)
		return ret;
	while ((ret = place_page(store, thread, page, *slot, flags,
				 &location)) == -ENOSPC &&
	       attempt++ < RELIEF_ATTEMPTS && compress_relieve(store, thread))
		;
	if (ret) {
		slab_free(store->objects, *slot);
		return ret;
	}
	object = slab_address(store->objects, *slot);
	object->checksum = checksum;
	atomic_store_explicit(&object->location, location,
			      memory_order_relaxed);
	/* Release: whoever pins it sees all of the above. */
	atomic_store_explicit(&object->count, OBJECT_REFERENCE,
			      memory_order_release);
	return 0;
}

/* An object of one's own that nobody else has seen. */
static void unmake_object(struct store *store, uint32_t slot)
{
	struct object *object = slab_address(store->objects, slot);

	atomic_store_explicit(&object->count, 0, memory_order_relaxed);
	store_free_place(store, object);
	slab_free(store->objects, slot);
}

static void object_made(struct store *store, uint32_t slot)
{
	struct object *object = slab_address(store->objects, slot);
	struct location at = location_unpack(
		atomic_load_explicit(&object->location, memory_order_relaxed));

	store_count(store, COUNT_OBJECTS, 1);
	if (at.type == OBJECT_HOT) {
		hot_enqueue(&store->hot, (uint32_t)at.handle, slot,
			    store_clock(), false);
		store_wake(store);
	}
}

/* -EAGAIN: an equal page may have been made meanwhile. */
static int put_new(struct store *store, struct store_thread *thread,
		   const void *page, uint32_t checksum, unsigned int flags,
		   uint32_t head, bool last_attempt, uint32_t *slot)
{
	int ret = make_object(store, thread, page, checksum, flags, slot);

	if (ret)
		return ret;
	while (store->index && !dedup_insert(store, *slot, checksum, head)) {
		if (!last_attempt) {
			unmake_object(store, *slot);
			return -EAGAIN;
		}
		head = dedup_head(store, checksum);
	}
	object_made(store, *slot);
	return 0;
}

static int put_page(struct store *store, struct store_thread *thread,
		    const void *page, uint32_t checksum, unsigned int flags,
		    store_ref *ref)
{
	unsigned int attempt = 0;
	uint32_t slot, head = SLAB_NONE;
	int ret;

	do {
		if (store->index &&
		    dedup_find(store, thread, page, checksum, &slot, &head))
			ret = 0;
		else
			ret = put_new(store, thread, page, checksum, flags,
				      head, attempt + 1 >= TWIN_ATTEMPTS,
				      &slot);
	} while (ret == -EAGAIN && ++attempt < TWIN_ATTEMPTS);
	if (ret)
		return ret;
	store_count(store, COUNT_OBJECT_REFERENCES, 1);
	*ref = reference_to_object(slot);
	return 0;
}

int store_put(struct store *store, const void *page, unsigned int flags,
	      store_ref *ref)
{
	uint64_t word;

	store_count(store, COUNT_PUTS, 1);
	if (page_is_one_word(page, &word))
		return store_fill(store, word, ref);
	return put_page(store, store_thread(store), page,
			store_checksum(store, page), flags, ref);
}

/*
 * What the index has for a page is seldom in the processor's cache: it is
 * fetched while the checksums of the pages after it are computed.
 */
static void look_ahead(struct store *store, const char *pages, unsigned int nr,
		       struct page_ahead *ahead)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		const char *page = pages + (size_t)i * PAGE_SIZE;

		ahead[i].one_word = page_is_one_word(page, &ahead[i].word);
		if (ahead[i].one_word)
			continue;
		ahead[i].checksum = store_checksum(store, page);
		if (store->index)
			index_prefetch(store->index, ahead[i].checksum);
	}
	for (i = 0; i < nr && store->index; i++)
		if (!ahead[i].one_word)
			index_prefetch_first(store->index, ahead[i].checksum);
}

int store_put_all(struct store *store, const void *pages, unsigned int nr,
		  unsigned int flags, store_ref *ref)
{
	struct store_thread *thread = store_thread(store);
	struct page_ahead ahead[PUT_AHEAD];
	unsigned int i, in_batch, batch;
	int ret = 0;

	store_count(store, COUNT_PUTS, nr);
	for (i = 0; !ret && i < nr; i++) {
		const char *page = (const char *)pages + (size_t)i * PAGE_SIZE;

		in_batch = i % PUT_AHEAD;
		batch = nr - i < PUT_AHEAD ? nr - i : PUT_AHEAD;
		if (!in_batch)
			look_ahead(store, page, batch, ahead);
		if (ahead[in_batch].one_word)
			ret = store_fill(store, ahead[in_batch].word, &ref[i]);
		else
			ret = put_page(store, thread, page,
				       ahead[in_batch].checksum, flags,
				       &ref[i]);
	}
	return ret;
}
