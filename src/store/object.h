/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * object.h - a slot of the object table, and references to it
 *
 * A slot is 24 bytes in the OBJECTS slab. Its *location* word says where the
 * page is and how it is stored; its *count* word says who holds on to it:
 *
 *   references  cells that name the object
 *   pins        readers that look at its bytes right now
 *   moving      its bytes are being moved; set only while there are no pins
 *
 * All three are in one word, so that each change sees the others:
 *
 *   - a slot with references 0 cannot be pinned by number; it is dead or dying
 *   - whoever takes the word to 0 (nothing left of the three) frees the object
 *   - while moving is set nobody else changes the word: they wait. A mover
 *     holds it for one copy of at most a page and calls nothing meanwhile.
 *
 * A slot's memory stays mapped when it is free, and its count then reads 0,
 * so that a slot number that went stale can be tried harmlessly.
 */
#ifndef ZRAMFS_OBJECT_H
#define ZRAMFS_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

struct object {
	_Atomic uint64_t location;
	_Atomic uint64_t count;
	union {
		struct {
			uint32_t checksum; /* of the uncompressed page */
			uint32_t link;	   /* dedup index's chain */
		};
		uint64_t word; /* of a fill object */
	};
};

_Static_assert(sizeof(struct object) == 24, "arena layout");

/* --- location ---------------------------------------------------------- */

enum object_type {
	OBJECT_FREE = 0,
	OBJECT_HOT = 1,	 /* handle: page of the HOT region */
	OBJECT_POOL = 2, /* handle: the pool's */
	OBJECT_FILL = 3,   /* word, in the slot itself */
	OBJECT_MEMBER = 4, /* handle: a cluster; length: place in it */
	OBJECT_CLUSTER = 5 /* no page, but a cluster: see cluster.h */
};

struct location {
	enum object_type type;
	unsigned int codec;  /* CODEC_NONE and PAGE_SIZE long: a huge page */
	unsigned int length; /* bytes stored */
	uint64_t handle;
};

static inline uint64_t location_pack(enum object_type type, unsigned int codec,
				     unsigned int length, uint64_t handle)
{
	return (uint64_t)type | (uint64_t)codec << 3 | (uint64_t)length << 7 |
	       handle << 20;
}

static inline struct location location_unpack(uint64_t word)
{
	return (struct location){
		.type = word & 7,
		.codec = word >> 3 & 15,
		.length = word >> 7 & 8191,
		.handle = word >> 20,
	};
}

/* --- count ------------------------------------------------------------- */

#define OBJECT_REFERENCE UINT64_C(1)
#define OBJECT_PIN	 (UINT64_C(1) << 32)
#define OBJECT_MOVING	 (UINT64_C(1) << 63)

static inline uint32_t object_references(uint64_t count)
{
	return (uint32_t)count;
}

static inline uint32_t object_pins(uint64_t count)
{
	return (uint32_t)(count >> 32 & INT32_MAX);
}

/* Pin; false when the object has no references. May wait for a mover. */
bool object_pin(struct object *object);

/* True when that was the last of it: the caller must free the object. */
bool object_unpin(struct object *object) __attribute__((warn_unused_result));

/* Turn one's pin into a reference. False when there are too many. */
bool object_pin_to_reference(struct object *object);

/* Give up a reference. True when the caller must free the object. */
bool object_release(struct object *object) __attribute__((warn_unused_result));

/* Give up a reference while one has a pin: how many there are still. */
uint32_t object_release_pinned(struct object *object);

/*
 * Begin to move: true when nobody but the caller has pins (own: how many are
 * the caller's, which are gone then). Never waits. End it with object_moved().
 */
bool object_move(struct object *object, unsigned int own);

/* Publish the new location and let everybody go on. */
void object_moved(struct object *object, uint64_t location);

/* --- references -------------------------------------------------------- */

enum reference_kind {
	REFERENCE_HOLE,
	REFERENCE_OBJECT,
	REFERENCE_WORD
};

/* Of 32 bits one says that the others are a slot's number. */
#define REFERENCE_SLOTS (UINT64_C(1) << 31)

static inline store_ref reference_to_object(uint32_t slot)
{
	return slot << 1 | 1;
}

/* 0 when the word does not fit: it needs a fill object. */
store_ref reference_to_word(uint64_t word);

/* What a reference is; the slot or the word goes to *value. */
enum reference_kind reference_decode(store_ref ref, uint64_t *value);

#endif
