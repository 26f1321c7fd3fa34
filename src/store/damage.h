/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * damage.h - a stored page with a bit flipped, for tests
 *
 * In test builds only (make FAULTS=1).
 */
#ifndef ZRAMFS_DAMAGE_H
#define ZRAMFS_DAMAGE_H

#include "store/store.h"

/*
 * Flip a bit in the middle of the bytes that are stored for what the cell
 * names, wherever they are. -ENOENT: a hole or a repeated word, which has none.
 */
int store_damage(struct store *store, const store_cell *cell);

#endif
