/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ctl_usage.c - see ctl_usage.h
 */
#include "ctl_usage.h"

#include <inttypes.h>
#include <string.h>

#include "codec/codec.h"
#include "ctl_stat.h"

void ctl_usage_add(struct ctl_usage *sum, const struct ctl_usage *other)
{
	struct control_usage *to = &sum->cost;
	const struct control_usage *from = &other->cost;
	unsigned int i;

	sum->files += other->files;
	to->size += from->size;
	to->pages += from->pages;
	to->same_pages += from->same_pages;
	to->hot_pages += from->hot_pages;
	to->compressed_pages += from->compressed_pages;
	to->huge_pages += from->huge_pages;
	to->shared_pages += from->shared_pages;
	to->stored_bytes += from->stored_bytes;
	to->share_bytes += from->share_bytes;
	for (i = 0; i < CONTROL_CODECS; i++)
		to->codec_pages[i] += from->codec_pages[i];
}

void ctl_usage_add_file(struct ctl_usage *sum, const struct control_usage *file)
{
	const struct ctl_usage one = {1, *file};

	ctl_usage_add(sum, &one);
}

static const char *codec_name(unsigned int id)
{
	const struct codec_ops *ops = codec_by_id(id);

	return ops ? ops->name : "other";
}

/* --- for people -------------------------------------------------------- */

static void show_size(const struct ctl_usage_output *output, uint64_t bytes)
{
	char text[32];

	if (output->human)
		ctl_format_size(text, sizeof(text), bytes);
	else
		snprintf(text, sizeof(text), "%" PRIu64, bytes);
	fprintf(output->stream, "%12s ", text);
}

/* A share of the pages, rounded to whole per cent; "-" without pages. */
static void show_share(FILE *out, uint64_t some, uint64_t all)
{
	if (all)
		fprintf(out, "%4.0f%% ", 100.0 * some / all);
	else
		fprintf(out, "%5s ", "-");
}

/* All that pages were compressed by: "zstd", or "lz4,zstd". */
static void show_codecs(FILE *out, const struct control_usage *cost)
{
	char names[64] = "";
	unsigned int i;

	for (i = 0; i < CONTROL_CODECS; i++) {
		size_t length = strlen(names);

		if (cost->codec_pages[i])
			snprintf(names + length, sizeof(names) - length, "%s%s",
				 length ? "," : "", codec_name(i));
	}
	fprintf(out, "%-7s ", names[0] ? names : "-");
}

/* A line is a line, whatever the name. */
static void show_path(FILE *out, const char *path)
{
	for (; *path; path++)
		putc((unsigned char)*path < ' ' || *path == 0x7f ? '?' : *path,
		     out);
	putc('\n', out);
}

static void show_line(const struct ctl_usage_output *output, const char *path,
		      const struct control_usage *cost)
{
	FILE *out = output->stream;

	show_size(output, cost->size);
	fprintf(out, "%9" PRIu64 " ", cost->pages);
	show_size(output, cost->share_bytes);
	show_share(out, cost->same_pages, cost->pages);
	show_share(out, cost->shared_pages, cost->pages);
	show_share(out, cost->huge_pages, cost->pages);
	show_share(out, cost->hot_pages, cost->pages);
	show_codecs(out, cost);
	show_path(out, path);
}

/* --- for programs ------------------------------------------------------ */

/* Length of the UTF-8 character (RFC 3629) at text; 0 if it is none. */
static unsigned int utf8_length(const unsigned char *text)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned int length, i;
	uint32_t value;

	if (*text < 0x80)
		return 1;
	length = *text >= 0xf0 ? 4 : *text >= 0xe0 ? 3 : 2;
	if (*text < 0xc0 || *text >= 0xf8)
		return 0;
	value = *text & (0x7f >> length);
	for (i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (text[i] & 0x3f);
	}
	if (value < least[length] || value > 0x10ffff ||
	    (value >= 0xd800 && value < 0xe000))
		return 0;
	return length;
}

/*
 * A name is bytes and JSON is Unicode: a byte that is no UTF-8 becomes a lone
 * surrogate, from which Python's os.fsencode() makes it again (PEP 383).
 */
static void json_string(FILE *out, const char *string)
{
	const unsigned char *text = (const unsigned char *)string;

	putc('"', out);
	while (*text) {
		unsigned int length = utf8_length(text);

		if (!length)
			fprintf(out, "\\udc%02x", *text);
		else if (*text < ' ')
			fprintf(out, "\\u%04x", *text);
		else if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else
			fwrite(text, 1, length, out);
		text += length ? length : 1;
	}
	putc('"', out);
}

static void json_number(FILE *out, const char *name, uint64_t value)
{
	fprintf(out, "\n    \"%s\": %" PRIu64 ",", name, value);
}

static void show_json(FILE *out, const char *path, const struct ctl_usage *sum)
{
	const struct control_usage *cost = &sum->cost;
	const char *separator = "";
	unsigned int i;

	fputs("  {\n    \"path\": ", out);
	json_string(out, path);
	putc(',', out);
	json_number(out, "files", sum->files);
	json_number(out, "size", cost->size);
	json_number(out, "pages", cost->pages);
	json_number(out, "same_pages", cost->same_pages);
	json_number(out, "shared_pages", cost->shared_pages);
	json_number(out, "huge_pages", cost->huge_pages);
	json_number(out, "hot_pages", cost->hot_pages);
	json_number(out, "compressed_pages", cost->compressed_pages);
	json_number(out, "stored_bytes", cost->stored_bytes);
	json_number(out, "share_bytes", cost->share_bytes);
	fputs("\n    \"codec_pages\": {", out);
	for (i = 0; i < CONTROL_CODECS; i++) {
		if (!cost->codec_pages[i])
			continue;
		fprintf(out, "%s\"%s\": %" PRIu64, separator, codec_name(i),
			cost->codec_pages[i]);
		separator = ", ";
	}
	fputs("}\n  }", out);
}

/* --- both -------------------------------------------------------------- */

static void begin(struct ctl_usage_output *output)
{
	if (output->json)
		fputs("[", output->stream);
	else
		fprintf(output->stream,
			"%12s %9s %12s %5s %5s %5s %5s %-7s %s\n", "SIZE",
			"PAGES", "STORED", "SAME", "EQUAL", "HUGE", "HOT",
			"CODEC", "PATH");
}

void ctl_usage_show(struct ctl_usage_output *output, const char *path,
		    const struct ctl_usage *sum)
{
	bool first = !output->begun;

	if (first)
		begin(output);
	output->begun = true;
	if (!output->json) {
		show_line(output, path, &sum->cost);
		return;
	}
	fputs(first ? "\n" : ",\n", output->stream);
	show_json(output->stream, path, sum);
}

void ctl_usage_end(struct ctl_usage_output *output)
{
	if (!output->json)
		return;
	if (!output->begun)
		begin(output);
	fputs("\n]\n", output->stream);
}
