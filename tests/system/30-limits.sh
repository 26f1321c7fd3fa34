#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A write that would pass size=, mem_limit= or nr_inodes= fails with ENOSPC
# from write(2) itself; what was there stays intact, and can be overwritten,
# cut and deleted; what is deleted can be used again at once.
. "$(dirname "$0")/lib.sh"

MIB=1048576
data=$HELPERS/datafile

used() { df -B1 --output=used "$MNT" | tail -n 1 | tr -d ' '; }
available() { df -B1 --output=avail "$MNT" | tail -n 1 | tr -d ' '; }
inodes_available() { df --output=iavail "$MNT" | tail -n 1 | tr -d ' '; }
is() { [ "$("$1")" = "$2" ]; }
# soon SECONDS NAME FIGURE WANT: a FUSE kernel tells the daemon soon, not at
# once, that a file is gone.
soon() {
	await "$1" is "$3" "$4"
	equal "$2" "$("$3")" "$4"
}
bytes_of() { echo "${1%% *}"; }

# --- size= -----------------------------------------------------------------

mount_fs size=16m
equal "size=: an empty mount has all of it" "$(available)" $((16 * MIB))
check "size=: what fits is written" "$data" write "$MNT/first" text 1 $((4 * MIB))
equal "size=: past it write says ENOSPC" \
	"$("$data" write "$MNT/big" random 2 $((32 * MIB)))" \
	"$((12 * MIB)) ENOSPC"
equal "size=: df shows it used" "$(used)" $((16 * MIB))
equal "size=: df shows nothing available" "$(available)" 0
equal "size=: a direct write says ENOSPC" \
	"$("$data" -d -b 4096 write "$MNT/direct" random 2 4096)" "0 ENOSPC"
equal "size=: a write into a hole says ENOSPC" \
	"$("$data" -b 4096 -o $((64 * MIB)) write "$MNT/first" random 3 4096)" \
	"0 ENOSPC"
equal "size=: zeros count" \
	"$("$data" -b 4096 write "$MNT/zero" zero 3 4096)" "0 ENOSPC"
refuses "size=: fallocate is refused" fallocate -l 1m "$MNT/reserved"
equal "size=: a refused write extends nothing" \
	"$(stat -c %s "$MNT/first")" $((4 * MIB))
refuses "size=: a copy is refused" cp "$MNT/first" "$MNT/copy"
drop_caches
check "size=: earlier data is intact" \
	"$data" verify "$MNT/first" text 1 $((4 * MIB))
check "size=: data up to the limit is intact" \
	"$data" verify "$MNT/big" random 2 $((12 * MIB))
equal "size=: data can be overwritten when full" \
	"$("$data" write "$MNT/first" random 4 $((4 * MIB)))" "$((4 * MIB)) OK"
drop_caches
check "size=: ... and is what was written" \
	"$data" verify "$MNT/first" random 4 $((4 * MIB))
check "size=: files and holes are free" \
	truncate -s 1g "$MNT/hole"
equal "size=: ... and use nothing" "$(used)" $((16 * MIB))
# The kernel's FUSE gives a page of its cache without asking for room.
equal "size=: a store to a mapped hole is refused, if late" \
	"$("$HELPERS/mapped" "$MNT/mapped" $MIB)" \
	"$(on_zramfs && echo ENOSPC || echo SIGBUS)"
equal "size=: one to mapped data is not" \
	"$("$HELPERS/mapped" "$MNT/first" $MIB)" OK
equal "size=: ... and uses nothing" "$(used)" $((16 * MIB))
rm -f "$MNT"/mapped "$MNT"/copy "$MNT"/direct "$MNT"/zero "$MNT"/reserved "$MNT"/hole
check "size=: a file can be cut" truncate -s $((1 * MIB)) "$MNT/big"
equal "size=: what was cut is free" "$(used)" $((5 * MIB))
rm "$MNT/first"
soon 2 "size=: what was deleted is free" used $MIB
"$data" -b 1000 write "$MNT/again" random 5 $((32 * MIB)) >/dev/null
# The last write of 1000 bytes may be refused whole or be short: both are right.
again=$("$data" -b 1000 verify "$MNT/again" random 5 $((15 * MIB - 1000)) &&
	stat -c %s "$MNT/again")
between "size=: what was deleted is used again" "${again:-0}" \
	$((15 * MIB - 1000)) $((15 * MIB))
