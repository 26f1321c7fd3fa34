#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What looking for equal pages costs, and what it gives.

    bench/dedup.py          seven rounds, a minute or so on an idle machine
    QUICK=1 bench/dedup.py  three rounds, with less data

First through the filesystem: fio writes pages that all differ to a mount with
dedup=on and to one with dedup=off, by turns; each figure is the median of the
rounds, and the ratio that of the medians. Memory is mem_used_total, compacted.

Then the store alone (bench/dedup_cost.c), in CPU time: pages that all differ;
pages that differ in their last bytes only; pages whose hashes fall into few
chains of the index, which a writer who does not know the seed gets by luck
alone; and pages that are there already.

Where all pages differ, what is left of the look-up's cost is 150 to 350 ns of
the 2.3 us that a page of a large write takes. It was misses of the caches, for
the bucket, its chain, and the bucket that is split in turn; these are fetched
ahead of need, for the pages of a write and for the next splits. Tried besides,
and gained a percent at most: buckets split ahead by the housekeeper; slots
found without calls. What would help is not to look for each page, but then
equal pages are missed.

Environment: BUILD=build, ROUNDS, SIZE (MiB).
"""

import json
import os
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from suite import command, undo  # noqa: E402
from suite.main import Place  # noqa: E402
from suite.targets import Zramfs  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
QUICK = os.environ.get("QUICK", "0") not in ("", "0")
ROUNDS = int(os.environ.get("ROUNDS", "3" if QUICK else "7"))
SIZE = int(os.environ.get("SIZE", "64" if QUICK else "192"))
MIB = 1 << 20

# Writes into the hot tier, writes that have to be compressed at once, and
# small ones: the mount's options, and how fio is to write.
JOBS = (
    ("1 MiB, hot", "hot=1g", ("--rw=write", "--bs=1m")),
    ("1 MiB, compressed", "hot=0", ("--rw=write", "--bs=1m")),
    ("4 KiB, hot", "hot=1g", ("--rw=randwrite", "--bs=4k")),
)


def write(place, options, arguments):
    """MiB a second, and bytes held for what was written."""
    target = Zramfs(place)
    target.options = f"{options},size=0"
    with undo.Undo() as cleanup:
        target.start(cleanup)
        fresh = target.memory()
        out = command.run(
            "fio", "--name=job", f"--filename={target.path}/file",
            f"--size={SIZE}m", "--direct=1", "--ioengine=psync", "--thread",
            "--refill_buffers", "--allrandrepeat=0", "--fallocate=none",
            "--buffer_compress_percentage=66", "--buffer_compress_chunk=4096",
            "--output-format=json", *arguments)
        speed = json.loads(out[out.index("{"):])["jobs"][0]["write"]["bw"]
        target.settle()
        return speed / 1024, target.memory() - fresh


def through_the_filesystem(place):
    print(f"{'MiB/s':<20}{'off':>9}{'on':>9}{'ratio':>8}")
    held = {"off": [], "on": []}
    for name, options, arguments in JOBS:
        speeds = {"off": [], "on": []}
        for number in range(ROUNDS):
            for dedup in ("off", "on")[::1 if number % 2 else -1]:
                speed, bytes_held = write(
                    place, f"{options},dedup={dedup}", arguments)
                speeds[dedup].append(speed)
                held[dedup].append(bytes_held)
        off, on = (statistics.median(speeds[d]) for d in ("off", "on"))
        print(f"{name:<20}{off:>9.0f}{on:>9.0f}{on / off:>8.3f}", flush=True)
    off, on = (statistics.median(held[d]) / MIB for d in ("off", "on"))
    print(f"{'memory, MiB':<20}{off:>9.1f}{on:>9.1f}{on / off:>8.3f}\n")


def store_alone(place):
    figures = json.loads(command.run(place.program("bench/dedup_cost"),
                                     SIZE, ROUNDS))
    print(f"{'CPU, ns a page':<20}{'off':>9}{'on':>9}{'ratio':>8}"
          "   put + compress + drop; pages compressed")
    for kind, row in figures.items():
        cost = {d: row[d]["put"] + row[d]["compress"] + row[d]["drop"]
                for d in ("off", "on")}
        print(f"{kind:<20}{cost['off']:>9.0f}{cost['on']:>9.0f}"
              f"{cost['on'] / cost['off']:>8.3f}   " +
              " + ".join(f"{row['on'][part]:.0f}"
                         for part in ("put", "compress", "drop")) +
              (f"; {row['on']['compressed']}" if kind == "equal" else ""))


def main():
    undo.install_signal_handlers()
    with undo.Undo() as cleanup:
        place = Place(os.path.join(ROOT, os.environ.get("BUILD", "build")),
                      cleanup)
        through_the_filesystem(place)
        store_alone(place)


if __name__ == "__main__":
    main()
