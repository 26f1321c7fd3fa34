#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Block mode while memory is short: daemon, writers and 'stress-ng --vm' share
# a memory cgroup that is too small for them. Files are written, checked and
# deleted all the while: slow, but no hang, no error and no lost data.
#
#   DURATION=60      seconds; 600 for a long look
#   LIMIT=400        MiB, of the cgroup
#   PRESS=85         % of it, what stress-ng fills
#   TYPES="ext4 xfs btrfs"
#   WHERE="inside outside"  where the daemon is: in that cgroup or not
. "$(dirname "$0")/../system/lib.sh"
: "${DURATION:=60}" "${LIMIT:=400}" "${PRESS:=85}" "${TYPES:=ext4}" "${WHERE:=inside outside}"

[ "$(id -u)" = 0 ] || skip_all "not root"
command -v stress-ng >/dev/null || skip_all "no stress-ng"

# A cgroup of either version that bounds memory.
GROUP=
make_group() {
	local root
	for root in /sys/fs/cgroup/memory /sys/fs/cgroup; do
		[ -e "$root/memory.limit_in_bytes" ] ||
			grep -qw memory "$root/cgroup.subtree_control" 2>/dev/null ||
			continue
		GROUP=$root/zramfs-test.$$
		mkdir "$GROUP" || return
		if [ -e "$GROUP/memory.max" ]; then
			echo $((LIMIT << 20)) >"$GROUP/memory.max"
		else
			echo $((LIMIT << 20)) >"$GROUP/memory.limit_in_bytes"
		fi
		return
	done
	return 1
}

# Run a command in the group, in the background: $! is its process.
inside() {
	(
		echo $BASHPID >"$GROUP/cgroup.procs"
		exec "$@"
	)
}

take_down() {
	local pid i
	cd /
	[ -z "$GROUP" ] || for pid in $(cat "$GROUP/cgroup.procs"); do
		case " $(daemon_pids "$MNT" | tr '\n' ' ') " in
		*" $pid "*) ;;
		*) kill -KILL "$pid" ;;
		esac
	done
	mountpoint -q "$MNT" && timeout 60 umount "$MNT"
	for ((i = 0; i < 100; i++)); do
		rmdir "$GROUP" 2>/dev/null && break
		sleep 0.1
	done
	GROUP=
}
trap 'take_down; clean_up' EXIT
MNT=$TEST_DIR/mnt
mkdir "$MNT"

# Four files of 16 MiB are written, two that were written before are checked,
# and deleted; what is in each can be told from its name.
write_one() {
	openssl enc -aes-128-ctr -pass "pass:$1" -nosalt -md sha256 </dev/zero \
		2>/dev/null | base64 -w 0 | head -c 16M
}

writer() { # NAME SECONDS
	local round=0 end=$((SECONDS + $2)) i
	while [ $SECONDS -lt "$end" ]; do
		round=$((round + 1))
		write_one "$1-$round" >"$MNT/$1-$round" || return
		write_one "$1-$round" | cksum >"$TEST_DIR/sum-$1-$round"
		i=$((round - 3))
		[ $i -gt 0 ] || continue
		cksum <"$MNT/$1-$i" | cmp -s - "$TEST_DIR/sum-$1-$i" ||
			{ echo "$1-$i differs"; return 1; }
		rm "$MNT/$1-$i"
	done
	echo "$round rounds" >"$TEST_DIR/rounds-$1"
	for ((i = round - 2; i <= round; i++)); do
		[ $i -gt 0 ] || continue
		cksum <"$MNT/$1-$i" | cmp -s - "$TEST_DIR/sum-$1-$i" ||
			{ echo "$1-$i differs"; return 1; }
	done
}

one() { # TYPE WHERE
	local name="$1, daemon $2" pids=() pid stress status=0
	if ! make_group; then
		skip "$name" "no memory cgroup can be made"
		GROUP=
		return
	fi
	local run=()
	[ "$2" = inside ] && run=(inside)
	if ! "${run[@]}" "$ZRAMFS" "$MNT" -o \
		"size=1g,alg=lz4,hot=16m,block=$1${MOUNT_OPTIONS:+,$MOUNT_OPTIONS}"; then
		not_ok "$name: mount"
		return
	fi
	inside stress-ng --vm 2 --vm-bytes "$((LIMIT * PRESS / 100))m" --vm-keep \
		--timeout "$DURATION" >"$TEST_DIR/stress.log" 2>&1 &
	stress=$!
	for i in 1 2 3; do
		export MNT TEST_DIR
		inside bash -c "$(declare -f writer write_one); writer $i $DURATION" \
			>"$TEST_DIR/writer-$i" 2>&1 &
		pids+=($!)
	done
	# Ten times the time, or it hangs.
	for ((i = 0; i < DURATION * 10; i++)); do
		kill -0 "${pids[@]}" 2>/dev/null || break
		sleep 1
	done
	for pid in "${pids[@]}"; do
		kill -0 "$pid" 2>/dev/null && [ "$i" -ge $((DURATION * 10)) ] &&
			not_ok "$name: a writer hangs" "$(cat "/proc/$pid/stack")"
		wait "$pid" || status=$?
	done
	equal "$name: writers and their checks" "$status" 0
	note "$name: $(cat "$TEST_DIR"/rounds-* 2>/dev/null | paste -sd,)" \
		"$(cat "$TEST_DIR"/writer-? 2>/dev/null)" \
		"failcnt $(cat "$GROUP/memory.failcnt" 2>/dev/null)" \
		"oom: $(grep -s oom_kill "$GROUP/memory.oom_control" "$GROUP/memory.events" | paste -sd' ')"
	kill "$stress" 2>/dev/null
	wait "$stress" 2>/dev/null
	check "$name: sync" timeout 120 sync -f "$MNT"
	check "$name: check is clean" "$CTL" check --verify "$MNT"
	equal "$name: checksum errors" "$(stat_of checksum_errors)" 0
	check "$name: umount" timeout 120 umount "$MNT"
	take_down
}

for type in $TYPES; do
	for where in $WHERE; do
		one "$type" "$where"
	done
done
