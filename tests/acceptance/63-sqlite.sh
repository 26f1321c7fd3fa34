#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# An SQLite database of a million rows, written by four processes at once while
# a fifth reads, in WAL mode (a shared mapping beside the file) and in DELETE
# mode (a journal made and removed for each transaction): nothing is lost, and
# PRAGMA integrity_check finds nothing, also after the page cache was dropped.
#
# ROWS=1000000
. "$(dirname "$0")/../system/lib.sh"
: "${ROWS:=1000000}"

python3 -c 'import sqlite3' 2>/dev/null || skip_all "no python3 with sqlite3"

cat >"$TEST_DIR/rows.py" <<'END'
import hashlib, os, sqlite3, sys, time

WRITERS, BATCH = 4, 5000
path, mode, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])

def connect():
    database = sqlite3.connect(path, timeout=300, isolation_level=None)
    database.execute("pragma cache_size = -65536")
    assert database.execute(f"pragma journal_mode={mode}").fetchone() == (mode,)
    return database

def text(number):
    return hashlib.md5(b"%d" % number).hexdigest() * (number % 7)

def write(writer):
    database = connect()
    for start in range(writer * BATCH, rows, WRITERS * BATCH):
        database.execute("begin immediate")
        database.executemany("insert into rows values (?, ?)",
            ((n, text(n)) for n in range(start, min(start + BATCH, rows))))
        if start % (10 * BATCH) == 0:
            database.execute("delete from rows where number = ?", (start,))
            database.execute("insert into rows values (?, ?)", (start, text(start)))
        database.execute("commit")
        # With somebody always at it, the log is not emptied by itself.
        if mode == "wal" and start // BATCH % 10 == 9:
            database.execute("pragma wal_checkpoint(truncate)")

def read(stop):
    database = connect()
    last = 0
    while not os.path.exists(stop):
        count, = database.execute("select count(*) from rows").fetchone()
        assert count >= last, f"{count} rows after {last}"
        last = count
        time.sleep(1)

def spawn(function, argument):
    pid = os.fork()
    if pid == 0:
        function(argument)
        os._exit(0)
    return pid

def check():
    database = connect()
    assert database.execute("pragma integrity_check").fetchall() == [("ok",)]
    count = 0
    for number, value in database.execute(
            "select number, value from rows order by number"):
        assert number == count and value == text(number), number
        count += 1
    assert count == rows, count

if sys.argv[4] == "write":
    database = connect()
    database.execute("create table rows (number integer primary key, value text)")
    database.execute("create index by_value on rows (value)")
    database.close()
    children = [spawn(write, writer) for writer in range(WRITERS)]
    reader = spawn(read, path + ".stop")
    results = [os.waitpid(child, 0)[1] for child in children]
    open(path + ".stop", "w").close()
    results.append(os.waitpid(reader, 0)[1])
    assert results == [0] * len(results), results
check()
END

for options in size=4g size=4g,writeback; do
	mount_fs "$options"
	for mode in wal delete; do
		from=$(date +%s)
		check "$options, $mode: $ROWS rows by four processes" python3 \
			"$TEST_DIR/rows.py" "$MNT/$mode.db" $mode "$ROWS" write
		note "$(($(date +%s) - from)) s"
		drop_caches
		check "$options, $mode: it is all there" python3 \
			"$TEST_DIR/rows.py" "$MNT/$mode.db" $mode "$ROWS" check
	done
	! on_zramfs || check "$options: check is clean" "$CTL" check --verify "$MNT"
	unmount "$MNT"
	on_zramfs || break
done
