# SPDX-License-Identifier: GPL-2.0-or-later
"""What is to be reached, and whether this run reached it.

Each goal is a ratio of medians within one run. Where a goal has several rows
the worst decides, and is named.
"""

import statistics
from dataclasses import dataclass

from .report import grid


@dataclass
class Goal:
    what: str
    against: str
    want: float
    most: bool = False  # the ratio may be at most, not at least, want


@dataclass
class Ratio:
    label: str
    value: float


def _ratio(results, label, workload, row, target, other, other_row=None):
    mine = results.median(workload, row, target)
    theirs = results.median(workload, other_row or row, other)
    if mine is None or not theirs:
        return []
    return [Ratio(label, mine / theirs)]


def _rows(results, prefix, wanted, target, other):
    """The ratios of all rows of workloads whose name begins so."""
    found = []
    for workload in results.rows:
        if not workload.startswith(prefix):
            continue
        for row, targets in results.rows[workload].items():
            if targets and wanted(row, next(iter(targets.values())).unit):
                found += _ratio(results, f"{workload}: {row}", workload, row,
                                target, other)
    return found


def _fio_row(_row, unit):
    return unit in ("IOPS", "B/s")


def _transport(results, kind):
    return [r for jobs in ("1 job", "2 jobs") for r in
            _ratio(results, jobs, "transport", f"{kind}, {jobs}", "zramfs",
                   "nullfs")]


def _scaling(results):
    return [r for kind in ("random read", "random write") for r in
            _ratio(results, kind, "transport", f"{kind}, 2 jobs", "zramfs",
                   "zramfs", f"{kind}, 1 job")]


def _stream_read(results):
    return [r for size in ("fits hot", "10 x hot") for r in
            _ratio(results, size, "stream", f"read, {size}", "zramfs",
                   "ext4-zram")]


def _stream_write(results, size):
    return [r for row in ("write", "write again") for r in
            _ratio(results, row, "stream", f"{row}, {size}", "zramfs",
                   "ext4-zram")]


def _requests_per_file(results, files, target):
    counts = []
    for entry in results.raw:
        if (entry["workload"], entry["step"], entry["target"]) == (
                "tree", "unpack", target):
            counts.append(sum(entry["daemon"]["requests"].values()))
    if not counts or not files:
        return []
    return [Ratio("unpack", statistics.median(counts) / files)]


def _daemon_per_gb(results, rows, target):
    """CPU seconds of the daemon for each GB that the steps moved; medians."""
    rounds = {}
    for entry in results.raw:
        if entry["workload"] != "stream" or entry["target"] != target or \
                entry["step"] not in rows or "cpu" not in entry["daemon"]:
            continue
        total = rounds.setdefault(entry["round"], [0.0, 0])
        total[0] += entry["daemon"]["cpu"]
        total[1] += sum(o["metrics"].get("bytes", 0)
                        for o in entry["outcomes"])
    values = [cpu / moved * 1e9 for cpu, moved in rounds.values() if moved]
    return statistics.median(values) if values else None


def daemon_costs(results, codec):
    """{row: (zramfs, nullfs, codec) in CPU seconds for each GB}"""
    costs = {}
    for label, rows, key in (
            ("write", ("write, 10 x hot", "settle, 10 x hot"),
             "compress_ns"),
            ("read", ("read, 10 x hot",), "decompress_ns")):
        zramfs = _daemon_per_gb(results, rows, "zramfs")
        nullfs = _daemon_per_gb(results, rows, "nullfs")
        if zramfs and nullfs and codec:
            costs[label] = (zramfs, nullfs, codec[key] * 1e-9 / 4096 * 1e9)
    return costs


