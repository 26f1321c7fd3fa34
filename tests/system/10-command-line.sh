#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What the commands answer: exit status 2 and one line for a bad command line,
# 1 and one line for what cannot be done, 0 once the mount answers. And how a
# mount ends.
. "$(dirname "$0")/lib.sh"

on_zramfs || skip_all "about zramfs, and this is $FS"
[ "$(id -u)" = 0 ] || skip_all "not root"
[ -c /dev/fuse ] || skip_all "no /dev/fuse"

DIR=$TEST_DIR/dir
mkdir "$DIR"

# fails NAME STATUS PATTERN COMMAND...: exit status, and exactly one line on
# standard error, which has the pattern in it; what is mounted stays the same.
fails() {
	local name=$1 want=$2 pattern=$3 status lines mounts
	shift 3
	mounts=$(grep -c "$TEST_DIR" /proc/self/mounts)
	"$@" >"$TEST_DIR/out" 2>"$TEST_DIR/err" </dev/null
	status=$?
	lines=$(wc -l <"$TEST_DIR/err")
	if [ "$(grep -c "$TEST_DIR" /proc/self/mounts)" != "$mounts" ]; then
		not_ok "$name" "$* mounted something"
	elif [ $status -ne "$want" ] || [ "$lines" -ne 1 ] ||
		! grep -qE -- "$pattern" "$TEST_DIR/err"; then
		not_ok "$name" "$*
status $status, want $want; on standard error, want one line with '$pattern':
$(cat "$TEST_DIR/err")"
	else
		ok "$name"
	fi
}

# ended PID: a process is gone (or only waits for its parent to notice).
ended() {
	local i state
	for ((i = 0; i < 100; i++)); do
		state=$(awk '/^State:/ { print $2 }' "/proc/$1/status" 2>/dev/null)
		[ -z "$state" ] || [ "$state" = Z ] && return 0
		sleep 0.1
	done
	return 1
}

# --- bad command lines ---

fails "no mount point" 2 . "$ZRAMFS"
fails "an unknown flag" 2 '-q' "$ZRAMFS" "$DIR" -q
fails "too many arguments" 2 . "$ZRAMFS" a b c
fails "an unknown codec is named" 2 'lz77' "$ZRAMFS" "$DIR" -o alg=lz77
fails "a level out of range is named" 2 '99' "$ZRAMFS" "$DIR" -o alg=zstd:99
fails "an unknown pool is named" 2 'slab' "$ZRAMFS" "$DIR" -o pool=slab
fails "a size that is no number" 2 'size' "$ZRAMFS" "$DIR" -o size=lots
fails "a mode that is no number" 2 'mode' "$ZRAMFS" "$DIR" -o mode=rwx
fails "an absurd device" 2 'use at most [0-9]+g' \
	"$ZRAMFS" "$DIR" -o size=1000000t,block=ext4
fails "a size that no number of bytes holds" 2 'size=99999999t .*at most 8388607t' \
	"$ZRAMFS" "$DIR" -o size=99999999t
fails "more hot than there is memory" 2 'hot=150% .*at most 100%' \
	"$ZRAMFS" "$DIR" -o hot=150%
fails "no worker threads" 2 'threads' "$ZRAMFS" "$DIR" -o threads=0
fails "dedup that is neither on nor off" 2 'dedup' \
	"$ZRAMFS" "$DIR" -o dedup=maybe
fails "an option that nobody knows is named" 2 'frobnicate' \
	"$ZRAMFS" "$DIR" -o frobnicate

check "--help tells how to mount" grep -q MOUNTPOINT <("$ZRAMFS" --help)
check "--version tells one" grep -qE '^zramfs [0-9]' <("$ZRAMFS" --version)

fails "zramfsctl without a command" 2 . "$CTL"
fails "zramfsctl with an unknown command" 2 'frob' "$CTL" frob
fails "zramfsctl stat without a mount point" 2 . "$CTL" stat
fails "zramfsctl stat with an unknown option" 2 '--xml' "$CTL" stat --xml "$DIR"
fails "zramfsctl stat in two formats" 2 '--classes: only one of' \
	"$CTL" stat --json --classes "$DIR"
fails "zramfsctl set of two" 2 'hot=2m: one KEY=VALUE' \
	"$CTL" set "$DIR" size=1m hot=2m
fails "zramfsctl set without a value" 2 'size' "$CTL" set "$DIR" size
fails "zramfsctl set of an unknown key" 2 'colour' "$CTL" set "$DIR" colour=1
fails "zramfsctl set of a value that is no size" 2 'size=x' \
	"$CTL" set "$DIR" size=x
