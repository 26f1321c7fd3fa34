#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Block mode mounted and unmounted fifty times in a row, some with a process
# still inside, some with the daemon killed, some without mkfs: nothing is left
# behind, no loop devices, no mounts, no processes, no files.
#
#   CYCLES=50
. "$(dirname "$0")/../system/lib.sh"
: "${CYCLES:=50}"

[ "$(id -u)" = 0 ] || skip_all "not root"
MNT=$TEST_DIR/mnt
mkdir "$MNT"

# All that could be left, each on a line.
world() {
	local device file
	# A device is called after its daemon; others' may come and go.
	losetup -nl -O NAME,BACK-FILE | grep ' /zramfs-' |
		while read -r device file; do
			[ -d "/proc/${file#/zramfs-}" ] &&
				! daemon_pids "$MNT" | grep -qx "${file#/zramfs-}" ||
				echo "$device $file"
		done
	grep -F "$TEST_DIR" /proc/mounts
	daemon_pids "$MNT"
	ls -d /run/*zramfs* /tmp/*zramfs-private* 2>/dev/null
	find "$MNT" -mindepth 1 2>/dev/null
	return 0
}

settled() {
	local i
	for ((i = 0; i < 150; i++)); do
		[ "$(world)" != "$before" ] || return 0
		sleep 0.1
	done
	diff <(echo "$before") <(world)
	return 1
}

before=$(world)
types=(ext4 xfs btrfs)
for ((cycle = 0; cycle < CYCLES; cycle++)); do
	type=${types[cycle % 3]}
	how=$((cycle / 3 % 5))
	if [ $how = 4 ]; then
		(
			PATH=$TEST_DIR
			"$ZRAMFS" "$MNT" -o "size=1g,block=$type"
		) >/dev/null 2>&1 && not_ok "cycle $cycle: it mounts without mkfs"
		check "cycle $cycle: $type, no mkfs" settled
		continue
	fi
	check "cycle $cycle: $type, mount" \
		"$ZRAMFS" "$MNT" -o "size=1g,alg=lz4,block=$type"
	cp -a /usr/include/linux "$MNT/"
	case $how in
	0)
		umount "$MNT"
		check "cycle $cycle: $type, umount" settled
		;;
	1)
		(cd "$MNT" && exec sleep 1) &
		sleep 0.2
		umount "$MNT" 2>/dev/null && not_ok "cycle $cycle: umount of a busy mount"
		umount -l "$MNT"
		wait
		check "cycle $cycle: $type, a process inside" settled
		;;
	2)
		for pid in $(daemon_pids "$MNT"); do
			kill -KILL "$pid"
		done
		timeout 60 umount "$MNT"
		check "cycle $cycle: $type, daemon killed" settled
		;;
	3)
		# While the kernel writes back.
		sync -f "$MNT" &
		kill -KILL "$(stat_of pid)"
		wait $! || not_ok "cycle $cycle: $type, sync while a worker is killed"
		check "cycle $cycle: $type, it goes on with another worker" \
			diff -r /usr/include/linux "$MNT/linux"
		umount "$MNT"
		check "cycle $cycle: $type, worker killed" settled
		;;
	esac
done
