# SPDX-License-Identifier: GPL-2.0-or-later
"""A picture of each workload by gnuplot: bars by row, a colour a target.

Bars are medians, whiskers the extremes of the rounds.
"""

import os
import re
import tempfile

from . import command

COLOURS = ("#1b6ca8", "#5aa9e6", "#e07a3f", "#7f9c5b", "#9a9a9a", "#8e5ea2")
AXES = {"IOPS": ("thousand IOPS", 1e3), "B/s": ("GB/s", 1e9),
        "s": ("seconds (less is better)", 1),
        "1/s": ("thousands a second", 1e3),
        "bytes": ("MiB (less is better)", 1 << 20)}


def missing():
    return None if command.find("gnuplot") else "no gnuplot"


def _quote(text):
    return '"' + re.sub(r'["\\]', "", text) + '"'


def _data(rows, targets, scale):
    lines = []
    for row, series in rows.items():
        cells = [_quote(row)]
        for target in targets:
            one = series.get(target)
            if one and one.values:
                cells += [f"{v / scale:.6g}" for v in
                          (one.median(), min(one.values), max(one.values))]
            else:
                cells += ["NaN"] * 3
        lines.append(" ".join(cells))
    return "\n".join(lines)


def _script(path, title, label, data, names, rows):
    width = min(400 + 60 * rows * max(len(names), 2) // 2, 2400)
    plots = ", ".join(
        f"$data using {2 + 3 * i}:{3 + 3 * i}:{4 + 3 * i}"
        f"{':xtic(1)' if i == 0 else ''} title {_quote(name)} "
        f"linecolor rgb {_quote(COLOURS[i % len(COLOURS)])}"
        for i, name in enumerate(names))
    return "\n".join([
        f"set terminal svg size {width},480 background 'white'",
        f"set output {_quote(path)}",
        f"set title {_quote(title)} noenhanced",
        f"set ylabel {_quote(label)}",
        "set yrange [0:*]",
        "set grid ytics linecolor rgb '#dddddd'",
        "set key outside right top noenhanced",
        "set xtics rotate by -30 noenhanced",
        "set style data histograms",
        "set style histogram errorbars gap 1 linewidth 1",
        "set style fill solid 0.9 border -1",
        "set boxwidth 0.9",
        "$data << END", data, "END",
        f"plot {plots}", ""])


def draw(workload, results, titles, directory):
    """One SVG for each unit among the workload's rows; their paths."""
    units = {}
    for row, series in results.rows.get(workload.name, {}).items():
        unit = next(iter(series.values())).unit
        if unit in AXES and not row.startswith("settle"):
            units.setdefault(unit, {})[row] = series
    paths = []
    for unit, rows in units.items():
        targets = [t for t in workload.targets
                   if any(t in s and s[t].values for s in rows.values())]
        if not targets:
            continue
        label, factor = AXES[unit]
        name = f"{workload.name}-{re.sub('[^a-z]', '', unit.lower())}.svg"
        path = os.path.join(directory, name)
        script = _script(path, workload.title, label,
                         _data(rows, targets, factor),
                         [titles[t] for t in targets], len(rows))
        with tempfile.NamedTemporaryFile("w", suffix=".gp") as file:
            file.write(script)
            file.flush()
            command.run("gnuplot", file.name, timeout=60)
        paths.append(path)
    return paths
