/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * posix_xattrs.c - extended attributes, capabilities and POSIX ACLs
 *
 * An ACL is given to and taken from the kernel as an xattr: a version word,
 * then entries of tag, permissions and id (linux/posix_acl_xattr.h).
 */
#include <fcntl.h>
#include <linux/limits.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "support/cases.h"

#define USER	1000
#define OTHER	1500
#define GROUP	2001
#define ACCESS	"system.posix_acl_access"
#define DEFAULT "system.posix_acl_default"

CASE(values_are_kept)
{
	char value[64];

	make_file("f", "");
	FAILS(getxattr("f", "user.a", value, sizeof(value)), ENODATA);
	OK(setxattr("f", "user.a", "first", 5, 0));
	EXPECT_EQ(getxattr("f", "user.a", value, sizeof(value)), 5);
	EXPECT(memcmp(value, "first", 5) == 0);
	OK(setxattr("f", "user.a", "second value", 12, 0));
	EXPECT_EQ(getxattr("f", "user.a", NULL, 0), 12);
	FAILS(getxattr("f", "user.a", value, 11), ERANGE);
	EXPECT_EQ(getxattr("f", "user.a", value, 12), 12);
	EXPECT(memcmp(value, "second value", 12) == 0);
	OK(setxattr("f", "user.empty", "", 0, 0));
	EXPECT_EQ(getxattr("f", "user.empty", value, sizeof(value)), 0);
	OK(removexattr("f", "user.a"));
	FAILS(removexattr("f", "user.a"), ENODATA);
	FAILS(getxattr("f", "user.a", value, sizeof(value)), ENODATA);
}

CASE(create_and_replace_are_told_apart)
{
	char byte;

	make_file("f", "");
	FAILS(setxattr("f", "user.a", "x", 1, XATTR_REPLACE), ENODATA);
	OK(setxattr("f", "user.a", "x", 1, XATTR_CREATE));
	FAILS(setxattr("f", "user.a", "y", 1, XATTR_CREATE), EEXIST);
	EXPECT_EQ(getxattr("f", "user.a", &byte, 1), 1);
	EXPECT_EQ(byte, 'x');
	OK(setxattr("f", "user.a", "z", 1, XATTR_REPLACE));
	EXPECT_EQ(getxattr("f", "user.a", &byte, 1), 1);
	EXPECT_EQ(byte, 'z');
}

CASE(values_have_up_to_64_KiB_and_names_255_bytes)
{
	char *value = malloc(65537), *got = malloc(65536), name[257];
	int i;

	EXPECT(value && got);
	for (i = 0; i < 65537; i++)
		value[i] = (char)(i * 31 + (i >> 8));
	memset(name, 'n', sizeof(name));
	memcpy(name, "user.", 5);
	name[255] = 0;
	make_file("f", "");
	OK(setxattr("f", name, value, 65536, 0));
	EXPECT_EQ(getxattr("f", name, got, 65536), 65536);
	EXPECT(memcmp(value, got, 65536) == 0);
	FAILS(setxattr("f", "user.big", value, 65537, 0), E2BIG);
	name[255] = 'n';
	name[256] = 0;
	FAILS(setxattr("f", name, "x", 1, 0), ERANGE);
}

CASE(names_are_listed)
{
	char list[65536], name[64], *at;
	int i, count = 0, seen[100] = {0};
	ssize_t length;

	make_file("f", "");
	EXPECT_EQ(listxattr("f", list, sizeof(list)), 0);
	for (i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "user.name-%d", i);
		OK(setxattr("f", name, name, strlen(name), 0));
	}
	for (i = 0; i < 100; i += 2) {
		snprintf(name, sizeof(name), "user.name-%d", i);
		OK(removexattr("f", name));
	}
	length = OK(listxattr("f", list, sizeof(list)));
	EXPECT_EQ(listxattr("f", NULL, 0), length);
	FAILS(listxattr("f", list, length - 1), ERANGE);
	for (at = list; at < list + length; at += strlen(at) + 1) {
		EXPECT_EQ(sscanf(at, "user.name-%d", &i), 1);
		EXPECT(i >= 0 && i < 100);
		seen[i]++;
		count++;
	}
	EXPECT_EQ(count, 50);
	for (i = 0; i < 100; i++)
		EXPECT_EQ(seen[i], i % 2);
}

/*
 * listxattr(2) gives at most so much. What more there is, tmpfs takes and
 * cannot list any more; here it is refused.
 */
