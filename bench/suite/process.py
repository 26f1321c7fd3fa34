# SPDX-License-Identifier: GPL-2.0-or-later
"""What a daemon has used until now, from /proc."""

import os

_TICK = os.sysconf("SC_CLK_TCK")


def _read(path):
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read()


def _ticks(pid):
    """User and system seconds, to the tick."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(fields[11]) / _TICK, int(fields[12]) / _TICK


def _threads(pid):
    """Seconds on a CPU to the nanosecond, and times a CPU was given up.

    Of the threads there are: a daemon's threads stay to its end.
    """
    seconds = 0.0
    switches = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        path = f"/proc/{pid}/task/{thread}"
        try:
            seconds += int(_read(f"{path}/schedstat").split()[0]) / 1e9
        except (OSError, IndexError):
            return None, 0
        for line in _read(f"{path}/status").splitlines():
            if "ctxt_switches" in line:
                switches += int(line.split()[1])
    return seconds, switches


def usage(pid):
    """{'cpu': s, 'user': s, 'system': s, 'switches': n}; {} if it is gone."""
    try:
        user, system = _ticks(pid)
        seconds, switches = _threads(pid)
    except (OSError, ValueError):
        return {}
    # Where the kernel keeps no schedstat, ticks are what there is.
    if not seconds:
        seconds = user + system
    return {"cpu": seconds, "user": user, "system": system,
            "switches": switches}


def difference(after, before):
    return {key: after[key] - before[key] for key in after if key in before}


def machine_busy():
    """Seconds that all CPUs together have worked since the start."""
    fields = [int(n) for n in _read("/proc/stat").split("\n")[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / _TICK


def memory_available():
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0
