# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# lib.sh - what the system tests share: a mount to test in, and TAP
#
# A script sources this file, calls mount_zramfs (or mount_fs), makes its
# checks, and just ends: the plan is printed, and what was mounted or started
# here is taken down, from a trap. Only daemons of its own mount points are
# ever ended, by process number.
#
#   FS=zramfs|tmpfs   the filesystem under test. tmpfs shows that what a test
#                     expects is what Linux does; parts that are zramfs's own
#                     are then skipped.
#   BUILD=build       where the programs are
#   MOUNT_OPTIONS=    further options for each mount (alg=..., writeback, ...)

set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
: "${BUILD:=build}" "${FS:=zramfs}" "${MOUNT_OPTIONS:=}"
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
HELPERS=$BUILD/tests/system
ZRAMFS=$BUILD/zramfs
CTL=$BUILD/zramfsctl
# The name and the number of a problem in a user's language are not compared.
export LC_ALL=C

TEST_DIR=$(mktemp -d "${TMPDIR:-/tmp}/zramfs-test.XXXXXX") || exit 1
chmod 755 "$TEST_DIR" # tests as other users pass through it
MNT=
MOUNTS=()	# what is mounted, in order
TESTS=0 FAILURES=0

export ASAN_OPTIONS=${ASAN_OPTIONS:-}:log_path=$TEST_DIR/sanitizer
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-}:print_stacktrace=1:log_path=$TEST_DIR/sanitizer
export TSAN_OPTIONS=${TSAN_OPTIONS:-}:log_path=$TEST_DIR/sanitizer
# libfuse frees the name of the mount point only together with unmounting it,
# which a process that does not own the mount must not do.
echo "leak:fuse_session_mount" >"$TEST_DIR/leaks"
export LSAN_OPTIONS=${LSAN_OPTIONS:-}:suppressions=$TEST_DIR/leaks:print_suppressions=0

# --- TAP -------------------------------------------------------------------

note() {
	printf '%s\n' "$*" | sed 's/^/# /'
}

ok() {
	TESTS=$((TESTS + 1))
	echo "ok $TESTS - $1"
}

