#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Block mode: one command mounts ext4, xfs or btrfs, one umount takes all of it
# down, and nothing is left behind however it ends.
. "$(dirname "$0")/lib.sh"

on_zramfs || skip_all "about zramfs, and this is $FS"
[ "$(id -u)" = 0 ] || skip_all "not root"
losetup -f >/dev/null 2>&1 || skip_all "no loop devices"

# The loop devices that block mode has made here, or daemons that are gone:
# they are called after their daemon, and others may run it at the same time.
devices() {
	local device file
	losetup -nl -O NAME,BACK-FILE | grep -E ' /zramfs-[0-9]+( |$)' | sort |
		while read -r device file _; do
			[ ! -d "/proc/${file#/zramfs-}" ] ||
				grep -qF "$TEST_DIR" "/proc/${file#/zramfs-}/cmdline" &&
				echo "$device $file"
		done
	return 0
}

# What is there of a mount point: daemons, mounts.
remains() {
	local pid
	for pid in $(daemon_pids "$1"); do
		# A zombie is whoever started it to wait for.
		grep -q '^State:.*Z' "/proc/$pid/status" 2>/dev/null || echo "process $pid"
	done
	grep -F " $1 " /proc/mounts
	ls -d /run/zramfs* /tmp/zramfs-private* 2>/dev/null
}

# gone NAME DIRECTORY DEVICE: within a few seconds, nothing is left.
gone() {
	local i left
	for ((i = 0; i < 100; i++)); do
		left=$(remains "$2"
			[ -z "$3" ] || devices | grep "^$3 ")
		[ -n "$left" ] || break
		sleep 0.1
	done
	equal "$1: nothing is left" "$left" ""
}

# start OPTIONS: as try_mount, but what follows ends it.
start() {
	mkdir -p "$MNT"
	"$ZRAMFS" "$MNT" -o "$1${MOUNT_OPTIONS:+,$MOUNT_OPTIONS}" \
		>"$TEST_DIR/mount.log" 2>&1 || { cat "$TEST_DIR/mount.log"; return 1; }
}

device_of() {
	findmnt -n -o SOURCE "$1"
}

tree() {
	mkdir "$MNT/tree" && cp -a /usr/include/linux /usr/include/c++ \
		"$MNT/tree" 2>/dev/null
	[ -d "$MNT/tree/linux" ]
}

stored() {
	echo $(($(stat_of orig_data_size) / 4096 - $(stat_of same_pages)))
}

