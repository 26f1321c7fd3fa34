#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Pages compressed together: a tree takes less, reads the same, and is all there
# after the worker's death; what is overwritten or deleted is not kept for long.
. "$(dirname "$0")/lib.sh"

tree() {
	mkdir "$1/src" "$1/twice"
	cp -r src pool codec tests "$1/src"
	cp -r src/fs "$1/twice"
}

# How much of the data is compressed to, all of it.
compressed() {
	"$CTL" compact "$MNT" >/dev/null
	stat_of compr_data_size
}

mount_zramfs size=256m,alg=zstd
tree "$MNT"
sums "$MNT" >"$TEST_DIR/sums"
alone=$(compressed)
equal "each page by itself is the default" "$(stat_of clusters)" 0
unmount "$MNT"

last=$alone
for size in 8k 16k 32k 64k 128k; do
	mount_zramfs "size=256m,alg=zstd,cluster=$size"
	tree "$MNT"
	now=$(compressed)
	note "cluster=$size: $now bytes, $alone with 4k"
	between "$size at a time take less" "$now" 1 $((last - 1))
	last=$now
	[ $size = 128k ] || unmount "$MNT"
done
between "sources, 128 KiB at a time, take four fifths" "$last" 1 $((alone * 4 / 5))
between "their number is told" "$(stat_of clusters)" 2 $((alone / 4096))
drop_caches
check "all is as it was written" diff "$TEST_DIR/sums" <(sums "$MNT")
check "the check finds nothing" "$CTL" check --verify "$MNT"
between "equal pages are found" "$(stat_of dedup_pages)" \
	"$(find src/fs -type f | wc -l)" 100000
between "du tells whose bytes they are, but for what is rounded" \
	"$("$CTL" du --json -s "$MNT" | grep -oE '"share_bytes": *[0-9]+' |
		head -n 1 | grep -oE '[0-9]+$')" $((last * 99 / 100)) "$last"

kill -KILL "$(worker_of "$MNT")"
drop_caches
check "all is there after the worker's death" diff "$TEST_DIR/sums" <(sums "$MNT")
check "and the check finds nothing" "$CTL" check --verify "$MNT"
check "another program can go on" "$CTL" upgrade "$MNT"
drop_caches
check "with all that is there" diff "$TEST_DIR/sums" <(sums "$MNT")

rm -r "$MNT/src" "$MNT/twice"
nothing() {
	[ "$(stat_of compr_data_size)" = 0 ]
}
check "what is deleted is freed" await 20 nothing
equal "with its clusters" "$(stat_of clusters)" 0
unmount "$MNT"

# --- what is overwritten -----------------------------------------------------

mount_zramfs size=256m,alg=lz4,cluster=64k,hot=4m
"$HELPERS/datafile" write "$MNT/file" text 1 $((32 << 20)) >/dev/null
before=$(compressed)
for ((i = 0; i < 1024; i++)); do
	"$HELPERS/datafile" -b 4096 -o $((RANDOM % 8192 * 4096)) write "$MNT/file" \
		text $i 4096
done >/dev/null
sums "$MNT" >"$TEST_DIR/sums"
repacked() {
	[ "$(stat_of hot_pages)" = 0 ] &&
		[ "$(stat_of compr_data_size)" -le $((before * 3 / 2)) ]
}
check "of what is written over, half as much again is held at most" \
	await 60 repacked
check "the check finds nothing" "$CTL" check --verify "$MNT"
drop_caches
check "and all is as it was written" diff "$TEST_DIR/sums" <(sums "$MNT")
unmount "$MNT"

# --- what is not possible ----------------------------------------------------

# refused NAME MESSAGE OPTIONS
refused() {
	local message
	message=$("$ZRAMFS" "$TEST_DIR" -o "$3" 2>&1)
	if [ $? -eq 2 ] && [[ $message == *"$2"* ]]; then
		ok "$1 is refused"
	else
		not_ok "$1 is refused" "$message"
	fi
}
refused "half a page" "use 4k, 8k" cluster=2k
refused "three pages" "use 4k, 8k" cluster=12k
refused "more than a codec takes" "out of range" cluster=256k
refused "what compresses nothing" "leave it out" cluster=8k,alg=none
refused "without a hot tier" "use hot=256k or more" cluster=64k,hot=0
refused "too small a hot tier" "use hot=512k or more" hot=256k,cluster=128k
