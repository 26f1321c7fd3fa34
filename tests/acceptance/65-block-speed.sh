#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Block mode next to the kernel's zram, both with ext4 without a journal, and
# next to tmpfs: git's source is unpacked, redis is built, both are deleted, in
# interleaved rounds. Each step ends when it is on the device. Time is to be at
# most zram's in the median, memory at most 0.65 of zram's mem_used_total.
#
# ROUNDS=5  BLOCK_ALG=zstd  ZRAM_ALG=lz4  BLOCK_TYPE=ext4
. "$(dirname "$0")/../system/lib.sh"
. tests/acceptance/redis.sh
. tests/acceptance/block.sh
: "${ROUNDS:=5}" "${BLOCK_ALG:=zstd}" "${ZRAM_ALG:=lz4}" "${BLOCK_TYPE:=ext4}"

[ "$(id -u)" = 0 ] || skip_all "not root"
redis_fetch || skip_all "no redis source"
git_fetch || skip_all "no git source"
zram_add 3g $ZRAM_ALG || skip_all "no zram device: $ZRAM_WHY"
trap 'take_down; zram_remove; clean_up' EXIT
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

# Until all is compressed, and what was freed is given back.
settle() {
	local i
	[ "$1" = block ] || return 0
	for ((i = 0; i < 60; i++)); do
		[ "$(stat_of hot_pages)" -gt 0 ] || break
		sleep 0.5
	done
	sleep 3
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

declare -A unpack build delete all memory squeezed rest
for ((round = 1; round <= ROUNDS; round++)); do
	for what in tmpfs zram block; do
		check "round $round $what: mount" set_up $what
		u=$(seconds unpack) b=$(seconds build)
		settle $what
		m=$(used $what)
		if [ $what = block ]; then
			"$CTL" compact "$MNT" >"$TEST_DIR/compact.log"
			squeezed[$what]+=" $(used $what)"
			check "round $round: check is clean" \
				"$CTL" check --verify "$MNT"
		fi
		d=$(seconds delete)
		unpack[$what]+=" $u" build[$what]+=" $b" delete[$what]+=" $d"
		all[$what]+=" $(awk "BEGIN { print $u + $b + $d }")"
		settle $what
		memory[$what]+=" $m" rest[$what]+=" $(used $what)"
		check "round $round $what: unmount" take_down
		[ $what = zram ] && zram_reset 3g $ZRAM_ALG
	done
done

report() { # NAME VARIABLE UNIT
	local what
	local -n figures=$2
	for what in tmpfs zram block; do
		[ -z "${figures[$what]:-}" ] ||
			note "$1, $what:$(printf ' %s' ${figures[$what]}):" \
				"median $(median ${figures[$what]}) $3"
	done
}
report unpack unpack s
report build build s
report delete delete s
report "all three" all s
report "memory when full" memory bytes
report "the same after compact" squeezed bytes
report "memory when all is deleted" rest bytes
time=$(awk "BEGIN { printf \"%d\", 100 * $(median ${all[block]}) / $(median ${all[zram]}) }")
space=$(awk "BEGIN { printf \"%d\", 100 * $(median ${memory[block]}) / $(median ${memory[zram]}) }")
between "time, in % of zram's" "$time" 0 100
between "memory, in % of zram's" "$space" 0 65
