# SPDX-License-Identifier: GPL-2.0-or-later
"""Medians and spread of the rounds, and the tables in plain text."""

import statistics


class Series:
    """One row on one target: a value for each round that counts."""

    def __init__(self, unit):
        self.unit = unit
        self.values = []
        self.reasons = []

    def median(self):
        return statistics.median(self.values) if self.values else None

    def mean(self):
        return statistics.fmean(self.values) if self.values else None

    def deviation(self):
        return statistics.stdev(self.values) if len(self.values) > 1 else 0.0

    def spread(self):
        """Half of what lies between the extremes, as part of the median."""
        median = self.median()
        if not median:
            return 0.0
        return (max(self.values) - min(self.values)) / 2 / median

    def summary(self):
        return {"unit": self.unit, "rounds": len(self.values),
                "median": self.median(), "mean": self.mean(),
                "deviation": self.deviation(), "spread": self.spread(),
                "values": self.values, "reasons": self.reasons}


class Results:
    """Everything measured: by workload, row and target."""

    def __init__(self):
        self.raw = []      # one entry for each step that ran
        self.rows = {}     # workload -> {row -> {target -> Series}}
        self.skipped = []  # [what, why]

    def add(self, workload, target, round_number, step, outcomes, whole,
            daemon):
        self.raw.append({
            "workload": workload, "target": target, "round": round_number,
            "step": step, "whole": whole, "daemon": daemon,
            "outcomes": [vars(outcome) for outcome in outcomes]})
        for outcome in outcomes:
            series = self.rows.setdefault(workload, {}).setdefault(
                outcome.row, {}).setdefault(target, Series(outcome.unit))
            if outcome.why:
                series.reasons.append(outcome.why)
            else:
                series.values.append(outcome.value)

    def add_value(self, workload, target, row, value, unit):
        self.rows.setdefault(workload, {}).setdefault(row, {}).setdefault(
            target, Series(unit)).values.append(value)

    def skip(self, what, why):
        entry = [what, why]
        if entry not in self.skipped:
            self.skipped.append(entry)

    def used(self, workload):
        """{step: {what: {target: (mean, deviation)}}} over the rounds."""
        values = {}
        for entry in self.raw:
            if entry["workload"] != workload:
                continue
            for what, value in _usage(entry).items():
                values.setdefault(entry["step"], {}).setdefault(
                    what, {}).setdefault(entry["target"], []).append(value)
        return {step: {what: {target: _mean(numbers)
                              for target, numbers in by_target.items()}
                       for what, by_target in whats.items()}
                for step, whats in values.items()}

    def requests(self, workload, target):
        """{step: {opcode: requests}}, of the last round."""
        return {entry["step"]: entry["daemon"]["requests"]
                for entry in self.raw
                if (entry["workload"], entry["target"]) == (workload, target)
                and entry["daemon"].get("requests")}

    def median(self, workload, row, target):
        series = self.rows.get(workload, {}).get(row, {}).get(target)
        return series.median() if series else None

    def rounds(self, workload):
        return max((len(series.values)
                    for targets in self.rows.get(workload, {}).values()
                    for series in targets.values()), default=0)

    def invalid(self):
        return [(workload, row, target, series.reasons[0])
                for workload, rows in self.rows.items()
                for row, targets in rows.items()
                for target, series in targets.items() if series.reasons]

    def summary(self):
        return {workload: {row: {target: series.summary()
                                 for target, series in targets.items()}
                           for row, targets in rows.items()}
                for workload, rows in self.rows.items()}


def _mean(values):
    return (statistics.fmean(values),
            statistics.stdev(values) if len(values) > 1 else 0.0)


def _usage(entry):
    """What the program and the daemon used in one step."""
    whole, daemon = entry["whole"], entry["daemon"]
    if "user" not in whole:
        return {}
    used = {
        "seconds": whole["seconds"],
        "CPUs used": (whole["user"] + whole["system"]) / whole["seconds"],
        "switches": whole["voluntary_switches"] +
        whole["involuntary_switches"],
        "page faults": whole["minor_faults"] + whole["major_faults"],
        "CPU s, all": whole["machine_cpu"],
    }
    if "cpu" in daemon:
        used["CPU s, daemon"] = daemon["cpu"]
    for event in ("cycles", "instructions"):
        if event in whole:
            used[event] = whole[event]
    return used