CASE(names_have_up_to_64_KiB_together)
{
	static char list[XATTR_LIST_MAX];
	char name[256];
	int i, error = 0;

	make_file("f", "");
	for (i = 0; i < 300 && !error; i++) {
		snprintf(name, sizeof(name), "user.%0250d", i);
		if (setxattr("f", name, "x", 1, 0) < 0)
			error = errno;
		else if (i < 256)
			EXPECT_EQ(listxattr("f", list, sizeof(list)),
				  (i + 1) * 256);
	}
	if (case_on_fuse()) {
		EXPECT_EQ(error, ENOSPC);
		EXPECT_EQ(listxattr("f", list, sizeof(list)), sizeof(list));
	} else {
		EXPECT_EQ(error, 0);
		FAILS(listxattr("f", list, sizeof(list)), E2BIG);
	}
}

CASE(every_namespace_and_type_of_file_has_its_rule)
{
	char value[16];

	make_file("f", "");
	OK(mkdir("d", 0755));
	OK(symlink("f", "s"));
	OK(mkfifo("p", 0644));
	OK(setxattr("f", "trusted.t", "t", 1, 0));
	OK(setxattr("f", "security.s", "s", 1, 0));
	OK(setxattr("d", "user.d", "d", 1, 0));
	OK(lsetxattr("s", "trusted.l", "l", 1, 0));
	EXPECT_EQ(lgetxattr("s", "trusted.l", value, 16), 1);
	FAILS(getxattr("s", "trusted.l", value, 16), ENODATA);
	FAILS(lsetxattr("s", "user.l", "l", 1, 0), EPERM);
	FAILS(setxattr("p", "user.p", "p", 1, 0), EPERM);
	FAILS(setxattr("f", "nothing.x", "x", 1, 0), EOPNOTSUPP);
	FAILS(getxattr("f", "nothing.x", value, 16), EOPNOTSUPP);
	OK(chmod("f", 0644));
	case_become(USER, USER);
	FAILS(setxattr("f", "user.x", "x", 1, 0), EACCES);
	FAILS(setxattr("f", "trusted.x", "x", 1, 0), EPERM);
	FAILS(getxattr("f", "trusted.t", value, 16), ENODATA);
	case_become(0, 0);
}

CASE(trusted_names_are_not_listed_for_others)
{
	char list[256];

	make_file("f", "");
	OK(setxattr("f", "trusted.t", "t", 1, 0));
	EXPECT_EQ(listxattr("f", list, sizeof(list)), sizeof("trusted.t"));
	case_become(USER, USER);
	EXPECT_EQ(listxattr("f", list, sizeof(list)), 0);
	case_become(0, 0);
}

CASE(attributes_go_with_the_inode)
{
	char byte;

	make_file("f", "");
	OK(setxattr("f", "user.a", "x", 1, 0));
	OK(link("f", "g"));
	OK(rename("f", "h"));
	EXPECT_EQ(getxattr("g", "user.a", &byte, 1), 1);
	EXPECT_EQ(getxattr("h", "user.a", &byte, 1), 1);
	OK(unlink("g"));
	OK(unlink("h"));
	make_file("f", "");
	FAILS(getxattr("f", "user.a", &byte, 1), ENODATA);
}

CASE(a_write_takes_capabilities_away)
{
	/* vfs_cap_data, version 2: CAP_NET_RAW, effective */
	static const unsigned char raw[20] = {1, 0, 0, 2, 0, 0x20};
	char value[32];
	int fd;

	make_file("f", "program");
	OK(setxattr("f", "security.capability", raw, sizeof(raw), 0));
	EXPECT_EQ(getxattr("f", "security.capability", value, 32), 20);
	fd = OK(open("f", O_WRONLY));
	write_bytes(fd, 0, 1, 'x');
	close(fd);
	FAILS(getxattr("f", "security.capability", value, 32), ENODATA);

	/* Nor does it matter who opened the file, how and when. */
	fd = OK(open("f", O_WRONLY | O_TRUNC));
	OK(setxattr("f", "security.capability", raw, sizeof(raw), 0));
	write_bytes(fd, 0, 1, 'x');
	close(fd);
	FAILS(getxattr("f", "security.capability", value, 32), ENODATA);

	fd = OK(open("g", O_WRONLY | O_CREAT | O_EXCL, 0755));
	OK(setxattr("g", "security.capability", raw, sizeof(raw), 0));
	write_bytes(fd, 0, 1, 'x');
	close(fd);
	FAILS(getxattr("g", "security.capability", value, 32), ENODATA);
}

/* --- ACLs ------------------------------------------------------------------
 */

struct acl {
	struct posix_acl_xattr_header header;
	struct posix_acl_xattr_entry entry[16];
	unsigned int count;
};