def measure(results, files, codec):
    """[(Goal, [Ratio...])...] in the order of the table."""
    costs = [Ratio(label, zramfs / (nullfs + alone)) for
             label, (zramfs, nullfs, alone)
             in daemon_costs(results, codec).items()]
    return [
        (Goal("file mode, 4 KiB direct random read, from the pool",
              "nullfs IOPS", 0.85), _transport(results, "random read")),
        (Goal("file mode, 4 KiB direct random write", "nullfs IOPS", 0.85),
         _transport(results, "random write")),
        (Goal("the same, 2 jobs", "1 job", 1.8), _scaling(results)),
        (Goal("file mode, 1 MiB direct read, from the pool", "ext4 on zram",
              1.3), _stream_read(results)),
        (Goal("file mode, 1 MiB direct write, fits the hot tier",
              "ext4 on zram", 2.0),
         _stream_write(results, "fits hot")),
        (Goal("file mode, 1 MiB direct write, ten times the hot tier",
              "ext4 on zram", 1.0),
         _stream_write(results, "10 x hot")),
        (Goal("block mode, buffered rows of the suite", "ext4 on zram", 1.0),
         _rows(results, "suite-buffered", _fio_row, "zramfs-block",
               "ext4-zram")),
        (Goal("loop device of block mode, direct, io_uring, depth 32",
              "raw zram", 0.5),
         _rows(results, "queue",
               lambda row, unit: row.startswith("io_uring 32"),
               "zramfs-loop", "zram")),
        (Goal("block mode's file, direct, io_uring, depth 32", "raw zram",
              0.5), _block_against_raw(results)),
        (Goal("file mode, unpack git, time", "ext4 on zram", 4.0, True),
         _ratio(results, "unpack", "tree", "unpack", "zramfs",
                "ext4-zram")),
        (Goal("file mode, walk + stat + read again, time", "tmpfs", 1.3,
              True),
         _ratio(results, "all", "tree", "again all", "zramfs", "tmpfs")),
        (Goal("the same, noopen", "tmpfs", 1.3, True),
         _ratio(results, "all", "tree", "again all", "zramfs-noopen",
                "tmpfs")),
        (Goal("file mode, build of redis, time", "tmpfs", 1.03, True),
         _ratio(results, "build", "build", "build", "zramfs", "tmpfs")),
        (Goal("block mode, build of redis, time", "tmpfs", 1.02, True),
         _ratio(results, "build", "build", "build", "zramfs-block",
                "tmpfs")),
        (Goal("requests for each file created by tar", "", 8.0, True),
         _requests_per_file(results, files, "zramfs")),
        (Goal("the same, noopen", "", 8.0, True),
         _requests_per_file(results, files, "zramfs-noopen")),
        (Goal("CPU of the daemon for each GB, lz4", "nullfs + codec", 1.25,
              True), costs),
    ]


def _block_against_raw(results):
    found = []
    for workload in results.rows:
        if not workload.startswith("queue"):
            continue
        for row in results.rows[workload]:
            if row.startswith("io_uring 32"):
                found += _ratio(results, f"{workload}: {row}", workload, row,
                                "zramfs-block", "zram")
    return found


def reached(goal, ratios):
    """True, False, or None when nothing was measured."""
    if not ratios:
        return None
    if goal.most:
        return max(r.value for r in ratios) <= goal.want
    return min(r.value for r in ratios) >= goal.want


def _worst(goal, ratios):
    return (max if goal.most else min)(ratios, key=lambda r: r.value)


def lines(measured):
    """The table of goals, one line each; then every ratio of those short."""
    table, details = [], []
    for goal, ratios in measured:
        state = {True: "pass", False: "short", None: "no figure"}[
            reached(goal, ratios)]
        figure = ""
        if ratios:
            figure = f"{_worst(goal, ratios).value:.2f}"
            if len(ratios) <= 2:
                figure = " / ".join(f"{r.value:.2f}" for r in ratios)
        bound = f"{'at most' if goal.most else 'at least'} {goal.want:g}"
        table.append([goal.what, goal.against, bound, figure, state])
        if state == "short" and len(ratios) > 2:
            details += [f"  {r.value:5.2f}  {r.label}" for r in
                        sorted(ratios, key=lambda r: r.value)
                        if reached(goal, [r]) is False]
    out = ["", "To reach (ratios of medians in this run; of several rows "
           "the worst)", *grid(["", "against", "wanted", "measured", ""],
                               table)]
    if details:
        out += ["", "Rows that fall short", *details]
    return out


def records(measured):
    return [{"what": goal.what, "against": goal.against, "want": goal.want,
             "most": goal.most, "reached": reached(goal, ratios),
             "ratios": [vars(r) for r in ratios]}
            for goal, ratios in measured]
