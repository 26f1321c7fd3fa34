#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# pjdfstest, as root, on tmpfs and on zramfs: each test that passes there
# passes here.
#
# PJDFSTEST=directory where it is built (autoreconf -ifs && ./configure && make)
. "$(dirname "$0")/../system/lib.sh"
: "${CACHE:=/var/tmp/zramfs-cache}" "${PJDFSTEST:=$CACHE/pjdfstest}"

[ -x "$PJDFSTEST/pjdfstest" ] || skip_all "no pjdfstest in $PJDFSTEST"

# run_tests RESULTS: a line 'script number ok', 'not ok' or 'todo' each; the
# last is what the suite itself expects to fail on this system.
run_tests() {
	local script name
	for script in "$PJDFSTEST"/tests/*/*.t; do
		name=${script#"$PJDFSTEST/tests/"}
		(cd "$MNT" && bash "$script" 2>&1) | sed -nE \
			-e "s,^not ok ([0-9]+).*# TODO.*,$name \1 todo,p" \
			-e "s,^(ok|not ok) ([0-9]+).*,$name \2 \1,p"
	done >"$1"
}

suite() { # OPTIONS
	local worse
	mount_fs "$1"
	run_tests "$TEST_DIR/got"
	worse=$(comm -23 <(grep ' [0-9]* ok$' "$TEST_DIR/want" | sort) \
		<(sort "$TEST_DIR/got"))
	note "$(wc -l <"$TEST_DIR/want") tests; on tmpfs" \
		"$(grep -c ' not ok$' "$TEST_DIR/want") fail, with $1" \
		"$(grep -c ' not ok$' "$TEST_DIR/got")"
	equal "$1: what passes on tmpfs passes" "$worse" ""
	between "$1: tests that ran" "$(wc -l <"$TEST_DIR/got")" 8000 20000
	! on_zramfs || check "$1: check is clean" "$CTL" check --verify "$MNT"
	unmount "$MNT"
}

under_test=$FS FS=tmpfs
mount_fs size=1g
run_tests "$TEST_DIR/want"
unmount "$MNT"
FS=$under_test
suite size=1g
! on_zramfs || suite size=1g,writeback
! on_zramfs || suite size=1g,noopen