static void add(struct acl *acl, int tag, int permissions, unsigned int id)
{
	struct posix_acl_xattr_entry *entry = &acl->entry[acl->count++];

	acl->header.a_version = POSIX_ACL_XATTR_VERSION;
	entry->e_tag = tag;
	entry->e_perm = permissions;
	entry->e_id = id;
}

static size_t acl_bytes(const struct acl *acl)
{
	return sizeof(acl->header) + acl->count * sizeof(acl->entry[0]);
}

static void set_acl(const char *path, const char *name, const struct acl *acl)
{
	OK(setxattr(path, name, acl, acl_bytes(acl), 0));
}

/* Permissions of the entry with this tag, or -1. */
static int acl_entry(const char *path, const char *name, int tag)
{
	struct acl acl;
	ssize_t length = getxattr(path, name, &acl, sizeof(acl));
	unsigned int i;

	if (length < 0)
		return -1;
	for (i = 0; i < (length - sizeof(acl.header)) / sizeof(acl.entry[0]);
	     i++)
		if (acl.entry[i].e_tag == tag)
			return acl.entry[i].e_perm;
	return -1;
}

/* u::rwx, u:OTHER:rwx, g::r-x, m::mask, o::--- */
static void sample(struct acl *acl, int mask)
{
	memset(acl, 0, sizeof(*acl));
	add(acl, ACL_USER_OBJ, 7, ACL_UNDEFINED_ID);
	add(acl, ACL_USER, 7, OTHER);
	add(acl, ACL_GROUP_OBJ, 5, ACL_UNDEFINED_ID);
	add(acl, ACL_MASK, mask, ACL_UNDEFINED_ID);
	add(acl, ACL_OTHER, 0, ACL_UNDEFINED_ID);
}

CASE(an_acl_shows_its_mask_as_the_groups_mode)
{
	struct acl acl;

	make_file("f", "x");
	sample(&acl, 6);
	set_acl("f", ACCESS, &acl);
	EXPECT_EQ(stat_of("f").st_mode & 0777, 0760);
	EXPECT_EQ(acl_entry("f", ACCESS, ACL_GROUP_OBJ), 5);
	OK(chmod("f", 0640)); /* changes the mask, not the group */
	EXPECT_EQ(acl_entry("f", ACCESS, ACL_MASK), 4);
	EXPECT_EQ(acl_entry("f", ACCESS, ACL_GROUP_OBJ), 5);
	EXPECT_EQ(acl_entry("f", ACCESS, ACL_USER_OBJ), 6);
}

CASE(an_acl_admits_whom_it_names)
{
	struct acl acl;

	make_file("f", "x");
	sample(&acl, 6);
	set_acl("f", ACCESS, &acl);
	case_become(OTHER, OTHER);
	close(OK(open("f", O_RDWR)));
	case_become(USER, USER);
	FAILS(open("f", O_RDONLY), EACCES);
	case_become(0, 0);
	OK(chmod("f", 0740)); /* the mask now hides the user's w */
	case_become(OTHER, OTHER);
	FAILS(open("f", O_RDWR), EACCES);
	close(OK(open("f", O_RDONLY)));
	case_become(0, 0);
}

CASE(an_acl_of_three_entries_is_the_mode)
{
	struct acl acl = {0};

	make_file("f", "x");
	add(&acl, ACL_USER_OBJ, 6, ACL_UNDEFINED_ID);
	add(&acl, ACL_GROUP_OBJ, 4, ACL_UNDEFINED_ID);
	add(&acl, ACL_OTHER, 1, ACL_UNDEFINED_ID);
	set_acl("f", ACCESS, &acl);
	EXPECT_EQ(stat_of("f").st_mode & 0777, 0641);
	FAILS(getxattr("f", ACCESS, NULL, 0), ENODATA);
}

CASE(removing_an_acl_leaves_the_mode)
{
	struct acl acl;

	make_file("f", "x");
	sample(&acl, 6);
	set_acl("f", ACCESS, &acl);
	OK(removexattr("f", ACCESS));
	FAILS(getxattr("f", ACCESS, NULL, 0), ENODATA);
	EXPECT_EQ(stat_of("f").st_mode & 0777, 0760);
}

CASE(a_wrong_acl_is_refused)
{
	struct acl acl = {0};

	make_file("f", "x");
	add(&acl, ACL_USER, 7, OTHER);
	FAILS(setxattr("f", ACCESS, &acl, acl_bytes(&acl), 0), EINVAL);
	sample(&acl, 7);
	FAILS(setxattr("f", DEFAULT, &acl, acl_bytes(&acl), 0), EACCES);
	case_become(USER, USER);
	FAILS(setxattr("f", ACCESS, &acl, acl_bytes(&acl), 0), EPERM);
	case_become(0, 0);
}