one_filesystem() { # TYPE PROGRAM-PACKAGE
	local type=$1 device peak i
	if ! command -v "mkfs.$type" >/dev/null; then
		skip "$type" "no mkfs.$type"
		return
	fi
	if ! grep -qw "$type" /proc/filesystems; then
		skip "$type" "not in this kernel"
		return
	fi
	MNT=$TEST_DIR/$type
	check "$type: mounts" start \
		"size=1g,alg=lz4,block=$type,mode=1750,uid=12,gid=34,nosuid,nodev,noexec"
	[ "$(findmnt -n -o FSTYPE "$MNT")" = "$type" ] || return
	device=$(device_of "$MNT")
	equal "$type: mode and owner of the root" \
		"$(stat -c '%a %u %g' "$MNT")" "1750 12 34"
	for i in nosuid nodev noexec; do
		check "$type: $i" grep -qw "$i" <(findmnt -n -o VFS-OPTIONS "$MNT")
	done
	equal "$type: stat finds the store, and the device's size" \
		"$(stat_of size)" $((1 << 30))
	check "$type: a tree is copied in" tree
	check "$type: fsync" sync -f "$MNT"
	peak=$(stored)
	between "$type: the store has it" "$peak" 200 1000000
	sums "$MNT/tree" >"$TEST_DIR/want"
	echo 3 >/proc/sys/vm/drop_caches
	sums "$MNT/tree" >"$TEST_DIR/got"
	check "$type: it is read as it was written" \
		cmp "$TEST_DIR/want" "$TEST_DIR/got"
	rm -r "$MNT/tree"
	sync -f "$MNT"
	for ((i = 0; i < 50; i++)); do
		[ "$(stored)" -ge $((peak / 2)) ] || break
		sleep 0.1
	done
	between "$type: deleting gives memory back" "$(stored)" 0 $((peak / 2))
	equal "$type: du points to stat" "$("$CTL" du "$MNT" 2>&1)" \
		"zramfsctl: $MNT: files there are the device's, not zramfs's (see zramfsctl stat)"
	check "$type: fstrim" fstrim "$MNT"
	check "$type: compact" "$CTL" compact "$MNT"
	check "$type: set mem_limit" "$CTL" set "$MNT" mem_limit=500m
	refuses "$type: set size" "$CTL" set "$MNT" size=2g
	check "$type: check is clean" "$CTL" check --verify "$MNT"
	check "$type: umount" umount "$MNT"
	gone "$type: after umount" "$MNT" "$device"

	check "$type: mounts again" start "size=1g,block=$type"
	equal "$type: open to all, as tmpfs" "$(stat -c %a "$MNT")" 1777
	device=$(device_of "$MNT")
	(cd "$MNT" && : >"$TEST_DIR/inside" && exec sleep 600) &
	i=$!
	await 10 test -e "$TEST_DIR/inside"
	refuses "$type: umount while somebody is in it" umount "$MNT"
	check "$type: umount -l" umount -l "$MNT"
	check "$type: it works on" test -n "$(devices | grep "^$device ")"
	kill "$i"
	wait "$i" 2>/dev/null
	rm "$TEST_DIR/inside"
	gone "$type: after umount -l" "$MNT" "$device"

	start "size=1g,block=$type"
	device=$(device_of "$MNT")
	cp -a /usr/include/linux "$MNT/"
	sums /usr/include/linux >"$TEST_DIR/want"
	i=$(stat_of pid)
	kill -KILL "$i"
	sync -f "$MNT"
	echo 3 >/proc/sys/vm/drop_caches
	sums "$MNT/linux" >"$TEST_DIR/got"
	check "$type: another worker takes over from one that was killed" \
		cmp "$TEST_DIR/want" "$TEST_DIR/got"
	refuses "$type: it is another" test "$(stat_of pid)" = "$i"
	for i in $(daemon_pids "$MNT"); do
		kill -KILL "$i"
	done
	sleep 0.2
	refuses "$type: stat after the daemon was killed" "$CTL" stat "$MNT"
	check "$type: umount after the daemon was killed" timeout 60 umount "$MNT"
	gone "$type: after it was killed" "$MNT" "$device"

	start "size=1g,block=$type"
	device=$(device_of "$MNT")
	cp -a /usr/include/linux "$MNT/"
	i=$(daemon_pids "$MNT" | head -n 1)
	kill -TERM "$i"
	gone "$type: after SIGTERM" "$MNT" "$device"

	check "$type: options for mkfs and mount" start \
		"size=1g,block=$type,mkfs_opts=-L called,mount_opts=noatime\\,sync,ro"
	equal "$type: mkfs_opts" "$(findmnt -n -o LABEL "$MNT")" called
	check "$type: ro" grep -qw ro <(findmnt -n -o VFS-OPTIONS "$MNT")
	umount "$MNT"
	gone "$type: after umount of ro" "$MNT" ""
}

# fails NAME WORDS OPTIONS: it does, says so in one line, and leaves nothing.
fails() {
	MNT=$TEST_DIR/fails
	local before
	before=$(devices)
	refuses "$1" start "$3"
	check "$1: it says why" grep -q -- "$2" "$TEST_DIR/mount.log"
	equal "$1: in one line" "$(wc -l <"$TEST_DIR/mount.log")" 1
	gone "$1" "$MNT" ""
	equal "$1: no device is left" \
		"$(comm -13 <(echo "$before") <(devices))" ""
}

# What is deleted comes back by itself, though nobody waits for discards.
trimmed() {
	local name=$1 peak left i
	tree
	sync -f "$MNT"
	peak=$(stored)
	rm -r "$MNT/tree"
	for ((i = 0; i < 100; i++)); do
		left=$(stored)
		[ "$left" -gt $((peak / 20)) ] || break
		sleep 0.1
	done
	note "$name: of $peak pages $left are left after $i looks"
	between "$name: deleted files are given back" "$left" 0 $((peak / 20))
}

