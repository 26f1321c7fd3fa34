#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Another program goes on with the live state: while it is in use, again and
# again; one with another layout is refused, and one that fails is given up.
. "$(dirname "$0")/lib.sh"

mount_zramfs size=512m,hot=8m
: "${UPGRADES:=10}"
next=$TEST_DIR/next
cp "$ZRAMFS" "$next"

cp -r src "$MNT/src"
sums "$MNT/src" >"$TEST_DIR/sums"
echo open >"$MNT/open"
exec 8<"$MNT/open"
rm "$MNT/open"
KEEPER=$(keeper_of "$MNT")
pid=$(stat_of pid)

check "upgrade, its arguments in any order" "$CTL" upgrade --binary "$next" "$MNT"
refuses "another worker serves" [ "$(stat_of pid)" = "$pid" ]
equal "it is the other program" "$(readlink "/proc/$(stat_of pid)/exe")" "$next"
equal "and called as workers are" "$(cat "/proc/$(stat_of pid)/comm")" zramfs-worker
check "under the same keeper" kill -0 "$KEEPER"
check "all data is there" diff "$TEST_DIR/sums" <(sums "$MNT/src")
equal "an open file, too" "$(cat <&8)" open
exec 8<&-
check "the check finds nothing" "$CTL" check --verify "$MNT"
kill -KILL "$(stat_of pid)"
rm "$next"
equal "after a death it is that program again, be its file there or not" \
	"$(readlink "/proc/$(stat_of pid)/exe")" "$next (deleted)"
check "back to the one beside zramfsctl" "$CTL" upgrade "$MNT"
equal "it is that" "$(readlink "/proc/$(stat_of pid)/exe")" "$(realpath "$ZRAMFS")"

# refused NAME MESSAGE PROGRAM
refused() {
	local pid message
	pid=$(stat_of pid)
	message=$("$CTL" upgrade "$MNT" --binary "$3" 2>&1)
	if [ $? -eq 1 ] && grep -q "$2" <<<"$message"; then
		ok "$1 is refused"
	else
		not_ok "$1 is refused" "$message"
	fi
	equal "and the old program serves on" "$(stat_of pid)" "$pid"
}
printf '#!/bin/sh\necho 0.0.0\n' >"$TEST_DIR/other"
printf '#!/bin/sh\nexec sleep 100\n' >"$TEST_DIR/silent"
chmod +x "$TEST_DIR/other" "$TEST_DIR/silent"
refused "another layout" 'layout version is 0.0.0' "$TEST_DIR/other"
refused "a program that does not answer" 'does not tell' "$TEST_DIR/silent"
refused "what is no program" 'ermission' "$TEST_DIR/sums"
refused "what is not there" 'No such file' "$TEST_DIR/nothing"
if [ "$(id -u)" = 0 ]; then
	refuses "others than the owner may not" setpriv --reuid=65534 \
		--regid=65534 --clear-groups "$CTL" upgrade "$MNT"
fi

# It could not be read while nobody serves.
cp "$ZRAMFS" "$MNT/inside"
refuses "nor may the program lie in the mount" timeout 20 \
	"$CTL" upgrade "$MNT" --binary "$MNT/inside"
check "which says so" grep -q 'copy it out of' \
	<("$CTL" upgrade "$MNT" --binary "$MNT/inside" 2>&1)
rm "$MNT/inside"
check "what is no zramfs is not upgraded, wherever the program lies" \
	grep -q "$TEST_DIR: not a zramfs mount" \
	<("$CTL" upgrade "$TEST_DIR" --binary "$TEST_DIR/other" 2>&1)

# Says the right thing, and then does not work.
cat >"$TEST_DIR/broken" <<-END
	#!/bin/sh
	[ "\$1" = --layout-version ] && exec "$ZRAMFS" --layout-version
	exit 5
END
chmod +x "$TEST_DIR/broken"
"$CTL" upgrade "$MNT" --binary "$TEST_DIR/broken"
check "one that fails is given up, and all is there" \
	diff "$TEST_DIR/sums" <(sums "$MNT/src")

# --- in use ------------------------------------------------------------------

# The longest that a write and a listing took, in ms, while $1 exists.
longest() {
	python3 -c '
import os, sys, time
longest = 0
fd = os.open(sys.argv[2], os.O_CREAT | os.O_RDWR)
while os.path.exists(sys.argv[1]):
    start = time.monotonic()
    os.pwrite(fd, b"x" * 4096, 0)
    os.listdir(os.path.dirname(sys.argv[2]))
    longest = max(longest, time.monotonic() - start)
print(int(longest * 1000))
' "$1" "$MNT/clock"
}

load() {
	while [ -e "$TEST_DIR/running" ]; do
		rm -rf "$MNT/tree" && cp -r src "$MNT/tree" &&
			diff -r src "$MNT/tree" || return
	done
}
# upgraded_in_use [PREFIX [AND...]]: again and again, while it is in use; and a
# command that has to succeed after each.
upgraded_in_use() {
	local prefix=${1:-} load clock done=0 i
	shift $(($# ? 1 : 0))
	touch "$TEST_DIR/running"
	load >"$TEST_DIR/load.log" 2>&1 &
	load=$!
	longest "$TEST_DIR/running" >"$TEST_DIR/longest" &
	clock=$!
	until [ -e "$MNT/clock" ]; do
		sleep 0.01
	done
	for ((i = 0; i < UPGRADES; i++)); do
		"$CTL" upgrade "$MNT" && { [ $# -eq 0 ] || "$@"; } && done=$((done + 1))
		sleep 0.05
	done
	rm "$TEST_DIR/running"
	wait $load
	equal "${prefix}no request fails" $? 0
	note "$(tail -n 5 "$TEST_DIR/load.log")"
	wait $clock
	equal "${prefix}all upgrades are done" "$done" "$UPGRADES"
	note "longest wait: $(cat "$TEST_DIR/longest") ms"
	if sanitized; then
		skip "${prefix}no request waits for half a second" "a sanitizer is slower"
	else
		between "${prefix}no request waits for half a second, in ms" \
			"$(cat "$TEST_DIR/longest")" 0 500
	fi
	check "${prefix}the check finds nothing, after all" "$CTL" check --verify "$MNT"
}
upgraded_in_use

# --- in use, as a block device ---------------------------------------------------

if command -v mkfs.ext4 >/dev/null && [ -b /dev/loop0 ] && [ "$(id -u)" = 0 ]; then
	mount_zramfs size=512m,block=ext4
	upgraded_in_use "a device: " sync -f "$MNT"
else
	skip "upgrades in block mode" "no mkfs.ext4 or loop devices"
fi
