#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The worker is killed, again and again: files, open handles, unlinked files,
# directories, locks and settings are as before, and nobody sees an error.
. "$(dirname "$0")/lib.sh"

mount_zramfs size=512m,hot=8m
: "${KILLS:=15}" # for each load

# The worker that is there now dies, and another has come when this returns; or
# none comes, which is a failure.
kill_worker() {
	local pid= i
	for ((i = 0; i < 1000; i++)); do
		pid=$(worker_of "$MNT")
		[ -z "$pid" ] || break
	done
	kill -KILL "$pid" || return
	for ((i = 0; i < 1000; i++)); do
		[ "$(worker_of "$MNT" | grep -cvx "$pid")" != 1 ] || return 0
		sleep 0.01
	done
	not_ok "another worker comes"
	return 1
}

# --- at rest -----------------------------------------------------------------

KEEPER=$(keeper_of "$MNT")
WORKER=$(worker_of "$MNT")
between "the keeper's own memory is small, in KiB" \
	"$(awk '/^Private_(Clean|Dirty):/ { sum += $2 } END { print sum }' \
		"/proc/$KEEPER/smaps_rollup")" 0 $(sanitized && echo 100000 || echo 300)
equal "the keeper has one thread" "$(ls "/proc/$KEEPER/task" | wc -l)" 1
equal "the keeper does not map the data" \
	"$(grep -c memfd:zramfs "/proc/$KEEPER/maps")" 0

cp -r src "$MNT/src"
sums "$MNT/src" >"$TEST_DIR/sums"
mkdir "$MNT/dir"
mkfifo "$MNT/fifo"
ln -s target "$MNT/link"
ln "$MNT/src/main.c" "$MNT/hard"
setfattr -n user.color -v blue "$MNT/hard"
"$HELPERS/datafile" write "$MNT/random" random 1 $((8 << 20)) >/dev/null
truncate -s 1g "$MNT/sparse"
echo open >"$MNT/open"
exec 7<>"$MNT/open"
echo gone >"$MNT/gone"
exec 8<"$MNT/gone"
rm "$MNT/gone"
exec 9>"$MNT/lock"
flock 9
"$CTL" set "$MNT" size=256m
"$CTL" set "$MNT" mem_limit=128m
"$CTL" set "$MNT" hot=4m
(cd "$MNT" && exec find . -printf '%p %i %m %n %u %s %l %T@\n') | sort >"$TEST_DIR/list"

check "the worker is killed" kill_worker
refuses "it was" kill -0 "$WORKER"
equal "the keeper stays" "$(keeper_of "$MNT")" "$KEEPER"
check "the check finds nothing" "$CTL" check --verify "$MNT"
drop_caches
check "all names and attributes are the same" \
	diff "$TEST_DIR/list" \
	<(cd "$MNT" && find . -printf '%p %i %m %n %u %s %l %T@\n' | sort)
check "all data is the same" diff "$TEST_DIR/sums" <(sums "$MNT/src")
check "large data too" \
	"$HELPERS/datafile" verify "$MNT/random" random 1 $((8 << 20))
equal "an attribute is the same" \
	"$(getfattr --absolute-names --only-values -n user.color "$MNT/hard")" blue
