#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A bit flips in a stored page, through a mount: in each kind of page there is.
# Whoever reads that page gets EIO, it is counted, all others are as they were,
# and the filesystem goes on; what is written there anew can be read.
. "$(dirname "$0")/lib.sh"

faults=$BUILD-faults
[ -x "$faults/zramfs" ] || skip_all "no $faults"
ZRAMFS=$faults/zramfs CTL=$faults/zramfsctl
data=$HELPERS/datafile
PAGES=64 BAD=17

# reads FILE PAGE: a page of it, past any cache.
reads() {
	dd if="$1" of=/dev/null bs=4096 skip="$2" count=1 iflag=direct 2>&1
}

# Every page of a file but the bad one reads as in the file that it was.
others_are_fine() {
	local page
	for ((page = 0; page < PAGES; page++)); do
		[ $page -ne $BAD ] || continue
		cmp <(dd if="$1" bs=4096 skip=$page count=1 iflag=direct status=none) \
			<(dd if="$2" bs=4096 skip=$page count=1 status=none) || return
	done
}

# damaged KIND FILE ORIGINAL: flip a bit of it, and look.
damaged() {
	local kind=$1 file=$2 original=$3 pid before message
	pid=$(stat_of pid)
	before=$(stat_of checksum_errors)
	check "$kind: a bit flips" "$CTL" set "$file" fault_flip=$BAD
	message=$(reads "$file" $BAD)
	check "$kind: that page gives EIO" grep -q 'Input/output error' <<<"$message"
	between "$kind: it is counted" "$(($(stat_of checksum_errors) - before))" 1 10
	check "$kind: all others are fine" others_are_fine "$file" "$original"
	drop_caches
	message=$(cat "$file" 2>&1 >/dev/null)
	check "$kind: reading through the cache says so, too" \
		grep -q 'Input/output error' <<<"$message"
	equal "$kind: the worker lives" "$(stat_of pid)" "$pid"
}

# mended KIND FILE ORIGINAL: write it anew.
mended() {
	dd if="$3" of="$2" bs=4096 skip=$BAD seek=$BAD count=1 conv=notrunc status=none
	drop_caches
	check "$1: written anew, all is there" cmp "$2" "$3"
}

"$data" write "$TEST_DIR/text" text 7 $((PAGES * 4096)) >/dev/null
"$data" write "$TEST_DIR/random" random 7 $((PAGES * 4096)) >/dev/null

mount_zramfs size=256m,hot=16m,alg=lz4
cp "$TEST_DIR/text" "$MNT/hot"
sync -f "$MNT"
between "some pages are hot" "$(stat_of hot_pages)" $PAGES $((PAGES * 2))
damaged "hot" "$MNT/hot" "$TEST_DIR/text"
mended "hot" "$MNT/hot" "$TEST_DIR/text"
unmount "$MNT"

for pool in zsmalloc zbud z3fold; do
	for codec in lz4 lz4hc lzo zstd:3 deflate:6; do
		[ $pool = zsmalloc ] || [ $codec = lz4 ] || continue
		mount_zramfs size=256m,hot=1m,alg=$codec,pool=$pool
		cp "$TEST_DIR/text" "$MNT/file"
		sync -f "$MNT"
		"$CTL" compact "$MNT" >/dev/null
		equal "$codec, $pool: none is hot" "$(stat_of hot_pages)" 0
		equal "$codec, $pool: none is huge" "$(stat_of huge_pages)" 0
		damaged "$codec, $pool" "$MNT/file" "$TEST_DIR/text"
		mended "$codec, $pool" "$MNT/file" "$TEST_DIR/text"
		unmount "$MNT"
	done
	mount_zramfs size=256m,hot=1m,alg=lz4,pool=$pool
	cp "$TEST_DIR/random" "$MNT/huge"
	sync -f "$MNT"
	"$CTL" compact "$MNT" >/dev/null
	equal "huge, $pool: all are huge" "$(stat_of huge_pages)" $PAGES
	damaged "huge, $pool" "$MNT/huge" "$TEST_DIR/random"
	mended "huge, $pool" "$MNT/huge" "$TEST_DIR/random"
	unmount "$MNT"
done

# What is shared is bad for all who share it, and good again for who writes it.
mount_zramfs size=256m,hot=1m,alg=lz4
cp "$TEST_DIR/text" "$MNT/one"
sync -f "$MNT"
dd if="$TEST_DIR/text" of="$MNT/two" bs=4k status=none
sync -f "$MNT"
"$CTL" compact "$MNT" >/dev/null
equal "shared: stored once" "$(stat_of dedup_pages)" $PAGES
damaged "shared" "$MNT/one" "$TEST_DIR/text"
check "shared: the other has it, too" \
	grep -q 'Input/output error' <<<"$(reads "$MNT/two" $BAD)"
check "shared: and no more than that" others_are_fine "$MNT/two" "$TEST_DIR/text"
mended "shared" "$MNT/one" "$TEST_DIR/text"
mended "shared, the other" "$MNT/two" "$TEST_DIR/text"
damage=$("$CTL" check --verify "$MNT" 2>&1)
check "shared: nothing is wrong then" grep -q ' 0 errors' <<<"$damage"
