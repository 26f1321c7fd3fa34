#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Every allocation of every operation fails, once each, by enumeration: those
# of the arena, of the heap, of libraries, of mappings. Whoever asked is told
# that there is no memory, or never knows; the worker lives, no lock stays held,
# nothing is half done, and nothing is left over. So do those of a worker that
# starts: then the next one serves.
#
# ALLOCATIONS=all: each one; else every seventh, a different one for each
# operation.
. "$(dirname "$0")/lib.sh"

faults=$BUILD-faults
[ -x "$faults/zramfs" ] || skip_all "no $faults"
ZRAMFS=$faults/zramfs CTL=$faults/zramfsctl
sanitized && skip_all "a sanitizer has the place of malloc"

export ZRAMFS_FAULT_START=$TEST_DIR/start
mount_zramfs size=256m,hot=1m
# For the tests' own use of the command line.
python3 -c pass || skip_all "no python3"

total=0 operations=0
[ "${ALLOCATIONS:-}" = all ] && step=1 || step=7

# True when the one that was to fail has failed. No other is to, from now on.
disarm() {
	local i message
	for i in 1 2 3; do
		# This request may be what it happened to.
		message=$("$CTL" set "$MNT" fault_alloc=0 2>&1) && return
		[[ $message != *"out of range"* ]] || return
	done
}

# Blocks on the daemon's heap.
blocks() {
	local low=0 high=65536 middle
	while [ $((high - low)) -gt 1 ]; do
		middle=$(((low + high) / 2))
		if "$CTL" set "$MNT" fault_blocks=$middle 2>/dev/null; then
			high=$middle
		else
			low=$middle
		fi
	done
	echo $high
}

# once: what was asked for, in an empty filesystem and with memory.
once() {
	rm -rf "${MNT:?}"/* && prepare >/dev/null && ask && verify
}

# every_allocation NAME: until the operation has no more of them.
every_allocation() {
	local n pid message status failed=0 told=0
	pid=$(stat_of pid)
	operations=$((operations + 1))
	for ((n = 1 + operations % step; n < 5000; n += step)); do
		rm -rf "${MNT:?}"/*
		prepare >/dev/null 2>&1
		"$CTL" set "$MNT" fault_alloc=$n
		message=$(export -f ask; MNT=$MNT TEST_DIR=$TEST_DIR timeout 300 bash -c ask 2>&1)
		status=$?
		disarm || break
		failed=$((failed + 1))
		if [ $status -eq 0 ]; then
			message=$(verify 2>&1) || { not_ok "$1" "allocation $n, not told of: $message"; return; }
		else
			told=$((told + 1))
			if [ $status -eq 124 ] || { [ -n "$message" ] &&
				! grep -qE 'Cannot allocate memory|No space left on device' <<<"$message"; }; then
				not_ok "$1" "allocation $n: status $status, $message"
				return
			fi
		fi
		message=$("$CTL" check "$MNT" 2>&1) ||
			{ not_ok "$1" "allocation $n, the check: $message"; return; }
		[ $status -eq 0 ] || message=$(once 2>&1) ||
			{ not_ok "$1" "allocation $n, then: $message"; return; }
	done
	total=$((total + failed))
	equal "$1: $failed allocations failed, $told were told of" "$(stat_of pid)" "$pid"
}

more_operations() {
	prepare() { seq 1 200000 >"$MNT/old"; }
	ask() { sync -f "$MNT" && echo 3 >/proc/sys/vm/drop_caches && seq 1 200000 | cmp - "$MNT/old"; }
	verify() { ask; }
	operation "reading"

	ask() { fallocate -z -o 100 -l 10000 "$MNT/old" && fallocate -o 1m -l 3m "$MNT/old"; }
	verify() { [ "$(stat -c %s "$MNT/old")" = $((4 << 20)) ] && cmp -n 100 "$MNT/old" <(seq 1 200000); }
	operation "zeroing and allocating"

	ask() { dd if=/dev/urandom of="$MNT/new" bs=1M count=3 oflag=direct status=none; }
	verify() { [ "$(stat -c %s "$MNT/new")" = $((3 << 20)) ]; }
	operation "large writes past the hot tier"

	ask() {
		python3 -c '
import mmap, os, sys
file = os.open(sys.argv[1], os.O_RDWR)
with mmap.mmap(file, 100000) as data:
    data[50000:50004] = b"text"
    data.flush()
gone = os.open(os.path.dirname(sys.argv[1]), os.O_TMPFILE | os.O_RDWR)
os.write(gone, b"text")
os.lseek(file, 0, os.SEEK_HOLE)
' "$MNT/old"
	}
	verify() { [ "$(tail -c +50001 "$MNT/old" | head -c 4)" = text ]; }
	operation "mappings, and files without a name"

	ask() { df "$MNT" >/dev/null && "$CTL" du "$MNT" >/dev/null && "$CTL" stat --json "$MNT" >/dev/null; }
	verify() { :; }
	operation "asking for figures"

	ask() { "$CTL" compact "$MNT" >/dev/null; }
	verify() { seq 1 200000 | cmp - "$MNT/old"; }
	operation "compacting"

	ask() { "$CTL" check --verify "$MNT"; }
	operation "checking"
}

# Everything was allocated once that stays.
export HELPERS CTL
operation() { once >/dev/null 2>&1; }
. "$(dirname "$0")/operations.sh"
more_operations
rm -rf "${MNT:?}"/*
drop_caches
"$CTL" compact "$MNT" >/dev/null
before=$(blocks)

operation() { every_allocation "$1"; }
. "$(dirname "$0")/operations.sh"
more_operations

rm -rf "${MNT:?}"/*
drop_caches
sleep 0.5
"$CTL" compact "$MNT" >/dev/null
equal "no inode is left over" "$(stat_of inodes_used)" 1
between "nothing is left on the heap" "$(blocks)" 0 $((before + 8))
between "empty, it takes little memory" "$(stat_of mem_used_total)" 0 $((4 << 20))
note "$total allocations failed"

# --- a worker that starts ----------------------------------------------------------

cp -r src "$MNT/src"
sums "$MNT/src" >"$TEST_DIR/sums"
for ((n = 1; n < 5000; n += step == 1 ? 1 : 3)); do
	pid=$(stat_of pid)
	echo $n >"$TEST_DIR/start"
	kill -KILL "$pid"
	# The one that fails may be that of a request.
	stat -f "$MNT" >/dev/null 2>&1 || stat -f "$MNT" >/dev/null ||
		{ not_ok "starting" "allocation $n"; break; }
	"$CTL" set "$MNT" fault_alloc=0 2>&1 | grep -q 'out of range' && break
done
check "a worker was started that had no memory, $n times" [ "$n" -gt 10 ]
check "all is there" diff "$TEST_DIR/sums" <(sums "$MNT/src")
check "the check finds nothing" "$CTL" check --verify "$MNT"