CASE(a_default_acl_is_inherited_and_overrides_the_umask)
{
	struct acl acl;

	OK(mkdir("d", 0755));
	sample(&acl, 7);
	set_acl("d", DEFAULT, &acl);
	umask(077);
	close(OK(open("d/f", O_CREAT | O_WRONLY, 0666)));
	OK(mkdir("d/sub", 0777));
	EXPECT_EQ(stat_of("d/f").st_mode & 0777, 0660);
	EXPECT_EQ(acl_entry("d/f", ACCESS, ACL_USER), 7);
	EXPECT_EQ(acl_entry("d/f", ACCESS, ACL_MASK), 6);
	EXPECT_EQ(acl_entry("d/f", ACCESS, ACL_GROUP_OBJ), 5);
	EXPECT_EQ(acl_entry("d/f", DEFAULT, ACL_USER), -1);
	EXPECT_EQ(stat_of("d/sub").st_mode & 0777, 0770);
	EXPECT_EQ(acl_entry("d/sub", DEFAULT, ACL_MASK), 7);
	EXPECT_EQ(acl_entry("d/sub", ACCESS, ACL_USER), 7);
	close(OK(open("d/g", O_CREAT | O_WRONLY, 0640)));
	EXPECT_EQ(stat_of("d/g").st_mode & 0777, 0640);
	EXPECT_EQ(acl_entry("d/g", ACCESS, ACL_MASK), 4);
	OK(symlink("x", "d/s"));
	EXPECT_EQ(stat_of("d/s").st_mode & 0777, 0777);
	OK(removexattr("d", DEFAULT));
	close(OK(open("d/h", O_CREAT | O_WRONLY, 0666)));
	EXPECT_EQ(stat_of("d/h").st_mode & 0777, 0600);
}

CASE(a_default_acl_of_three_entries_is_inherited_as_a_mode)
{
	struct acl acl = {0};

	OK(mkdir("d", 0755));
	add(&acl, ACL_USER_OBJ, 7, ACL_UNDEFINED_ID);
	add(&acl, ACL_GROUP_OBJ, 5, ACL_UNDEFINED_ID);
	add(&acl, ACL_OTHER, 4, ACL_UNDEFINED_ID);
	set_acl("d", DEFAULT, &acl);
	umask(077);
	close(OK(open("d/f", O_CREAT | O_WRONLY, 0666)));
	EXPECT_EQ(stat_of("d/f").st_mode & 0777, 0644);
	FAILS(getxattr("d/f", ACCESS, NULL, 0), ENODATA);
}

CASE(all_that_is_made_inherits_a_default_acl)
{
	struct acl acl;
	char path[64];
	int fd;

	OK(mkdir("d", 0755));
	sample(&acl, 7);
	set_acl("d", DEFAULT, &acl);
	umask(077);
	OK(mkfifo("d/p", 0666));
	EXPECT_EQ(acl_entry("d/p", ACCESS, ACL_USER), 7);
	EXPECT_EQ(acl_entry("d/p", ACCESS, ACL_MASK), 6);
	EXPECT_EQ(stat_of("d/p").st_mode & 0777, 0660);
	fd = OK(open("d", O_TMPFILE | O_RDWR, 0640));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	EXPECT_EQ(acl_entry(path, ACCESS, ACL_USER), 7);
	EXPECT_EQ(acl_entry(path, ACCESS, ACL_MASK), 4);
	OK(linkat(AT_FDCWD, path, AT_FDCWD, "d/t", AT_SYMLINK_FOLLOW));
	EXPECT_EQ(stat_of("d/t").st_mode & 0777, 0640);
	EXPECT_EQ(acl_entry("d/t", ACCESS, ACL_MASK), 4);
	/* What is linked or moved there was made elsewhere. */
	close(OK(open("f", O_CREAT | O_WRONLY, 0666)));
	OK(link("f", "d/l"));
	EXPECT_EQ(acl_entry("d/l", ACCESS, ACL_USER), -1);
	OK(rename("f", "d/m"));
	EXPECT_EQ(acl_entry("d/m", ACCESS, ACL_USER), -1);
}

CASE(setting_an_acl_outside_the_group_drops_set_group_id)
{
	struct acl acl;

	make_file("f", "x");
	OK(chown("f", USER, GROUP));
	OK(chmod("f", 02755));
	sample(&acl, 7);
	case_become(USER, USER);
	set_acl("f", ACCESS, &acl);
	case_become(0, 0);
	EXPECT_EQ(stat_of("f").st_mode & 07000, 0);
}
