#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# How often the kernel has to ask: for a file that is made, and for one that is
# read again. With noopen, opening is not asked for; what then still holds.
. "$(dirname "$0")/lib.sh"

FILES=100
mkdir -p "$TEST_DIR/tree/tree"
for ((i = 0; i < FILES; i++)); do
	head -c 5000 /dev/urandom >"$TEST_DIR/tree/tree/$i"
done
tar -C "$TEST_DIR/tree" -cf "$TEST_DIR/tree.tar" tree

# asked COMMAND...: how often the kernel asks meanwhile, by operation
asked() {
	"$CTL" stat --json "$MNT" >"$TEST_DIR/before"
	"$@" >"$TEST_DIR/output" 2>&1 || note "$* failed"
	"$CTL" stat --json "$MNT" >"$TEST_DIR/after"
	awk -F '[":, ]+' '/"requests"/ { on = 1; next } on && NF > 2 {
		if (FILENAME ~ /before/) n[$2] -= $3; else n[$2] += $3 }
		FNR == 1 { on = 0 }
		END { n["ioctl"]--; for (k in n) if (n[k] > 0) print k, n[k] }' \
		"$TEST_DIR/before" "$TEST_DIR/after" | sort >"$TEST_DIR/asked"
}
total() {
	awk '{ sum += $2 } END { print sum + 0 }' "$TEST_DIR/asked"
}
# of OPERATION...: these together
of() {
	grep -wE "$(tr ' ' '|' <<<"$*")" "$TEST_DIR/asked" |
		awk '{ sum += $2 } END { print sum + 0 }'
}
unpack() {
	tar -C "$MNT" -xf "$TEST_DIR/tree.tar"
}
# asked_at_least PREPARE COMMAND: the best of three, as another program may drop
# caches meanwhile.
asked_at_least() {
	local best=1000000
	for _ in 1 2 3; do
		"$1"
		asked "$2"
		[ "$(total)" -lt $best ] || continue
		best=$(total)
		cp "$TEST_DIR/asked" "$TEST_DIR/best"
	done
	mv "$TEST_DIR/best" "$TEST_DIR/asked"
}
delete_all() {
	rm -rf "${MNT:?}/tree"
}
asked_to_unpack() {
	asked_at_least delete_all unpack
}
# Twice before, as the second time the kernel asks for the times that reading
# has moved.
look_at_all() {
	find "$MNT/tree" -type f -size +0 -exec cat {} + >/dev/null
}
asked_to_look_again() {
	look_at_all
	asked_at_least look_at_all look_at_all
	total
}

mount_zramfs size=100m
asked_to_unpack
# A few of the writes are two, where tar's own buffer ends.
between "a file made by tar: requests" "$(total)" $((FILES * 8)) $((FILES * 97 / 10))
between "its writes are not cut" "$(of write)" $FILES $((FILES * 16 / 10))
between "its capability is asked for once, by chown" "$(of getxattr)" 0 $FILES
between "a file read again is opened and closed" "$(asked_to_look_again)" \
	$((FILES * 2)) $((FILES * 2 + 10))
check "and is what was written" diff -r "$TEST_DIR/tree/tree" "$MNT/tree"
unmount "$MNT"

mount_zramfs size=100m,noopen
asked_to_unpack
between "noopen, a file made by tar: requests" "$(total)" \
	$((FILES * 7)) $((FILES * 87 / 10))
equal "noopen: none is opened or closed by a request" "$(of open release)" 0
between "noopen: all files are read again with no request for one" \
	"$(asked_to_look_again)" 0 10
check "noopen: and are what was written" diff -r "$TEST_DIR/tree/tree" "$MNT/tree"

# --- the time of access, where nobody knows of opening -----------------------

atime() {
	stat -c %.X "$1"
}
# moves NAME COMMAND...: the time of access of f moves when it is run
moves() {
	local before name=$1
	before=$(atime "$MNT/f")
	sleep 0.05
	shift
	"$@" >/dev/null
	refuses "$name moves the time of access" [ "$(atime "$MNT/f")" = "$before" ]
}
leaves() {
	local before name=$1
	before=$(atime "$MNT/f")
	sleep 0.05
	shift
	"$@" >/dev/null
	equal "$name leaves the time of access" "$(atime "$MNT/f")" "$before"
}
change() {
	sleep 0.05
	touch -m "$MNT/f"
}
size_by_seeking() {
	perl -e 'open F, "<", shift; sysseek F, 0, 2' "$MNT/f"
}
read_without_atime() {
	perl -MFcntl -e 'sysopen F, shift, 01000000 or die; sysread F, $_, 1e6' "$MNT/f"
}
atime_rules() {
	echo data >"$MNT/f"
	echo more >>"$MNT/f"
	leaves "$1: looking for the end of what was not read" size_by_seeking
	moves "$1: the first read" cat "$MNT/f"
	leaves "$1: another read" cat "$MNT/f"
	change
	leaves "$1: a read with O_NOATIME" read_without_atime
	moves "$1: a read after a change" cat "$MNT/f"
	chmod 600 "$MNT/f"
	moves "$1: a read after chmod" cat "$MNT/f"
	touch -a -d '25 hours ago' "$MNT/f"
	touch -m -d '26 hours ago' "$MNT/f"
	moves "$1: a read after a day" cat "$MNT/f"
	change
	chattr +A "$MNT/f"
	leaves "$1: a read after chattr +A" cat "$MNT/f"
	chattr -A "$MNT/f"
}
atime_rules noopen
check "noopen: check is clean" "$CTL" check --verify "$MNT"

# --- all that opening would have told ----------------------------------------

exec 7<>"$MNT/open" 8<"$MNT/f" 9>"$MNT/made"
rm "$MNT/f" "$MNT/open"
kill -KILL "$(worker_of "$MNT")"
check "noopen: files are there after the worker's death" \
	diff -r "$TEST_DIR/tree/tree" "$MNT/tree"
equal "noopen: an open file without a name, too" "$(cat <&8)" "data
more"
echo written >&7
equal "noopen: that is written and read" "$(cat /proc/self/fd/7)" written
echo made >&9
equal "noopen: so is one that was being made" "$(cat "$MNT/made")" made
check "noopen: upgrade" "$CTL" upgrade "$MNT"
echo again >&7
equal "noopen: after it, the same" "$(cat /proc/self/fd/7)" "written
again"
exec 7>&- 8<&- 9>&-
: >"$MNT/made"
equal "noopen: opening cuts a file off" "$(stat -c %s "$MNT/made")" 0
check "noopen: check is clean afterwards" "$CTL" check --verify "$MNT"
equal "noopen: and what had no name is gone" "$(stat_of inodes_used)" \
	$((FILES + 3))
unmount "$MNT"

# The kernel has taken what was written before the file became append-only or
# immutable, and sends it later.
fixed() {
	exec 7>>"$MNT/f"
	echo one >&7
	chattr "$1" "$MNT/f"
	exec 7>&-
	cat "$MNT/f"
	chattr "-${1#+}" "$MNT/f"
	rm "$MNT/f"
}
mount_zramfs size=100m,noopen,writeback
equal "noopen, writeback: what was written before chattr +a stays" "$(fixed +a)" one
equal "noopen, writeback: what was written before chattr +i stays" "$(fixed +i)" one
unmount "$MNT"

mount_zramfs size=100m
atime_rules "by default"
unmount "$MNT"
mount_zramfs size=100m,noatime
echo data >"$MNT/f"
leaves "noatime: a read" cat "$MNT/f"
drop_caches
leaves "noatime: a read of what is not cached" cat "$MNT/f"
