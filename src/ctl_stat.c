/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ctl_stat.c - see ctl_stat.h
 */
#include "ctl_stat.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#define KIB 1024.0

/* Of FUSE 7.38, as in <linux/fuse.h>; statx came with 7.39. */
static const char *const opcode_names[CONTROL_OPCODES] = {
	[1] = "lookup",	       [2] = "forget",	       [3] = "getattr",
	[4] = "setattr",       [5] = "readlink",       [6] = "symlink",
	[8] = "mknod",	       [9] = "mkdir",	       [10] = "unlink",
	[11] = "rmdir",	       [12] = "rename",	       [13] = "link",
	[14] = "open",	       [15] = "read",	       [16] = "write",
	[17] = "statfs",       [18] = "release",       [20] = "fsync",
	[21] = "setxattr",     [22] = "getxattr",      [23] = "listxattr",
	[24] = "removexattr",  [25] = "flush",	       [26] = "init",
	[27] = "opendir",      [28] = "readdir",       [29] = "releasedir",
	[30] = "fsyncdir",     [31] = "getlk",	       [32] = "setlk",
	[33] = "setlkw",       [34] = "access",	       [35] = "create",
	[36] = "interrupt",    [37] = "bmap",	       [38] = "destroy",
	[39] = "ioctl",	       [40] = "poll",	       [41] = "notify_reply",
	[42] = "batch_forget", [43] = "fallocate",     [44] = "readdirplus",
	[45] = "rename2",      [46] = "lseek",	       [47] = "copy_file_range",
	[48] = "setupmapping", [49] = "removemapping", [50] = "syncfs",
	[51] = "tmpfile",      [52] = "statx",
};

const char *ctl_opcode_name(unsigned int opcode)
{
	if (opcode < CONTROL_OPCODES && opcode_names[opcode])
		return opcode_names[opcode];
	return "other";
}

/* Those without a name add up to one "other". */
static uint64_t other_requests(const struct control_stat *stat)
{
	uint64_t count = 0;
	unsigned int opcode;

	for (opcode = 0; opcode < CONTROL_OPCODES; opcode++)
		if (!opcode_names[opcode])
			count += stat->requests[opcode];
	return count;
}

/* --- for programs ------------------------------------------------------ */

static const struct field {
	const char *name;
	size_t offset;
	bool counter; /* only ever grows */
} fields[] = {
#define FIELD(name, counter)                                        \
	{                                                           \
#name, offsetof(struct control_stat, name), counter \
	}
	FIELD(orig_data_size, false),
	FIELD(compr_data_size, false),
	FIELD(mem_used_total, false),
	FIELD(mem_limit, false),
	FIELD(mem_used_max, false),
	FIELD(same_pages, false),
	FIELD(pages_compacted, true),
	FIELD(huge_pages, false),
	FIELD(huge_pages_since, true),
	FIELD(stored_pages, false),
	FIELD(dedup_pages, false),
	FIELD(hot_pages, false),
	FIELD(hot_limit, false),
	FIELD(meta_bytes, false),
	FIELD(process_bytes, false),
	FIELD(compr_failed, true),
	FIELD(checksum_errors, true),
	FIELD(size, false),
	FIELD(size_used, false),
	FIELD(inodes, false),
	FIELD(inodes_used, false),
	FIELD(writer_compressions, true),
	FIELD(background_compressions, true),
	FIELD(clusters, false),
#undef FIELD
};

#define FIELDS	      (sizeof(fields) / sizeof(fields[0]))
#define MM_STAT_COUNT 9 /* of fields, from the first */

static uint64_t value_of(const struct control_stat *stat,
			 const struct field *field)
{
	return *(const uint64_t *)((const char *)stat + field->offset);
}

/* Names of codecs and pools are plain; the escapes are for a broken peer. */
static void json_string(FILE *out, const char *text, size_t size)
{
	size_t i;

	putc('"', out);
	for (i = 0; i < size && text[i]; i++) {
		if (text[i] == '"' || text[i] == '\\')
			putc('\\', out);
		if ((unsigned char)text[i] >= ' ' &&
		    (unsigned char)text[i] < 0x7f)
			putc(text[i], out);
	}
	putc('"', out);
}

void ctl_stat_json(FILE *out, const struct control_stat *stat)
{
	uint64_t other = other_requests(stat);
	const char *separator = "";
	unsigned int i;

	fputs("{\n  \"codec\": ", out);
	json_string(out, stat->codec, sizeof(stat->codec));
	fputs(",\n  \"pool\": ", out);
	json_string(out, stat->pool, sizeof(stat->pool));
	fprintf(out, ",\n  \"pid\": %" PRIu32, stat->pid);
	for (i = 0; i < FIELDS; i++)
		fprintf(out, ",\n  \"%s\": %" PRIu64, fields[i].name,
			value_of(stat, &fields[i]));
	fputs(",\n  \"requests\": {", out);
	for (i = 0; i < CONTROL_OPCODES; i++) {
		if (!opcode_names[i] || !stat->requests[i])
			continue;
		fprintf(out, "%s\n    \"%s\": %" PRIu64, separator,
			opcode_names[i], stat->requests[i]);
		separator = ",";
	}
	if (other)
		fprintf(out, "%s\n    \"other\": %" PRIu64, separator, other);
	fputs("\n  }\n}\n", out);
}

void ctl_stat_mm_stat(FILE *out, const struct control_stat *stat)
{
	unsigned int i;

	for (i = 0; i < MM_STAT_COUNT; i++)
		fprintf(out, "%s%8" PRIu64, i ? " " : "",
			value_of(stat, &fields[i]));
	putc('\n', out);
}

