#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Block mode, each filesystem: filled to 90 %, half deleted, filled again, all
# checksums right, its own checker content; then all deleted, and of the stored
# pages at most 5 % are left.
#
#   SIZE=1g
. "$(dirname "$0")/../system/lib.sh"
: "${SIZE:=1g}"

[ "$(id -u)" = 0 ] || skip_all "not root"
MNT=$TEST_DIR/mnt
mkdir "$MNT"
trap 'cd /; ! mountpoint -q "$MNT" || umount "$MNT"; clean_up' EXIT

used_percent() {
	df --output=pcent "$MNT" | tail -n 1 | tr -dc 0-9
}

# fill NAME: files of all sizes, some text, some random, up to 90 %.
fill() {
	local i=0 size
	mkdir "$MNT/$1"
	while [ "$(used_percent)" -lt 90 ]; do
		mkdir "$MNT/$1/$i"
		for size in 100 3000 10000 100000 1000000 8000000; do
			{
				head -c $((size / 3)) /dev/urandom
				seq "$i" 1000000 | head -c $((size - size / 3))
			} >"$MNT/$1/$i/$size" || return
		done
		cp -a /usr/include/linux "$MNT/$1/$i/" || return
		sync -f "$MNT"
		i=$((i + 1))
	done
}

stored() {
	stat_of stored_pages
}

fsck_of() { # TYPE DEVICE
	case $1 in
	ext4) e2fsck -f -n "$2" ;;
	xfs) xfs_repair -n "$2" ;;
	btrfs) btrfs check --readonly --force "$2" ;;
	esac
}

one() {
	local type=$1 peak left i
	check "$type: mount" "$ZRAMFS" "$MNT" -o "size=$SIZE,alg=lz4,block=$type"
	check "$type: filled to 90 %" fill first
	sums "$MNT/first" >"$TEST_DIR/sums"
	find "$MNT/first" -mindepth 1 -maxdepth 1 -name '*[02468]' -exec rm -r {} +
	grep -v ' \./[0-9]*[02468]/' "$TEST_DIR/sums" >"$TEST_DIR/want"
	check "$type: filled again" fill second
	sums "$MNT/second" >"$TEST_DIR/want2"
	peak=$(stored)
	echo 3 >/proc/sys/vm/drop_caches
	check "$type: the first are right" cmp "$TEST_DIR/want" <(sums "$MNT/first")
	check "$type: the second are right" cmp "$TEST_DIR/want2" <(sums "$MNT/second")
	check "$type: the store is right" "$CTL" check --verify "$MNT"
	sync -f "$MNT"
	check "$type: remount,ro" mount -o remount,ro "$MNT"
	check "$type: its checker" fsck_of "$type" "$(findmnt -n -o SOURCE "$MNT")"
	check "$type: remount,rw" mount -o remount,rw "$MNT"
	rm -r "$MNT/first" "$MNT/second"
	sync -f "$MNT"
	for ((i = 0; i < 40; i++)); do
		left=$(stored)
		[ "$left" -gt $((peak / 20)) ] || break
		sleep 1
	done
	note "$type: stored pages $peak at the peak, $left left after $i s;" \
		"mem_used_total $(stat_of mem_used_total)"
	check "$type: fstrim" fstrim "$MNT"
	sleep 1
	between "$type: what is left of the pages, of $peak" "$(stored)" 0 $((peak / 20))
	check "$type: umount" umount "$MNT"
	for ((i = 0; i < 100; i++)); do
		[ -n "$(daemon_pids "$MNT")" ] || break
		sleep 0.1
	done
}

for type in ext4 xfs btrfs; do
	one $type
done
