#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Block mode next to the kernel's zram, both with ext4 without a journal, and
# next to tmpfs: git's source is unpacked, redis is built, both are deleted, in
# interleaved rounds. Each step ends when it is on the device. Time is to be at
# most zram's in the median, memory at most 0.65 of zram's mem_used_total.
#
#   ROUNDS=5  BLOCK_ALG=zstd:1  ZRAM_ALG=lz4  BLOCK_TYPE=ext4
#   RESULTS=FILE    figures are added to it, and what is told is about all that
#                   is in it: so rounds can be run one by one, when the machine
#                   is quiet, with ROUNDS=1; ROUNDS=0 only tells
. "$(dirname "$0")/../system/lib.sh"
. tests/acceptance/redis.sh
. tests/acceptance/block.sh
: "${ROUNDS:=5}" "${BLOCK_ALG:=zstd:1}" "${ZRAM_ALG:=lz4}" "${BLOCK_TYPE:=ext4}"

[ "$(id -u)" = 0 ] || skip_all "not root"
redis_fetch || skip_all "no redis source"
git_fetch || skip_all "no git source"
zram_add 3g $ZRAM_ALG || skip_all "no zram device: $ZRAM_WHY"
trap 'take_down; zram_remove; clean_up' EXIT
: "${RESULTS:=$TEST_DIR/results}"
touch "$RESULTS"
MNT=$TEST_DIR/mnt
mkdir "$MNT"

set_up() {
	case $1 in
	tmpfs) mount -t tmpfs -o size=3g tmpfs "$MNT" ;;
	zram)
		mkfs.ext4 -q -F -O ^has_journal -m 0 -E lazy_itable_init=0 "$ZRAM" &&
			mount -o discard "$ZRAM" "$MNT"
		;;
	block)
		"$ZRAMFS" "$MNT" -o \
			"size=3g,alg=$BLOCK_ALG,block=$BLOCK_TYPE${MOUNT_OPTIONS:+,$MOUNT_OPTIONS}"
		;;
	esac
}

take_down() {
	local i
	cd /
	mountpoint -q "$MNT" && umount "$MNT"
	for ((i = 0; i < 100; i++)); do
		[ -n "$(daemon_pids "$MNT")" ] || return 0
		sleep 0.1
	done
	return 1
}

used() {
	case $1 in
	tmpfs) echo $(($(stat -f -c '(%b - %f) * %S' "$MNT"))) ;;
	zram) awk '{ print $3 }' "/sys/block/${ZRAM#/dev/}/mm_stat" ;;
	block) stat_of mem_used_total ;;
	esac
}

# Until all is compressed, what was freed is given back, and no more happens.
settle() {
	local i before=0 now
	[ "$1" = block ] || return 0
	for ((i = 0; i < 60; i++)); do
		now=$(stat_of mem_used_total)
		[ "$(stat_of hot_pages)" -gt 0 ] ||
			[ "${now%?????}" != "${before%?????}" ] || break
		before=$now
		sleep 1
	done
}

unpack() {
	tar -C "$MNT" -xf "$GIT_TAR" && sync -f "$MNT"
}

build() {
	redis_unpack "$MNT" && redis_build "$MNT" && sync -f "$MNT"
}

delete() {
	rm -rf "$MNT"/git-* "$MNT"/redis-* && sync -f "$MNT"
}

# Each takes its turn to be first, as the first may find the machine another.
order=(tmpfs zram block)
for ((round = 1; round <= ROUNDS; round++)); do
	first=$(($(grep -c "^tmpfs" "$RESULTS") % 3))
	for what in "${order[@]:first}" "${order[@]:0:first}"; do
		check "round $round $what: mount" set_up $what
		u=$(seconds unpack) b=$(seconds build)
		settle $what
		m=$(used $what) c=-
		if [ $what = block ]; then
			"$CTL" compact "$MNT" >"$TEST_DIR/compact.log"
			c=$(used $what)
			check "round $round: check is clean" \
				"$CTL" check --verify "$MNT"
		fi
		d=$(seconds delete)
		settle $what
		r=$(used $what)
		check "round $round $what: unmount" take_down
		[ $what = zram ] && zram_reset 3g $ZRAM_ALG
		echo "$what $u $b $d $(awk "BEGIN { print $u + $b + $d }") $m $c $r" \
			>>"$RESULTS"
	done
done

column() { # WHAT NUMBER
	awk -v what="$1" -v n="$2" '$1 == what && $n != "-" { print $n }' "$RESULTS"
}

report() { # NAME COLUMN UNIT
	local what figures
	for what in "${order[@]}"; do
		figures=$(column $what "$2" | tr '\n' ' ')
		[ -z "$figures" ] ||
			note "$1, $what: $figures: median $(median $figures) $3"
	done
}
report unpack 2 s
report build 3 s
report delete 4 s
report "all three" 5 s
report "memory when full" 6 bytes
report "the same after compact" 7 bytes
report "memory when all is deleted" 8 bytes
ratio() { # COLUMN: in percent
	awk "BEGIN { printf \"%d\", 100 * $(median $(column block $1)) / $(median $(column zram $1)) }"
}
between "time, in % of zram's" "$(ratio 5)" 0 100
between "memory, in % of zram's" "$(ratio 6)" 0 65
