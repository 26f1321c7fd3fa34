# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line, and the rounds: every workload on every target in turn.

Rounds are the outermost loop, so that what disturbs the machine for a while
disturbs all alike, and that an interrupted run has whole rounds to show.
"""

import argparse
import json
import os
import re
import sys
import tempfile
import time

from . import (command, exchange, goals, machine, plots, process, report,
               rivals, targets, undo, workloads)
from .command import Failed, Lacking
from .sources import Source
from .steps import SUITE

# A quick run has a small hot tier, so that little data is ten times as much.
QUICK_HOT = 64 << 20
QUICK_SECONDS = 270  # of five minutes: the last step, and the report, follow


class Place:
    """The suite's directories, and where the programs are."""

    def __init__(self, build, cleanup):
        self.build = os.path.abspath(build)
        self.root = tempfile.mkdtemp(prefix="zramfs-bench.")
        os.chmod(self.root, 0o755)
        cleanup.push(f"remove {self.root}", self._remove)
        self.mounts = self._directory("mounts")
        self.scratch = self._directory("scratch")
        self.sockets = self._directory("sockets")

    def _directory(self, name):
        path = os.path.join(self.root, name)
        os.mkdir(path)
        return path

    def _remove(self):
        """Never what is still mounted: then rm must not go in there."""
        with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
            if any(line.split()[4].startswith(self.root + "/")
                   for line in mounts):
                raise Failed("something below is still mounted")
        command.run("rm", "-rf", "--one-file-system", self.root)

    def program(self, name):
        path = os.path.join(self.build, name)
        if not os.path.exists(path):
            sys.exit(f"bench: {path} is missing: make bench-programs builds "
                     "it")
        return path


