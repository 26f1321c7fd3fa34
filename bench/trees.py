#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Real trees in memory: how many bytes they take, and where.

    bench/trees.py [TREE...]    redis lib share node_modules image

    redis         Debian's redis, built (tests/fetch-source; make MALLOC=libc)
    lib, share    this system's /usr/lib/x86_64-linux-gnu and /usr/share
    node_modules  npm's eslint 8.57.1 and typescript 5.4.5: a hundred packages
    image         an ext4 image of a minimal Debian, made by debootstrap

Each is copied, by cp -a, to tmpfs, to ext4 on the kernel's zram (lz4,
lzo-rle), to btrfs that compresses all it is given (zstd:3), 128 KiB at a time,
and to zramfs (lz4, zstd:1, zstd:3, zstd:9, each page by itself; and lz4 and
zstd:3 with cluster=128k). Held is what these themselves say:

    tmpfs     the blocks in use, as statvfs(3) has it
    zram      mem_used_total of mm_stat; its tables are not in it
    btrfs     data, metadata and system in use, as "btrfs filesystem df" has
              it; the disk it lies on holds more, for what is only allocated
    zramfs    mem_used_total: everything, its processes too

The last part is the ratio of what tmpfs holds to that. A tree that cannot be
had here is left out, and it is said why.