trims() {
	local device i
	command -v mkfs.ext4 >/dev/null || return
	MNT=$TEST_DIR/trims
	start "size=1g,block=ext4" || return
	device=$(device_of "$MNT")
	refuses "trims: none while one waits" grep -qw discard \
		<(findmnt -n -o FS-OPTIONS "$MNT")
	trimmed "trims"
	kill -KILL "$(stat_of pid)"
	trimmed "trims, by another worker"
	# Deleted before the next worker began to look. Without a journal ext4
	# uses no inode again for a minute: its tables have grown by now.
	tree
	sync -f "$MNT"
	peak=$(stored)
	rm -r "$MNT/tree"
	kill -KILL "$(stat_of pid)"
	for ((i = 0; i < 100; i++)); do
		[ "$(stored)" -gt $((peak / 10)) ] || break
		sleep 0.1
	done
	between "trims: what was freed before a worker began" \
		"$(stored)" 0 $((peak / 10))
	# In the middle of a trim, or nearly so.
	for i in 0.1 0.3 0.5; do
		mountpoint -q "$MNT" || start "size=1g,block=ext4"
		device=$(device_of "$MNT")
		tree
		sync -f "$MNT"
		rm -r "$MNT/tree"
		sleep $i
		check "trims: umount $i s after deleting" umount "$MNT"
		gone "trims: after it" "$MNT" "$device"
	done
	check "trims: with mem_limit" start "size=1g,mem_limit=600m,block=ext4"
	check "trims: at once, with mem_limit" grep -qw discard \
		<(findmnt -n -o FS-OPTIONS "$MNT")
	umount "$MNT"
	gone "trims: with mem_limit" "$MNT" ""
}

# Filled beyond mem_limit: nothing but the data that found no place is lost.
limited() { # TYPE
	local type=$1 device number i message=
	command -v "mkfs.$type" >/dev/null && grep -qw "$type" /proc/filesystems ||
		return
	MNT=$TEST_DIR/limited-$type
	check "$type, limited: mounts" start \
		"size=1g,mem_limit=100m,alg=lz4,block=$type"
	device=$(device_of "$MNT")
	cp -a /usr/include/linux "$MNT/first"
	sync -f "$MNT"
	for ((i = 0; i < 30; i++)); do
		dd if=/dev/urandom of="$MNT/noise$i" bs=1M count=8 conv=fsync \
			>"$TEST_DIR/dd.log" 2>&1 && continue
		message+=$(grep -o 'error writing\|fsync failed' "$TEST_DIR/dd.log")
		grep -q "No space left on device" "$TEST_DIR/dd.log" ||
			message+=" $(cat "$TEST_DIR/dd.log")"
		[ ${#message} -lt 60 ] || break
	done
	if [ "$type" = ext4 ]; then
		# write(2) tells; and so does df.
		equal "$type, limited: it is full" \
			"${message//error writing/}" ""
		between "$type, limited: df, MiB" \
			"$(df -m --output=avail "$MNT" | tail -n 1)" 0 16
	fi
	for i in 1 2 3; do
		mkdir "$MNT/small$i" && echo $i >"$MNT/small$i/file"
	done >/dev/null 2>&1
	kill -KILL "$(stat_of pid)"
	rm "$MNT"/noise* 2>/dev/null
	sync -f "$MNT" 2>/dev/null # what was lost is told once
	# As the manual tells of btrfs: whether its tables find a place is a
	# matter of what is written back when.
	if [ "$type" = btrfs ] && findmnt -n -o FS-OPTIONS "$MNT" | grep -qw ro; then
		skip "$type, limited: goes on" "it has become read-only"
	else
		between "$type, limited: writes that failed" ${#message} 1 100
		check "$type, limited: deleting helps" dd if=/dev/urandom \
			of="$MNT/again" bs=1M count=8 conv=fsync
		check "$type, limited: sync" sync -f "$MNT"
		echo 3 >/proc/sys/vm/drop_caches
		check "$type, limited: what was there is right" \
			diff -r /usr/include/linux "$MNT/first"
		check "$type, limited: remount,ro" mount -o remount,ro "$MNT"
	fi
	case $type in
	ext4) check "$type, limited: e2fsck" e2fsck -f -n "$device" ;;
	xfs) check "$type, limited: xfs_repair" xfs_repair -n "$device" ;;
	btrfs) check "$type, limited: btrfs check" \
		btrfs check --readonly --force "$device" ;;
	esac
	check "$type, limited: check" "$CTL" check --verify "$MNT"
	number=$(cat "/sys/block/${device#/dev/}/dev")
	umount "$MNT"
	gone "$type, limited: after umount" "$MNT" "$device"
	if [ -e "/sys/class/bdi/$number/strict_limit" ]; then
		equal "$type, limited: the device has no bound any more" \
			"$(cat "/sys/class/bdi/$number/strict_limit")" 0
	fi
}