rm "$MNT"/*
soon 2 "size=: deleting all leaves nothing used" used 0
if on_zramfs; then
	"$data" write "$MNT/f" random 6 $((8 * MIB)) >/dev/null
	refuses "set size= below what is used is refused" \
		"$CTL" set "$MNT" size=4m
	check "set size= at what is used is taken" "$CTL" set "$MNT" size=8m
	equal "... and holds" "$("$data" write "$MNT/g" random 6 $MIB)" \
		"0 ENOSPC"
	check "set size= above is taken" "$CTL" set "$MNT" size=9m
	equal "... and holds, too" \
		"$("$data" write "$MNT/g" random 6 $((2 * MIB)))" \
		"$MIB ENOSPC"
	check "size=: check is clean" "$CTL" check --verify "$MNT"
fi
unmount "$MNT"

# --- nr_inodes= ------------------------------------------------------------

mount_fs size=16m,nr_inodes=100
made=0
while ((made < 200)) && : 2>/dev/null >"$MNT/f$made"; do
	made=$((made + 1))
done
equal "nr_inodes=: as many files as it says, with the root" $made 99
refuses "nr_inodes=: no directory more" mkdir "$MNT/dir"
refuses "nr_inodes=: no symlink more" ln -s x "$MNT/link"
refuses "nr_inodes=: no fifo more" mkfifo "$MNT/fifo"
equal "nr_inodes=: df -i shows none free" "$(inodes_available)" 0
rm "$MNT"/f1 "$MNT"/f2
soon 10 "nr_inodes=: deleted ones are free" inodes_available 2
check "nr_inodes=: deleted ones are used again" mkdir "$MNT/dir" "$MNT/dir2"
refuses "nr_inodes=: ... but no more" mkdir "$MNT/dir3"
refuses "nr_inodes=: no link more" ln "$MNT/f3" "$MNT/link"
rmdir "$MNT/dir"
soon 10 "nr_inodes=: a directory is free, too" inodes_available 1
check "nr_inodes=: a link takes one" ln "$MNT/f3" "$MNT/link"
equal "nr_inodes=: ... as df -i shows" "$(inodes_available)" 0
! on_zramfs || check "nr_inodes=: check is clean with links" \
	"$CTL" check --verify "$MNT"
check "nr_inodes=: a link that is removed" rm "$MNT/f3"
check "nr_inodes=: ... gives it back" mkdir "$MNT/dir"
equal "nr_inodes=: data can be written" \
	"$("$data" write "$MNT/link" random 1 $MIB)" "$MIB OK"
! on_zramfs || check "nr_inodes=: check is clean" "$CTL" check --verify "$MNT"
unmount "$MNT"

on_zramfs || exit 0
if sanitized; then
	skip "mem_limit=" "a sanitizer's memory counts as the daemon's"
	exit 0
fi

# --- mem_limit= ------------------------------------------------------------

mount_zramfs size=4g,mem_limit=48m,hot=1m
limit=$((48 * MIB))
between "mem_limit=: df shows available what memory there is" "$(available)" \
	$((32 * MIB)) $limit
equal "mem_limit=: ... but no more used than there is" "$(used)" 0
"$data" write "$MNT/first" text 1 $((8 * MIB)) >/dev/null
result=$("$data" write "$MNT/big" random 2 $((256 * MIB)))
equal "mem_limit=: past it write says ENOSPC" "${result#* }" ENOSPC
written=$(bytes_of "$result")
between "mem_limit=: most of it holds data" "$written" $((32 * MIB)) $limit
between "mem_limit=: df shows nothing available" "$(available)" 0 $MIB
equal "mem_limit=: ... and used what is written" "$(used)" \
	$((8 * MIB + (written + 4095) / 4096 * 4096))
between "mem_limit=: what is used stays within" "$(stat_of mem_used_total)" \
	$((40 * MIB)) $limit
between "mem_limit=: ... and stayed" "$(stat_of mem_used_max)" \
	$((40 * MIB)) $limit
drop_caches
check "mem_limit=: earlier data is intact" \
	"$data" verify "$MNT/first" text 1 $((8 * MIB))
check "mem_limit=: data up to the limit is intact" \
	"$data" verify "$MNT/big" random 2 "$written"
check "mem_limit=: a file can be cut" \
	truncate -s $((16 * MIB + 1234)) "$MNT/big"
check "mem_limit=: ... leaving what it should" \
	"$data" verify "$MNT/big" random 2 $((16 * MIB + 1234))
check "mem_limit=: a file can be deleted" rm "$MNT/big"
sleep 0.5
check "mem_limit=: check is clean" "$CTL" check --verify "$MNT"
again=$(bytes_of "$("$data" write "$MNT/big" random 3 $((256 * MIB)))")
between "mem_limit=: what was deleted is used again" "$again" \
	$((written * 9 / 10)) $limit
rm "$MNT/big" "$MNT/first"
sleep 0.5
text=$(bytes_of "$("$data" write "$MNT/text" text 4 $((512 * MIB)))")
between "mem_limit=: compressible data has room for more" "$text" \
	$((limit * 3 / 2)) $((512 * MIB))
check "mem_limit=: it is intact, too" "$data" verify "$MNT/text" text 4 "$text"
rm "$MNT/text"
unmount "$MNT"

# What is not data counts as well: names, inodes, xattrs, page tables.
mount_zramfs size=1t,mem_limit=24m,nr_inodes=10000000
limit=$((24 * MIB))
check "mem_limit=: files that are only names come to an end" \
	"$HELPERS/flood" names "$MNT"
between "mem_limit=: ... within it" "$(stat_of mem_used_max)" 0 $limit
check "mem_limit=: ... and can be deleted" find "$MNT" -mindepth 1 -delete
check "mem_limit=: xattrs come to an end" "$HELPERS/flood" xattrs "$MNT"
between "mem_limit=: ... within it" "$(stat_of mem_used_max)" 0 $limit
check "mem_limit=: ... and can be deleted" find "$MNT" -mindepth 1 -delete
check "mem_limit=: page tables come to an end" "$HELPERS/flood" pages "$MNT"
between "mem_limit=: ... within it" "$(stat_of mem_used_max)" 0 $limit
check "mem_limit=: ... and can be deleted" find "$MNT" -mindepth 1 -delete
check "mem_limit=: check is clean" "$CTL" check --verify "$MNT"
equal "mem_limit=: afterwards there is room again" \
	"$("$data" write "$MNT/f" random 1 $((8 * MIB)))" "$((8 * MIB)) OK"
unmount "$MNT"