fails "zramfsctl set of a part of a number" 2 'size=1.5g .*: use a whole number' \
	"$CTL" set "$DIR" size=1.5g
fails "zramfsctl set of what no number of bytes holds" 2 \
	'mem_limit=99999999t .*: use at most 8388607t' \
	"$CTL" set "$DIR" mem_limit=99999999t
fails "zramfsctl set of more hot than there is memory" 2 \
	'hot=150% .*: use at most 100%' "$CTL" set "$DIR" hot=150%
ln -s "$DIR" "$TEST_DIR/link"
fails "zramfsctl du of a symbolic link" 1 'link: a symbolic link.*leads to' \
	"$CTL" du "$TEST_DIR/link"
fails "zramfsctl on another filesystem" 1 'not a zramfs mount' "$CTL" stat "$DIR"
fails "zramfsctl where there is nothing" 1 'No such file' \
	"$CTL" stat "$DIR/none"
check "zramfsctl --help" grep -q MOUNTPOINT <("$CTL" --help)
check "zramfsctl --version" grep -qE '^zramfsctl [0-9]' <("$CTL" --version)

# --- what cannot be done ---

fails "a mount point that is not there" 1 'No such file' "$ZRAMFS" "$DIR/none"
touch "$TEST_DIR/file"
fails "a file as mount point" 1 'not a directory' "$ZRAMFS" "$TEST_DIR/file"
fails "a file as mount point, in the foreground" 1 'not a directory' \
	"$ZRAMFS" -f "$TEST_DIR/file"

in_own_namespace() {
	unshare -m --propagation private sh -c "$1"' && shift && exec "$@"' sh "$@"
}
fails "no /dev/fuse" 1 '/dev/fuse.*No such file' in_own_namespace \
	'mkdir -p /dev/shm && mount -t tmpfs none /dev' "$ZRAMFS" "$DIR"
fails "/dev/fuse is something else" 1 'cannot mount' in_own_namespace \
	'mount --bind /dev/null /dev/fuse' "$ZRAMFS" "$DIR"

fails "processors cannot be kept awake" 1 'low_latency=on needs /dev/cpu_dma' \
	in_own_namespace 'mkdir -p /dev/shm && mount -t tmpfs none /dev &&
		touch /dev/fuse && mount --bind /proc/self/fd/3 /dev/fuse' \
	"$ZRAMFS" "$DIR" -o low_latency=on 3<>/dev/fuse

if sanitized; then
	skip "too little memory" "sanitizers need address space themselves"
else
	fails "too little memory" 1 'memory' \
		bash -c 'ulimit -v 65536 && exec "$@"' sh "$ZRAMFS" "$DIR"
fi
fails "a memory limit below what it takes to begin" 1 \
	'mem_limit=4096 .*: use at least [0-9]+k' "$ZRAMFS" "$DIR" -o mem_limit=4k
LEAST=$(grep -oE '[0-9]+k$' "$TEST_DIR/err")
check "the least is possible" try_mount "$DIR" "mem_limit=$LEAST"
unmount "$DIR"

# --- a mount, and its end ---

check "mounts" try_mount "$DIR" size=64m
MNT=$DIR
equal "it is there when the command returns" "$(stat -c %i "$DIR")" 1
equal "its type" "$(stat -f -c %T "$DIR")" fuseblk
equal "its name in the list of mounts" \
	"$(findmnt -n -o SOURCE,FSTYPE "$DIR" | tr -s ' ')" \
	"zramfs fuse.zramfs"
equal "a keeper and a worker serve it" "$(daemon_pids "$DIR" | wc -l)" 2
WORKER=$(worker_of "$DIR")
PID=$(keeper_of "$DIR")
equal "its pid is the worker's" "$(stat_of pid)" "$WORKER"
equal "it keeps no terminal" \
	"$(readlink "/proc/$PID/fd/0" "/proc/$PID/fd/1" "/proc/$PID/fd/2" | sort -u)" \
	/dev/null
equal "nor does its worker" \
	"$(readlink "/proc/$WORKER/fd/0" "/proc/$WORKER/fd/1" "/proc/$WORKER/fd/2" | sort -u)" \
	/dev/null
equal "it keeps no directory" "$(readlink "/proc/$PID/cwd")" /
equal "it leads a session of its own" "$(ps -o sid= -p "$PID" | tr -d ' ')" "$PID"
fails "mounting there again" 1 'already' "$ZRAMFS" "$DIR/."

