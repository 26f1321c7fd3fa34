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
 * The low two bits: 1 an object, 2 a word that is 62 bits sign-extended, 3 a
 * repeated 32-bit word. Zero, all ones, and every pattern of 1, 2 or 4 bytes
 * fit.
 */
store_ref reference_to_word(uint64_t word)
{
	if ((uint64_t)((int64_t)(word << 2) >> 2) == word)
		return word << 2 | 2;
	if (word >> 32 == (word & UINT32_MAX))
		return (word & UINT32_MAX) << 2 | 3;
	return 0;
}

enum reference_kind reference_decode(store_ref ref, uint64_t *value)
{
	switch (ref & 3) {
	case 1:
		*value = ref >> 2;
		return REFERENCE_OBJECT;
	case 2:
		*value = (uint64_t)((int64_t)ref >> 2);
		return REFERENCE_WORD;
	case 3:
		*value = (ref >> 2 & UINT32_MAX) * UINT64_C(0x100000001);
		return REFERENCE_WORD;
	default:
		*value = 0;
		return REFERENCE_HOLE;
	}
}
