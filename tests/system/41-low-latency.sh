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

[ "$(asked_for)" != 0 ] || skip_all "somebody else keeps processors awake"

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

mount_zramfs low_latency=on
check "while requests come fast, processors are kept awake" is_awake_when_busy
check "once they no longer come, it is over" is_released
for i in 1 2 3 4 5; do stat "$MNT/none$i" >/dev/null 2>&1; sleep 0.05; done
check "a request now and then changes nothing" test "$(asked_for)" != 0
unmount "$MNT"

mount_zramfs low_latency=off
refuses "low_latency=off leaves them alone" is_awake_when_busy