mkdir "$TEST_DIR/two"
check "a second one elsewhere" try_mount "$TEST_DIR/two" size=32m
echo one >"$DIR/file"
refuses "they are two" test -e "$TEST_DIR/two/file"
check "the second one ends" umount "$TEST_DIR/two"
MOUNTS=("$DIR")
equal "the first one stays" "$(cat "$DIR/file")" one

check "zramfsctl stat is readable" grep -q 'Memory' <("$CTL" stat "$DIR")
check "zramfsctl stat --json is JSON" python3 -m json.tool <("$CTL" stat --json "$DIR")
for key in orig_data_size compr_data_size mem_used_total mem_limit \
	mem_used_max same_pages pages_compacted huge_pages huge_pages_since \
	dedup_pages hot_pages stored_pages meta_bytes compr_failed \
	checksum_errors requests codec pool size size_used inodes inodes_used; do
	check "--json has $key" grep -q "\"$key\":" <("$CTL" stat --json "$DIR")
done
equal "its size" "$(stat_of size)" $((64 << 20))
equal "--mm-stat has nine numbers" \
	"$("$CTL" stat --mm-stat "$DIR" | grep -oE '[0-9]+' | wc -l)" 9
check "zramfsctl set size" "$CTL" set "$DIR" size=128m
equal "the size is another" "$(stat_of size)" $((128 << 20))
equal "and df knows" "$(df -B1 --output=size "$DIR" | tail -n 1)" $((128 << 20))
check "zramfsctl set mem_limit" "$CTL" set "$DIR" mem_limit=256m
equal "the limit is there" "$(stat_of mem_limit)" $((256 << 20))
fails "a memory limit of nothing is refused" 1 \
	'mem_limit=1: .*: use at least [0-9]+k' "$CTL" set "$DIR" mem_limit=1
LEAST=$(grep -oE '[0-9]+k$' "$TEST_DIR/err")
check "the least is possible" "$CTL" set "$DIR" "mem_limit=$LEAST"
check "and then more" "$CTL" set "$DIR" mem_limit=256m
head -c 3m /dev/urandom >"$DIR/large"
fails "a size below what is in use is refused" 1 \
	'size=1m: .*: use at least 30[0-9]+k' "$CTL" set "$DIR" size=1m
rm "$DIR/large"

# What is in use, with its tables, is then more than the least that is possible.
head -c 64m /dev/urandom >"$DIR/large"
check "a memory limit below what is in use is taken, and told" \
	grep -E 'mem_limit is [0-9.]+ MiB, but [0-9.]+ MiB are in use: ' \
	<("$CTL" set "$DIR" "mem_limit=$LEAST")
equal "it is there" "$(stat_of mem_limit)" $((${LEAST%k} << 10))
equal "one above that is nothing to tell of" \
	"$("$CTL" set "$DIR" mem_limit=256m 2>&1)" ""
rm "$DIR/large"
equal "nor is no limit" "$("$CTL" set "$DIR" mem_limit=0 2>&1)" ""
check "zramfsctl set hot" "$CTL" set "$DIR" hot=1m
equal "the hot tier's bound" "$(stat_of hot_limit)" $((1 << 20))
check "zramfsctl compact" "$CTL" compact "$DIR"
check "zramfsctl check" "$CTL" check "$DIR"
check "zramfsctl check --verify" "$CTL" check --verify "$DIR"
check "zramfsctl on a file in it" "$CTL" stat "$DIR/file"

as_nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}
check "anybody may look" as_nobody "$CTL" stat "$DIR"
for command in "compact $DIR" "set $DIR size=1m" "check $DIR"; do
	# shellcheck disable=SC2086 # words
	fails "not everybody may ${command%% *}" 1 'only root' \
		as_nobody "$CTL" $command
done

exec 9<"$DIR/file"
refuses "a mount in use is not unmounted" umount "$DIR"
exec 9<&-
check "umount" umount "$DIR"
MOUNTS=()
check "umount ends the daemon" ended "$PID"
check "umount ends the worker" ended "$WORKER"

for signal in TERM INT HUP; do
	check "mounts again" try_mount "$DIR" ""
	PID=$(keeper_of "$DIR")
	echo data >"$DIR/file"
	kill -$signal "$PID"
	check "SIG$signal ends the daemon" ended "$PID"
	MOUNTS=()
	refuses "SIG$signal unmounts" mountpoint -q "$DIR"
done

