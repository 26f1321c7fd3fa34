# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# operations.sh - every operation once, each with what it needs and what it does
#
# Sourced after lib.sh, with a filesystem mounted at $MNT. For each, prepare
# makes what ask needs, ask asks for it, verify says whether it was done; then
# operation NAME is called, which who sources this has to define. prepare begins
# with an empty filesystem.

prepare() { :; }
ask() { mkdir "$MNT/new"; }
verify() { [ -d "$MNT/new" ] && [ "$(ls "$MNT")" = new ]; }
operation "mkdir"

ask() { (set -C && echo text >"$MNT/new"); }
verify() { [ "$(cat "$MNT/new")" = text ] && [ "$(stat -c %h "$MNT/new")" = 1 ]; }
operation "an exclusive create, and a write"

ask() { mkfifo "$MNT/new"; }
verify() { [ -p "$MNT/new" ]; }
operation "mkfifo"

ask() { ln -s target "$MNT/new"; }
verify() { [ "$(readlink "$MNT/new")" = target ]; }
operation "symlink"

prepare() { echo text >"$MNT/old"; }
ask() { ln "$MNT/old" "$MNT/new"; }
verify() { [ "$(stat -c %h "$MNT/old")" = 2 ] && [ "$(cat "$MNT/new")" = text ]; }
operation "link"

ask() { rm "$MNT/old"; }
verify() { [ -z "$(ls "$MNT")" ] && [ "$(stat_of inodes_used)" = 1 ]; }
operation "unlink"

ask() { mv -T "$MNT/old" "$MNT/new"; }
verify() { [ "$(ls "$MNT")" = new ] && [ "$(cat "$MNT/new")" = text ]; }
operation "rename"

ask() { mv -nT "$MNT/old" "$MNT/new" && [ ! -e "$MNT/old" ]; }
operation "rename, not to replace"

prepare() { mkdir "$MNT/dir" && echo text >"$MNT/old" && echo other >"$MNT/dir/new"; }
ask() { mv -T "$MNT/old" "$MNT/dir/new"; }
verify() { [ "$(ls "$MNT")" = dir ] && [ "$(cat "$MNT/dir/new")" = text ]; }
operation "rename over another"

prepare() { mkdir "$MNT/old"; }
ask() { rmdir "$MNT/old"; }
verify() { [ -z "$(ls "$MNT")" ] && [ "$(stat_of inodes_used)" = 1 ]; }
operation "rmdir"

prepare() { seq 1 20000 >"$MNT/old"; }
ask() { echo appended >>"$MNT/old"; }
verify() { [ "$(tail -n 2 "$MNT/old" | tr '\n' ' ')" = "20000 appended " ]; }
operation "append"

ask() { truncate -s 1000 "$MNT/old"; }
verify() { [ "$(stat -c %s "$MNT/old")" = 1000 ] && cmp -n 1000 "$MNT/old" <(seq 1 20000); }
operation "truncate"

ask() { dd if=/dev/zero of="$MNT/old" bs=10000 count=1 seek=1 conv=notrunc status=none; }
verify() { cmp "$MNT/old" <(seq 1 20000 | head -c 10000; head -c 10000 /dev/zero; seq 1 20000 | tail -c +20001); }
operation "write"

ask() { fallocate -p -o 4096 -l 8192 "$MNT/old"; }
verify() { cmp "$MNT/old" <(seq 1 20000 | head -c 4096; head -c 8192 /dev/zero; seq 1 20000 | tail -c +12289); }
operation "punching a hole"

ask() { cp --reflink=never "$MNT/old" "$MNT/new"; }
verify() { cmp "$MNT/old" "$MNT/new"; }
operation "copying a file"

ask() { chmod 4711 "$MNT/old"; }
verify() { [ "$(stat -c %a "$MNT/old")" = 4711 ]; }
operation "chmod"

if command -v setfattr >/dev/null; then
	ask() { setfattr -n user.new -v value "$MNT/old"; }
	verify() { [ "$(getfattr --absolute-names --only-values -n user.new "$MNT/old")" = value ]; }
	operation "setxattr"

	prepare() { echo text >"$MNT/old" && setfattr -n user.old -v value "$MNT/old"; }
	ask() { setfattr -x user.old "$MNT/old"; }
	verify() { [ -z "$(getfattr --absolute-names "$MNT/old")" ]; }
	operation "removexattr"
fi

prepare() { mkdir "$MNT/dir" && touch "$MNT/dir/"{1..40}; }
ask() { [ "$(ls -l "$MNT/dir" | wc -l)" = 41 ]; }
verify() { ask; }
operation "listing a directory"
