#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# An image file in the mount carries a filesystem through the loop device:
# what is written there is there after unmounting, e2fsck finds nothing, and
# fstrim gives memory back.
. "$(dirname "$0")/lib.sh"

LOOP=
: "${LOOP_TREE:=/usr/include}"

take_down() {
	mountpoint -q "$TEST_DIR/ext4" && umount "$TEST_DIR/ext4"
	[ -z "$LOOP" ] || losetup -d "$LOOP"
	LOOP=
}
trap 'take_down; clean_up' EXIT

mount_fs size=4g,alg=lz4
mkdir "$TEST_DIR/ext4"
probe=$(losetup -f 2>&1) || skip_all "no loop device: $probe"
sums "$LOOP_TREE" >"$TEST_DIR/want"

through() { # NAME LOSETUP-OPTIONS...
	local name=$1 image=$MNT/image empty full
	shift
	truncate -s 2g "$image"
	if ! LOOP=$(losetup --show -f "$@" "$image" 2>"$TEST_DIR/why"); then
		not_ok "$name: losetup" "$(cat "$TEST_DIR/why")"
		LOOP=
		return
	fi
	check "$name: mkfs.ext4" mkfs.ext4 -q -F "$LOOP"
	check "$name: mount" mount "$LOOP" "$TEST_DIR/ext4"
	sync -f "$TEST_DIR/ext4"
	empty=$(stat -c %b "$image")
	check "$name: a tree is copied in" cp -a "$LOOP_TREE" "$TEST_DIR/ext4/tree"
	check "$name: unmount" umount "$TEST_DIR/ext4"
	check "$name: e2fsck finds nothing" e2fsck -f -n "$LOOP"
	losetup -d "$LOOP"
	drop_caches
	LOOP=$(losetup --show -f "$@" "$image")
	check "$name: mount again" mount "$LOOP" "$TEST_DIR/ext4"
	sums "$TEST_DIR/ext4/tree" >"$TEST_DIR/got"
	check "$name: the tree is what was copied" \
		cmp "$TEST_DIR/want" "$TEST_DIR/got"
	full=$(stat -c %b "$image")
	rm -r "$TEST_DIR/ext4/tree"
	sync -f "$TEST_DIR/ext4"
	check "$name: fstrim" fstrim "$TEST_DIR/ext4"
	between "$name: fstrim gives blocks back" "$(stat -c %b "$image")" 0 \
		$((empty + (full - empty) / 2))
	check "$name: unmount again" umount "$TEST_DIR/ext4"
	check "$name: e2fsck finds nothing again" e2fsck -f -n "$LOOP"
	losetup -d "$LOOP"
	LOOP=
	rm "$image"
}

through buffered
through direct --direct-io=on
if on_zramfs; then
	check "check is clean" "$CTL" check --verify "$MNT"
	equal "deleted images leave nothing used" "$(stat_of size_used)" 0
fi
