/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acl.c - POSIX.1e access control lists
 *
 * Touches nothing but the bytes it is given.
 */
#include "fs/acl.h"

#include <endian.h>
#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdint.h>
#include <string.h>

#define ACL_HEADER sizeof(struct posix_acl_xattr_header)
#define ACL_ENTRY  sizeof(struct posix_acl_xattr_entry)

/* Copied in and out: a value may lie at any address. */
static struct posix_acl_xattr_entry entry_at(const void *acl, size_t i)
{
	struct posix_acl_xattr_entry entry;

	memcpy(&entry, (const char *)acl + ACL_HEADER + i * ACL_ENTRY,
	       ACL_ENTRY);
	entry.e_tag = le16toh(entry.e_tag);
	entry.e_perm = le16toh(entry.e_perm);
	return entry;
}

static void set_perm(void *acl, size_t i, unsigned int perm)
{
	uint16_t little = htole16(perm);

	memcpy((char *)acl + ACL_HEADER + i * ACL_ENTRY +
		       offsetof(struct posix_acl_xattr_entry, e_perm),
	       &little, sizeof(little));
}

static size_t entries(size_t size)
{
	return (size - ACL_HEADER) / ACL_ENTRY;
}

/* The tags' values ascend in the order that entries must have. */
static int validate_entries(const void *acl, size_t count)
{
	unsigned int seen = 0, last = 0;

	for (size_t i = 0; i < count; i++) {
		struct posix_acl_xattr_entry entry = entry_at(acl, i);

		switch (entry.e_tag) {
		case ACL_USER:
		case ACL_GROUP:
			if (entry.e_tag < last ||
			    entry.e_id == (uint32_t)ACL_UNDEFINED_ID)
				return -EINVAL;
			break;
		case ACL_USER_OBJ:
		case ACL_GROUP_OBJ:
		case ACL_MASK:
		case ACL_OTHER:
			if (entry.e_tag <= last)
				return -EINVAL;
			break;
		default:
			return -EINVAL;
		}
		if (entry.e_perm & ~(ACL_READ | ACL_WRITE | ACL_EXECUTE))
			return -EINVAL;
		last = entry.e_tag;
		seen |= entry.e_tag;
	}
	if (!(seen & ACL_USER_OBJ) || !(seen & ACL_GROUP_OBJ) ||
	    !(seen & ACL_OTHER))
		return -EINVAL;
	if ((seen & (ACL_USER | ACL_GROUP)) && !(seen & ACL_MASK))
		return -EINVAL;
	return 0;
}

int acl_validate(const void *acl, size_t size)
{
	struct posix_acl_xattr_header header;

	if (size < ACL_HEADER || (size - ACL_HEADER) % ACL_ENTRY)
		return -EINVAL;
	memcpy(&header, acl, ACL_HEADER);
	if (le32toh(header.a_version) != POSIX_ACL_XATTR_VERSION)
		return -EINVAL;
	if (acl_is_empty(acl, size))
		return 0;
	return validate_entries(acl, entries(size));
}

bool acl_is_empty(const void *acl, size_t size)
{
	return entries(size) == 0;
}

bool acl_is_minimal(const void *acl, size_t size)
{
	return entries(size) == 3;
}

/* Which entry speaks for the group bits of the mode. */
static unsigned int group_tag(const void *acl, size_t size)
{
	for (size_t i = 0; i < entries(size); i++) {
		if (entry_at(acl, i).e_tag == ACL_MASK)
			return ACL_MASK;
	}
	return ACL_GROUP_OBJ;
}

/* By how much an entry's bits are shifted in the mode, -1 if they are not. */
static int mode_shift(unsigned int tag, unsigned int group)
{
	if (tag == ACL_USER_OBJ)
		return 6;
	if (tag == group)
		return 3;
	return tag == ACL_OTHER ? 0 : -1;
}

mode_t acl_mode(const void *acl, size_t size)
{
	unsigned int group = group_tag(acl, size);
	mode_t mode = 0;

	for (size_t i = 0; i < entries(size); i++) {
		struct posix_acl_xattr_entry entry = entry_at(acl, i);
		int shift = mode_shift(entry.e_tag, group);

		if (shift >= 0)
			mode |= entry.e_perm << shift;
	}
	return mode;
}

void acl_set_mode(void *acl, size_t size, mode_t mode)
{
	unsigned int group = group_tag(acl, size);

	for (size_t i = 0; i < entries(size); i++) {
		int shift = mode_shift(entry_at(acl, i).e_tag, group);

		if (shift >= 0)
			set_perm(acl, i, mode >> shift & 07);
	}
}

mode_t acl_inherit(void *acl, size_t size, mode_t mode)
{
	mode_t both = mode & acl_mode(acl, size);

	acl_set_mode(acl, size, both);
	return (mode & ~0777) | (both & 0777);
}
