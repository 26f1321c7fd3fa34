#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What zramfsctl tells of costs: du of files and trees, the pool's size classes;
# and mem_used_max, which can begin anew, and mem_limit, also below what is used.
. "$(dirname "$0")/lib.sh"

MIB=1048576
data=$HELPERS/datafile
settle() { "$CTL" compact "$MNT" >/dev/null; }

# du_of FIELD PATH...: a number of the last path's.
du_of() {
	local field=$1
	shift
	"$CTL" du -s --json "$@" | grep -oE "\"$field\": [0-9]+" |
		tail -n 1 | grep -oE '[0-9]+$'
}

# as USER COMMAND...
as() {
	local uid=$1
	shift
	setpriv --reuid="$uid" --regid="$uid" --clear-groups "$@"
}

mount_zramfs size=2g,hot=8m,alg=lz4,mode=755

# --- du: files ---------------------------------------------------------------

"$data" write "$MNT/text" text 1 $((8 * MIB)) >/dev/null
"$data" write "$MNT/random" random 2 $((4 * MIB)) >/dev/null
"$data" write "$MNT/zero" zero 1 $((2 * MIB)) >/dev/null
# Not cat: it copies by copy_file_range.
dd if="$MNT/random" of="$MNT/twin" bs=64k status=none
truncate -s 1m "$MNT/hole"
printf x >>"$MNT/hole"
settle
equal "du: size of a file" "$(du_of size "$MNT/text")" $((8 * MIB))
equal "du: its pages" "$(du_of pages "$MNT/text")" 2048
equal "du: compressed by lz4" \
	"$("$CTL" du --json "$MNT/text" | grep -o '"codec_pages": .*')" \
	'"codec_pages": {"lz4": 2048}'
between "du: to less than half" "$(du_of stored_bytes "$MNT/text")" \
	$((MIB / 2)) $((6 * MIB))
equal "du: incompressible pages" "$(du_of huge_pages "$MNT/random")" 1024
equal "du: equal pages" "$(du_of shared_pages "$MNT/random")" 1024
equal "du: each pays half of them" "$(du_of share_bytes "$MNT/twin")" \
	$((2 * MIB))
equal "du: same-filled pages" "$(du_of same_pages "$MNT/zero")" 512
equal "du: they take nothing" "$(du_of share_bytes "$MNT/zero")" 0
equal "du: a hole has a size" "$(du_of size "$MNT/hole")" $((MIB + 1))
equal "du: but no pages" "$(du_of pages "$MNT/hole")" 1
equal "du: all that is stored" "$(du_of share_bytes "$MNT")" \
	"$(stat_of compr_data_size)"
"$data" write "$MNT/fresh" text 3 $MIB >/dev/null
between "du: what is not compressed yet" "$(du_of hot_pages "$MNT/fresh")" \
	1 256
mode=$("$CTL" du "$MNT/text" | tail -n 1)
check "du: a line for people" grep -qE \
	"^ +8388608 +2048 +[0-9]+ +0% +0% +[0-9]+% +0% lz4 +$MNT/text\$" \
	<<<"$mode"
check "du -h: sizes" grep -qE '^ +8\.0 MiB' <("$CTL" du -h "$MNT/text")

# --- du: trees -----------------------------------------------------------------

mkdir -p "$MNT/tree/a/b" "$MNT/tree/c"
printf 1 >"$MNT/tree/c/one"
printf 22 >"$MNT/tree/a/two"
printf 333 >"$MNT/tree/a/b/three"
ln "$MNT/tree/c/one" "$MNT/tree/c/same"
ln -s ../text "$MNT/tree/link"
mkfifo "$MNT/tree/fifo"
mknod "$MNT/tree/null" c 1 3
equal "du: a tree: symlinks are not followed, hard links count once" \
	"$(du_of size "$MNT/tree") $(du_of files "$MNT/tree")" "6 3"
equal "du: a line for each directory" \
	"$(cd "$MNT" && "$CTL" du tree | awk 'NR > 1 { print $1, $NF }' | sort)" \
	"1 tree/c
3 tree/a/b
5 tree/a
6 tree"
equal "du -s: one for each path" "$("$CTL" du -s "$MNT/tree" "$MNT/text" |
	awk 'NR > 1 { print $NF }' | xargs)" "$MNT/tree $MNT/text"
equal "du: hard links count once over all paths" \
	"$(du_of files "$MNT/tree/c/one" "$MNT/tree/c")" 0
equal "du: a symlink is itself" "$(du_of files "$MNT/tree/link")" 0
touch "$MNT/tree/$(printf 'odd\n\377"')"
check "du --json is JSON, whatever the names" python3 -m json.tool \
	<("$CTL" du --json "$MNT/tree" "$MNT/tree"/odd*)
