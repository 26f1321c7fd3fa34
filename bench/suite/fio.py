# SPDX-License-Identifier: GPL-2.0-or-later
"""What fio measures, declared as rows and run in one fio process.

The rows of a step run one after the other (stonewall), each reported for
itself. Data: a percentage says how much of each page compresses, and pages
all differ (refill_buffers); PATTERN is one pattern in every page.

Each row has a seed of its own. fio would give all the same one, and a row
would write the very pages that an earlier one has stored: no work for a store
that finds equal pages.
"""

import json
import os
import zlib
from dataclasses import dataclass, field

from . import command
from .command import Failed, Lacking
from .steps import Outcome, Step

PATTERN = "pattern"
READS = ("read", "randread")
MIXED = ("rw", "randrw")
WRITES = ("write", "randwrite")
DIRECTIONS = ("read", "write", "trim")


@dataclass
class Row:
    """One thing to measure. size: bytes in all, shared out among the jobs,
    whole blocks to each."""

    name: str
    rw: str
    size: int
    bs: str = "4k"
    jobs: int = 1
    engine: str = "sync"
    depth: int = 1
    drained: bool = False
    shared: bool = False  # all jobs work on one file
    seconds: float = 0    # 0: once over the size
    loops: int = 1

    def arguments(self, step, target):
        engine = self.engine
        if self.rw == "trim" and not target.device:
            engine = "falloc"  # how a file gives blocks back
        size = self.size if self.shared else self.size // self.jobs
        argv = [f"--name={self.name}", f"--rw={self.rw}", f"--bs={self.bs}",
                f"--numjobs={self.jobs}", f"--ioengine={engine}",
                f"--size={size}", "--stonewall", "--new_group",
                "--group_reporting", f"--loops={self.loops}",
                f"--randseed={zlib.crc32(f'{step.name}/{self.name}'.encode())}"]
        if target.device:
            argv.append(f"--filename={target.path}")
            if not self.shared:
                argv.append(f"--offset_increment={size}")
        elif self.shared:
            argv += [f"--directory={target.path}", "--filename=shared"]
        else:
            argv += [f"--directory={target.path}",
                     "--filename_format=job.$jobnum"]
        if self.depth > 1:
            argv.append(f"--iodepth={self.depth}")
            if self.drained:
                argv.append("--iodepth_low=1")
        if self.seconds:
            argv += ["--time_based", f"--runtime={self.seconds}"]
        if self.rw != "trim":
            argv.append(f"--direct={int(step.direct)}")
            if not step.direct and self.rw not in READS:
                argv.append("--fsync_on_close=1")
        return argv

    def bytes_expected(self):
        """Bytes moved when all went well; None when time decides."""
        if self.seconds:
            return None
        return self.size * (self.jobs if self.shared else 1) * self.loops


def engine_missing(engine, scratch):
    """Why fio cannot use an engine here; None when it can."""
    probe = os.path.join(scratch, "probe")
    try:
        command.run("fio", "--name=probe", f"--filename={probe}",
                    f"--ioengine={engine}", "--rw=write", "--size=4k")
    except Failed as failed:
        return f"fio cannot use {engine} here: {failed}"
    os.unlink(probe)
    return None


def _check_direct(target):
    """Before Linux 6.6 tmpfs knew no O_DIRECT."""
    if target.device:
        return
    probe = os.path.join(target.path, "probe")
    try:
        os.close(os.open(probe, os.O_CREAT | os.O_RDWR | os.O_DIRECT, 0o600))
    except OSError as error:
        raise Lacking(f"no direct I/O: {error.strerror}") from error
    finally:
        os.unlink(probe)


def data_arguments(data):
    if data == PATTERN:
        return ["--buffer_pattern=0xbadc0ffee", "--scramble_buffers=0"]
    return [f"--buffer_compress_percentage={data}", "--refill_buffers=1",
            "--scramble_buffers=0"]


