/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ctl_classes.h - a pool's size classes as a table
 *
 * The columns of the kernel's debugfs file zsmalloc/POOL/classes
 * (Documentation/mm/zsmalloc.rst), with zspages in five groups by how full
 * they are: empty; low, less than half; medium; high, three quarters or more;
 * full. Then a row of sums. Write errors are the stream's: see ferror(3).
 */
#ifndef ZRAMFS_CTL_CLASSES_H
#define ZRAMFS_CTL_CLASSES_H

#include <stdio.h>

#include "control.h"

/* In order: the headings; a row for each class; the sum of all rows. */
void ctl_classes_head(FILE *out);
void ctl_classes_row(FILE *out, const struct control_class *class);
void ctl_classes_sum(FILE *out, const struct control_class *sum);

/* Add a class's counts to a sum, that begins as zeros. */
void ctl_classes_add(struct control_class *sum,
		     const struct control_class *class);

#endif
