#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What it costs that a worker may die: keeper=on against keeper=off. 4 KiB
# direct random writes by one job, and unpacking a tree.
#
#   bench/keeper.sh [TARBALL]
#
# The two are mounted side by side and measured in turn, for milliseconds at a
# time: a b b a b a a b ... So what changes while it runs (what else the machine
# does, and on a virtual one what its host does) is the same for both, as is
# what the first has to do for the second. Before that each has the memory that
# it needs: the first to touch a page pays for it, and the more where a host has
# taken it back. And as two mounts with the same options differ by some percent,
# by where in memory they happen to lie, each round makes new ones, in the other
# order. What counts is the median of the rounds, to be believed as far as the
# quartiles are near; A=keeper=on says what two that are the same come to.
#
# ROUNDS=20, BUILD=build, and for other comparisons A=keeper=off B=keeper=on
# (options), BUILD_A= BUILD_B= (programs). Without TARBALL, the sources here are
# the tree.
set -u
cd "$(dirname "$0")/.." || exit 1
: "${BUILD:=build}" "${ROUNDS:=20}"
: "${A:=keeper=off}" "${B:=keeper=on}" "${BUILD_A:=$BUILD}" "${BUILD_B:=$BUILD}"
tarball=${1:-}
work=$(mktemp -d "${TMPDIR:-/tmp}/zramfs-keeper.XXXXXX") || exit 1
trap 'umount "$work"/a "$work"/b 2>/dev/null; rm -rf --one-file-system "$work"' EXIT
mkdir "$work/a" "$work/b"
if [ -z "$tarball" ]; then
	tarball=$work/tree.tar
	tar -cf "$tarball" src codec pool tests bench
fi

# prepare NAME PROGRAMS OPTIONS
prepare() {
	"$2/zramfs" "$work/$1" -o "size=2g,$3" &&
		dd if=/dev/urandom of="$work/$1/file" bs=1M count=64 status=none
}

# In turn, as often and as long as said: prints the microseconds of a, and of b.
measure() {
	python3 - "$work" "$tarball" "$1" <<-'END'
		import mmap, os, random, subprocess, sys, time

		work, tarball, what = sys.argv[1:]
		page = mmap.mmap(-1, 4096)
		files = {name: os.open(f"{work}/{name}/file", os.O_RDWR | os.O_DIRECT)
		         for name in "ab"}

		def write(name):
		    page[:] = random.randbytes(2048) + bytes(2048)
		    at = [random.randrange(16384) * 4096 for _ in range(1500)]
		    start = time.perf_counter()
		    for offset in at:
		        os.pwritev(files[name], [page], offset)
		    return time.perf_counter() - start

		def unpack(name):
		    tree = f"{work}/{name}/tree"
		    os.mkdir(tree)
		    start = time.perf_counter()
		    subprocess.run(["tar", "-C", tree, "-xf", tarball], check=True)
		    took = time.perf_counter() - start
		    subprocess.run(["rm", "-r", tree], check=True)
		    return took

		once, turns = {"write": (write, 8), "unpack": (unpack, 3)}[what]
		for name in "abab":
		    once(name)
		took = {"a": 0, "b": 0}
		for turn in range(turns):
		    for name in "abba" if turn % 2 == 0 else "baab":
		        took[name] += once(name)
		print(*(int(took[name] / turns / 2 * 1e6) for name in "ab"))
	END
}

# compare NAME WORDS: from a line for each round.
compare() {
	awk '{ print $2 / $1 }' "$work/$1" | sort -n >"$work/ratios"
	awk -v words="$2" -v a="$A" -v b="$B" -v file="$work/$1" '
		{ ratio[NR] = $1 }
		function quantile(q) { return (ratio[1 + int((NR - 1) * q + 0.5)] - 1) * 100 }
		END {
			while ((getline line <file) > 0) {
				split(line, v, " ")
				sum_a += v[1]; sum_b += v[2]
			}
			printf "%s: %s %d us, %s %d us on average; %+.1f %% (%+.1f to %+.1f)\n",
				words, a, sum_a / NR, b, sum_b / NR, quantile(0.5), quantile(0.25), quantile(0.75)
		}' "$work/ratios"
}

for ((round = 0; round < ROUNDS; round++)); do
	if [ $((round % 2)) = 0 ]; then
		prepare a "$BUILD_A" "$A" && prepare b "$BUILD_B" "$B" || exit
	else
		prepare b "$BUILD_B" "$B" && prepare a "$BUILD_A" "$A" || exit
	fi
	measure write >>"$work/write" && measure unpack >>"$work/unpack" || exit
	umount "$work/a" "$work/b"
done
compare write "1500 writes"
compare unpack "unpacking"
