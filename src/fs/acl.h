/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acl.h - POSIX.1e access control lists, as bytes
 *
 * What system.posix_acl_access and system.posix_acl_default hold: the layout
 * of <linux/posix_acl_xattr.h>, little-endian, entries in the order that
 * POSIX.1e draft 17 (23.1.4, 23.4.21) asks for. Pure functions over such bytes;
 * the kernel decides who may do what, here lists are only kept and inherited.
 *
 * An access list and the nine permission bits of the mode say the same thing
 * twice. Where a list is stored it is the truth, and the bits follow it.
 */
#ifndef ZRAMFS_ACL_H
#define ZRAMFS_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define ACL_NAME_ACCESS	 "system.posix_acl_access"
#define ACL_NAME_DEFAULT "system.posix_acl_default"

/* 0; -EINVAL when it is no valid list. No entries at all is valid. */
int acl_validate(const void *acl, size_t size);

bool acl_is_empty(const void *acl, size_t size);

/* The nine bits say as much as the list: nobody is named, there is no mask. */
bool acl_is_minimal(const void *acl, size_t size);

/* The bits that go with a valid list; group's are the mask's if there is one.
 */
mode_t acl_mode(const void *acl, size_t size);

/* chmod(): make a list say what these nine bits say. */
void acl_set_mode(void *acl, size_t size, mode_t mode);

/*
 * Make of a default list the access list of a new file that was asked for with
 * that mode: neither grants what the other does not. Returns the mode with the
 * nine bits that go with the list.
 */
mode_t acl_inherit(void *acl, size_t size, mode_t mode);

#endif
