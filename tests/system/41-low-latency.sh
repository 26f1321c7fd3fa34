#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# 41-low-latency.sh - idle processors are kept awake while requests come fast,
# and left alone when they do not
#
# /dev/cpu_dma_latency can be read: four bytes, the latency that is asked for
# by whoever asks for the least.
. "$(dirname "$0")/lib.sh"

DEVICE=/dev/cpu_dma_latency
[ -w $DEVICE ] || skip_all "$DEVICE cannot be written to"

asked_for() {
	od -An -td4 $DEVICE | tr -d ' '
}

# Requests, one after the other: extended attributes are not cached.
ask_often() {
	python3 -c '
import os, sys, time
end = time.monotonic() + 2
while time.monotonic() < end:
    os.listxattr(sys.argv[1])' "$MNT"
}

# Whether it is asked for in the midst of requests.
is_awake_when_busy() {
	local asker i awake=1
	ask_often &
	asker=$!
	for i in $(seq 50); do
		[ "$(asked_for)" != 0 ] || { awake=0; break; }
		sleep 0.02
	done
	wait $asker
	return $awake
}

# Within a second, for the machine may be busy.
is_released() {
	local i
	for i in $(seq 50); do
		[ "$(asked_for)" = 0 ] || return 0
		sleep 0.02
	done
	return 1
}

is_released || skip_all "somebody else keeps processors awake"

# Once at least, right after a request: what else asks, asks now and then.
is_left_alone() {
	local i
	for i in $(seq 10); do
		stat "$MNT/none$i" >/dev/null 2>&1
		[ "$(asked_for)" = 0 ] || return 0
		sleep 0.05
	done
	return 1
}

# Only who has it open can ask; others' asking is not mistaken for ours.
has_device() {
	ls -l "/proc/$(worker_of "$MNT")/fd" | grep -q "$DEVICE\$"
}

# What is asked for by another mount, or program, is as good as ours.
others_may_ask() {
	find /proc/[0-9]*/fd -lname $DEVICE ! -path \
		"/proc/$(worker_of "$MNT")/*" 2>/dev/null | grep -q .
}
check_unless_others_ask() {
	if others_may_ask; then
		skip "$1" "somebody else may keep processors awake"
	else
		check "$1" "$2"
	fi
}

mount_zramfs low_latency=on
check "while requests come fast, processors are kept awake" is_awake_when_busy
check_unless_others_ask "once they no longer come, it is over" is_released
check_unless_others_ask "a request now and then changes nothing" is_left_alone
check "the daemon has what it asks by" has_device
unmount "$MNT"

mount_zramfs low_latency=off
ask_often
refuses "low_latency=off leaves them alone" has_device