echo written >&7
equal "an open file can be written" "$(cat "$MNT/open")" written
equal "an unlinked one can be read" "$(cat <&8)" gone
refuses "a lock is still held" flock -n "$MNT/lock" true
equal "size= is as set" "$(stat_of size)" $((256 << 20))
equal "mem_limit= is as set" "$(stat_of mem_limit)" $((128 << 20))
equal "hot= is as set" "$(stat_of hot_limit)" $((4 << 20))
exec 7>&- 8<&- 9>&-
flock -n "$MNT/lock" true || not_ok "a lock can be let go"
rm -r "${MNT:?}"/*
equal "all can be deleted" "$(stat_of inodes_used)" 1
"$CTL" set "$MNT" mem_limit=0
"$CTL" set "$MNT" size=512m

# --- dying of itself ---------------------------------------------------------

until_another() {
	local i
	for ((i = 0; i < 200; i++)); do
		kill -0 "$KEEPER" 2>/dev/null || return
		[ "$(worker_of "$MNT" | grep -cvx "$1")" = 1 ] && return
		sleep 0.02
	done
	return 1
}

mkdir "$TEST_DIR/three"
"$ZRAMFS" "$TEST_DIR/three" -f >"$TEST_DIR/log" 2>&1 &
KEEPER=$!
WORK=$MNT MNT=$TEST_DIR/three
for ((i = 0; i < 100; i++)); do
	mountpoint -q "$MNT" && break
	sleep 0.1
done
for i in 1 2 3 4 5; do
	pid=$(worker_of "$MNT")
	kill -SEGV "$pid"
	until_another "$pid"
	echo $i >"$MNT/file"
done
equal "deaths with requests between are survived, however many" \
	"$(cat "$MNT/file")" 5
# Its only request may come before the worker is ready.
for i in 1 2 3 4 5; do
	pid=$(worker_of "$MNT")
	kill -KILL "$pid"
	stat -f "$MNT" >/dev/null
done
equal "and with one that came in between" "$(cat "$MNT/file")" 5
if sanitized; then
	skip "a crash is reported" "the sanitizer reports it"
else
	check "a crash is reported: the signal, the thread, and where" \
		grep -qE 'crash: SIGSEGV .*thread .* at .*zramfs\+0x' "$TEST_DIR/log"
fi
check "so is how it went on" grep -q 'recovered in .* ms: 2 inodes' "$TEST_DIR/log"
"$CTL" check "$MNT" >/dev/null
sleep 0.1
# More than three only where this is so slow that they are far apart.
for ((i = 0; i < 12; i++)); do
	pid=$(worker_of "$MNT")
	[ -n "$pid" ] && kill -KILL "$pid"
	until_another "$pid" || kill -0 $KEEPER 2>/dev/null || break
done
wait $KEEPER
equal "three deaths with no request between end it" $? 1
check "the log says so" grep -q 'giving up' "$TEST_DIR/log"
equal "clients get ENOTCONN" "$(ls "$MNT" 2>&1 | grep -c 'not connected')" 1
umount "$MNT"
"$ZRAMFS" "$MNT" -o keeper=off
pid=$(daemon_pids "$MNT")
equal "keeper=off: one process" "$(wc -w <<<"$pid")" 1
kill -KILL "$pid"
sleep 0.2
equal "and its death is the end" "$(ls "$MNT" 2>&1 | grep -c 'not connected')" 1
umount "$MNT"
check "a mount to lose its keeper" "$ZRAMFS" "$MNT"
echo text >"$MNT/file"
kill -KILL "$(keeper_of "$MNT")"
equal "without its keeper, the worker serves on" "$(cat "$MNT/file")" text
message=$("$CTL" upgrade "$MNT" 2>&1)
equal "and is not upgraded any more, which it says" "$? $message" \
	"1 zramfsctl: $MNT: not upgraded: there is no keeper any more to start another program"
pid=$(worker_of "$MNT")
kill -TERM "$pid"
for ((i = 0; i < 100; i++)); do
	[ -d "/proc/$pid" ] || break
	sleep 0.1
done
refuses "and unmounts in the end" mountpoint -q "$MNT"
MNT=$WORK

# --- where the kernel sends nothing again ----------------------------------------

if [ -x "$BUILD-faults/zramfs" ]; then
	ZRAMFS_OLD_KERNEL=1 "$BUILD-faults/zramfs" "$TEST_DIR/three" -f \
		>"$TEST_DIR/log" 2>&1 &
	KEEPER=$!
	ZRAMFS=$BUILD-faults/zramfs
	MNT=$TEST_DIR/three
	for ((i = 0; i < 100; i++)); do
		mountpoint -q "$MNT" && break
		sleep 0.1
	done
	errors=$(
		for ((i = 0; i < 500; i++)); do
			mkdir "$MNT/d$i" && echo text >"$MNT/d$i/file" &&
				cat "$MNT/d$i/file" && rm -r "$MNT/d$i"
		done 2>&1 | grep -v '^text$' | grep -v 'Input/output error'
	) &
	load=$!
	for ((i = 0; i < 20; i++)); do
		sleep 0.02
		kill_worker
		ls "$MNT" >/dev/null 2>&1
	done
	check "nobody waits for ever" timeout 300 tail --pid=$load -f /dev/null
	wait $load
	check "the check finds nothing then" "$CTL" check "$MNT"
	rm -rf "${MNT:?}"/*
	sync -f "$MNT"
	echo 3 >/proc/sys/vm/drop_caches
	sleep 0.2
	equal "and nothing is left" "$(stat_of inodes_used)" 1
	note "$(grep -c 'was lost with' "$TEST_DIR/log") requests were refused"
	umount "$MNT"
	wait $KEEPER
	ZRAMFS=$BUILD/zramfs
else
	skip "kernels that send nothing again" "no $BUILD-faults"
fi
MNT=$WORK

# --- at work -----------------------------------------------------------------

# under_kills NAME COMMAND...: it must end well, killed as it is.
under_kills() {
	local name=$1 load i=0 status
	shift
	"$@" >"$TEST_DIR/load.log" 2>&1 &
	load=$!
	while kill -0 $load 2>/dev/null && [ $i -lt "$KILLS" ]; do
		sleep 0.0$((RANDOM % 9 + 1))
		kill_worker || break
		# A load that has yet to begin asks for nothing, and three
		# deaths with no request between are the end.
		stat -f "$MNT" >/dev/null
		i=$((i + 1))
	done
	wait $load
	status=$?
	if [ $status -eq 0 ]; then
		ok "$name, $i kills"
	else
		not_ok "$name, $i kills" "$(tail -n 20 "$TEST_DIR/load.log")"
	fi
	check "$name: the check finds nothing" "$CTL" check --verify "$MNT"
}

unpack_and_delete() {
	local i
	for ((i = 0; i < 12; i++)); do
		tar -C "$MNT" -xf "$TEST_DIR/tree.tar" || return
		diff -r src "$MNT/src" || return
		rm -r "$MNT/src" || return
	done
}
tar -cf "$TEST_DIR/tree.tar" src
under_kills "unpacking and deleting" unpack_and_delete
equal "nothing is left of it" "$(ls -A "$MNT")" ""
equal "not even inodes" "$(stat_of inodes_used)" 1

# Each either works or does not, but never says one and does the other.
names() {
	local i
	for ((i = 0; i < 300; i++)); do
		mkdir "$MNT/d$i" || return
		(set -C && : >"$MNT/d$i/excl") || return
		ln "$MNT/d$i/excl" "$MNT/d$i/link" || return
		mv -n "$MNT/d$i/link" "$MNT/d$i/moved" || return
		[ -e "$MNT/d$i/moved" ] && [ ! -e "$MNT/d$i/link" ] || return
		ln -s target "$MNT/d$i/sym" || return
		echo line >>"$MNT/d$i/excl" || return
		[ "$(cat "$MNT/d$i/moved")" = line ] || return
		rm "$MNT/d$i"/* || return
		rmdir "$MNT/d$i" || return
	done
}
under_kills "names" names
equal "no name is left" "$(ls -A "$MNT")" ""
equal "no inode is left" "$(stat_of inodes_used)" 1

if command -v fio >/dev/null; then
	for direct in 1 0; do
		under_kills "fio verifies, direct=$direct" \
			fio --name=job --directory="$MNT" --size=16m \
			--numjobs=3 --rw=randrw --bs=4k-64k --direct=$direct \
			--ioengine=psync --verify=crc32c --verify_backlog=32 --verify_state_save=0 \
			--loops=3
	done
else
	skip "fio" "not installed"
fi

# --- large writes after idle times -------------------------------------------------

# What idle workers have given back is needed again, and just then one is
# killed: each process writes 8 MiB, and a worker dies within 4 ms. Prints the
# errors that the writers saw.
idle_writes() {
	python3 - "$MNT" "$1" "$(keeper_of "$MNT")" "$2" <<-'END'
		import mmap, os, random, signal, sys, threading, time
		mount, times, keeper = sys.argv[1], int(sys.argv[2]), sys.argv[3]
		flags = os.O_CREAT | os.O_RDWR | (os.O_DIRECT if sys.argv[4] == "direct" else 0)
		data = mmap.mmap(-1, 1 << 20)
		def write(name):
		    try:
		        fd = os.open(mount + "/" + name, flags)
		        for i in range(8):
		            os.pwritev(fd, [data], i << 20)
		        os.fsync(fd)
		        os.close(fd)
		    except OSError as error:
		        print(error)
		for i in range(times):
		    os.statvfs(mount)
		    time.sleep(0.9)
		    data[:8] = random.randbytes(8)
		    writers = [threading.Thread(target=write, args=(name,)) for name in "abc"]
		    for writer in writers:
		        writer.start()
		    time.sleep(random.random() * 0.004)
		    for pid in open(f"/proc/{keeper}/task/{keeper}/children").read().split():
		        os.kill(int(pid), signal.SIGKILL)
		    for writer in writers:
		        writer.join()
	END
}
equal "large direct writes after idle times" "$(idle_writes 6 direct)" ""
equal "large buffered ones" "$(idle_writes 6 buffered)" ""
rm "$MNT"/[abc]
