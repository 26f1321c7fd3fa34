#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What it costs that a worker may die: keeper=on against keeper=off, turn by
# turn. 4 KiB direct random writes by one job, and unpacking a tree.
#
#   bench/keeper.sh [TARBALL]
#
# ROUNDS=5, SECONDS_EACH=2, BUILD=build, and for other comparisons
# A=keeper=off B=keeper=on (options), BUILD_A= BUILD_B= (programs),
# RW=randwrite and BS=4k (fio's). Without TARBALL, the sources here are the tree.
set -u
cd "$(dirname "$0")/.." || exit 1
: "${BUILD:=build}" "${ROUNDS:=5}" "${SECONDS_EACH:=2}" "${RW:=randwrite}" "${BS:=4k}"
: "${A:=keeper=off}" "${B:=keeper=on}" "${BUILD_A:=$BUILD}" "${BUILD_B:=$BUILD}"
tarball=${1:-}
work=$(mktemp -d "${TMPDIR:-/tmp}/zramfs-keeper.XXXXXX") || exit 1
trap 'umount "$work"/mnt 2>/dev/null; rm -rf --one-file-system "$work"' EXIT
mkdir "$work/mnt"
if [ -z "$tarball" ]; then
	tarball=$work/tree.tar
	tar -cf "$tarball" src codec pool tests bench
fi

# measure PROGRAMS OPTIONS NAME: one round; IOPS and milliseconds to files.
measure() {
	local from to i
	"$1/zramfs" "$work/mnt" -o "size=2g,$2" || exit
	dd if=/dev/urandom of="$work/mnt/file" bs=1M count=64 status=none
	sync -f "$work/mnt"
	fio --name=job --filename="$work/mnt/file" --size=64m --rw="$RW" --bs="$BS" \
		--direct=1 --ioengine=psync --time_based --runtime="$SECONDS_EACH" \
		--output-format=terse --terse-version=3 |
		awk -F';' '{ print ($8 > 0 ? $8 : $49) }' >>"$work/iops.$3"
	rm "$work/mnt/file"
	from=$(date +%s%N)
	for i in 1 2 3; do
		mkdir "$work/mnt/$i" && tar -C "$work/mnt/$i" -xf "$tarball" || exit
	done
	to=$(date +%s%N)
	echo $(((to - from) / 3000)) >>"$work/unpack.$3"
	umount "$work/mnt"
}

median() {
	sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

for ((round = 0; round < ROUNDS; round++)); do
	measure "$BUILD_A" "$A" a
	measure "$BUILD_B" "$B" b
done
for what in iops unpack; do
	a=$(median "$work/$what.a") b=$(median "$work/$what.b")
	case $what in
	iops) name="$BS $RW, IOPS" ;;
	unpack) name="unpacking, us" ;;
	esac
	awk -v n="$name" -v x="$A" -v y="$B" -v a="$a" -v b="$b" 'BEGIN {
		printf "%s: %s %d, %s %d: %+.1f %%\n", n, x, a, y, b, (b / a - 1) * 100 }'
done
paste -d' ' "$work"/iops.[ab] "$work"/unpack.[ab] | sed 's/^/# /'