# not_ok NAME [WHY]
not_ok() {
	TESTS=$((TESTS + 1)) FAILURES=$((FAILURES + 1))
	echo "not ok $TESTS - $1"
	[ $# -lt 2 ] || note "$2"
}

# skip NAME REASON
skip() {
	TESTS=$((TESTS + 1))
	echo "ok $TESTS - $1 # SKIP $2"
}

skip_all() {
	skip "$(basename "$0" .sh)" "$1"
	exit 0
}

# check NAME COMMAND...: ok when it succeeds; its output tells why not.
check() {
	local name=$1 output
	shift
	if output=$("$@" 2>&1); then
		ok "$name"
	else
		not_ok "$name" "$* (status $?)
$(tail -n 40 <<<"$output")"
	fi
}

# refuses NAME COMMAND...: ok when it fails.
refuses() {
	local name=$1 output
	shift
	if output=$("$@" 2>&1); then
		not_ok "$name" "$* succeeded
$(tail -n 40 <<<"$output")"
	else
		ok "$name"
	fi
}

# equal NAME GOT WANT
equal() {
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1" "got '$2', want '$3'"
	fi
}

# between NAME GOT LEAST MOST (integers)
between() {
	if [ "$2" -ge "$3" ] && [ "$2" -le "$4" ]; then
		ok "$1"
	else
		not_ok "$1" "got $2, want $3 to $4"
	fi
}

# await SECONDS COMMAND...: until it succeeds, so long at most. False: it did
# not.
await() {
	local i tenths=$(($1 * 10))
	shift
	for ((i = 0; i < tenths; i++)); do
		"$@" && return
		sleep 0.1
	done
	return 1
}

# --- mounts ----------------------------------------------------------------

on_zramfs() {
	[ "$FS" = zramfs ]
}

sanitized() {
	grep -q -e __asan_init -e __tsan_init "$ZRAMFS"
}

# The processes that serve a mount point: keeper and worker.
daemon_pids() {
	local pid
	for pid in $(pgrep -f -- "$1"); do
		[ "$(readlink "/proc/$pid/exe" 2>/dev/null)" = "$ZRAMFS" ] || continue
		tr '\0' '\n' 2>/dev/null <"/proc/$pid/cmdline" |
			grep -qxF -- "$1" && echo "$pid"
	done 2>/dev/null
	return 0
}

# keeper_of DIRECTORY, worker_of DIRECTORY: one of them. Without a keeper, the
# one process there is counts as it.
keeper_of() {
	local pid
	for pid in $(daemon_pids "$1"); do
		grep -qx zramfs-worker "/proc/$pid/comm" || echo "$pid"
	done 2>/dev/null
}
worker_of() {
	local pid
	for pid in $(daemon_pids "$1"); do
		grep -qx zramfs-worker "/proc/$pid/comm" && echo "$pid"
	done 2>/dev/null
	return 0
}

# try_mount DIRECTORY OPTIONS: mount there; status and message as given.
try_mount() {
	local options=$2${MOUNT_OPTIONS:+,$MOUNT_OPTIONS} status
	mkdir -p "$1" || return
	if on_zramfs; then
		# The daemon must not keep our output open: readers wait for it.
		"$ZRAMFS" "$1" -o "${options#,}" >"$TEST_DIR/mount.log" 2>&1
		status=$?
		cat "$TEST_DIR/mount.log"
	else
		# Only what tmpfs knows.
		options=$(tr ',' '\n' <<<"$options" |
			grep -E '^(size|nr_inodes|mode|uid|gid)=' | paste -sd,)
		mount -t tmpfs ${options:+-o "$options"} tmpfs "$1"
		status=$?
	fi
	[ $status -ne 0 ] || MOUNTS+=("$1")
	return $status
}

# mount_fs OPTIONS: a fresh mount of the filesystem under test, at $MNT.
mount_fs() {
	if on_zramfs && [ ! -c /dev/fuse ]; then
		skip_all "no /dev/fuse"
	fi
	[ "$(id -u)" = 0 ] || skip_all "not root"
	MNT=$TEST_DIR/mnt${#MOUNTS[@]}-$TESTS
	if ! try_mount "$MNT" "$1"; then
		not_ok "mount with '$1'"
		exit 1
	fi
}

# The same, for a script that makes sense on zramfs only.
mount_zramfs() {
	on_zramfs || skip_all "about zramfs, and this is $FS"
	mount_fs "$1"
}

# unmount DIRECTORY: the daemons must be gone soon after.
unmount() {
	local pids pid i kept=()
	pids=$(daemon_pids "$1")
	if ! umount "$1"; then
		not_ok "unmount $1" "$(fuser -vm "$1" 2>&1)"
		umount -l "$1"
	fi
	for i in "${MOUNTS[@]}"; do
		[ "$i" = "$1" ] || kept+=("$i")
	done
	MOUNTS=("${kept[@]}")
	for pid in $pids; do
		for ((i = 0; i < 100; i++)); do
			[ -d "/proc/$pid" ] || continue 2
			sleep 0.1
		done
		not_ok "umount ends the daemon" "process $pid is still there"
		kill -KILL "$pid"
	done
}

clean_up() {
	local status=$? i report
	cd /
	for ((i = ${#MOUNTS[@]} - 1; i >= 0; i--)); do
		unmount "${MOUNTS[i]}"
	done
	for report in "$TEST_DIR"/sanitizer.*; do
		[ -s "$report" ] || continue
		not_ok "no sanitizer report" "$(head -n 80 "$report")"
	done
	rm -rf --one-file-system "$TEST_DIR"
	echo "1..$TESTS"
	[ $FAILURES -eq 0 ] || status=1
	exit $status
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

# --- figures ---------------------------------------------------------------

# stat_of KEY [DIRECTORY]: a number from the daemon.
stat_of() {
	"$CTL" stat --json "${2:-$MNT}" |
		grep -oE "\"$1\": *\"?[^,\"}]*" | head -n 1 |
		sed 's/^[^:]*: *"\{0,1\}//'
}

# The daemon's memory as the system counts it, in bytes.
pss_of() {
	local pid sum=0 kb
	for pid in $(daemon_pids "${1:-$MNT}"); do
		kb=$(awk '/^Pss:/ { print $2 }' "/proc/$pid/smaps_rollup")
		sum=$((sum + kb * 1024))
	done
	echo $sum
}

drop_caches() {
	sync -f "$MNT"
	echo 3 >/proc/sys/vm/drop_caches
}

# Checksums of all files below a directory, by name.
sums() {
	(cd "$1" && find . -type f -print0 | sort -z | xargs -0r sha256sum)
}
