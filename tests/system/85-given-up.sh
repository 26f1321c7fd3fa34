#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The worker is killed at a point of a request, and while the request waits to
# be read by the next worker, its client is killed, too: the one moment in which
# a request goes away that was begun. What was asked for has happened or not;
# but nothing is kept for who is not there any more, and who lives loses
# nothing.
#
# POINTS=all: every point; else every seventh, a different one for each
# operation.
. "$(dirname "$0")/lib.sh"

faults=$BUILD-faults
[ -x "$faults/zramfs" ] || skip_all "no $faults"
[ "$(printf '%s\n' 6.9 "$(uname -r)" | sort -V | head -n 1)" = 6.9 ] ||
	skip_all "nothing waits to be read again before Linux 6.9"
ZRAMFS=$faults/zramfs CTL=$faults/zramfsctl
[ "${POINTS:-}" = all ] && step=1 || step=7
POINTS_MOST=300 # of any operation below
total=0

export ZRAMFS_FAULT_START=$TEST_DIR/start
mount_zramfs size=64m

# The worker, if it has stopped.
stopped() {
	local pid
	pid=$(worker_of "$MNT")
	[ -n "$pid" ] && grep -q '^State:.T' "/proc/$pid/status" 2>/dev/null && echo "$pid"
}

# until_stopped PID...: the worker has stopped; false when all of these have
# ended before.
until_stopped() {
	while kill -0 "$@" 2>/dev/null; do
		[ -z "$(stopped)" ] || return 0
		sleep 0.01
	done
	[ -n "$(stopped)" ]
}

# No worker is to die any more; one that has stopped goes on.
go_on() {
	local pid
	"$CTL" set "$MNT" fault=0 &
	while kill -0 $! 2>/dev/null; do
		pid=$(stopped) && kill -CONT "$pid"
		sleep 0.01
	done
	wait $!
}

# Whose requests come at the same time, and who is not killed.
bystander() {
	echo text >"$MNT/live" && exec 5<>"$MNT/live" && rm "$MNT/live" &&
		echo more >&5 && [ "$(stat -L -c %s /proc/self/fd/5)" = 5 ]
}

# killed_with_worker NAME COMMAND...: run with a different number each time.
killed_with_worker() {
	local name=$1 n pid client live killed=0
	shift
	for ((n = 1 + TESTS % step; n < POINTS_MOST; n += step)); do
		pid=$(stat_of pid)
		echo "requests asked for" >"$TEST_DIR/start"
		"$CTL" set "$MNT" fault=$n
		"$@" $n >/dev/null 2>&1 &
		client=$!
		bystander 2>"$TEST_DIR/live.log" &
		live=$!
		if until_stopped $client $live && kill -KILL $client 2>/dev/null; then
			killed=$((killed + 1))
		fi
		go_on
		wait $client
		wait $live || {
			not_ok "$name" "point $n, who lives: $(cat "$TEST_DIR/live.log")"
			return
		}
		[ "$(stat_of pid)" != "$pid" ] || break
	done 2>/dev/null # where the shell says who was killed
	rm -f "$TEST_DIR/start"
	total=$((total + killed))
	if [ $n -lt $POINTS_MOST ]; then
		ok "$name: killed with the worker $killed times"
	else
		not_ok "$name" "has more than $n points"
	fi
}

# Names that the kernel does not know.
for ((n = 1; n < POINTS_MOST; n++)); do
	mkdir "$MNT/dir$n" && touch "$MNT/dir$n/"{1..4} "$MNT/file$n"
done
drop_caches

look_up() { exec stat "$MNT/file$1"; }
list() { exec ls -l "$MNT/dir$1"; }
make() { exec mkdir "$MNT/new$1"; }
create() { exec touch "$MNT/new$1"; }
killed_with_worker "a lookup" look_up
killed_with_worker "listing" list
killed_with_worker "mkdir" make
drop_caches
rm -rf "$MNT"/new*
killed_with_worker "create" create
between "clients were killed" $total 1 $((4 * POINTS_MOST))

check "the check finds nothing" "$CTL" check --verify "$MNT"
# The kernel may think that a name is not there, as nobody told it otherwise.
drop_caches
rm -rf "${MNT:?}"/*
drop_caches
sleep 0.2
equal "nothing is kept for who is gone" "$(stat_of inodes_used)" 1
