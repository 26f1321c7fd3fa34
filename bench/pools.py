#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure the pools: what they cost in memory, and what in time.

    bench/pools.py          three rounds with 200 MiB: some minutes
    QUICK=1 bench/pools.py  one round with 32 MiB

Prints a table for each kind of data: pages that all differ, of which 75, 66
or 50 percent compresses to nothing and the rest not at all (fio's
buffer_compress_percentage). Each figure is the median of the rounds. In a
round each pool is measured once, on a mount of its own, and another begins
each time, so that what disturbs the machine for a while disturbs all alike.

How small a pool can be next to z3fold is decided by how small the pages get.
lz4 brings fio's pages of 75 % to 1055 bytes and those of 66 % to 1425, of which
z3fold puts three and two into a page: a pool without any loss would take
3 * 1055 / 4096 = 0.77 and 2 * 1425 / 4096 = 0.70 of what z3fold takes. zsmalloc
loses two percent, and takes 0.79 and 0.71. To take 0.6, pages would have to
come down to 819 bytes (three to a page: 80 %); where z3fold has to put two into
a page, which it does above 1344 bytes, the least is 2 * 1344 / 4096 = 0.66.

Mounts have no hot tier, and files are opened with O_DIRECT: each write goes
to the pool, and each read comes from it.

Environment: BUILD=build, ROUNDS=3, SIZE=200 (MiB), ALG=lz4.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
QUICK = os.environ.get("QUICK", "0") not in ("", "0")
ROUNDS = int(os.environ.get("ROUNDS", "1" if QUICK else "3"))
SIZE = int(os.environ.get("SIZE", "32" if QUICK else "200"))
ALG = os.environ.get("ALG", "lz4")
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
POOLS = ("zsmalloc", "z3fold", "zbud")
DATA = (75, 66, 50)
MIB = 1 << 20

# What is measured, in this order on one file: the row's name, and how fio is
# to go about it. Trim: fio's falloc engine punches holes into files.
JOBS = (
    ("sequential write", ("--rw=write", "--bs=64k")),
    ("random write", ("--rw=randwrite", "--bs=4k")),
    ("sequential read", ("--rw=read", "--bs=64k")),
    ("random read", ("--rw=randread", "--bs=4k")),
    ("random mixed", ("--rw=randrw", "--bs=4k")),
    ("trim", ("--rw=randtrim", "--bs=4k", "--ioengine=falloc")),
)
WRITTEN, OVERWRITTEN, COMPACTED, COMPRESSED = (
    "memory, written", "memory, overwritten", "memory, compacted",
    "compressed data")
MEMORY = (COMPRESSED, WRITTEN, OVERWRITTEN, COMPACTED)


def run(*argv):
    done = subprocess.run(argv, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(argv)}: {done.stderr or done.stdout}")
    return done.stdout


class Mount:
    """A zramfs mounted as long as this is entered."""

    def __init__(self, pool):
        self.options = f"pool={pool},alg={ALG},hot=0,dedup=off,size=0"

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="zramfs-pools.")
        try:
            run(f"{BUILD}/zramfs", self.path, "-o", self.options)
        except BaseException:
            os.rmdir(self.path)
            raise
        return self

    def __exit__(self, *_):
        run("umount", self.path)
        os.rmdir(self.path)

    def compact(self):
        run(f"{BUILD}/zramfsctl", "compact", self.path)

    def stat(self, key):
        return json.loads(run(f"{BUILD}/zramfsctl", "stat", "--json",
                              self.path))[key]

    def fio(self, percentage, arguments):
        """Bytes a second of one job."""
        out = run("fio", "--name=job", f"--filename={self.path}/file",
                  f"--size={SIZE}m", "--direct=1", "--ioengine=psync",
                  "--refill_buffers", "--allrandrepeat=0",
                  f"--buffer_compress_percentage={percentage}",
                  "--buffer_compress_chunk=4096", "--fallocate=none",
                  "--output-format=json", *arguments)
        job = json.loads(out[out.index("{"):])["jobs"][0]
        return sum(job[way]["bw_bytes"] for way in ("read", "write", "trim"))


def measure(pool, percentage):
    figures = {}
    with Mount(pool) as mount:
        fresh = mount.stat("mem_used_total")

        def memory():
            return mount.stat("mem_used_total") - fresh

        for row, arguments in JOBS:
            figures[row] = mount.fio(percentage, arguments)
            if row == "sequential write":
                figures[COMPRESSED] = mount.stat("compr_data_size")
                figures[WRITTEN] = memory()
            if row == "random write":
                figures[OVERWRITTEN] = memory()
                mount.compact()
                figures[COMPACTED] = memory()
    return figures


def table(percentage, rounds):
    """rounds: pool -> list of what measure() gave."""
    def median(pool, row):
        return statistics.median(figures[row] for figures in rounds[pool])

    print(f"{SIZE} MiB of pages that compress by {percentage} %, {ALG}:")
    print(f"  {'':<20}" + "".join(f"{pool:>11}" for pool in POOLS) +
          "  zsmalloc to z3fold")
    for row in MEMORY + tuple(row for row, _ in JOBS):
        unit = "MiB" if row in MEMORY else "MiB/s"
        values = [median(pool, row) for pool in POOLS]
        print(f"  {row:<20}" + "".join(f"{v / MIB:>11.1f}" for v in values) +
              f" {unit:<6}{values[0] / values[1]:>6.2f}")
    print(flush=True)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for percentage in DATA:
        rounds = {pool: [] for pool in POOLS}
        for number in range(ROUNDS):
            first = number % len(POOLS)
            for pool in POOLS[first:] + POOLS[:first]:
                rounds[pool].append(measure(pool, percentage))
        table(percentage, rounds)


if __name__ == "__main__":
    main()
