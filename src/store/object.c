/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * object.c - the count word of a slot, and the encoding of references
 *
 * Owns no memory and takes no lock. Orderings: pinning acquires (what the
 * object's maker or mover wrote is seen), unpinning and releasing are
 * acquire-release (whoever frees sees that all others are done). Pinning is
 * sequentially consistent, because a reader then looks at its cell again: the
 * pin must be visible before that look, as a writer's change of the cell is
 * before its release of the old object.
 */
#include <sched.h>
#include <time.h>

#include "store/object.h"

#include "fault.h"

static inline void spin_hint(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

/* A mover holds the word for less than a microsecond, unless preempted. */
static void wait_for_mover(unsigned int *rounds)
{
	const struct timespec nap = {.tv_nsec = 50000};

	if (++*rounds < 64)
		spin_hint();
	else if (*rounds < 256)
		sched_yield();
	else
		nanosleep(&nap, NULL);
}

bool object_pin(struct object *object)
{
	uint64_t count =
		atomic_load_explicit(&object->count, memory_order_relaxed);
	unsigned int rounds = 0;

	for (;;) {
		if (!object_references(count))
			return false;
		if (count & OBJECT_MOVING) {
			wait_for_mover(&rounds);
			count = atomic_load_explicit(&object->count,
						     memory_order_relaxed);
			continue;
		}
		if (atomic_compare_exchange_weak_explicit(
			    &object->count, &count, count + OBJECT_PIN,
			    memory_order_seq_cst, memory_order_relaxed))
			return true;
	}
}

bool object_unpin(struct object *object)
{
	return atomic_fetch_sub_explicit(&object->count, OBJECT_PIN,
					 memory_order_acq_rel) == OBJECT_PIN;
}

bool object_pin_to_reference(struct object *object)
{
	uint64_t count =
		atomic_load_explicit(&object->count, memory_order_relaxed);

	/* The pin keeps movers out, so there is nothing to wait for. */
	do {
		if (object_references(count) == UINT32_MAX)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&object->count, &count, count - OBJECT_PIN + OBJECT_REFERENCE,
		memory_order_acq_rel, memory_order_relaxed));
	return true;
}

bool object_release(struct object *object)
{
	uint64_t count =
		atomic_load_explicit(&object->count, memory_order_relaxed);
	unsigned int rounds = 0;

	for (;;) {
		if (count & OBJECT_MOVING) {
			wait_for_mover(&rounds);
			count = atomic_load_explicit(&object->count,
						     memory_order_relaxed);
			continue;
		}
		if (atomic_compare_exchange_weak_explicit(
			    &object->count, &count, count - OBJECT_REFERENCE,
			    memory_order_acq_rel, memory_order_relaxed))
			return count == OBJECT_REFERENCE;
	}
}

uint32_t object_release_pinned(struct object *object)
{
	/* The pin keeps movers out, and the object from being freed. */
	return object_references(atomic_fetch_sub_explicit(
		       &object->count, OBJECT_REFERENCE,
		       memory_order_acq_rel)) -
	       1;
}

bool object_move(struct object *object, unsigned int own)
{
	uint64_t count =
		atomic_load_explicit(&object->count, memory_order_relaxed);

	/* Without references it is dying: whoever unpins last frees it. */
	if (!object_references(count) || count & OBJECT_MOVING ||
	    object_pins(count) != own)
		return false;
	return atomic_compare_exchange_strong_explicit(
		&object->count, &count,
		(count - own * OBJECT_PIN) | OBJECT_MOVING,
		memory_order_acq_rel, memory_order_relaxed);
}

void object_moved(struct object *object, uint64_t location)
{
	fault_point("object to be moved");
	atomic_store_explicit(&object->location, location,
			      memory_order_release);
	fault_point("object moved");
	/* Nobody else changes the word while it says moving. */
	atomic_fetch_and_explicit(&object->count, ~OBJECT_MOVING,
				  memory_order_release);
}

/*
 * The lowest bit: an object, its number above. Else the low three bits: 2 a
 * word that is 29 bits sign-extended, 4 a repeated 32-bit word that is, 6 a
 * repeated word of 16 bits. Zero, all ones, and every pattern of one or two
 * bytes fit.
 */
enum word_form {
	WORD_SMALL = 2,
	WORD_REPEATED_SMALL = 4,
	WORD_REPEATED_SHORT = 6
};

#define WORD_SHIFT 3
#define WORD_FORM  ((1u << WORD_SHIFT) - 1)

static bool fits(int64_t word)
{
	return word >> (31 - WORD_SHIFT) == word >> 63;
}

store_ref reference_to_word(uint64_t word)
{
	uint32_t low = (uint32_t)word;

	if (fits((int64_t)word))
		return low << WORD_SHIFT | WORD_SMALL;
	if (word >> 32 != low)
		return 0;
	if (fits((int32_t)low))
		return low << WORD_SHIFT | WORD_REPEATED_SMALL;
	if (low >> 16 == (low & UINT16_MAX))
		return (low & UINT16_MAX) << WORD_SHIFT | WORD_REPEATED_SHORT;
	return 0;
}

enum reference_kind reference_decode(store_ref ref, uint64_t *value)
{
	int64_t small = (int32_t)ref >> WORD_SHIFT;

	if (ref & 1) {
		*value = ref >> 1;
		return REFERENCE_OBJECT;
	}
	switch (ref & WORD_FORM) {
	case WORD_SMALL:
		*value = (uint64_t)small;
		return REFERENCE_WORD;
	case WORD_REPEATED_SMALL:
		*value = (uint32_t)small * UINT64_C(0x100000001);
		return REFERENCE_WORD;
	case WORD_REPEATED_SHORT:
		*value = (ref >> WORD_SHIFT & UINT16_MAX) *
			 UINT64_C(0x1000100010001);
		return REFERENCE_WORD;
	default:
		*value = 0;
		return REFERENCE_HOLE;
	}
}
