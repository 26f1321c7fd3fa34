#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Large numbers: of files in one directory (the cost of each is the same for
# the last as for the first), of levels, of open files. A file of 2^62 bytes is
# in posix_data.c.
#
# SCALE_FILES=20000, SCALE_OPEN=25000: tests/acceptance has more.
. "$(dirname "$0")/lib.sh"
: "${SCALE_FILES:=20000}" "${SCALE_OPEN:=25000}"

# Of each line's steps but the first, which may find caches cold: the last
# three together cost at most twice what the three after the first do.
linear() {
	awk '{ n = NF - 2; first = last = 0
		for (i = 3; i < 6; i++) { first += $i; last += $(n + 3 - i) }
		if (last > 2 * first + 100) { print; worse = 1 }
	} END { exit worse || NR != 5 }' "$TEST_DIR/many"
}

many() {
	# shellcheck disable=SC2046 # numbers
	"$HELPERS/scale" many "$MNT" "$SCALE_FILES" $((SCALE_FILES / 10)) \
		$(! on_zramfs || daemon_pids "$MNT") >"$TEST_DIR/many"
}

# Others may take the machine in the midst of it: not three times.
linear_once_of_three() {
	local try
	for try in 1 2 3; do
		[ "$try" = 1 ] || many || return 1
		! linear || return 0
	done
	return 1
}

mount_fs size=2g,nr_inodes=3m
check "$SCALE_FILES files in a directory" many
note "$(cat "$TEST_DIR/many")"
check "each takes as long as any other" linear_once_of_three
check "a thousand levels" "$HELPERS/scale" deep "$MNT" 1000
check "$SCALE_OPEN open files" "$HELPERS/scale" open "$MNT" "$SCALE_OPEN"
equal "nothing is left" "$(ls "$MNT")" ""
! on_zramfs || check "check is clean" "$CTL" check --verify "$MNT"
if on_zramfs; then
	drop_caches
	between "inodes in use, when the kernel has forgotten them" \
		"$(stat_of inodes_used)" 1 3
fi
