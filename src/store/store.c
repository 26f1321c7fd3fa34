/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * store.c - read, share and drop
 *
 * Owns the life of objects once they are made, to their freeing. It may not
 * know what a cell belongs to. put.c makes objects, dedup.c finds equal ones,
 * and where a page goes next is compress.c's business; see store.h for the
 * whole.
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

/* How many references before its turn one is fetched. */
#define DROP_AHEAD 4

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

void store_free_place(struct store *store, struct object *object)
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
	} else if (at.type == OBJECT_MEMBER) {
		store_count(store, COUNT_COMPRESSED, -1);
		cluster_leave(store, at.handle);
		return;
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
	} else if (atomic_load_explicit(&store->last_fill,
					memory_order_relaxed) == slot) {
		/* Nobody shall look at memory that may have been given back. */
		atomic_store_explicit(&store->last_fill, SLAB_NONE,
				      memory_order_relaxed);
	}
	store_free_place(store, object);
	slab_free(store->objects, slot);
}

/*
 * So often in a row a cell can hardly have named an object that was gone, and a
 * new one in its place just after: each time takes an ill-timed preemption.
 */
#define PIN_ATTEMPTS 100

/*
 * Pin what a cell names. 1: an object, pinned; 0: a word or hole, in *value;
 * -EIO: the cell names nothing that lives. *ref is what the cell held.
 */
static int pin_cell(struct store *store, const store_cell *cell, store_ref *ref,
		    uint64_t *value, struct object **object)
{
	unsigned int attempt = 0;

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
		/*
		 * A cell gives up its object only after it names another. The
		 * other may be in the first one's place by now, with the same
		 * reference, if this thread was not run meanwhile: then it can
		 * be pinned.
		 */
		if (atomic_load_explicit(cell, memory_order_seq_cst) != *ref) {
			attempt = 0;
		} else if (++attempt == PIN_ATTEMPTS) {
			store_count(store, COUNT_CHECKSUM_ERRORS, 1);
			log_line(LOG_ERR, "reference %#x names no object",
				 *ref);
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
					  at.length, page, PAGE_SIZE))
			return bad_location(store, &at);
		break;
	case OBJECT_MEMBER:
		if (cluster_unpack(store, thread, at.handle, at.length))
			return bad_location(store, &at);
		memcpy(page, thread->room.pages + at.length * PAGE_SIZE,
		       PAGE_SIZE);
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

bool store_is_fill(const struct object *object)
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
		fill = store_is_fill(object);
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
	fill = store_is_fill(object);
	store_count(store,
		    fill ? COUNT_FILL_REFERENCES : COUNT_OBJECT_REFERENCES, -1);
	if (object_release(object))
		store_free_object(store, (uint32_t)value, object);
}

static void prefetch_object(const struct store *store, store_ref ref)
{
	uint64_t slot;

	if (reference_decode(ref, &slot) == REFERENCE_OBJECT)
		__builtin_prefetch(store_object(store, slot));
}

/* What is held cannot change its checksum. */
static void prefetch_bucket(const struct store *store, store_ref ref)
{
	const struct object *object;
	uint64_t slot;

	if (!store->index || reference_decode(ref, &slot) != REFERENCE_OBJECT)
		return;
	object = store_object(store, slot);
	if (object)
		index_prefetch(store->index, object->checksum);
}

void store_drop_all(struct store *store, const store_ref *ref, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr && i < DROP_AHEAD; i++)
		prefetch_object(store, ref[i]);
	for (i = 0; i < nr; i++) {
		if (i + 2 * DROP_AHEAD < nr)
			prefetch_object(store, ref[i + 2 * DROP_AHEAD]);
		if (i + DROP_AHEAD < nr)
			prefetch_bucket(store, ref[i + DROP_AHEAD]);
		store_drop(store, ref[i]);
	}
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
	info->length = at.type == OBJECT_MEMBER
			       ? cluster_share(store, at.handle)
			       : at.length;
	if (at.type == OBJECT_FILL)
		info->kind = STORE_KIND_FILL;
	else if (at.type == OBJECT_HOT)
		info->kind = STORE_KIND_HOT;
	else if (at.type == OBJECT_POOL && at.length == PAGE_SIZE)
		info->kind = STORE_KIND_HUGE;
	else
		info->kind = STORE_KIND_COMPRESSED;
	unpin(store, value, object);
}
