#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# fsx and fsstress of xfstests: random operations on a file, each read compared
# with what must be there; and four processes that do anything to a tree. The
# hot tier is small, so that pages move while they are used; the check of the
# whole state must be clean afterwards.
#
# XFSTESTS=directory where they are built (make -C lib && make -C ltp)
# OPERATIONS=1000000, SEEDS="1 2 3", ALGORITHMS="lz4 zstd",
# KINDS="default writeback noopen", FSSTRESS_SECONDS=1800: all of it takes many
# hours. Without seeds there is no fsx, with 0 seconds no fsstress.
. "$(dirname "$0")/../system/lib.sh"
: "${CACHE:=/var/tmp/zramfs-cache}" "${XFSTESTS:=$CACHE/xfstests}"
: "${OPERATIONS:=1000000}" "${SEEDS=1 2 3}" "${ALGORITHMS:=lz4 zstd}"
: "${KINDS:=default writeback noopen}" "${FSSTRESS_SECONDS:=1800}"

fsx=$XFSTESTS/ltp/fsx fsstress=$XFSTESTS/ltp/fsstress
[ -x "$fsx" ] && [ -x "$fsstress" ] || skip_all "no fsx and fsstress in $XFSTESTS"

# run_fsx NAME SEED ARGUMENTS...
run_fsx() {
	local name="$1, seed $2, $OPERATIONS operations" seed=$2
	shift 2
	check "$OPTIONS: fsx $name" "$fsx" -q -P "$TEST_DIR" -N "$OPERATIONS" \
		-S "$seed" "$@" "$MNT/fsx"
	rm -f "$MNT"/fsx*
}

# Each closing drops all caches of the machine: a thousand of them will do.
run_seed() {
	run_fsx "mapped and buffered" "$1" -l 1000000
	run_fsx "buffered, closed now and then" "$1" -c 1000 -W -R -l 500000
	run_fsx "large" "$1" -o 1048576 -l 8000000
	run_fsx "O_DIRECT, 4096" "$1" -Z -W -R -r 4096 -w 4096 -t 4096 -l 1048576
	run_fsx "O_DIRECT, 512" "$1" -Z -W -R -r 512 -w 512 -t 512 -l 1048576
}

# run_fsx_on ALGORITHM KIND
run_fsx_on() {
	local seed
	OPTIONS=alg=$1,hot=1m
	[ "$2" = default ] || OPTIONS+=,$2
	mount_fs "size=2g,$OPTIONS"
	for seed in $SEEDS; do
		run_seed "$seed"
	done
	! on_zramfs || check "$OPTIONS: check is clean" \
		"$CTL" check --verify "$MNT"
	unmount "$MNT"
}

if [ -n "$SEEDS" ]; then
	for algorithm in $ALGORITHMS; do
		for kind in $KINDS; do
			run_fsx_on "$algorithm" "$kind"
		done
	done
fi
[ "$FSSTRESS_SECONDS" != 0 ] || exit 0

OPTIONS=alg=lz4,hot=1m
mount_fs "size=2g,$OPTIONS"
mkdir "$MNT/tree"
check "fsstress, 4 processes, $FSSTRESS_SECONDS s" "$fsstress" -d "$MNT/tree" \
	-p 4 -n 1000000000 --duration="$FSSTRESS_SECONDS"
! on_zramfs || check "fsstress: check is clean" "$CTL" check --verify "$MNT"
check "what fsstress left can be removed" rm -rf "$MNT/tree"
! on_zramfs || check "then check is clean" "$CTL" check --verify "$MNT"
unmount "$MNT"
