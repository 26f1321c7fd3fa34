/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * damage.h - see store/damage.h
 */
#ifndef ZRAMFS_FS_DAMAGE_H
#define ZRAMFS_FS_DAMAGE_H

#include "fs/fs.h"

/* The same for a page of a file. Errors as fs_read(), and -ENOENT. */
int fs_damage(struct fs *fs, ino_t ino, uint64_t page);

#endif