mkdir "$MNT/tree/other"
mount -t tmpfs none "$MNT/tree/other" && MOUNTS+=("$MNT/tree/other")
printf 1 >"$MNT/tree/other/file"
equal "du: stays on the filesystem" "$(du_of files "$MNT/tree")" 4
umount "$MNT/tree/other"
MOUNTS=("$MNT")

mkdir "$MNT/many"
for ((i = 0; i < 100; i++)); do
	mkdir "$MNT/many/$i"
	(cd "$MNT/many/$i" && for ((j = 0; j < 100; j++)); do echo $j >$j; done)
done
atime=$(stat -c %x "$MNT/text")
reads=$(stat_of read)
start=$EPOCHREALTIME
equal "du: ten thousand files" "$(du_of files "$MNT/many")" 10000
took=$(((${EPOCHREALTIME/./} - ${start/./}) / 1000))
note "du of 10000 files: $took ms"
sanitized || between "du: ... in well under a second" $took 0 900
equal "du: nothing is read" "$(stat_of read)" "$reads"
"$CTL" du "$MNT" >/dev/null
equal "du: no atime moves" "$(stat -c %x "$MNT/text")" "$atime"

# --- du: who may ask, and what --------------------------------------------------

chown -R 65534:65534 "$MNT/many"
chmod 755 "$MNT/tree" "$MNT/tree/a"
chmod 600 "$MNT/tree/a/two"
chmod 700 "$MNT/tree/a/b"
equal "du: a user's own files" "$(as 65534 "$CTL" du -s --json "$MNT/many" |
	grep -c '"files": 10000,')" 1
equal "du: others' that may be read" \
	"$(as 65534 "$CTL" du "$MNT/text" | awk 'NR > 1 { print $1 }')" \
	$((8 * MIB))
as 65534 "$CTL" du -s "$MNT/tree" "$MNT/text" >"$TEST_DIR/out" 2>"$TEST_DIR/err"
equal "du: not the others: exit status" $? 1
equal "du: a line for each that may not be read" \
	"$(sort "$TEST_DIR/err")" \
	"zramfsctl: $MNT/tree/a/b: Permission denied
zramfsctl: $MNT/tree/a/two: Permission denied"
equal "du: and the rest is told" "$(awk 'NR > 1 { print $1 }' \
	"$TEST_DIR/out" | xargs)" "1 $((8 * MIB))"
"$CTL" du "$MNT/none" /proc "$TEST_DIR" "$MNT/text" >"$TEST_DIR/out" \
	2>"$TEST_DIR/err"
equal "du: wrong paths: exit status" $? 1
equal "du: a line for each wrong path" "$(cat "$TEST_DIR/err")" \
	"zramfsctl: $MNT/none: No such file or directory
zramfsctl: /proc: not in a zramfs mount
zramfsctl: $TEST_DIR: not in a zramfs mount"
equal "du: and the right one is told" \
	"$(awk 'NR > 1 { print $NF }' "$TEST_DIR/out")" "$MNT/text"
"$CTL" du --frob "$MNT" 2>"$TEST_DIR/err"
equal "du: an unknown option" "$? $(wc -l <"$TEST_DIR/err")" "2 1"
"$CTL" du 2>"$TEST_DIR/err"
equal "du: no path" "$? $(wc -l <"$TEST_DIR/err")" "2 1"

# In a place that others change, du comes to an end and says nothing wrong.
for ((i = 0; i < 200; i++)); do
	echo $i >"$MNT/many/file$i"
	rm "$MNT/many/file$i"
done &
for ((i = 0; i < 20; i++)); do
	"$CTL" du -s "$MNT/many" >/dev/null || echo failed
done >"$TEST_DIR/out" 2>"$TEST_DIR/err"
wait
equal "du: while files come and go" \
	"$(grep -v 'No such file' "$TEST_DIR/err")" ""

# --- size classes ----------------------------------------------------------------

settle
"$CTL" stat --classes "$MNT" >"$TEST_DIR/classes"
between "--classes: one row for each size class" \
	"$(wc -l <"$TEST_DIR/classes")" 100 258
equal "--classes: sizes grow" "$(sed '1,2d;$d' "$TEST_DIR/classes" |
	awk '$1 <= last { bad++ } { last = $1 } END { print bad + 0 }')" 0
