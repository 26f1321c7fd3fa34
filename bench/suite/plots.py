# SPDX-License-Identifier: GPL-2.0-or-later
"""A picture of each workload by gnuplot: bars by row, a colour a target.

Bars are medians, whiskers the extremes of the rounds.
"""

import os
import re
import tempfile

from . import command

# A target has the same colour in every picture.
COLOURS = {
    "zramfs": "#1b6ca8", "zramfs-writeback": "#5aa9e6",
    "zramfs-noopen": "#8fd3f4",
    "zramfs-zstd": "#0b3c5d", "zramfs-block": "#2a9d8f",
    "zramfs-loop": "#2a9d8f", "ext4-zram": "#e07a3f",
    "ext4-zram-lzo-rle": "#f2b880", "zram": "#e07a3f",
    "tmpfs": "#7f9c5b", "btrfs": "#8e5ea2", "nullfs": "#9a9a9a",
    "nullfs-loop": "#9a9a9a",
}
ROWS_MAX = 14  # in one picture
# Of each unit: the axis, what a figure is divided by, the file's name.
AXES = {
    "IOPS": ("thousand IOPS", 1e3, "iops"),
    "B/s": ("GB/s", 1e9, "throughput"),
    "s": ("seconds (less is better)", 1, "seconds"),
    "1/s": ("thousands a second", 1e3, "rate"),
    "bytes": ("MiB (less is better)", 1 << 20, "memory"),
}


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


def _script(path, heading, label, data, names, rows):
    """names: {target's name: its title}"""
    width = min(400 + 60 * rows * max(len(names), 2) // 2, 2400)
    bars = ", ".join(
        f"$data using {2 + 3 * i}:{3 + 3 * i}:{4 + 3 * i}"
        f"{':xtic(1)' if i == 0 else ''} title {_quote(title)} "
        f"linecolor rgb {_quote(COLOURS[name])}"
        for i, (name, title) in enumerate(names.items()))
    return "\n".join([
        f"set terminal svg size {width},480 background 'white'",
        f"set output {_quote(path)}",
        f"set title {_quote(heading)} noenhanced",
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
        f"plot {bars}", ""])


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
        label, factor, suffix = AXES[unit]
        stem = f"{workload.name}-{suffix}"
        for number, part in enumerate(_parts(rows)):
            name = f"{stem}-{number + 1}.svg" if len(rows) > ROWS_MAX \
                else f"{stem}.svg"
            path = os.path.join(directory, name)
            _gnuplot(_script(path, workload.title, label,
                             _data(part, targets, factor),
                             {t: titles[t] for t in targets}, len(part)))
            paths.append(path)
    return paths


def _parts(rows):
    """Not more rows in a picture than can be told apart."""
    rows = list(rows.items())
    return [dict(rows[i:i + ROWS_MAX])
            for i in range(0, len(rows), ROWS_MAX)]


def _gnuplot(script):
    with tempfile.NamedTemporaryFile("w", suffix=".gp") as file:
        file.write(script)
        file.flush()
        command.run("gnuplot", file.name, timeout=60)
