#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench/block_sync.sh - synchronous against queued writes
#
# In 2016 zram's developers argued over whether the device should handle each
# request at once, in the caller's context, or queue them. Here is a device of
# each kind: /dev/zramN works at once, a loop device on zramfs queues. fio
# writes to both, as then: through the page cache with fsync_on_close=1, and
# with direct=1, by 1, 2 and 4 jobs. KiB/s, side by side.
#
#   BUILD=build ALG=lz4 ROUNDS=3 RUNTIME=5 SIZE=1g
#   RESULTS=FILE  figures are added to it, and what is printed is the median of
#                 all in it: so that rounds can be run one by one (ROUNDS=1, a
#                 minute for each second of RUNTIME), when the machine is quiet
set -u
cd "$(dirname "$0")/.." || exit 1
: "${BUILD:=build}" "${ALG:=lz4}" "${ROUNDS:=3}" "${RUNTIME:=5}" "${SIZE:=1g}"
TEST_DIR=$(mktemp -d)
ZRAM='' LOOP=''
. tests/acceptance/block.sh

clean_up() {
	[ -z "$LOOP" ] || losetup -d "$LOOP"
	mountpoint -q "$TEST_DIR/mnt" && umount "$TEST_DIR/mnt"
	zram_remove
	rm -rf --one-file-system "$TEST_DIR"
}
trap clean_up EXIT

fail() {
	echo "block_sync: $*" >&2
	exit 1
}

# A device as block mode makes it: losetup would open the file without
# O_DIRECT, and the kernel then lets in one writer at a time.
loop_direct() {
	python3 - "$1" <<-'END'
		import fcntl, os, struct, sys
		file = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
		control = os.open("/dev/loop-control", os.O_RDWR)
		name = "/dev/loop%d" % fcntl.ioctl(control, 0x4C82)  # GET_FREE
		device = os.open(name, os.O_RDWR)
		# struct loop_config of linux/loop.h: LO_FLAGS_DIRECT_IO is 16.
		config = bytearray(304)
		struct.pack_into("II", config, 0, file, 4096)
		struct.pack_into("I", config, 8 + 52, 16)
		fcntl.ioctl(device, 0x4C0A, config)  # LOOP_CONFIGURE
		print(name)
	END
}

[ "$(id -u)" = 0 ] || fail "not root"
zram_add "$SIZE" "$ALG" || fail "no zram device: $ZRAM_WHY"
mkdir "$TEST_DIR/mnt"
"$BUILD/zramfs" "$TEST_DIR/mnt" -o "size=$SIZE,alg=$ALG" ||
	fail "cannot mount"
truncate -s "$SIZE" "$TEST_DIR/mnt/image"
LOOP=$(loop_direct "$TEST_DIR/mnt/image") || fail "no loop device"

# one DEVICE RW BLOCK JOBS ARGUMENTS...: KiB/s, both directions together.
one() {
	local device=$1 rw=$2 bs=$3 jobs=$4
	shift 4
	fio --name=job --filename="$device" --rw="$rw" --bs="$bs" \
		--numjobs="$jobs" --size=128m --offset_increment=128m \
		--time_based --runtime="$RUNTIME" --group_reporting \
		--buffer_compress_percentage=50 --refill_buffers \
		--output-format=terse --terse-version=3 "$@" 2>/dev/null |
		awk -F';' '{ print $7 + $48 }'
}

median() {
	sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

patterns=(write:64k randwrite:4k randrw:4k read:64k randread:4k)

measure() {
	local mode how pattern jobs
	for mode in fsync_on_close direct; do
		case $mode in
		fsync_on_close) how=(--ioengine=psync --fsync_on_close=1) ;;
		direct) how=(--ioengine=psync --direct=1) ;;
		esac
		for pattern in "${patterns[@]}"; do
			for jobs in 1 2 4; do
				echo "$mode $pattern $jobs" \
					"$(one "$ZRAM" "${pattern%:*}" "${pattern#*:}" $jobs "${how[@]}")" \
					"$(one "$LOOP" "${pattern%:*}" "${pattern#*:}" $jobs "${how[@]}")"
			done
		done
	done
}

# figures MODE PATTERN JOBS FIELD: of all rounds.
figures() {
	awk -v mode="$1" -v pattern="$2" -v jobs="$3" -v n="$4" \
		'$1 == mode && $2 == pattern && $3 == jobs { print $n }' "$RESULTS"
}

: "${RESULTS:=$TEST_DIR/results}"
touch "$RESULTS"
for ((round = 0; round < ROUNDS; round++)); do
	measure >>"$RESULTS"
done

rounds=$(figures direct write:64k 1 4 | wc -l)
echo "$(uname -sr), $(nproc) CPUs, $(fio --version), alg=$ALG," \
	"median of $rounds rounds, each of RUNTIME=$RUNTIME, KiB/s"
printf '%-16s %-10s %-5s %4s %12s %12s %6s\n' \
	mode pattern block jobs zram zramfs ratio
for mode in fsync_on_close direct; do
	for pattern in "${patterns[@]}"; do
		for jobs in 1 2 4; do
			a=$(figures $mode "$pattern" $jobs 4 | median)
			b=$(figures $mode "$pattern" $jobs 5 | median)
			printf '%-16s %-10s %-5s %4d %12d %12d %6s\n' $mode \
				"${pattern%:*}" "${pattern#*:}" $jobs "$a" "$b" \
				"$(awk "BEGIN { printf \"%.2f\", $b / ($a ? $a : 1) }")"
		done
	done
done