static void label(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n') {
			fputs("\\n", out);
			continue;
		}
		if (*text == '"' || *text == '\\')
			putc('\\', out);
		putc(*text, out);
	}
}

void ctl_stat_prometheus(FILE *out, const struct control_stat *stat,
			 const char *mountpoint)
{
	unsigned int i;

	for (i = 0; i < FIELDS; i++) {
		const char *total = fields[i].counter ? "_total" : "";

		fprintf(out, "# TYPE zramfs_%s%s %s\nzramfs_%s%s{mountpoint=\"",
			fields[i].name, total,
			fields[i].counter ? "counter" : "gauge", fields[i].name,
			total);
		label(out, mountpoint);
		fprintf(out, "\"} %" PRIu64 "\n", value_of(stat, &fields[i]));
	}
	fputs("# TYPE zramfs_requests_total counter\n", out);
	for (i = 0; i < CONTROL_OPCODES; i++) {
		if (!opcode_names[i])
			continue;
		fputs("zramfs_requests_total{mountpoint=\"", out);
		label(out, mountpoint);
		fprintf(out, "\",opcode=\"%s\"} %" PRIu64 "\n", opcode_names[i],
			stat->requests[i]);
	}
}

/* --- for people -------------------------------------------------------- */

void ctl_format_size(char *text, size_t size, uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB",
					    "TiB", "PiB", "EiB"};
	double value = bytes / KIB;
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(text, size, "%u B", (unsigned int)bytes);
		return;
	}
	/* 1023.95 would be printed as 1024.0. */
	for (; value >= 1023.95 && unit < sizeof(units) / sizeof(units[0]) - 1;
	     unit++)
		value /= KIB;
	snprintf(text, size, "%.1f %s", value, units[unit]);
}

static void size_row(FILE *out, const char *name, uint64_t bytes)
{
	char text[16];

	ctl_format_size(text, sizeof(text), bytes);
	fprintf(out, "  %-22s %12s\n", name, text);
}

static void count_row(FILE *out, const char *name, uint64_t count)
{
	fprintf(out, "  %-22s %12" PRIu64 "\n", name, count);
}

static void bound_row(FILE *out, const char *name, uint64_t bytes)
{
	if (bytes)
		size_row(out, name, bytes);
	else
		fprintf(out, "  %-22s %12s\n", name, "none");
}

/* "-" when there is no data. */
static void ratio_row(FILE *out, const char *name, uint64_t data,
		      uint64_t memory)
{
	if (data && memory)
		fprintf(out, "  %-22s %12.2f\n", name, (double)data / memory);
	else
		fprintf(out, "  %-22s %12s\n", name, "-");
}

static void memory_table(FILE *out, const struct control_stat *stat)
{
	fprintf(out, "Memory (codec %.32s, pool %.16s)\n", stat->codec,
		stat->pool);
	size_row(out, "data in files", stat->orig_data_size);
	size_row(out, "compressed to", stat->compr_data_size);
	size_row(out, "memory used in all", stat->mem_used_total);
	size_row(out, "  at most until now", stat->mem_used_max);
	size_row(out, "  tables and daemon", stat->meta_bytes);
	bound_row(out, "memory limit", stat->mem_limit);
	ratio_row(out, "ratio data / memory", stat->orig_data_size,
		  stat->mem_used_total);
	/* Without this a ratio just after writing looks like the final one. */
	if (stat->hot_pages)
		size_row(out, "  not compressed yet", stat->hot_pages * 4096);
}

static void page_table(FILE *out, const struct control_stat *stat)
{
	fputs("Pages of 4 KiB\n", out);
	count_row(out, "stored", stat->stored_pages);
	count_row(out, "  hot, not compressed", stat->hot_pages);
	count_row(out, "  huge, incompressible", stat->huge_pages);
	count_row(out, "equal to another", stat->dedup_pages);
	count_row(out, "same-filled", stat->same_pages);
	count_row(out, "freed by compaction", stat->pages_compacted);
	count_row(out, "compressed by writers", stat->writer_compressions);
	count_row(out, "  in the background", stat->background_compressions);
	if (stat->clusters)
		count_row(out, "clusters of them", stat->clusters);
	count_row(out, "checksum errors", stat->checksum_errors);
}

static void filesystem_table(FILE *out, const struct control_stat *stat)
{
	fputs("Filesystem\n", out);
	size_row(out, "used", stat->size_used);
	bound_row(out, "size", stat->size);
	bound_row(out, "hot tier's size", stat->hot_limit);
	count_row(out, "inodes used", stat->inodes_used);
	if (stat->inodes)
		count_row(out, "inodes", stat->inodes);
	else
		fprintf(out, "  %-22s %12s\n", "inodes", "no bound");
}

static void request_table(FILE *out, const struct control_stat *stat)
{
	uint64_t other = other_requests(stat);
	unsigned int opcode;

	fputs("Requests served\n", out);
	for (opcode = 0; opcode < CONTROL_OPCODES; opcode++)
		if (opcode_names[opcode] && stat->requests[opcode])
			count_row(out, opcode_names[opcode],
				  stat->requests[opcode]);
	if (other)
		count_row(out, "other", other);
}

void ctl_stat_table(FILE *out, const struct control_stat *stat)
{
	memory_table(out, stat);
	page_table(out, stat);
	filesystem_table(out, stat);
	request_table(out, stat);
}
