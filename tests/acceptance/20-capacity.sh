#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What the built redis tree takes in memory: in zramfs with lz4 and zstd:3, in
# tmpfs, and in ext4 on the kernel's zram. Only figures; each tree is checked
# against the first.
. "$(dirname "$0")/../system/lib.sh"
. tests/acceptance/redis.sh

redis_fetch || skip_all "no redis source"
megabytes() { awk "BEGIN { printf \"%.1f MB\", $1 / 1e6 }"; }

FS=tmpfs mount_fs size=3g
tree=$MNT
check "the tree is built" redis_unpack "$tree"
check "the tree is built" redis_build "$tree"
pages=$(($(stat -f -c '%b - %f' "$tree")))
note "tmpfs: $pages pages, $(megabytes $((pages * 4096)))"
sums "$tree" >"$TEST_DIR/want"

same() {
	sums "$1" >"$TEST_DIR/got"
	check "$2: the tree is the same" cmp "$TEST_DIR/want" "$TEST_DIR/got"
}

for alg in lz4 lzo zstd:1 zstd:3 deflate:6; do
	mount_zramfs size=3g,alg=$alg
	fresh=$(stat_of mem_used_total)
	cp -a "$tree"/redis-* "$MNT"
	"$CTL" compact "$MNT" >/dev/null
	used=$(stat_of mem_used_total)
	note "zramfs $alg: mem_used_total $(megabytes "$used") (fresh" \
		"$(megabytes "$fresh")), Pss $(megabytes "$(pss_of)"), data" \
		"$(megabytes "$(stat_of compr_data_size)"), tables" \
		"$(megabytes "$(stat_of meta_bytes)"), shared pages" \
		"$(stat_of dedup_pages)"
	drop_caches
	same "$MNT" "$alg"
	unmount "$MNT"
done

# The kernel's zram, if nobody uses it.
if [ ! -b /dev/zram0 ] || [ "$(cat /sys/block/zram0/disksize)" != 0 ]; then
	skip "kernel zram" "no idle /dev/zram0"
	exit
fi
free_zram() {
	mountpoint -q "$TEST_DIR/zram" && umount "$TEST_DIR/zram"
	echo 1 >/sys/block/zram0/reset
}
trap 'free_zram; clean_up' EXIT
mkdir "$TEST_DIR/zram"
for alg in lz4 lzo zstd; do
	echo $alg >/sys/block/zram0/comp_algorithm 2>/dev/null || continue
	echo 1g >/sys/block/zram0/disksize
	mkfs.ext4 -q -O ^has_journal -m 0 /dev/zram0
	mount -o discard /dev/zram0 "$TEST_DIR/zram"
	cp -a "$tree"/redis-* "$TEST_DIR/zram"
	sync -f "$TEST_DIR/zram"
	rmdir "$TEST_DIR/zram/lost+found"
	same "$TEST_DIR/zram" "kernel zram $alg"
	umount "$TEST_DIR/zram"
	note "kernel zram $alg with ext4: mem_used_total" \
		"$(megabytes "$(awk '{ print $3 }' /sys/block/zram0/mm_stat)")"
	echo 1 >/sys/block/zram0/reset
done
