#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# fio with verify on a loop device on a file in a mount, and on the file
# itself: engines, depths, request sizes, patterns, sectors of 512 and of 4096
# bytes. What is read is what was written, always.
#
#   SECONDS_EACH=2   each pattern writes for so long at most, then verifies;
#                    once over, as fio loses count when it mixes reads and
#                    writes for a second time
. "$(dirname "$0")/../system/lib.sh"
: "${SECONDS_EACH:=2}"

command -v fio >/dev/null || skip_all "no fio"
mount_fs size=3g,alg=lz4
LOOP=
take_down() {
	[ -z "$LOOP" ] || losetup -d "$LOOP"
	LOOP=
}
trap 'take_down; clean_up' EXIT

# run NAME FILE ARGUMENTS...: job state files go to a place of ours.
run() {
	local name=$1 file=$2
	shift 2
	check "$name" fio --name=job --filename="$file" --size=256m \
		--runtime="$SECONDS_EACH" --verify=crc32c \
		--verify_fatal=1 --verify_state_save=0 --randrepeat=0 \
		--buffer_compress_percentage=50 --refill_buffers \
		--aux-path="$TEST_DIR" "$@"
}

# patterns NAME FILE SMALLEST ENGINE DEPTH ARGUMENTS...
patterns() {
	local name=$1 file=$2 smallest=$3 engine=$4 depth=$5 rw bs
	shift 5
	for rw in write randwrite randrw; do
		for bs in "$smallest" 4k 64k 1m; do
			run "$name $engine depth $depth $rw $bs" "$file" \
				--ioengine="$engine" --iodepth="$depth" \
				--rw=$rw --bs="$bs" "$@"
		done
	done
	run "$name $engine depth $depth mixed sizes" "$file" \
		--ioengine="$engine" --iodepth="$depth" --rw=randrw \
		--bsrange="$smallest-1m" --bs_unaligned=0 --blockalign="$smallest" "$@"
}

# Trims make holes, which read as zeros without any memory.
trims() { # NAME ENGINE DEPTH
	local i
	check "$1 $2 depth $3 trim and write, mixed" fio --name=job \
		--filename="$LOOP" --size=256m --direct=1 --ioengine="$2" \
		--iodepth="$3" --rw=randtrimwrite --bs=64k --time_based \
		--runtime="$SECONDS_EACH" --aux-path="$TEST_DIR"
	check "$1: discard of all" blkdiscard "$LOOP"
	equal "$1: discard leaves nothing stored" "$(stat -c %b "$MNT/image")" 0
	check "$1: and reads as zeros" cmp -n $((256 << 20)) "$LOOP" /dev/zero
	if on_zramfs; then
		equal "$1: for which no memory is taken" "$(stat_of stored_pages)" 0
	fi
	dd if=/dev/urandom of="$LOOP" bs=1M count=8 oflag=direct status=none
	check "$1: write zeroes" blkdiscard -z -o 4096 -l $((7 << 20)) "$LOOP"
	check "$1: as zeros again" cmp -i 4096 -n $((7 << 20)) "$LOOP" /dev/zero
}

for sector in 512 4096; do
	truncate -s 256m "$MNT/image"
	if ! LOOP=$(losetup --show -f --direct-io=on -b $sector "$MNT/image"); then
		LOOP=
		not_ok "losetup --direct-io=on, sectors of $sector"
		continue
	fi
	for engine in libaio io_uring; do
		for depth in 1 32 256; do
			patterns "loop $sector:" "$LOOP" $sector $engine $depth --direct=1
		done
		trims "loop $sector" $engine 32
	done
	take_down
	rm "$MNT/image"
done

for engine in sync psync libaio io_uring; do
	for depth in 1 32; do
		[ $depth = 1 ] || [ $engine = libaio ] || [ $engine = io_uring ] || continue
		patterns "file:" "$MNT/file" 512 $engine $depth --direct=0 --fallocate=none
		patterns "file, direct:" "$MNT/file" 4k $engine $depth --direct=1 --fallocate=none
	done
done
on_zramfs && check "check is clean" "$CTL" check --verify "$MNT"