# The worker goes on, and what asks it finds it.
keeper_killed() {
	local device i
	command -v mkfs.ext4 >/dev/null || return
	MNT=$TEST_DIR/keeper
	start "size=1g,block=ext4" || return
	device=$(device_of "$MNT")
	for i in $(keeper_of "$MNT"); do
		kill -KILL "$i"
	done
	for ((i = 0; i < 50; i++)); do
		[ -n "$(keeper_of "$MNT")" ] || break
		sleep 0.1
	done
	check "keeper killed: stat" "$CTL" stat "$MNT"
	check "keeper killed: check" "$CTL" check --verify "$MNT"
	check "keeper killed: writing" cp -a /usr/include/linux "$MNT/"
	check "keeper killed: set" "$CTL" set "$MNT" mem_limit=500m
	check "keeper killed: umount" umount "$MNT"
	gone "keeper killed: after umount" "$MNT" "$device"
}

# --- given up while it is being made -----------------------------------------

# A mkfs that takes long: what it is, is in the file.
SLOW=$TEST_DIR/slow
mkdir "$SLOW"
cat >"$SLOW/mkfs.ext4" <<-END
	#!/bin/sh
	echo \$\$ >"$SLOW/pid"
	exec sleep 600
END
chmod 755 "$SLOW/mkfs.ext4"

# A zombie has ended.
has_ended() {
	! grep -q '^State:.*[^Z] (' "/proc/$1/status" 2>/dev/null
}

# begin_slowly OPTIONS: to where mkfs runs. $STARTER is the command.
begin_slowly() {
	rm -f "$SLOW/pid"
	mkdir -p "$MNT"
	PATH=$SLOW:$PATH "$ZRAMFS" "$MNT" -o "size=1g,block=ext4$1" \
		>"$TEST_DIR/mount.log" 2>&1 &
	STARTER=$!
	await 10 test -s "$SLOW/pid"
}

# The processes of it, but for the command that waits.
daemon_of() { # keeper|worker
	"$1_of" "$MNT" | grep -vx "$STARTER"
}

# given_up NAME WORDS LINES: it has, and says why.
given_up() {
	local name=$1 status
	wait "$STARTER" 2>/dev/null
	status=$?
	refuses "$name: the command fails" test $status = 0
	check "$name: it says why" await 10 grep -q -- "$2" "$TEST_DIR/mount.log"
	check "$name: mkfs has ended" await 10 has_ended "$(cat "$SLOW/pid")"
	gone "$name" "$MNT" ""
	equal "$name: lines" "$(wc -l <"$TEST_DIR/mount.log")" "$3"
	equal "$name: no device is left" \
		"$(comm -13 <(echo "$DEVICES") <(devices))" ""
}