check "mounts once more" try_mount "$DIR" ""
PID=$(keeper_of "$DIR")
exec 9>"$DIR/file"
kill "$PID"
check "an open file does not keep the daemon" ended "$PID"
MOUNTS=()
refuses "nor the mount" mountpoint -q "$DIR"
refuses "the file is gone" sh -c 'echo more >&9'
exec 9>&-

"$ZRAMFS" "$DIR" -f >"$TEST_DIR/log" 2>&1 &
PID=$!
for ((i = 0; i < 100; i++)); do
	mountpoint -q "$DIR" && break
	sleep 0.1
done
check "-f stays in the foreground" kill -0 "$PID"
check "and mounts" touch "$DIR/file"
umount "$DIR"
wait "$PID"
equal "its exit status" $? 0
equal "it had nothing to say" "$(cat "$TEST_DIR/log")" ""

"$ZRAMFS" "$TEST_DIR/two" "$DIR" 2>"$TEST_DIR/err" && MOUNTS=("$DIR")
check "a directory as SOURCE is but a name, and a hint tells" \
	grep -q "$TEST_DIR/two is a directory, but nothing is mounted there" \
	"$TEST_DIR/err"
unmount "$DIR"

check "as mount.fuse3 calls it: SOURCE MOUNTPOINT" \
	"$ZRAMFS" swap,space "$DIR" -o rw,nosuid,size=8m
equal "the source is shown" "$(findmnt -n -o SOURCE "$DIR")" swap,space
check "and the mount's flags" grep -q nosuid <(findmnt -n -o OPTIONS "$DIR")
refuses "a read-only mount is" sh -c '
	umount "$1" && "$2" "$1" -o ro && touch "$1/file"' sh "$DIR" "$ZRAMFS"
check "umount of it" umount "$DIR"

# --- a mount whose daemon is gone ---

# Nothing of it is left but the mount, and what the kernel has in its cache.
killed() {
	local pids
	try_mount "$DIR" "$1" || return
	MOUNTS=()
	touch "$DIR/file"
	ls -l "$DIR" >/dev/null
	while pids=$(daemon_pids "$DIR") && [ -n "$pids" ]; do
		# shellcheck disable=SC2086 # words
		kill -KILL $pids 2>/dev/null
		sleep 0.1
	done
}

check "mounts, and is killed" killed size=8m
fails "mounting there again" 1 "daemon is gone; unmount it first: umount $DIR" \
	"$ZRAMFS" "$DIR"
fails "the same by a user" 1 \
	"daemon is gone; unmount it first: fusermount3 -u $DIR" \
	as_nobody "$ZRAMFS" "$DIR"
check "what was said to be done helps" umount "$DIR"

is_unmounted() {
	! grep -qF " $DIR " /proc/self/mounts
}
if command -v fusermount3 >/dev/null; then
	for options in auto_unmount auto_unmount,noopen auto_unmount,keeper=off; do
		check "mounts with $options, and is killed" killed $options
		check "with $options, that unmounts it" await 10 is_unmounted
		is_unmounted || umount -l "$DIR"
	done
else
	skip "auto_unmount" "no fusermount3"
fi

# --- installing ---

# -o: what is built here stays as it is.
install_to() {
	make -s -o all "$1" BUILD="$BUILD" DESTDIR="$TEST_DIR/root" PREFIX=/usr
}
installed() {
	find "$TEST_DIR/root" -type f -printf '%m %P\n' | sort
}
check "make install" install_to install
equal "it puts there what it says" "$(installed)" \
	"644 usr/share/man/man8/zramfs.8
644 usr/share/man/man8/zramfsctl.8
755 usr/bin/zramfs
755 usr/bin/zramfsctl"
echo theirs >"$TEST_DIR/root/usr/bin/theirs"
check "make uninstall" install_to uninstall
equal "it takes that away, and no more" \
	"$(cd "$TEST_DIR/root" && find . -type f)" ./usr/bin/theirs

# --- contrib/quickstart ---

# Beside stand-ins for what would install, build and mount: with those alone in
# its PATH it can reach neither the network nor the machine's packages.
QUICK=$TEST_DIR/quick
mkdir -p "$QUICK/contrib" "$QUICK/build" "$QUICK/bin" "$QUICK/theirs"
cp contrib/quickstart contrib/packages-* "$QUICK/contrib"
for tool in cat dirname env id mkdir nproc rmdir; do
	ln -s "$(command -v "$tool")" "$QUICK/bin"