Environment: BUILD=build, CACHE=/var/tmp/zramfs-cache.
"""

import glob
import os
import re
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from suite import command, undo  # noqa: E402
from suite.command import Failed  # noqa: E402
from suite.main import Place  # noqa: E402
from suite.rivals import Btrfs, Tmpfs, Zram, ZramLzoRle  # noqa: E402
from suite.targets import Zramfs  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CACHE = os.environ.get("CACHE", "/var/tmp/zramfs-cache")
MIB = 1 << 20
HOUR = 3600
NPM = ("eslint@8.57.1", "typescript@5.4.5")
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


# --- trees: each function makes a directory or file, and returns it -----------

def redis(scratch):
    tarball = command.run(f"{ROOT}/tests/fetch-source", "redis",
                          timeout=HOUR).strip()
    command.run("tar", "-C", scratch, "-xf", tarball)
    tree = glob.glob(f"{scratch}/redis-*")[0]
    command.run("make", f"-j{os.cpu_count()}", "MALLOC=libc", cwd=tree,
                timeout=HOUR)
    return tree


def node_modules(scratch):
    kept = f"{CACHE}/node_modules.tar"
    if not os.path.exists(kept):
        command.run("npm", "install", "--no-audit", "--no-fund", "--prefix",
                    scratch, *NPM, timeout=HOUR)
        command.run("tar", "-C", scratch, "-cf", f"{kept}.new",
                    "node_modules")
        os.rename(f"{kept}.new", kept)
        return f"{scratch}/node_modules"
    command.run("tar", "-C", scratch, "-xf", kept)
    return f"{scratch}/node_modules"


def image(scratch):
    kept = f"{CACHE}/bookworm.tar"
    if not os.path.exists(kept):
        command.run("debootstrap", "--variant=minbase", "bookworm",
                    f"{scratch}/debian", timeout=HOUR)
        command.run("tar", "-C", f"{scratch}/debian", "-cf", kept, ".")
    else:
        os.mkdir(f"{scratch}/debian")
        command.run("tar", "-C", f"{scratch}/debian", "-xf", kept)
    path = f"{scratch}/debian.ext4"
    command.run("truncate", "-s", "512m", path)
    command.run("mkfs.ext4", "-q", "-F", "-d", f"{scratch}/debian", path,
                timeout=HOUR)
    return path


TREES = {
    "redis": redis,
    "lib": lambda scratch: "/usr/lib/x86_64-linux-gnu",
    "share": lambda scratch: "/usr/share",
    "node_modules": node_modules,
    "image": image,
}


# --- where they are put ---------------------------------------------------------

class BtrfsForced(Btrfs):
    """Compresses what it thinks will not compress, too."""

    MOUNT = "compress-force=zstd:3,noatime,discard=sync"

    def memory(self):
        text = command.run("btrfs", "filesystem", "df", self.path)
        used = 0
        for kind, number, unit in re.findall(
                r"^(\w+), .* used=([\d.]+)(\w+)$", text, re.M):
            if kind != "GlobalReserve":
                used += round(float(number) * UNITS[unit])
        return used


def zramfs(codec, cluster="4k"):
    def make(place):
        target = Zramfs(place)
        target.options = f"alg={codec},cluster={cluster},size=0"
        return target
    return make


TARGETS = {
    "tmpfs": Tmpfs,
    "zram lz4": Zram,
    "zram lzo-rle": ZramLzoRle,
    "btrfs zstd:3": BtrfsForced,
    "zramfs lz4": zramfs("lz4"),
    "zramfs zstd:1": zramfs("zstd:1"),
    "zramfs zstd:3": zramfs("zstd:3"),
    "zramfs zstd:9": zramfs("zstd:9"),
    "lz4 128k": zramfs("lz4", "128k"),
    "zstd:3 128k": zramfs("zstd:3", "128k"),
}
GOALS = (("redis", "zramfs lz4", "zram lz4", 0.65),) + tuple(
    (tree, mine, "btrfs zstd:3", 1.0) for tree in TREES
    for mine in ("zramfs zstd:3", "zstd:3 128k"))


def held(place, make, tree):
    """Bytes, and how many equal pages were found (None if nobody looks)."""
    target = make(place)
    if target.missing():
        return target.missing(), None
    with undo.Undo() as cleanup:
        target.start(cleanup)
        command.run("cp", "-a", tree, target.path, timeout=HOUR)
        target.settle()
        time.sleep(2)  # for memory that was given back to be counted so
        return target.memory(), target.details().get("dedup_pages")


# --- the table ------------------------------------------------------------------

def cell(value, reference):
    if isinstance(value, str) or value is None:
        return f"{'-':>16}"
    ratio = f"{reference / value:.2f}" if reference else ""
    return f"{value / MIB:10.1f} {ratio:>5}"


def measure(place, name):
    """target -> bytes, or why not; and the share of equal pages."""
    row, equal = {}, None
    with undo.Undo() as cleanup:
        scratch = Tmpfs(place)
        scratch.mount(cleanup, scratch.directory("tree"))
        tree = TREES[name](f"{place.mounts}/tree")
        for target, make in TARGETS.items():
            row[target], found = held(place, make, tree)
            equal = found if found is not None else equal
    return row, equal


def print_row(name, row, equal):
    tmpfs = row["tmpfs"]
    pages = f"{equal * 4096 / tmpfs:6.0%}" if equal is not None else "-"
    print(f"{name:<13}{pages:>6}" +
          "".join(cell(row[t], tmpfs) for t in TARGETS), flush=True)


def print_goals(rows):
    for name, mine, other, most in GOALS:
        if name not in rows:
            continue
        values = rows[name][mine], rows[name][other]
        if not all(isinstance(value, int) for value in values):
            print(f"{name}: {mine} to {other}: {values}")
            continue
        ratio = values[0] / values[1]
        print(f"{name}: {mine} takes {ratio:.3f} of {other}; wanted is at "
              f"most {most}: {'yes' if ratio <= most else 'no'}")


def main():
    undo.install_signal_handlers()
    names = sys.argv[1:] or list(TREES)
    if unknown := set(names) - set(TREES):
        sys.exit(f"{__doc__}\nno such tree: {' '.join(unknown)}")
    rows = {}
    with undo.Undo() as cleanup:
        place = Place(os.path.join(ROOT, os.environ.get("BUILD", "build")),
                      cleanup)
        print("MiB held, and how often that goes into what tmpfs holds")
        print(f"{'':<13}{'equal':>6}" +
              "".join(f"{name:>16}" for name in TARGETS), flush=True)
        for name in names:
            try:
                rows[name], equal = measure(place, name)
                print_row(name, rows[name], equal)
            except Failed as error:
                print(f"{name}: {error}", flush=True)
    print_goals(rows)


if __name__ == "__main__":
    main()
