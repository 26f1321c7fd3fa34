#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The measuring suite: what it promises, one small run, and one that is
# interrupted. Figures are not looked at.
. "$(dirname "$0")/lib.sh"

on_zramfs || skip_all "nothing of it depends on the filesystem"
command -v python3 >/dev/null || skip_all "no python3"
check "what the suite promises" python3 bench/test_suite.py

command -v fio >/dev/null || {
	skip "a small run" "no fio"
	exit 0
}
OUT=$TEST_DIR/out

# Directories of the suite that are left, or things mounted in them.
left_behind() {
	ls -d "$TEST_DIR"/zramfs-bench.* 2>/dev/null
	grep -o "$TEST_DIR/zramfs-bench[^ ]*" /proc/self/mountinfo
}

ARGUMENTS=(--build "$BUILD" --out "$OUT" --quick --rounds 1
	--targets zramfs,nullfs)
export TMPDIR=$TEST_DIR

bench() {
	bench/run "${ARGUMENTS[@]}" "$@"
}

figures() {
	python3 - "$OUT/bench.json" <<-END
		import json, sys
		result = json.load(open(sys.argv[1]))
		rows = result["summary"]["names-1"]
		for row in "create", "rename", "unlink":
		    for target in "zramfs", "nullfs":
		        assert rows["names " + row][target]["median"] > 0
		assert result["machine"]["kernel"], "no kernel"
	END
}

check "a small run" bench --only '^names-1$'
check "it has figures" figures
check "a table" grep -q "names create" "$OUT/bench.txt"
refuses "a workload that there is not" bench --only nonsense
for wrong in --rounds=-1 --exchange=-5 --exchange=nan '--only=('; do
	refuses "bench/run $wrong" bench --list "$wrong"
	check "which names it: $wrong" grep -q "error: ${wrong%%=*}" \
		<(bench --list "$wrong" 2>&1)
done
check "without its programs it says how to build them" \
	grep -q "make bench-programs builds it" \
	<(bench --list --build "$TEST_DIR" 2>&1)
check "nothing is left behind" test -z "$(left_behind)"

bench/run "${ARGUMENTS[@]}" --only '^stream$' >"$TEST_DIR/interrupted" 2>&1 &
run=$!
for ((i = 0; i < 200; i++)); do
	grep -q 'round 1' "$TEST_DIR/interrupted" && break
	sleep 0.1
done
sleep 0.5
kill -TERM $run
wait $run
status=$?
check "interrupted, it says so" test $status -eq 130
check "and leaves nothing behind" test -z "$(left_behind)"