done
stand_in() {
	printf '#!/bin/sh\n%s\n' "$2" >"$QUICK/$1"
}
stand_in bin/dpkg-query 'echo "$PACKAGES"'
stand_in bin/apt-get 'echo "apt-get $*"'
stand_in bin/make :
stand_in build/zramfs 'echo "as $WHO: zramfs $*"
case "$*" in *wrong*) echo "zramfs: wrong is wrong" >&2; exit 2; esac'
mkdir "$QUICK/mine"
chmod -R 755 "$QUICK/contrib" "$QUICK/build" "$QUICK/bin"
chmod 755 "$QUICK" "$QUICK/theirs"
chown 65534:65534 "$QUICK/mine"

# quickstart PACKAGES MOUNTPOINT...: by an ordinary user. PACKAGES: installed
# or not.
quickstart() {
	local packages=$1
	shift
	as_nobody env PATH="$QUICK/bin" PACKAGES="$packages" WHO=user \
		"$QUICK/contrib/quickstart" "$@"
}
equal "quickstart by a user, with all installed, mounts" \
	"$(quickstart installed "$QUICK/mine/z" -o size=1m | grep '^as')" \
	"as user: zramfs $QUICK/mine/z -o size=1m"
fails "quickstart with two mount points" 1 'only -o .* not ' \
	quickstart installed "$QUICK/mine/a" "$QUICK/mine/b"
refuses "... makes neither" ls -d "$QUICK/mine/a"
fails "quickstart with an empty list of options" 1 '-o needs a list' \
	quickstart installed "$QUICK/mine/a" -o
fails "quickstart with a wrong option" 2 'wrong is wrong' \
	quickstart installed "$QUICK/mine/a/b c" -o wrong
refuses "... leaves no directory that it has made" ls -d "$QUICK/mine/a"
check "... but what was there" ls -d "$QUICK/mine"
fails "quickstart by a user, with packages missing, names them" 1 \
	'run as root, or install sudo: these packages .* gcc ' \
	quickstart not-installed "$QUICK/mine/z"
fails "quickstart where a user may not mount" 1 \
	"run as root, or install sudo: you may not write to $QUICK/theirs" \
	quickstart installed "$QUICK/theirs"

stand_in bin/sudo 'echo "sudo $1"; WHO=root "$@"'
chmod 755 "$QUICK/bin/sudo"
equal "quickstart installs by sudo what is missing, and mounts without" \
	"$(quickstart not-installed "$QUICK/mine/z" |
		grep -oE '^sudo.*|^apt-get [a-z]+|^as.*' | tr '\n' ' ')" \
	"sudo apt-get apt-get update sudo env apt-get install as user: zramfs $QUICK/mine/z "
equal "quickstart mounts by sudo where a user may not" \
	"$(quickstart installed "$QUICK/theirs" | grep -E '^sudo|^as')" \
	"sudo build/zramfs
as root: zramfs $QUICK/theirs"

# --- as an ordinary user ---

if [ "$(stat -c %a /dev/fuse)" != 666 ]; then
	fails "a user may not use /dev/fuse" 1 'fusermount3 .*mode 666' \
		as_nobody "$ZRAMFS" "$DIR"
fi
fails "a user may not mount a device" 1 'only root may use block=ext4' \
	as_nobody "$ZRAMFS" "$DIR" -o block=ext4

# A device that others may open, in a namespace of its own: not every machine
# has udev to see to that.
ordinary_user() {
	unshare -m --propagation private sh -e -c '
		mkdir "$1/dev"
		mount -t tmpfs -o mode=755 none "$1/dev"
		mknod -m 666 "$1/dev/fuse" c 10 229
		mount --bind "$1/dev/fuse" /dev/fuse
		mkdir "$1/home"
		chown 65534:65534 "$1/home"
		run() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
		run "$2" "$1/home" -o size=16m
		run sh -ec "echo mine >$1/home/file && cat $1/home/file"
		run "$3" set "$1/home" size=8m
		run "$3" stat --mm-stat "$1/home"
		test "$(run stat -c %u "$1/home")" = 65534
		run fusermount3 -u "$1/home"
		mkdir "$1/theirs"
		if run "$2" "$1/theirs" 2>"$1/err"; then exit 1; fi
		cat "$1/err"
		test "$(wc -l <"$1/err")" = 1
		# The daemon may be about to end.
		umount -l /dev/fuse
		umount -l "$1/dev"
	' sh "$TEST_DIR" "$ZRAMFS" "$CTL"
}
if command -v fusermount3 >/dev/null && [ -u "$(command -v fusermount3)" ]; then
	check "an ordinary user mounts, uses, unmounts; on an own directory only" ordinary_user
else
	skip "an ordinary user mounts" "no set-user-id fusermount3"
fi
