#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Files, names, attributes and extended attributes behave as tmpfs's do: many
# small cases, in C (posix_*.c), each of which passes on tmpfs too.
#
# POSIX_CASE=word runs only the cases with that word in their name.
. "$(dirname "$0")/lib.sh"
: "${POSIX_CASE:=}"

posix() { # OPTIONS: each program's own TAP lines are counted into ours
	local program status
	mount_fs "$1"
	for program in names dirs data attributes xattrs kernel; do
		"$HELPERS/posix_$program" "$MNT" ${POSIX_CASE:+"$POSIX_CASE"} \
			>"$TEST_DIR/tap" 2>&1
		status=$?
		awk -v "n=$TESTS" -v "to= - $1 $program: " \
			'/^(not )?ok / { sub(/ok [0-9]+ - /, "ok " ++n to) } 1' \
			"$TEST_DIR/tap"
		TESTS=$((TESTS + $(grep -cE '^(not )?ok ' "$TEST_DIR/tap")))
		if grep -q '^not ok' "$TEST_DIR/tap"; then
			FAILURES=$((FAILURES + 1))
		elif [ $status -ne 0 ]; then
			not_ok "$1 $program" "exit status $status"
		fi
	done
	! on_zramfs || check "$1: check is clean" "$CTL" check --verify "$MNT"
	unmount "$MNT"
}

posix "size=1g"
! on_zramfs || posix "size=1g,writeback"
! on_zramfs || posix "size=1g,noopen"
