# SPDX-License-Identifier: GPL-2.0-or-later
"""sqlite_load.py DIRECTORY ROWS - insert into SQLite in WAL mode, and read.

Rows of about 120 bytes, a hundred to a transaction, then each row by its key
in a shuffled order through a new connection. Prints one JSON object.
"""

import json
import os
import random
import sqlite3
import sys
import time

BATCH = 100


def row(number):
    return (number, f"name-{number:08d}", number * 7919 % 1000003,
            f"a line of text about item {number}, as an application "
            "would store it")


def insert(path, rows):
    database = sqlite3.connect(path, isolation_level=None)
    mode, = database.execute("pragma journal_mode=wal").fetchone()
    if mode != "wal":
        sys.exit(f"sqlite: the journal mode is {mode}")
    database.execute("create table item (key integer primary key, "
                     "name text, value integer, note text)")
    database.execute("create index by_value on item (value)")
    began = time.perf_counter()
    for first in range(0, rows, BATCH):
        database.execute("begin")
        database.executemany("insert into item values (?, ?, ?, ?)",
                             map(row, range(first,
                                            min(first + BATCH, rows))))
        database.execute("commit")
    database.execute("pragma wal_checkpoint(full)")
    seconds = time.perf_counter() - began
    database.close()
    return seconds


def read(path, rows):
    keys = list(range(rows))
    random.Random(1).shuffle(keys)
    database = sqlite3.connect(path)
    began = time.perf_counter()
    for key in keys:
        found = database.execute("select * from item where key = ?",
                                 (key,)).fetchone()
        if found != row(key):
            sys.exit(f"sqlite: row {key} reads as {found}")
    seconds = time.perf_counter() - began
    database.close()
    return seconds


def main():
    rows = int(sys.argv[2])
    path = os.path.join(sys.argv[1], "items.db")
    print(json.dumps({
        "insert": {"value": rows / insert(path, rows), "unit": "1/s",
                   "version": sqlite3.sqlite_version},
        "read": {"value": rows / read(path, rows), "unit": "1/s",
                 "bytes": os.stat(path).st_size},
    }))


main()
