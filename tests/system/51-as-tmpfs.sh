#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Some hundred calls, made in a tmpfs and in the filesystem under test by the
# same program, have the same results: what they return, their errors, which
# times they move, and what becomes of modes, owners, sizes, blocks and links.
# And those that differ, as zramfs(8) says, differ in just that way.
. "$(dirname "$0")/lib.sh"

mount_fs size=1g
mkdir "$TEST_DIR/tmpfs" "$MNT/calls"
mount -t tmpfs -o size=1g none "$TEST_DIR/tmpfs" && MOUNTS+=("$TEST_DIR/tmpfs")

same() {
	"$HELPERS/calls" "$TEST_DIR/tmpfs" >"$TEST_DIR/want"
	"$HELPERS/calls" "$MNT/calls" >"$TEST_DIR/got"
	[ "$(wc -l <"$TEST_DIR/want")" -gt 700 ] &&
		diff -U 0 "$TEST_DIR/want" "$TEST_DIR/got"
}
check "calls do what they do on tmpfs" same

# What differs is what is known to.
as_known() {
	diff --minimal -U 0 "$TEST_DIR/want" "$TEST_DIR/got" |
		grep '^[-+][^-+]' | sort | diff -u "$TEST_DIR/known" -
}
differences() {
	"$HELPERS/calls" "$TEST_DIR/tmpfs" differences >"$TEST_DIR/want"
	"$HELPERS/calls" "$MNT/calls" differences >"$TEST_DIR/got"
	as_known
}
cat >"$TEST_DIR/known" <<'END'
+fcntl(fd, F_GET_SEALS) < 0 = 1; f
+ioctl(fd, FIBMAP, (int[]){0}) = 0; f
+other: chown("f", -1, -1) = 0; f c mode 106775->100775
+pread(fd, buffer, 1, PAGE) = 0; f; empty
+read(fd, buffer, 0) = 0; f; empty
+read(fd, buffer, 1) = 0; f; empty
+read(fd, buffer, 2) = 2; p
+write(fd, "xy", 2) = 2; p
-fcntl(fd, F_GET_SEALS) < 0 = 0; f
-ioctl(fd, FIBMAP, (int[]){0}) = EINVAL; f
-other: chown("f", -1, -1) = EPERM; f
-pread(fd, buffer, 1, PAGE) = 0; f a; empty
-read(fd, buffer, 0) = 0; f a; empty
-read(fd, buffer, 1) = 0; f; empty a
-read(fd, buffer, 2) = 2; p a
-write(fd, "xy", 2) = 2; p mc
END
! on_zramfs || check "what differs, differs as documented" differences
! on_zramfs || check "check is clean" "$CTL" check --verify "$MNT"

# --- with noopen, what else differs ------------------------------------------

on_zramfs || exit 0
mount_fs size=1g,noopen
mkdir "$MNT/calls"
cat >"$TEST_DIR/known" <<'END'
+ftruncate(fd, 8) = EPERM; d/f; d; d/h
+mmap and look = 120; f; .
+open("d/f", O_WRONLY | O_APPEND) < 0 = 0; d/f; d; d/h
+open("d/f", O_WRONLY) < 0 = 0; d/f; d; d/h
+open("d/f", O_WRONLY) < 0 = 0; d/f; d; d/h
+pwrite(fd, "x", 1, 0) = EPERM; d/f; d; d/h
+pwrite(fd, "x", 1, 0) = EPERM; d/f; d; d/h
+read(fd, buffer, 10) = 10; f
+read(fd, buffer, 10) = 10; f
+sendfile(null, fd, &at, 100) = 100; f; .
+splice(fd, &at, p[1], NULL, 100, 0) = 100; f; .
-ftruncate(fd, 8) = 0; d/f mc size 10->8; d; d/h
-mmap and look = 120; f a; .
-open("d/f", O_WRONLY | O_APPEND) < 0 = 1; d/f; d; d/h
-open("d/f", O_WRONLY) < 0 = 1; d/f; d; d/h
-open("d/f", O_WRONLY) < 0 = 1; d/f; d; d/h
-pwrite(fd, "x", 1, 0) = 1; d/f mc; d; d/h
-pwrite(fd, "x", 1, 0) = 1; d/f mc; d; d/h
-read(fd, buffer, 10) = 10; f a
-read(fd, buffer, 10) = 10; f a
-sendfile(null, fd, &at, 100) = 100; f a; .
-splice(fd, &at, p[1], NULL, 100, 0) = 100; f a; .
END
unlike_noopen() {
	same >/dev/null
	as_known
}
# What is read without a request depends on caches, and another program may
# drop these meanwhile: not three times.
noopen_differences() {
	unlike_noopen >/dev/null || unlike_noopen >/dev/null || unlike_noopen
}
check "what differs with noopen, differs as documented" noopen_differences
check "then check is clean, too" "$CTL" check --verify "$MNT"
