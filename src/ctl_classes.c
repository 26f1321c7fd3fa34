/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ctl_classes.c - see ctl_classes.h
 */
#include "ctl_classes.h"

#include <inttypes.h>

#define GROUPS 5

void ctl_classes_head(FILE *out)
{
	fprintf(out,
		"%5s %8s %8s %8s %8s %8s %10s %10s %9s %10s %9s\n"
		"%5s %8s %8s %8s %8s %8s %10s %10s %9s %10s %9s\n",
		"", "zspages:", "", "", "", "", "objects:", "", "pages:", "per",
		"", "size", "empty", "low", "medium", "high", "full",
		"allocated", "used", "used", "zspage", "freeable");
}

/* What follows the size; 0 pages to a zspage: they differ. */
static void counts(FILE *out, const struct control_class *class)
{
	unsigned int i;

	for (i = 0; i < GROUPS; i++)
		fprintf(out, " %8" PRIu64, class->zspages[i]);
	fprintf(out, " %10" PRIu64 " %10" PRIu64 " %9" PRIu64,
		class->objects_allocated, class->objects_used,
		class->pages_used);
	if (class->pages_per_zspage)
		fprintf(out, " %10" PRIu32, class->pages_per_zspage);
	else
		fprintf(out, " %10s", "-");
	fprintf(out, " %9" PRIu64 "\n", class->pages_freeable);
}

void ctl_classes_row(FILE *out, const struct control_class *class)
{
	fprintf(out, "%5" PRIu32, class->size);
	counts(out, class);
}

void ctl_classes_sum(FILE *out, const struct control_class *sum)
{
	fprintf(out, "%5s", "all");
	counts(out, sum);
}

void ctl_classes_add(struct control_class *sum,
		     const struct control_class *class)
{
	unsigned int i;

	for (i = 0; i < GROUPS; i++)
		sum->zspages[i] += class->zspages[i];
	sum->objects_allocated += class->objects_allocated;
	sum->objects_used += class->objects_used;
	sum->pages_used += class->pages_used;
	sum->pages_freeable += class->pages_freeable;
}
