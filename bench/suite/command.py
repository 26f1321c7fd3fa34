# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs run, and measured as the kernel counts them.

Each program is the leader of its own process group. A program that takes
longer than its time, or is running when the suite is interrupted, is killed
with its group; only groups started here are.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass

# Administrators' programs are not in every user's PATH.
os.environ["PATH"] += ":/usr/local/sbin:/usr/sbin:/sbin"
os.environ["LC_ALL"] = "C"


class Failed(Exception):
    """A program ended badly; one line says how."""


class Lacking(Exception):
    """This machine cannot do it; one line says why."""


@dataclass
class Measured:
    """What a program and its descendants used."""

    seconds: float  # wall clock
    user: float
    system: float
    voluntary_switches: int
    involuntary_switches: int
    minor_faults: int
    major_faults: int
    output: str = ""

    def counters(self):
        counters = dict(self.__dict__)
        del counters["output"]
        return counters


def find(program):
    return shutil.which(program)


def _as_user(argv, user):
    if not user:
        return argv
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups",
            "--", *argv]


def _kill_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _wait(child, timeout):
    """The child's status and usage; None for the status when it was killed."""
    late = threading.Event()

    def stop():
        late.set()
        _kill_group(child.pid)

    timer = threading.Timer(timeout, stop)
    timer.start()
    try:
        _, status, usage = os.wait4(child.pid, 0)
    except BaseException:
        _kill_group(child.pid)
        os.wait4(child.pid, 0)
        child.returncode = -signal.SIGKILL
        raise
    finally:
        timer.cancel()
    child.returncode = os.waitstatus_to_exitcode(status)
    return (None if late.is_set() else child.returncode), usage


def measure(argv, cwd=None, env=None, user=None, timeout=600):
    """Run to the end and measure; Failed unless it ends with 0."""
    argv = [str(argument) for argument in _as_user(argv, user)]
    environment = dict(os.environ, **(env or {}))
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        try:
            child = subprocess.Popen(argv, cwd=cwd, env=environment,
                                     stdin=subprocess.DEVNULL, stdout=out,
                                     stderr=err, start_new_session=True)
        except OSError as error:
            raise Failed(f"{argv[0]}: {error.strerror}") from error
        status, usage = _wait(child, timeout)
        seconds = time.monotonic() - began
        out.seek(0)
        output = out.read().decode(errors="replace")
        err.seek(0)
        errors = err.read().decode(errors="replace").strip()
    if status is None:
        raise Failed(f"{argv[0]}: not done after {timeout} s")
    if status:
        lines = (errors or output.strip() or "no message").splitlines()
        raise Failed(f"{argv[0]}: status {status}: {lines[-1][:200]}")
    return Measured(seconds, usage.ru_utime, usage.ru_stime, usage.ru_nvcsw,
                    usage.ru_nivcsw, usage.ru_minflt, usage.ru_majflt, output)


def run(*argv, **keywords):
    """Run to the end; what it printed. Failed unless it ends with 0."""
    return measure(argv, **keywords).output


def start(*argv, **keywords):
    """Start what runs beside the suite; the caller sees to its end."""
    return subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL,
                            start_new_session=True, **keywords)


def end(child, timeout=10):
    """Wait for a child that was asked to end, else kill its group."""
    try:
        child.wait(timeout)
    except subprocess.TimeoutExpired:
        _kill_group(child.pid)
        child.wait()


# --- cycles and instructions, where the machine counts them ---------------

EVENTS = ("cycles", "instructions")


def parse_events(text):
    """The counts in what 'perf stat -x,' writes; none for what it cannot."""
    counts = {}
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[0].replace(".", "").isdigit():
            counts[fields[2].split(":")[0]] = float(fields[0])
    return counts


def events_reason():
    """Why cycles cannot be counted here; None when they can."""
    if not find("perf"):
        return "no perf"
    try:
        with tempfile.NamedTemporaryFile("r") as out:
            run("perf", "stat", "-a", "-x,", "-e", ",".join(EVENTS), "-o",
                out.name, "--", "true")
            counts = parse_events(out.read())
    except Failed as error:
        return str(error)
    missing = [event for event in EVENTS if event not in counts]
    return f"the machine does not count {' or '.join(missing)}" if missing \
        else None


def measure_events(argv, **keywords):
    """As measure(), with what the whole machine counted meanwhile."""
    with tempfile.NamedTemporaryFile("r") as out:
        measured = measure(["perf", "stat", "-a", "-x,", "-e",
                            ",".join(EVENTS), "-o", out.name, "--", *argv],
                           **keywords)
        return measured, parse_events(out.read())