# size, five groups of zspages, allocated, used, pages used, per zspage, freeable
equal "--classes: the last row is the sum" "$(awk 'NR > 2 && $1 != "all" {
	for (i = 2; i <= 9; i++) sum[i] += $i }
	$1 == "all" { for (i = 2; i <= 9; i++) bad += $i != sum[i] }
	END { print bad + 0 }' "$TEST_DIR/classes")" 0
equal "--classes: objects in use are the stored pages" \
	"$(awk '$1 == "all" { print $8 }' "$TEST_DIR/classes")" \
	"$(stat_of stored_pages)"
equal "--classes: pages are zspages' pages" "$(awk 'NR > 2 && $1 != "all" {
	bad += ($2 + $3 + $4 + $5 + $6) * $10 != $9 } END { print bad + 0 }' \
	"$TEST_DIR/classes")" 0
equal "--classes: huge pages are the last" \
	"$(awk '$1 == 4096 { print $8 }' "$TEST_DIR/classes")" \
	"$(stat_of huge_pages)"
check "--classes: all may ask" as 65534 "$CTL" stat --classes "$MNT"

# --- mem_used_max ------------------------------------------------------------------

rm -r "$MNT"/*
settle
before=$(stat_of mem_used_max)
between "mem_used_max is the highest" "$before" $(($(stat_of mem_used_total) + MIB)) \
	$((1024 * MIB))
# What was deleted goes back meanwhile: use falls between any two questions.
most=$(stat_of mem_used_total)
check "set mem_used_max=0" "$CTL" set "$MNT" mem_used_max=0
between "... begins anew" "$(stat_of mem_used_max)" 1 $((before - MIB))
between "... with what is used now" "$(stat_of mem_used_max)" \
	$(($(stat_of mem_used_total) - MIB / 4)) $((most + MIB / 4))
"$CTL" set "$MNT" mem_used_max=1m 2>"$TEST_DIR/err"
equal "... and takes 0 alone" "$? $(wc -l <"$TEST_DIR/err")" "2 1"
refuses "... from root or who mounted" as 65534 "$CTL" set "$MNT" mem_used_max=0
"$data" write "$MNT/random" random 1 $((8 * MIB)) >/dev/null
between "... and grows again" "$(stat_of mem_used_max)" $((8 * MIB)) $((1024 * MIB))
unmount "$MNT"

# --- mem_limit below what is used ----------------------------------------------------

if sanitized; then
	skip "mem_limit=" "a sanitizer's memory counts as the daemon's"
	exit
fi

# written FILE SEED BYTES: how many bytes a write takes before it fails.
written() {
	"$data" write "$MNT/$1" random "$2" "$3" | cut -d ' ' -f 1
}

mount_zramfs size=2g,hot=8m
"$data" write "$MNT/keep" random 1 $((16 * MIB)) >/dev/null
"$data" write "$MNT/drop" random 2 $((64 * MIB)) >/dev/null
settle
used=$(stat_of mem_used_total)
limit=$((48 * MIB))
check "mem_limit below what is used is taken" "$CTL" set "$MNT" mem_limit=48m
equal "it is told" "$(stat_of mem_limit)" $limit
equal "then nothing new is stored" "$(written new 3 $MIB)" 0
between "nor is more used" "$(stat_of mem_used_total)" 0 $((used + MIB / 4))
drop_caches
check "what was there is there" "$data" verify "$MNT/drop" random 2 $((64 * MIB))
check "a file can be cut" truncate -s 56m "$MNT/drop"
equal "that is not enough yet" "$(written new 3 $MIB)" 0
check "it can be deleted" rm "$MNT/drop"
equal "with less in use than the limit there is room again" \
	"$(written new 3 $((4 * MIB)))" $((4 * MIB))
written new 3 $((64 * MIB)) >/dev/null
between "up to the limit" "$(stat_of mem_used_total)" $((limit * 8 / 10)) $limit
drop_caches
check "and what was there is there" "$data" verify "$MNT/keep" random 1 $((16 * MIB))
check "check is clean" "$CTL" check --verify "$MNT"
unmount "$MNT"

# What is not compressed yet still gets smaller.
mount_zramfs size=2g,hot=128m
"$data" write "$MNT/text" text 1 $((48 * MIB)) >/dev/null
hot=$(stat_of hot_pages)
"$CTL" set "$MNT" mem_limit=40m
between "hot pages when the limit came" "$hot" 8000 12288
settle
equal "are compressed though there is no room" "$(stat_of hot_pages)" 0
between "so that less than the limit is used" "$(stat_of mem_used_total)" \
	0 $((40 * MIB))
drop_caches
check "and stay what they were" "$data" verify "$MNT/text" text 1 $((48 * MIB))
check "check is clean, too" "$CTL" check "$MNT"
unmount "$MNT"
