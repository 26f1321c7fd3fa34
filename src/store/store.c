/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * store.c - put, read, share and drop
 *
 * Owns the life of objects from their making to their freeing. It may not
 * know what a cell belongs to. Where a page goes next is compress.c's
 * business, and finding equal ones dedup.c's; see store.h for the whole.
 *
 * An object is made complete (bytes, checksum, location) before its count says
 * that it has a reference; it is freed in the reverse order, after it can no
 * longer be found.
 */
#include <errno.h>
#include <string.h>

#include <xxhash.h>
/* The library's choice of the processor's widest vectors: 2.5 times as fast. */
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#endif

#include "log.h"
#include "store/store_private.h"

/* How often a writer at the limit makes room and tries again. */
#define RELIEF_ATTEMPTS 8
/* How often a writer that lost a race for the same new page looks again. */
#define TWIN_ATTEMPTS 3

uint32_t store_checksum(const struct store *store, const void *page)
{
	return (uint32_t)XXH3_64bits_withSeed(page, PAGE_SIZE,
					      store->root->seed);
}

struct object *store_object(const struct store *store, uint64_t slot)
{
	unsigned int offset = (slot & ((1u << SLAB_SHIFT) - 1))
			      << SLAB_UNIT_SHIFT;

	if (!slot || slot >= store->slots || offset % sizeof(struct object) ||
	    offset + sizeof(struct object) > PAGE_SIZE)
		return NULL;
	return slab_address(store->objects, (uint32_t)slot);
}

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

int store_fill(struct store *store, uint64_t word, store_ref *ref)
{
	struct object *object;
	uint32_t slot;
	int ret;

	*ref = reference_to_word(word);
	if (!*ref) {
		ret = slab_alloc(store->objects, sizeof(*object), 0, &slot);
		if (ret)
			return ret;
		object = slab_address(store->objects, slot);
		object->word = word;
		atomic_store_explicit(&object->location,
				      location_pack(OBJECT_FILL, 0, 0, 0),
				      memory_order_relaxed);
		/* Release: whoever pins it sees the word. */
		atomic_store_explicit(&object->count, OBJECT_REFERENCE,
				      memory_order_release);
		*ref = reference_to_object(slot);
	}
	store_count(store, COUNT_FILL_REFERENCES, 1);
	return 0;
}