@dataclass
class Fio(Step):
    rows: list = field(default_factory=list)
    data: object = 66
    direct: bool = True
    cold: bool = False   # what is read must have been stored for good
    stores: int = 0      # bytes that must be held afterwards
    events: bool = False

    def arguments(self, target):
        argv = ["fio", "--output-format=json", "--disk_util=0", "--thread=1",
                "--fallocate=none", *data_arguments(self.data)]
        for row in self.rows:
            argv += row.arguments(self, target)
        return argv

    def run(self, target):
        if self.cold and target.unsettled():
            raise Failed(target.unsettled())
        if self.direct:
            _check_direct(target)
        self._check_files(target)
        argv = self.arguments(target)
        requests = target.requests()
        counts = {}
        if self.events and not command.events_reason():
            measured, counts = command.measure_events(argv)
        else:
            measured = command.measure(argv)
        served = {name: count - requests.get(name, 0)
                  for name, count in target.requests().items()}
        jobs = _jobs(measured.output)
        if len(jobs) != len(self.rows):
            raise Failed(f"fio: {len(jobs)} results for "
                         f"{len(self.rows)} rows")
        outcomes = [self._row(row, job, target)
                    for row, job in zip(self.rows, jobs)]
        self._check_after(target, outcomes, served)
        whole = {**measured.counters(), **counts}
        return outcomes, whole

    def _check_files(self, target):
        """fio would quietly write what it is to read: it must be there."""
        if target.device:
            return
        for row in self.rows:
            if row.rw not in READS:
                continue
            for job in range(row.jobs):
                name = "shared" if row.shared else f"job.{job}"
                size = row.size if row.shared else row.size // row.jobs
                path = os.path.join(target.path, name)
                if not os.path.exists(path) or \
                        os.stat(path).st_size < size:
                    raise Failed(f"{name} is not there to be read")

    def _row(self, row, job, target):
        total = {key: sum(job[d][key] for d in DIRECTIONS)
                 for key in ("io_bytes", "total_ios")}
        seconds = max(job[d]["runtime"] for d in DIRECTIONS) / 1000
        # Mixed rows run both directions at once: rates add up.
        iops = sum(job[d]["iops"] for d in DIRECTIONS)
        metrics = {
            "iops": iops,
            "bytes_per_second": sum(job[d]["bw_bytes"] for d in DIRECTIONS),
            "bytes": total["io_bytes"],
            "seconds": seconds,
            "latency_mean_ns": max(job[d]["lat_ns"]["mean"]
                                   for d in DIRECTIONS),
            "cpu_user_percent": job["usr_cpu"],
            "cpu_system_percent": job["sys_cpu"],
            "switches": job["ctx"],
            "minor_faults": job["minf"],
            "major_faults": job["majf"],
        }
        why = None
        expected = row.bytes_expected()
        if job["error"]:
            why = f"fio error {job['error']}"
        elif not iops:
            why = "fio moved nothing"
        elif expected and total["io_bytes"] < expected:
            why = f"fio moved {total['io_bytes']} of {expected} bytes"
        value = iops if row.bs == "4k" else metrics["bytes_per_second"]
        unit = "IOPS" if row.bs == "4k" else "B/s"
        return Outcome(row.name, value, unit, metrics, why)

    def _check_after(self, target, outcomes, served):
        why = target.faults()
        if not why and self.data != PATTERN and \
                any(r.rw in WRITES + MIXED for r in self.rows):
            why = target.repeats()
        if not why and self.cold and all(r.rw in READS for r in self.rows):
            why = target.unsettled()
        if not why and self.stores and target.stores:
            held = target.held()
            if held is not None and held < self.stores:
                why = f"holds {held} of {self.stores} bytes written"
        if not why and served:
            why = self._unserved(served)
        for outcome in outcomes:
            outcome.why = outcome.why or why

    def _unserved(self, served):
        """What is read comes from the daemon, at most 1 MiB at a time.

        fio drops the page cache of a file before it reads it.
        """
        asked = sum(r.size for r in self.rows
                    if r.rw in READS and not r.seconds)
        if served.get("read", 0) * (1 << 20) < asked:
            return f"the daemon saw {served.get('read', 0)} reads for " \
                f"{asked} bytes"
        return None


def _jobs(output):
    try:
        # Warnings may stand before the object.
        return json.loads(output[output.index("{"):])["jobs"]
    except (ValueError, KeyError) as error:
        raise Failed(f"fio: no result: {error}") from error
