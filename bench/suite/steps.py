# SPDX-License-Identifier: GPL-2.0-or-later
"""What one measurement does, and how it is checked.

A step runs on a started target and gives outcomes, one for each row of the
tables, and what it used as a whole. An outcome that did not do its work has a
reason, and no ratio is made of it.
"""

import json
import os
import sys
import time
from dataclasses import dataclass, field

from . import command
from .command import Failed

SUITE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@dataclass
class Outcome:
    row: str
    value: float
    unit: str  # IOPS, B/s, s, 1/s, bytes: what the value is
    metrics: dict = field(default_factory=dict)
    why: str = None  # why it does not count

    def lower_is_better(self):
        return self.unit in ("s", "bytes", "s/GB", "requests")


@dataclass
class Step:
    name: str

    def run(self, target):
        """([Outcome...], {what it used as a whole})"""
        raise NotImplementedError


@dataclass
class Settle(Step):
    """Let the target finish what it put off: measured, for it is work."""

    def run(self, target):
        began = time.monotonic()
        target.settle()
        seconds = time.monotonic() - began
        outcome = Outcome(self.name, seconds, "s", {"seconds": seconds})
        outcome.why = target.unsettled()
        return [outcome], {}


@dataclass
class Memory(Step):
    """The memory taken now."""

    def run(self, target):
        taken = target.memory()
        if taken is None:
            return [], {}
        return [Outcome(self.name, taken, "bytes", target.details())], {}


@dataclass
class Prepare(Step):
    """Something that is not measured itself."""

    action: object = None  # of a target

    def run(self, target):
        self.action(target)
        return [], {}


@dataclass
class Command(Step):
    """A program, by its time. argv may name {dir}, the target's path."""

    argv: tuple = ()
    cwd: str = None
    env: dict = field(default_factory=dict)
    done: object = None  # of a target: why the work was not done, or None
    timeout: int = 1800

    def run(self, target):
        places = {"dir": target.path}
        argv = [str(a).format(**places) for a in self.argv]
        cwd = self.cwd.format(**places) if self.cwd else None
        measured = command.measure(argv, cwd=cwd, env=self.env,
                                   timeout=self.timeout)
        outcome = Outcome(self.name, measured.seconds, "s",
                          measured.counters())
        outcome.why = (self.done and self.done(target)) or target.faults()
        return [outcome], measured.counters()


@dataclass
class Json(Step):
    """A program that prints its figures: {row: {"value":, "unit":, ...}}."""

    argv: tuple = ()
    timeout: int = 1800

    def run(self, target):
        argv = [str(a).format(dir=target.path) for a in self.argv]
        measured = command.measure(argv, timeout=self.timeout)
        outcomes = [Outcome(f"{self.name} {row}", figures.pop("value"),
                            figures.pop("unit"), figures, target.faults())
                    for row, figures in json.loads(measured.output).items()]
        if not outcomes:
            raise Failed(f"{argv[0]}: no figures")
        return outcomes, measured.counters()


def module(name, *arguments):
    """The command line of a program of this package."""
    return (sys.executable, os.path.join(SUITE, "suite", f"{name}.py"),
            *arguments)
