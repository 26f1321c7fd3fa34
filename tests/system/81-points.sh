#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The worker is killed at every named point of every operation, once each: by
# enumeration, with the programs that can be told where to die. Whoever asked
# gets the answer that is right, and what is there is what was asked for.
#
# POINTS=all: every point; else every seventh, a different one for each
# operation, which takes a minute instead of ten.
. "$(dirname "$0")/lib.sh"

faults=$BUILD-faults
[ -x "$faults/zramfs" ] || skip_all "no $faults"

output=$("$faults/tests/unit/test_recovery_points" 2>&1)
status=$?
note "$(grep -a '^#' <<<"$output")"
if [ $status -eq 0 ]; then
	ok "in the filesystem alone"
else
	not_ok "in the filesystem alone" "$(tail -n 60 <<<"$output")"
fi

ZRAMFS=$faults/zramfs CTL=$faults/zramfsctl
mount_zramfs size=256m
total=0 operations=0
[ "${POINTS:-}" = all ] && step=1 || step=7

# prepare, ask and verify are given for each operation.
prepare() { :; }

# every_point NAME: until the operation has no more points.
every_point() {
	local n pid now message status killed=0
	pid=$(stat_of pid)
	operations=$((operations + 1))
	for ((n = 1 + operations % step; n < 2000; n += step)); do
		rm -rf "${MNT:?}"/*
		prepare >/dev/null 2>&1
		"$CTL" set "$MNT" fault=$n
		message=$(ask 2>&1)
		status=$?
		[ $status -ne 0 ] || message=$(verify 2>&1) || status=1
		if [ $status -ne 0 ]; then
			not_ok "$1" "point $n: $message"
			"$CTL" set "$MNT" fault=0
			return
		fi
		# What asks and verifies may have passed it, too.
		"$CTL" set "$MNT" fault=0
		now=$(stat_of pid)
		[ "$pid" != "$now" ] || break
		pid=$now
		killed=$((killed + 1))
	done
	total=$((total + killed))
	if [ $killed -gt $((20 / step)) ]; then
		ok "$1: killed at $killed points"
	else
		not_ok "$1" "killed at $killed points only"
	fi
}

prepare() { :; }
ask() { mkdir "$MNT/new"; }
verify() { [ -d "$MNT/new" ] && [ "$(ls "$MNT")" = new ]; }
every_point "mkdir"

ask() { (set -C && echo text >"$MNT/new"); }
verify() { [ "$(cat "$MNT/new")" = text ] && [ "$(stat -c %h "$MNT/new")" = 1 ]; }
every_point "an exclusive create, and a write"

ask() { mkfifo "$MNT/new"; }
verify() { [ -p "$MNT/new" ]; }
every_point "mkfifo"

ask() { ln -s target "$MNT/new"; }
verify() { [ "$(readlink "$MNT/new")" = target ]; }
every_point "symlink"

prepare() { echo text >"$MNT/old"; }
ask() { ln "$MNT/old" "$MNT/new"; }
verify() { [ "$(stat -c %h "$MNT/old")" = 2 ] && [ "$(cat "$MNT/new")" = text ]; }
every_point "link"

ask() { rm "$MNT/old"; }
verify() { [ -z "$(ls "$MNT")" ] && [ "$(stat_of inodes_used)" = 1 ]; }
every_point "unlink"

ask() { mv -T "$MNT/old" "$MNT/new"; }
verify() { [ "$(ls "$MNT")" = new ] && [ "$(cat "$MNT/new")" = text ]; }
every_point "rename"

ask() { mv -nT "$MNT/old" "$MNT/new" && [ ! -e "$MNT/old" ]; }
every_point "rename, not to replace"

prepare() { mkdir "$MNT/dir" && echo text >"$MNT/old" && echo other >"$MNT/dir/new"; }
ask() { mv -T "$MNT/old" "$MNT/dir/new"; }
verify() { [ "$(ls "$MNT")" = dir ] && [ "$(cat "$MNT/dir/new")" = text ]; }
every_point "rename over another"

prepare() { mkdir "$MNT/old"; }
ask() { rmdir "$MNT/old"; }
verify() { [ -z "$(ls "$MNT")" ] && [ "$(stat_of inodes_used)" = 1 ]; }
every_point "rmdir"

prepare() { seq 1 20000 >"$MNT/old"; }
ask() { echo appended >>"$MNT/old"; }
verify() { [ "$(tail -n 2 "$MNT/old" | tr '\n' ' ')" = "20000 appended " ]; }
every_point "append"

ask() { truncate -s 1000 "$MNT/old"; }
verify() { [ "$(stat -c %s "$MNT/old")" = 1000 ] && cmp -n 1000 "$MNT/old" <(seq 1 20000); }
every_point "truncate"

ask() { dd if=/dev/zero of="$MNT/old" bs=10000 count=1 seek=1 conv=notrunc status=none; }
verify() { cmp "$MNT/old" <(seq 1 20000 | head -c 10000; head -c 10000 /dev/zero; seq 1 20000 | tail -c +20001); }
every_point "write"

ask() { fallocate -p -o 4096 -l 8192 "$MNT/old"; }
verify() { cmp "$MNT/old" <(seq 1 20000 | head -c 4096; head -c 8192 /dev/zero; seq 1 20000 | tail -c +12289); }
every_point "punching a hole"

ask() { cp --reflink=never "$MNT/old" "$MNT/new"; }
verify() { cmp "$MNT/old" "$MNT/new"; }
every_point "copying a file"

ask() { chmod 4711 "$MNT/old"; }
verify() { [ "$(stat -c %a "$MNT/old")" = 4711 ]; }
every_point "chmod"

if command -v setfattr >/dev/null; then
	ask() { setfattr -n user.new -v value "$MNT/old"; }
	verify() { [ "$(getfattr --absolute-names --only-values -n user.new "$MNT/old")" = value ]; }
	every_point "setxattr"

	prepare() { echo text >"$MNT/old" && setfattr -n user.old -v value "$MNT/old"; }
	ask() { setfattr -x user.old "$MNT/old"; }
	verify() { [ -z "$(getfattr --absolute-names "$MNT/old")" ]; }
	every_point "removexattr"
fi

prepare() { mkdir "$MNT/dir" && touch "$MNT/dir/"{1..40}; }
ask() { [ "$(ls -l "$MNT/dir" | wc -l)" = 41 ]; }
verify() { ask; }
every_point "listing a directory"

# Whatever was counted too often would be kept for ever.
rm -rf "${MNT:?}"/*
drop_caches
sleep 0.2
equal "no inode is left over" "$(stat_of inodes_used)" 1
check "the check finds nothing" "$CTL" check --verify "$MNT"
note "killed at $total points of requests"