/* The page's first home: a hot frame, or the pool. -ENOSPC at the limit. */
static int place_page(struct store *store, struct store_thread *thread,
		      const void *page, uint32_t slot, unsigned int flags,
		      uint64_t *location)
{
	uint32_t frame;
	int ret;

	ret = hot_take_frame(&store->hot, flags, &frame);
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

/* Where an object's bytes are goes back to its giver. */
static void free_place(struct store *store, struct object *object)
{
	uint64_t word =
		atomic_load_explicit(&object->location, memory_order_acquire);
	struct location at = location_unpack(word);

	atomic_store_explicit(&object->location, 0, memory_order_relaxed);
	if (at.type == OBJECT_HOT) {
		hot_dequeue(&store->hot, (uint32_t)at.handle);
		hot_give_frame(&store->hot, (uint32_t)at.handle);
	} else if (at.type == OBJECT_POOL) {
		compress_undo(store, word);
	}
	housekeeping_freed(store, at.length);
}

void store_free_object(struct store *store, uint32_t slot,
		       struct object *object)
{
	struct location at = location_unpack(
		atomic_load_explicit(&object->location, memory_order_acquire));

	if (at.type != OBJECT_FILL) {
		if (store->index)
			dedup_remove(store, slot, object->checksum);
		store_count(store, COUNT_OBJECTS, -1);
	}
	free_place(store, object);
	slab_free(store->objects, slot);
}

/* An object of one's own that nobody else has seen. */
static void unmake_object(struct store *store, uint32_t slot)
{
	struct object *object = slab_address(store->objects, slot);

	atomic_store_explicit(&object->count, 0, memory_order_relaxed);
	free_place(store, object);
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

int store_put(struct store *store, const void *page, unsigned int flags,
	      store_ref *ref)
{
	struct store_thread *thread = store_thread(store);
	unsigned int attempt = 0;
	uint32_t checksum, slot, head = SLAB_NONE;
	uint64_t word;
	int ret;

	store_count(store, COUNT_PUTS, 1);
	if (page_is_one_word(page, &word))
		return store_fill(store, word, ref);

	checksum = store_checksum(store, page);
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

/*
 * Pin what a cell names. 1: an object, pinned; 0: a word or hole, in *value;
 * -EIO: the cell names nothing that lives. *ref is what the cell held.
 */
static int pin_cell(struct store *store, const store_cell *cell, store_ref *ref,
		    uint64_t *value, struct object **object)
{
	for (;;) {
		/* Acquire: what the reference's giver wrote is seen. */
		*ref = atomic_load_explicit(cell, memory_order_acquire);
		if (reference_decode(*ref, value) != REFERENCE_OBJECT)
			return 0;
		*object = store_object(store, *value);
		if (*object && object_pin(*object)) {
			/*
			 * Still named after the pin was visible: it is the
			 * cell's object, and stays so while pinned.
			 */
			if (atomic_load_explicit(cell, memory_order_seq_cst) ==
			    *ref)
				return 1;
			if (object_unpin(*object))
				store_free_object(store, (uint32_t)*value,
						  *object);
			continue;
		}
		/* A cell gives up its object only after it names another. */
		if (atomic_load_explicit(cell, memory_order_seq_cst) == *ref) {
			store_count(store, COUNT_CHECKSUM_ERRORS, 1);
			log_line(LOG_ERR, "reference %#llx names no object",
				 (unsigned long long)*ref);
			return -EIO;
		}
	}
}

static void unpin(struct store *store, uint64_t slot, struct object *object)
{
	if (object_unpin(object))
		store_free_object(store, (uint32_t)slot, object);
}

static void fill_words(void *buffer, uint64_t word, unsigned int offset,
		       unsigned int length)
{
	unsigned char *bytes = buffer;

	if (word == (word & 255) * UINT64_C(0x0101010101010101)) {
		memset(buffer, (int)(word & 255), length);
		return;
	}
	for (; length && offset % sizeof(word); length--, offset++)
		*bytes++ = ((unsigned char *)&word)[offset % sizeof(word)];
	for (; length >= sizeof(word); length -= sizeof(word)) {
		memcpy(bytes, &word, sizeof(word));
		bytes += sizeof(word);
	}
	memcpy(bytes, &word, length);
}

static int check_page(struct store *store, const struct object *object,
		      const struct location *at, const void *page)
{
	if (store_checksum(store, page) == object->checksum)
		return 0;
	store_count(store, COUNT_CHECKSUM_ERRORS, 1);
	log_line(LOG_ERR,
		 "page with wrong checksum: type %d codec %u length %u",
		 at->type, at->codec, at->length);
	return -EIO;
}

static int bad_location(struct store *store, const struct location *at)
{
	store_count(store, COUNT_CHECKSUM_ERRORS, 1);
	log_line(LOG_ERR,
		 "page cannot be read: type %d codec %u length %u handle %#llx",
		 at->type, at->codec, at->length,
		 (unsigned long long)at->handle);
	return -EIO;
}

int store_read_object(struct store *store, struct store_thread *thread,
		      struct object *object, void *page)
{
	struct location at = location_unpack(
		atomic_load_explicit(&object->location, memory_order_acquire));
	const void *bytes;

	switch (at.type) {
	case OBJECT_FILL:
		fill_words(page, object->word, 0, PAGE_SIZE);
		return 0;
	case OBJECT_HOT:
		if (at.handle >= arena_capacity(store->arena, ARENA_HOT))
			return bad_location(store, &at);
		memcpy(page, hot_page(&store->hot, (uint32_t)at.handle),
		       PAGE_SIZE);
		break;
	case OBJECT_POOL:
		bytes = store->pool_ops->map(store->pool, at.handle, at.length);
		if (!bytes || !at.length || at.length > PAGE_SIZE)
			return bad_location(store, &at);
		if (at.length == PAGE_SIZE)
			memcpy(page, bytes, PAGE_SIZE);
		else if (codec_decompress(&thread->streams, at.codec, bytes,
					  at.length, page))
			return bad_location(store, &at);
		break;
	default:
		return bad_location(store, &at);
	}
	return check_page(store, object, &at, page);
}

int store_read(struct store *store, const store_cell *cell, void *buffer,
	       unsigned int offset, unsigned int length)
{
	struct store_thread *thread;
	struct object *object;
	uint64_t value;
	store_ref ref;
	int ret;

	ret = pin_cell(store, cell, &ref, &value, &object);
	if (ret < 0)
		return ret;
	if (!ret) {
		fill_words(buffer, value, offset, length);
		return 0;
	}
	thread = store_thread(store);
	if (length == PAGE_SIZE) {
		ret = store_read_object(store, thread, object, buffer);
	} else {
		ret = store_read_object(store, thread, object, thread->page);
		if (!ret)
			memcpy(buffer, thread->page + offset, length);
	}
	unpin(store, value, object);
	return ret;
}

static bool is_fill(const struct object *object)
{
	return location_unpack(atomic_load_explicit(&object->location,
						    memory_order_relaxed))
		       .type == OBJECT_FILL;
}

int store_share(struct store *store, const store_cell *cell, store_ref *ref)
{
	struct object *object;
	uint64_t value;
	bool fill = true;
	int ret;

	ret = pin_cell(store, cell, ref, &value, &object);
	if (ret < 0)
		return ret;
	if (*ref == STORE_HOLE)
		return 0;
	if (ret) {
		fill = is_fill(object);
		if (!object_pin_to_reference(object)) {
			unpin(store, value, object);
			return -EOVERFLOW;
		}
	}
	store_count(store,
		    fill ? COUNT_FILL_REFERENCES : COUNT_OBJECT_REFERENCES, 1);
	return 0;
}

void store_drop(struct store *store, store_ref ref)
{
	struct object *object;
	uint64_t value;
	bool fill;

	switch (reference_decode(ref, &value)) {
	case REFERENCE_HOLE:
		return;
	case REFERENCE_WORD:
		store_count(store, COUNT_FILL_REFERENCES, -1);
		return;
	case REFERENCE_OBJECT:
		break;
	}
	object = store_object(store, value);
	/* A reference that came from damage: what it named stays as it is. */
	if (!object || !object_references(atomic_load_explicit(
			       &object->count, memory_order_relaxed)))
		return;
	fill = is_fill(object);
	store_count(store,
		    fill ? COUNT_FILL_REFERENCES : COUNT_OBJECT_REFERENCES, -1);
	if (object_release(object))
		store_free_object(store, (uint32_t)value, object);
}

void store_page_info(struct store *store, const store_cell *cell,
		     struct store_page_info *info)
{
	struct object *object;
	struct location at;
	uint64_t value;
	store_ref ref;
	int ret;

	memset(info, 0, sizeof(*info));
	ret = pin_cell(store, cell, &ref, &value, &object);
	if (ret <= 0) {
		info->kind = ref == STORE_HOLE || ret < 0 ? STORE_KIND_HOLE
							  : STORE_KIND_FILL;
		return;
	}
	at = location_unpack(
		atomic_load_explicit(&object->location, memory_order_acquire));
	info->references = object_references(
		atomic_load_explicit(&object->count, memory_order_relaxed));
	info->codec = at.codec;
	info->length = at.length;
	if (at.type == OBJECT_FILL)
		info->kind = STORE_KIND_FILL;
	else if (at.type == OBJECT_HOT)
		info->kind = STORE_KIND_HOT;
	else if (at.length == PAGE_SIZE)
		info->kind = STORE_KIND_HUGE;
	else
		info->kind = STORE_KIND_COMPRESSED;
	unpin(store, value, object);
}
