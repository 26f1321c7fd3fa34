/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ctl_stat.h - a struct control_stat as text
 *
 * For people (a table, sizes in binary units), and for programs: JSON; the
 * kernel's mm_stat line; the text format of Prometheus. Key names are those of
 * struct control_stat. Write errors are the stream's: see ferror(3).
 */
#ifndef ZRAMFS_CTL_STAT_H
#define ZRAMFS_CTL_STAT_H

#include <stdio.h>

#include "control.h"

void ctl_stat_table(FILE *out, const struct control_stat *stat);

/* One object; requests is an object by opcode name, zero counts left out. */
void ctl_stat_json(FILE *out, const struct control_stat *stat);

/*
 * The nine columns of /sys/block/zramN/mm_stat, in its order and units:
 * Documentation/admin-guide/blockdev/zram.rst.
 */
void ctl_stat_mm_stat(FILE *out, const struct control_stat *stat);

/* https://prometheus.io/docs/instrumenting/exposition_formats/ */
void ctl_stat_prometheus(FILE *out, const struct control_stat *stat,
			 const char *mountpoint);

/* "1.5 GiB"; whole numbers below 1 KiB. At most 16 bytes. */
void ctl_format_size(char *text, size_t size, uint64_t bytes);

/* Lower-case, "other" for numbers that FUSE does not have. */
const char *ctl_opcode_name(unsigned int opcode);

#endif