stopped() {
	local signal
	MNT=$TEST_DIR/stopped
	DEVICES=$(devices)
	for signal in TERM HUP; do
		begin_slowly ""
		kill -$signal "$(daemon_of keeper)"
		given_up "SIG$signal to the keeper" "mkfs.ext4: stopped by a signal" 1
	done
	begin_slowly ""
	kill -TERM "$(daemon_of worker)"
	given_up "SIGTERM to the worker" "mkfs.ext4: stopped by a signal" 1
	begin_slowly ",keeper=off"
	kill -TERM "$(daemon_of keeper)"
	given_up "SIGTERM without a keeper" "mkfs.ext4: stopped by a signal" 1

	for signal in TERM KILL; do
		begin_slowly ""
		kill -$signal "$STARTER"
		given_up "SIG$signal to the command" "the command .* was killed" 1
	done
	begin_slowly ",keeper=off"
	kill -TERM "$STARTER"
	given_up "SIGTERM to the command, without a keeper" \
		"the command .* was killed" 1

	begin_slowly ""
	kill -KILL "$(daemon_of keeper)"
	given_up "keeper killed" "the keeper was killed" 2
	begin_slowly ""
	kill -KILL "$(daemon_of worker)"
	given_up "worker killed" "a worker died while it made the filesystem" 3
	begin_slowly ",keeper=off"
	kill -KILL "$(daemon_of keeper)"
	given_up "killed, without a keeper" "killed while starting" 1

	begin_slowly ""
	mount -t tmpfs tmpfs "$MNT"
	wait "$STARTER"
	check "another mount: it stays" test "$(findmnt -n -o FSTYPE "$MNT")" = tmpfs
	umount "$MNT"
	given_up "another mount" "mounted on or moved by another" 1
	begin_slowly ""
	mv "$MNT" "$MNT-moved"
	mkdir "$MNT"
	# Noticed as soon as something is mounted anywhere.
	mount -t tmpfs tmpfs "$MNT-moved"
	given_up "moved away" "mounted on or moved by another" 1
	umount "$MNT-moved"
}

# Nothing is mounted over a zramfs, and a dead one is told from a live one.
occupied() {
	local pid
	MNT=$TEST_DIR/occupied
	start "size=1g,block=ext4" || return
	refuses "a second one in its place" start "size=1g,block=ext4"
	check "a second one: it says why" grep -q "already a zramfs mount" \
		"$TEST_DIR/mount.log"
	refuses "files in its place" start "size=1g"
	for pid in $(daemon_pids "$MNT"); do
		kill -KILL "$pid"
	done
	await 10 has_ended "$pid"
	refuses "a dead one's place" start "size=1g,block=ext4"
	check "a dead one: it says what to do" \
		grep -q "daemon is gone; unmount it first: umount $MNT" \
		"$TEST_DIR/mount.log"
	umount "$MNT"
	gone "a dead one" "$MNT" ""
}

one_filesystem ext4
one_filesystem xfs
one_filesystem btrfs
trims
for type in ext4 xfs btrfs; do
	limited $type
done
keeper_killed
stopped
occupied
(
	# No mkfs at all.
	PATH=$TEST_DIR
	"$ZRAMFS" "$TEST_DIR" -o size=1g,block=ext4
) >"$TEST_DIR/why" 2>&1 && not_ok "no mkfs" "it succeeded"
check "no mkfs: it says so" grep -q "mkfs.ext4: not found" "$TEST_DIR/why"
fails "mkfs fails" "mkfs.ext4 with mkfs_opts=-O nonsense: .*nonsense" \
	"size=1g,block=ext4,mkfs_opts=-O nonsense"
fails "mount fails" "mounting ext4 with mount_opts=nonsense: .*nonsense" \
	"size=1g,block=ext4,mount_opts=nonsense"
fails "mount fails, and only the kernel's log tells why" \
	"mounting xfs with mount_opts=logdev=/none: .*; dmesg may tell why" \
	"size=1g,block=xfs,mount_opts=logdev=/none"
fails "no size" "size=0" "size=0,block=ext4"
fails "an option without meaning" "writeback" "size=1g,block=ext4,writeback"
fails "no such filesystem" "block=zfs" "size=1g,block=zfs"
fails "too large" "use at most [0-9]*g, 1024 times" "size=1000000t,block=xfs"
fails "too small" "mkfs.ext4: .*use size=64m or more" "size=4k,block=ext4"
for type in ext4 xfs btrfs; do
	check "$type of the size that is said to be enough" \
		"$ZRAMFS" "$MNT" -o "size=64m,block=$type"
	check "... unmounts" umount "$MNT"
done