def number(value, unit):
    """A figure for people, with its unit where it is not the table's."""
    if value is None:
        return "-"
    if unit == "B/s":
        return f"{value / 1e6:.0f} MB/s"
    if unit == "bytes":
        return f"{value / (1 << 20):.1f} MiB"
    if unit == "s":
        return f"{value:.3f} s" if value < 10 else f"{value:.1f} s"
    if unit == "IOPS":
        return f"{value / 1000:.1f} k"
    if unit == "1/s":
        return f"{value:.0f} /s"
    if unit == "ns":
        return f"{value:.0f} ns"
    if unit == "s/GB":
        return f"{value:.3f} s/GB"
    return f"{value:.2f}"


def _cell(series):
    if series is None:
        return ""
    if not series.values:
        return "failed"
    text = number(series.median(), series.unit)
    if len(series.values) > 1:
        text += f" ±{series.spread() * 100:.0f}%"
    return text


def grid(header, lines):
    """Text in columns: the first to the left, the others to the right."""
    table = [header, *lines]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]

    def line(row):
        first = row[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width
                in zip(row[1:], widths[1:])]
        return "  ".join([first, *rest]).rstrip()

    return [line(header), "-" * (sum(widths) + 2 * len(widths) - 2),
            *map(line, lines)]


def workload_table(workload, results, titles):
    rows = results.rows.get(workload.name)
    if not rows:
        return []
    targets = [t for t in workload.targets
               if any(t in row for row in rows.values())]
    header = ["", *[titles[t] for t in targets]]
    lines = [[row, *[_cell(series.get(t)) for t in targets]]
             for row, series in rows.items()]
    rounds = results.rounds(workload.name)
    return ["", f"{workload.title} ({workload.name}; "
            f"{rounds} round{'s' * (rounds != 1)}, median ± spread)",
            *grid(header, lines)]


def _measure(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.2f}"


def used_table(workload, results, titles):
    """Time, CPUs, switches and faults of each step: mean and deviation."""
    steps = results.used(workload.name)
    if not workload.used or not steps:
        return []
    lines = []
    for step, whats in steps.items():
        for what, by_target in whats.items():
            cells = []
            for target in workload.targets:
                mean, deviation = by_target.get(target, (None, None))
                cells.append("" if mean is None else _measure(mean) + (
                    f" ±{_measure(deviation)}" if deviation else ""))
            lines.append([f"{step}: {what}", *cells])
    return ["", f"{workload.name}: what it used, mean ± deviation",
            *grid(["", *[titles[t] for t in workload.targets]], lines)]


def requests_lines(results, files, target):
    """Requests for each file of the tree, by step and opcode."""
    steps = results.requests("tree", target)
    if not steps or not files:
        return []
    opcodes = sorted({o for counts in steps.values() for o in counts})
    lines = [[opcode, *[f"{counts[opcode] / files:.2f}"
                        if opcode in counts else ""
                        for counts in steps.values()]]
             for opcode in opcodes]
    lines.append(["all", *[f"{sum(counts.values()) / files:.2f}"
                           for counts in steps.values()]])
    return ["", f"Requests to {target} for each of the {files} files of git's "
            "source tree", *grid(["", *steps], lines)]


def machine_lines(machine):
    libraries = ", ".join(f"{name} {version}" for name, version
                          in machine["libraries"].items() if version)
    programs = ", ".join(f"{version}" for version
                         in machine["programs"].values() if version)
    return [
        f"{machine['when']}",
        f"kernel    {machine['kernel']}",
        f"processor {machine['cores']} x {machine['cpu']}"
        f"{', virtual' if machine['virtual'] else ''}, "
        f"{machine['memory_bytes'] / (1 << 30):.1f} GiB, "
        f"load before {machine['load_before']:.2f}",
        f"system    {machine['system']}",
        f"libraries {libraries}",
        f"programs  {programs}; {machine['zramfs']}",
    ]


def text(machine, workloads, results, titles, settings, goal_lines):
    lines = ["zramfs, measured", "", *machine_lines(machine), "", "Targets"]
    lines += [f"  {titles[name]:24} {how}" for name, how
              in settings.items()]
    for workload in workloads:
        lines += workload_table(workload, results, titles)
        lines += used_table(workload, results, titles)
    if results.invalid():
        lines += ["", "Does not count"]
        lines += [f"  {workload}, {row}, {target}: {why}"
                  for workload, row, target, why in results.invalid()]
    if results.skipped:
        lines += ["", "Skipped"]
        lines += [f"  {what}: {why}" for what, why in results.skipped]
    return "\n".join([*lines, *goal_lines]) + "\n"
