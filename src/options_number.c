/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options_number.c - numbers and sizes as the command line takes them
 *
 * Digits from the first character to the last, or it is an error.
 */
#include "options_private.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

uint64_t options_ram_bytes(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) *
	       (uint64_t)sysconf(_SC_PAGESIZE);
}

/*
 * strtoull() would take spaces, signs and hexadecimal, and "-1" as
 * the largest number there is.
 */
static int parse_digits(const char *text, int base, const char **rest,
			uint64_t *value)
{
	const char *at = text;

	*value = 0;
	for (; *at >= '0' && *at < '0' + base; at++) {
		if (__builtin_mul_overflow(*value, base, value) ||
		    __builtin_add_overflow(*value, *at - '0', value))
			return -ERANGE;
	}
	if (at == text)
		return -EINVAL;
	*rest = at;
	return 0;
}

int options_number(const char *text, int base, uint64_t max, uint64_t *value)
{
	const char *rest;
	int error = parse_digits(text, base, &rest, value);

	if (error)
		return error;
	if (*rest)
		return -EINVAL;
	return *value <= max ? 0 : -ERANGE;
}

/* Binary multiples, one letter; 0 for any other text. */
static uint64_t unit(const char *text)
{
	if (!*text)
		return 1;
	if (text[1])
		return 0;
	switch (*text | 0x20) {
	case 'k':
		return 1ull << 10;
	case 'm':
		return 1ull << 20;
	case 'g':
		return 1ull << 30;
	case 't':
		return 1ull << 40;
	}
	return 0;
}

int options_multiple(const char *text, uint64_t *value)
{
	const char *rest;
	uint64_t number, factor;
	int error = parse_digits(text, 10, &rest, &number);

	if (error)
		return error;
	factor = unit(rest);
	if (!factor)
		return -EINVAL;
	if (__builtin_mul_overflow(number, factor, value) || *value > INT64_MAX)
		return -ERANGE;
	return 0;
}

int options_parse_size(const char *text, uint64_t *bytes)
{
	const char *rest;
	uint64_t percent;
	unsigned __int128 size;
	int error = parse_digits(text, 10, &rest, &percent);

	if (error || strcmp(rest, "%"))
		return error ? error : options_multiple(text, bytes);
	size = (unsigned __int128)options_ram_bytes() * percent / 100;
	if (size > INT64_MAX)
		return -ERANGE;
	*bytes = (uint64_t)size;
	return 0;
}

int options_parse_hot(const char *text, uint64_t *bytes)
{
	int error = options_parse_size(text, bytes);

	if (!error && strchr(text, '%') && *bytes > options_ram_bytes())
		return -ERANGE;
	return error;
}