class Run:
    """One run of the suite."""

    def __init__(self, options, place):
        self.options = options
        self.place = place
        self.results = report.Results()
        self.targets = {name: cls(place)
                        for name, cls in rivals.ALL.items()}
        self.titles = {n: t.title for n, t in self.targets.items()}
        self.machine = machine.describe(place.build)
        self.problems = []
        self.interrupted = None
        self.codec = None
        self.sources = (Source("git"), Source("redis"))
        self.workloads = []
        self.used = {}
        self.deadline = None

    # --- what will be done ------------------------------------------------

    def prepare(self):
        if not command.find("fio"):
            sys.exit("bench: fio is missing: see contrib/packages-bench")
        for source in self.sources:
            source.prepare(self.place.scratch)
        options = self.options
        sizes = workloads.scale(options.quick, self._hot(), options.rounds,
                                options.jobs)
        wanted = re.compile(options.only) if options.only else None
        for workload in workloads.everything(
                sizes, self.sources, self.place, self.results.skip):
            if wanted and not wanted.search(workload.name):
                continue
            if options.targets:
                workload.targets = tuple(
                    t for t in workload.targets
                    if t in options.targets.split(","))
            self.workloads.append(workload)
        reason = command.events_reason()
        if reason:
            self.results.skip("cycles and instructions", reason)

    def _hot(self):
        """The size of the hot tier: a mount's default but for quick runs."""
        if self.options.quick:
            for target in self.targets.values():
                if isinstance(target, targets.Zramfs):
                    target.hot = QUICK_HOT
        with undo.Undo() as cleanup:
            probe = self.targets["zramfs"]
            if probe.missing():
                sys.exit(f"bench: zramfs: {probe.missing()}")
            probe.start(cleanup)
            return probe.details()["hot_limit"]

    def _missing(self, workload, target):
        if workload.needs:
            return workload.needs
        if target.missing():
            return target.missing()
        available = process.memory_available()
        if available < workload.memory + workload.hog:
            return f"{available >> 20} MiB available, needs " \
                f"{(workload.memory + workload.hog) >> 20}"
        return None

    # --- doing it ---------------------------------------------------------

    def go(self):
        if self.options.quick:
            self.deadline = time.monotonic() + QUICK_SECONDS
        try:
            self._codec_alone()
            for number in range(1, max(w.rounds for w in self.workloads)
                                + 1):
                for workload in self.workloads:
                    if number <= workload.rounds:
                        self._round(workload, number)
        except undo.Interrupted as signal:
            self.interrupted = str(signal)
            self.results.skip("the rest", f"interrupted by {signal}")

    def _late(self, workload, number):
        if not self.deadline or time.monotonic() < self.deadline:
            return False
        if number == 1:
            self.results.skip(workload.name, "no time left")
        return True

    def _round(self, workload, number):
        if self._late(workload, number):
            return
        for name in workload.targets:
            target = self.targets[name]
            reason = self._missing(workload, target)
            if reason:
                what = workload.name if reason == workload.needs else name
                self.results.skip(what, reason)
                continue
            self._say(f"round {number}  {workload.name:28} {name}")
            self._one(workload, target, number)

    def _one(self, workload, target, number):
        """Measured again, if that is asked for, when processors were far
        apart."""
        most = self.options.exchange
        for _ in range(exchange.ATTEMPTS):
            before = exchange.line_ns_soon(self.place, most)
            if most and before and before > most:
                break
            steps = self._measure(workload, target, number)
            apart = max((ns for ns in (before, exchange.line_ns(self.place))
                         if ns), default=None)
            if not most or not apart or apart <= most:
                self._keep(workload, target, number, steps, apart)
                return
            self._say(f"    {apart:.0f} ns a line: does not count")
        self.results.skip(
            f"{workload.name} on {target.name}, round {number}",
            f"a cache line took more than {most:g} ns to exchange")

    def _keep(self, workload, target, number, steps, apart):
        for step in steps:
            self.results.add(workload.name, target.name, number, *step)
        if steps and apart:
            self.results.add_value(workload.name, target.name,
                                   "exchange of a line", apart, "ns")

    def _measure(self, workload, target, number):
        """What the steps gave, as far as they could be done."""
        steps = []
        self.used[target.name] = target.settings()
        try:
            with undo.Undo() as cleanup:
                with undo.deferred():
                    self._bring_memory(workload.memory)
                    if workload.hog:
                        self._start_hog(workload.hog, cleanup)
                    target.start(cleanup)
                for step in workload.steps:
                    steps.append(self._step(target, step))
        except Lacking as error:
            self.results.skip(f"{workload.name} on {target.name}", str(error))
        except (Failed, OSError, ValueError, KeyError) as error:
            self.problems.append(
                f"{workload.name} on {target.name}, round {number}: {error}")
            self._say(f"    {error}")
        self.problems += cleanup.problems
        return steps

    @staticmethod
    def _step(target, step):
        asked, used = target.requests(), target.usage()
        busy = process.machine_busy()
        outcomes, whole = step.run(target)
        whole["machine_cpu"] = process.machine_busy() - busy
        daemon = process.difference(target.usage(), used)
        daemon["requests"] = {
            name: count - asked.get(name, 0)
            for name, count in target.requests().items()
            if count > asked.get(name, 0)}
        return step.name, outcomes, whole, daemon

    @staticmethod
    def _bring_memory(size):
        """Have so much free memory that the machine itself has. The host of a
        virtual one may have taken back what was free; whoever comes first
        would pay for all the others, several microseconds for each page."""
        command.end(Run._take_memory(size), 0)

    @staticmethod
    def _take_memory(size):
        """A program that has it. Signals are deferred meanwhile."""
        hog = command.start(sys.executable,
                            os.path.join(SUITE, "suite", "hog.py"), size,
                            stdout=-1)
        if hog.stdout.readline().strip() != b"taken":
            command.end(hog, 0)
            raise Failed("the memory hog got no memory")
        return hog

    @staticmethod
    def _start_hog(size, cleanup):
        cleanup.push("end the hog", command.end, Run._take_memory(size), 0)

    def _codec_alone(self):
        """The codec on the very data that fio writes."""
        sample = os.path.join(self.place.scratch, "sample")
        command.run("fio", "--name=sample", f"--filename={sample}",
                    "--rw=write", "--bs=1m", "--size=32m",
                    "--buffer_compress_percentage=66", "--refill_buffers=1",
                    "--scramble_buffers=0", "--ioengine=psync")
        runs = [json.loads(command.run(
            self.place.program("bench/codec_speed"), "lz4", sample, 0.3))
            for _ in range(3)]
        self.codec = sorted(runs, key=lambda r: r["compress_ns"])[1]
        os.unlink(sample)

    # --- what came of it --------------------------------------------------

    def finish(self):
        out = self.options.out
        os.makedirs(out, exist_ok=True)
        measured = goals.measure(self.results, self.sources[0].files,
                                 self.codec)
        for row, parts in goals.daemon_costs(self.results,
                                             self.codec).items():
            for target, value in zip(("zramfs", "nullfs", "codec alone"),
                                     parts):
                self.results.add_value("cost", target, row, value, "s/GB")
        pictures = self._draw(out)
        lines = [line for target in ("zramfs", "zramfs-noopen")
                 for line in report.requests_lines(
                     self.results, self.sources[0].files, target)]
        lines += self._cost_lines() + goals.lines(measured)
        text = report.text(self.machine, self.workloads, self.results,
                           self.titles, self.used, lines)
        self._write(out, "bench.txt", text)
        self._write(out, "bench.json", json.dumps({
            "machine": self.machine, "command": sys.argv[1:],
            "quick": self.options.quick, "targets": self.used,
            "workloads": {w.name: {"title": w.title, "rounds": w.rounds,
                                   "steps": [str(s) for s in w.steps]}
                          for w in self.workloads},
            "codec_alone": self.codec, "summary": self.results.summary(),
            "used": {w.name: self.results.used(w.name)
                     for w in self.workloads},
            "goals": goals.records(measured), "raw": self.results.raw,
            "skipped": self.results.skipped, "problems": self.problems,
            "interrupted": self.interrupted, "plots": pictures,
        }, indent=1))
        print(text)
        for problem in self.problems:
            print(f"problem: {problem}")
        print(f"Written to {out}: bench.txt, bench.json, "
              f"{len(pictures)} plots.")
        bad = self.problems or self.results.invalid()
        return 130 if self.interrupted else int(bool(bad))

    def _cost_lines(self):
        rows = self.results.rows.get("cost")
        if not rows:
            return []
        names = ["zramfs", "nullfs", "codec alone"]
        table = [[row, *[report.number(series[n].median(), "s/GB")
                         for n in names]] for row, series in rows.items()]
        return ["", "CPU of the daemon for each GB, 1 MiB direct, ten times "
                "the hot tier, until all is stored",
                *report.grid(["", *names], table)]

    def _draw(self, out):
        if plots.missing():
            self.results.skip("plots", plots.missing())
            return []
        paths = []
        for workload in self.workloads:
            try:
                paths += plots.draw(workload, self.results, self.titles, out)
            except Failed as error:
                self.problems.append(f"plot of {workload.name}: {error}")
        return [os.path.basename(path) for path in paths]

    @staticmethod
    def _write(directory, name, text):
        path = os.path.join(directory, name)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".new", path)

    def _say(self, text):
        print(text, file=sys.stderr, flush=True)


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/run", description="Measure zramfs next to its rivals.")
    parser.add_argument("--build", default=os.environ.get("BUILD", "build"),
                        help="where zramfs was built")
    parser.add_argument("--out", help="where results go [BUILD/bench]")
    parser.add_argument("--quick", action="store_true",
                        help="everything briefly, in five minutes")
    parser.add_argument("--rounds", type=int, default=0,
                        help="rounds of everything [10 of the fio suite, "
                        "3 of the rest]")
    parser.add_argument("--jobs", type=int, default=4,
                        help="the fio suite with 1 to so many jobs [4]")
    parser.add_argument("--only", metavar="REGEX",
                        help="only workloads whose name matches")
    parser.add_argument("--targets", metavar="NAME,...",
                        help=f"only these of {', '.join(rivals.ALL)}")
    parser.add_argument("--exchange", metavar="NS", type=float, default=0,
                        help="only while two processors exchange a cache "
                        "line in at most so many nanoseconds: wait for "
                        "that, a minute at most, and leave out what was "
                        "measured otherwise three times")
    parser.add_argument("--list", action="store_true",
                        help="show the workloads, measure nothing")
    options = parser.parse_args(arguments)
    options.out = os.path.abspath(
        options.out or os.path.join(options.build, "bench"))
    unknown = set((options.targets or "").split(",")) - {"", *rivals.ALL}
    if unknown:
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    if options.rounds < 0:
        parser.error(f"--rounds {options.rounds}: want 1 or more")
    if not 0 <= options.exchange < 1e6:
        parser.error(f"--exchange {options.exchange}: want nanoseconds")
    try:
        re.compile(options.only or "")
    except re.error as error:
        parser.error(f"--only {options.only}: {error}")
    return options


def main(arguments):
    options = parse(arguments)
    undo.install_signal_handlers()
    try:
        with undo.Undo() as cleanup:
            run = Run(options, Place(options.build, cleanup))
            run.prepare()
            if not run.workloads:
                sys.exit("bench: no workload has such a name")
            if options.list:
                for workload in run.workloads:
                    print(f"{workload.name:28} {workload.title}")
                return 0
            run.go()
            status = run.finish()
        for problem in cleanup.problems:
            print(f"problem: {problem}", file=sys.stderr)
        return status or int(bool(cleanup.problems))
    except undo.Interrupted as signal:
        print(f"bench: ended by {signal}", file=sys.stderr)
        return 130
