# SPDX-License-Identifier: GPL-2.0-or-later
"""All that is measured, declared.

A workload runs its steps, in order, on a freshly started target. The quick
scale covers the same workloads with less data, fewer combinations and fewer
rounds.
"""

import os
from dataclasses import dataclass

from . import command, postgres, process
from .fio import (MIXED, PATTERN, READS, WRITES, Fio, Row,
                  engine_missing)
from .steps import Command, Json, Memory, Prepare, Settle, module

MIB = 1 << 20
BLOCK = 4096  # of the suite, and a page
FILES = ("zramfs", "zramfs-block", "ext4-zram", "tmpfs", "nullfs")
STORING = ("zramfs", "zramfs-block", "ext4-zram", "tmpfs")
DEVICES = ("zramfs-loop", "zram", "nullfs-loop")


@dataclass
class Workload:
    name: str
    title: str
    targets: tuple
    steps: list
    rounds: int = 3
    needs: str = None       # why it cannot be done on this machine
    memory: int = 1 << 30   # bytes that should be available
    hog: int = 0            # bytes taken by a program beside it
    used: bool = False      # tell time, CPUs, switches and faults as well


@dataclass
class Scale:
    """How much of everything."""

    quick: bool
    jobs: tuple        # of the fio suite
    hot: int           # bytes of zramfs's hot tier
    suite_bytes: int
    loops: int
    seconds: float     # of what runs for a time
    rounds: int
    suite_rounds: int


def scale(quick, hot, rounds, jobs):
    if quick:
        return Scale(True, (1, 2), hot, 24 * MIB, 1, 0.8, rounds or 3,
                     rounds or 3)
    return Scale(False, tuple(range(1, jobs + 1)), hot, 64 * MIB, 2, 5,
                 rounds or 3, rounds or 10)


# --- 1: the suite of zram's developers ------------------------------------

SUITE_ROWS = (("sequential write", "write"), ("random write", "randwrite"),
              ("sequential read", "read"), ("random read", "randread"),
              ("mixed sequential", "rw"), ("mixed random", "randrw"),
              ("trim", "trim"))

OTHER_DATA = (PATTERN, 75, 50, 11)


def _shared_out(size, jobs):
    """As much of it as gives each job the same number of whole blocks."""
    return size // (jobs * BLOCK) * jobs * BLOCK


def _suite_steps(sizes, jobs, data, direct, short):
    size = _shared_out(sizes.suite_bytes, jobs)

    def rows(kinds):
        return [Row(name, rw, size, jobs=jobs,
                    loops=1 if rw == "trim" else sizes.loops)
                for name, rw in SUITE_ROWS if rw in kinds]

    common = {"data": data, "direct": direct, "events": True}
    steps = [
        Fio("write", rows(WRITES), stores=size, **common),
        Settle("settle"),
        Memory("memory when full"),
        Fio("read", rows(READS), cold=True, **common),
    ]
    if short:
        return steps
    return steps + [
        Fio("mixed", rows(MIXED), **common),
        Fio("trim", rows(("trim",)), **common),
        Settle("settle after trim"),
        Memory("memory at the end"),
    ]


def _suite_one(sizes, targets, data, direct, jobs, hog=0, short=False):
    """short: writes and reads only."""
    mode = "direct" if direct else "buffered"
    label = "one pattern" if data == PATTERN else f"{data} % compressible"
    name = f"suite-{mode}-{data}-{jobs}" + ("-hog" if hog else "")
    title = f"4 KiB, {mode}, {label}, {jobs} job{'s' * (jobs > 1)}" + (
        ", a memory hog beside it" if hog else "")
    return Workload(name, title, targets,
                    _suite_steps(sizes, jobs, data, direct, short),
                    rounds=1 if short else sizes.suite_rounds, hog=hog,
                    used=True)


def suite(sizes):
    return _quick_suite(sizes) if sizes.quick else _full_suite(sizes)


def _quick_suite(sizes):
    yield _suite_one(sizes, FILES, 66, False, 1)
    yield _suite_one(sizes, ("zramfs-block", "ext4-zram"), 66, False, 2)
    yield _suite_one(sizes, FILES, 66, True, 1)
    yield _suite_one(sizes, ("zramfs", "nullfs"), 66, True, 2)
    yield _suite_one(sizes, FILES[1:3], 66, False, 1, _hog_bytes(sizes), True)
    for data in OTHER_DATA:
        yield _suite_one(sizes, ("zramfs", "ext4-zram"), data, True, 1,
                         short=True)


def _full_suite(sizes):
    for data in (66, *OTHER_DATA):
        for direct in (True, False):
            for jobs in sizes.jobs:
                yield _suite_one(sizes, FILES, data, direct, jobs)
    for direct in (True, False):
        yield _suite_one(sizes, FILES, 66, direct, 1, _hog_bytes(sizes))


