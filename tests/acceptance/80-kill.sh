#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The worker is killed at random moments, many times, under each of many
# loads. Whoever uses the filesystem sees no error and no wrong data; the check
# is clean after every hundredth kill; in the end nothing is left over, and
# worker and keeper take as much memory, empty, as before the first kill.
#
# KILLS=1000 for each load, LOADS="fio-direct ..." which of them,
# PAUSE_MS=60 between kills, on average;
# XFSTESTS=directory of fsx and fsstress, see 61-fsx.sh
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/redis.sh"
: "${KILLS:=1000}" "${PAUSE_MS:=60}" "${XFSTESTS:=$CACHE/xfstests}"
: "${LOADS:=fio-direct fio-buffered fsx fsstress build trees sqlite loop}"

# --- loads: each goes once round, and is begun again -------------------------

FIO=(fio --name=job --size=32m --numjobs=3 --rw=randrw --bs=4k-64k
	--ioengine=psync --verify=crc32c --verify_state_save=0
	--verify_backlog=64 --loops=2)
load_fio-direct() { "${FIO[@]}" --directory="$MNT" --direct=1; }
load_fio-buffered() { "${FIO[@]}" --directory="$MNT" --direct=0; }

load_fsx() {
	"$XFSTESTS/ltp/fsx" -q -P "$TEST_DIR" -N 20000 -S 0 -l 1000000 "$MNT/fsx" &&
		"$XFSTESTS/ltp/fsx" -q -P "$TEST_DIR" -N 20000 -S 0 -Z -W -R \
			-r 4096 -w 4096 -t 4096 -l 1048576 "$MNT/fsx"
}

load_fsstress() {
	mkdir -p "$MNT/stress" && "$XFSTESTS/ltp/fsstress" -d "$MNT/stress" \
		-p 4 -n 1500 -s $RANDOM && rm -rf "$MNT/stress"
}

# What it makes is compared with what was made elsewhere.
load_build() {
	redis_unpack "$MNT" && (cd "$MNT"/redis-*/ && make -j2 MALLOC=libc) &&
		"$MNT"/redis-*/src/redis-server --version | grep -q v= &&
		rm -r "$MNT"/redis-*
}

load_trees() {
	tar -C "$MNT" -xf "$TEST_DIR/tree.tar" && diff -r "$TEST_DIR/src" "$MNT/src" &&
		cp -r "$MNT/src" "$MNT/copy" && diff -r "$TEST_DIR/src" "$MNT/copy" &&
		rm -r "$MNT/src" "$MNT/copy"
}

load_sqlite() {
	rm -f "$MNT/db"*
	{
		echo "PRAGMA journal_mode=DELETE; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);"
		for ((row = 1; row <= 300; row++)); do
			echo "INSERT INTO t VALUES($row, hex(randomblob(200)));"
			[ $((row % 50)) -ne 0 ] || echo "DELETE FROM t WHERE a % 7 = 3; PRAGMA integrity_check;"
		done
	} | sqlite3 "$MNT/db" >"$TEST_DIR/sqlite.out" || return
	[ "$(grep -c '^ok$' "$TEST_DIR/sqlite.out")" = 6 ] &&
		[ "$(sqlite3 "$MNT/db" 'PRAGMA integrity_check; SELECT count(*) FROM t;' | tr '\n' ' ')" = "ok 257 " ]
}

load_loop() {
	mkdir -p "$TEST_DIR/ext4"
	[ -e "$MNT/image" ] || { truncate -s 200m "$MNT/image" && mkfs.ext4 -q "$MNT/image"; } || return
	mount -o loop "$MNT/image" "$TEST_DIR/ext4" || return
	tar -C "$TEST_DIR/ext4" -xf "$TEST_DIR/tree.tar" && sync -f "$TEST_DIR/ext4" &&
		diff -r "$TEST_DIR/src" "$TEST_DIR/ext4/src" && rm -r "$TEST_DIR/ext4/src"
	local status=$?
	umount "$TEST_DIR/ext4" || return
	[ $status -eq 0 ] && e2fsck -fn "$MNT/image"
}

# --- killing -----------------------------------------------------------------

kill_one() {
	local pid
	pid=$(stat_of pid) && [ -n "$pid" ] && kill -KILL "$pid"
}

# Take everything away; what is used then, in bytes.
emptied() {
	rm -rf "${MNT:?}"/*
	drop_caches
	"$CTL" compact "$MNT" >/dev/null
	sleep 2
	stat_of mem_used_total
}

again_and_again() {
	while [ ! -e "$TEST_DIR/enough" ]; do
		"load_$1" >"$TEST_DIR/load.log" 2>&1 || return
		echo round >>"$TEST_DIR/rounds"
	done
}

run_load() {
	local name=$1 load kills=0 unclean=0 before after memory
	mount_zramfs size=2g,hot=16m
	rm -f "$TEST_DIR/enough" "$TEST_DIR/rounds"
	touch "$TEST_DIR/rounds"
	# What a round leaves behind is not creeping.
	"load_$name" >"$TEST_DIR/load.log" 2>&1 ||
		not_ok "$name without kills" "$(tail -n 20 "$TEST_DIR/load.log")"
	before=$(stat_of inodes_used)
	memory=$(emptied)
	again_and_again "$name" &
	load=$!
	while [ $kills -lt "$KILLS" ] && kill -0 $load 2>/dev/null; do
		sleep "0.$(printf %03d $((RANDOM % (2 * PAUSE_MS) + 1)))"
		kill_one || continue
		kills=$((kills + 1))
		if [ $((kills % 100)) -eq 0 ]; then
			note "$name: $kills kills, $(wc -l <"$TEST_DIR/rounds") rounds," \
				"$(stat_of mem_used_total) bytes in use"
			"$CTL" check "$MNT" >"$TEST_DIR/check.log" || {
				unclean=$((unclean + 1))
				note "$(head -n 20 "$TEST_DIR/check.log")"
			}
		fi
	done
	touch "$TEST_DIR/enough"
	if wait $load; then
		ok "$name: $kills kills in $(wc -l <"$TEST_DIR/rounds") rounds"
	else
		not_ok "$name: $kills kills" "$(grep -i error "$TEST_DIR/load.log" | head -n 5)
$(tail -n 20 "$TEST_DIR/load.log")"
	fi
	equal "$name: the checks are clean" "$unclean" 0
	check "$name: the last one, too" "$CTL" check --verify "$MNT"
	drop_caches
	sleep 1
	after=$(stat_of inodes_used)
	[ "$name" = loop ] || equal "$name: no inode is left over" "$after" "$before"
	after=$(emptied)
	equal "$name: empty, it has one inode" "$(stat_of inodes_used)" 1
	between "$name: empty, it takes little memory" "$after" 0 $((4 << 20))
	between "$name: no more than before the kills ($memory)" "$after" 0 $((memory + (256 << 10)))
	unmount "$MNT"
}

# Somebody may be working on ours.
cp -r src "$TEST_DIR/src"
tar -C "$TEST_DIR" -cf "$TEST_DIR/tree.tar" src
for load in $LOADS; do
	case $load in
	fsx | fsstress)
		[ -x "$XFSTESTS/ltp/$load" ] || { skip "$load" "none in $XFSTESTS"; continue; } ;;
	build)
		redis_fetch >/dev/null 2>&1 || { skip "$load" "no source to build"; continue; } ;;
	sqlite)
		command -v sqlite3 >/dev/null || { skip "$load" "no sqlite3"; continue; } ;;
	esac
	run_load "$load"
done
