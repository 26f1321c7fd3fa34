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

step=7
if [ "${POINTS:-}" = all ]; then
	step=1
	export STRIDE=1
fi
# alone NAME PROGRAM
alone() {
	local output
	if output=$("$faults/tests/unit/$2" 2>&1); then
		ok "in $1 alone"
	else
		not_ok "in $1 alone" "$(tail -n 60 <<<"$output")"
	fi
	note "$(grep -a '^#' <<<"$output")"
}
alone "the filesystem" test_recovery_points
alone "clusters" test_cluster

ZRAMFS=$faults/zramfs CTL=$faults/zramfsctl
mount_zramfs size=256m
total=0 operations=0
# No operation is less than two requests, and a request passes at least four
# points: it is begun, its answer is to be sent, and sent, and it is done.
least=$((8 / step))

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
	if [ $killed -ge $least ]; then
		ok "$1: killed at $killed points"
	else
		not_ok "$1" "killed at $killed points only"
	fi
}

operation() { every_point "$1"; }
. "$(dirname "$0")/operations.sh"

# Whatever was counted too often would be kept for ever.
rm -rf "${MNT:?}"/*
drop_caches
sleep 0.2
equal "no inode is left over" "$(stat_of inodes_used)" 1
check "the check finds nothing" "$CTL" check --verify "$MNT"
note "killed at $total points of requests"