def _hog_bytes(sizes):
    """All but what the workload needs, and a margin for everybody else."""
    available = process.memory_available()
    if sizes.quick:
        return min(1 << 30, available // 4)
    return max(available - 8 * sizes.suite_bytes - (2 << 30), 0)


# --- 2: queues ------------------------------------------------------------

def queue(sizes, place, skip):
    """Asynchronous engines, on files and on the devices themselves."""
    engines = []
    for engine in ("libaio", "io_uring"):
        reason = engine_missing(engine, place.scratch)
        if reason:
            skip(engine, reason)
        else:
            engines.append(engine)
    if sizes.quick:
        combinations = [c for c in (
            ("io_uring", 1, False), ("io_uring", 32, False),
            ("io_uring", 32, True), ("libaio", 32, False))
            if c[0] in engines]
        kinds, jobs = ("randwrite", "randread"), (1,)
    else:
        combinations = [(engine, depth, drained)
                        for engine in engines
                        for depth in (1, 32, 256, 3200)
                        for drained in (False, True)
                        if depth > 1 or not drained]
        kinds = ("write", "randwrite", "read", "randread", "rw", "randrw")
        jobs = (1, 2)
    size = sizes.suite_bytes * sizes.loops

    def rows(count, wanted):
        return [Row(f"{engine} {depth}{' drained' * drained}: {label}", rw,
                    size, jobs=count, engine=engine, depth=depth,
                    drained=drained)
                for engine, depth, drained in combinations
                for label, rw in SUITE_ROWS if rw in kinds and rw in wanted]

    for count in jobs:
        yield Workload(
            f"queue-{count}", f"4 KiB, direct, queued, {count} "
            f"job{'s' * (count > 1)}",
            FILES[:3] + ("nullfs",) + DEVICES,
            [Fio("fill", [Row("fill", "write", size, bs="1m", jobs=count)],
                 stores=size),
             Settle("settle"),
             Fio("reads", rows(count, READS), cold=True),
             Fio("writes", rows(count, WRITES + MIXED))],
            rounds=sizes.rounds)
    yield from _synchronous(sizes)


def _synchronous(sizes):
    """Written at once, or queued by the page cache: on the devices."""
    for jobs in ((1,) if sizes.quick else (1, 2, 4)):
        for direct in (True, False):
            one = _suite_one(sizes, DEVICES, 66, direct, jobs,
                             short=sizes.quick)
            one.name = "device-" + one.name
            one.title = "Devices: " + one.title
            one.rounds = min(one.rounds, sizes.rounds)
            yield one


# --- 3: streams -----------------------------------------------------------

def stream(sizes):
    """Written for the first time, data takes memory from the system, which
    may cost more than all the rest; so each size is written again, over
    itself."""
    fits, ten = sizes.hot // 2, sizes.hot * 10

    def one(name, rw, size, **keywords):
        return Fio(name, [Row(name, rw, size, bs="1m")], **keywords)

    return [Workload(
        "stream", "1 MiB, direct, sequential",
        FILES,
        [one("write, fits hot", "write", fits, stores=fits),
         one("write again, fits hot", "write", fits),
         Settle("settle, fits hot"),
         one("read, fits hot", "read", fits, cold=True),
         Prepare("remove", _remove_jobs),
         one("write, 10 x hot", "write", ten, stores=ten),
         Settle("settle, 10 x hot"),
         Memory("memory, 10 x hot"),
         one("write again, 10 x hot", "write", ten),
         Settle("settle again, 10 x hot"),
         one("read, 10 x hot", "read", ten, cold=True)],
        rounds=sizes.rounds, memory=3 * ten // 2)]


def _remove_jobs(target):
    for name in os.listdir(target.path):
        if name.startswith("job."):
            os.unlink(os.path.join(target.path, name))


# --- against the transport alone ------------------------------------------

def transport(sizes):
    """4 KiB, direct, random, one file: pages in the pool, not hot."""
    size = 2 * sizes.hot

    def timed(name, rw, jobs):
        return Row(name, rw, size, jobs=jobs, engine="psync", shared=True,
                   seconds=sizes.seconds)

    return [Workload(
        "transport", "4 KiB, direct, random, jobs share one file",
        ("zramfs", "nullfs", "ext4-zram") + ("tmpfs",) * (not sizes.quick),
        [Fio("fill", [Row("fill", "write", size, bs="1m", shared=True)],
             stores=size),
         Settle("settle"),
         Fio("reads", [timed("random read, 1 job", "randread", 1),
                       timed("random read, 2 jobs", "randread", 2)],
             cold=True),
         Fio("write 1", [timed("random write, 1 job", "randwrite", 1)]),
         Settle("settle, 1 job"),
         Fio("write 2", [timed("random write, 2 jobs", "randwrite", 2)]),
         Settle("settle, 2 jobs")],
        rounds=sizes.rounds, memory=2 * size)]


# --- 4: metadata ----------------------------------------------------------

def metadata(sizes, git, place):
    walk, names = place.program("bench/walk"), place.program("bench/names")
    count = 1000 if sizes.quick else 10000
    tree = os.path.join("{dir}", git.directory or "")

    def unpacked(target):
        path = os.path.join(target.path, git.directory)
        have = sum(len(files) for _, _, files in os.walk(path))
        return None if have >= git.files else \
            f"{have} of {git.files} files are there"

    def gone(target):
        left = os.path.join(target.path, "copy")
        return "copy is still there" if os.path.exists(left) else None

    steps = [
        # tar gives owners and times back as root does.
        Command("unpack", ("tar", "-C", "{dir}", "-xf", git.archive),
                done=unpacked),
        Json("first", (walk, tree)),
        Json("again", (walk, tree, 5)),
        Command("copy", ("cp", "-a", tree, "{dir}/copy")),
        Command("delete", ("rm", "-rf", "{dir}/copy"), done=gone),
    ]
    targets = FILES + ("zramfs-noopen", "zramfs-writeback")
    yield Workload("tree", "git's source tree", targets, steps,
                   rounds=sizes.rounds, needs=git.reason)
    for processes in ((1, 2) if sizes.quick else (1, 2, 3, 4)):
        yield Workload(
            f"names-{processes}", f"Empty files, {processes} "
            f"process{'es' * (processes > 1)}",
            FILES + ("zramfs-noopen",),
            [Json("names", (names, "{dir}", processes, count))],
            rounds=sizes.rounds)


# --- 5: builds ------------------------------------------------------------

def build(sizes, redis):
    tree = os.path.join("{dir}", redis.directory or "")
    if sizes.quick:
        argv = ("make", "-j2", "-C", "deps", "hiredis", "linenoise")
        proof = ("ar", "t", "deps/hiredis/libhiredis.a")
    else:
        argv = ("make", "-j2", "MALLOC=libc")
        proof = ("src/redis-server", "-v")

    def built(target):
        path = os.path.join(target.path, redis.directory)
        try:
            command.run(*proof, cwd=path)
        except command.Failed as failed:
            return str(failed)
        return None

    return [Workload(
        "build", "Build of redis" + " (two of its libraries)" * sizes.quick,
        STORING + (() if sizes.quick else ("zramfs-writeback",)),
        [Prepare("unpack", lambda target: redis.unpack(target.path)),
         Command("build", argv, cwd=tree, done=built),
         Settle("settle"), Memory("memory when built")],
        rounds=sizes.rounds,
        needs=redis.reason or (None if command.find("make") and
                               command.find("cc") else "no make or cc"))]


# --- 6: databases ---------------------------------------------------------

def database(sizes, place):
    rows = 10000 if sizes.quick else 100000
    rounds = 1 if sizes.quick else sizes.rounds
    yield Workload("sqlite", "SQLite, WAL", STORING + ("zramfs-writeback",),
                   [Json("sqlite", module("sqlite_load", "{dir}", rows))],
                   rounds=sizes.rounds)
    yield Workload(
        "postgres", "PostgreSQL, pgbench", STORING + ("zramfs-writeback",),
        [postgres.Pgbench("pgbench", scale=1 if sizes.quick else 10,
                          seconds=1 if sizes.quick else 15, place=place)],
        rounds=rounds, needs=postgres.missing())


# --- memory of real trees -------------------------------------------------

def memory(sizes, git, place):
    def copy(target):
        git.unpack(target.path)
        if not sizes.quick:
            command.run("cp", "-a", "/usr/lib/x86_64-linux-gnu",
                        os.path.join(target.path, "lib"))

    return [Workload(
        "memory", "Memory for git's source" +
        ("" if sizes.quick else " and /usr/lib/x86_64-linux-gnu"),
        ("tmpfs", "ext4-zram", "ext4-zram-lzo-rle", "btrfs", "zramfs",
         "zramfs-zstd", "zramfs-block"),
        [Prepare("copy", copy), Settle("settle"), Memory("memory")],
        rounds=1, needs=git.reason, memory=6 << 30)]


def everything(sizes, sources, place, skip):
    """In the order of a round: what the goals need most comes first."""
    git, redis = sources
    yield from transport(sizes)
    yield from stream(sizes)
    yield from metadata(sizes, git, place)
    yield from build(sizes, redis)
    yield from database(sizes, place)
    yield from memory(sizes, git, place)
    yield from queue(sizes, place, skip)
    yield from suite(sizes)
