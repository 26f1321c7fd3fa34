#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What compressing pages together gives, and what it costs.

    bench/cluster.py [CODEC...]     lz4 zstd:3

For each codec, with cluster=4k (each page by itself), 16k, 64k and 128k: a file
of this system's libraries and headers, one after the other, is written to
zramfs 1 MiB at a time through a small hot tier, so that it is compressed at
once; then all is compressed, and read 1 MiB at a time, and 4 KiB at random, by
one client, past the page cache. Held is mem_used_total after that. Each figure
is the median of the rounds, in which the sizes take turns, and the ratio is to
cluster=4k in the same run.

Environment: BUILD=build, ROUNDS=3, SIZE=256 (MiB), SECONDS=4 of random reads.
"""

import json
import os
import statistics
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from suite import command, undo  # noqa: E402
from suite.main import Place  # noqa: E402
from suite.rivals import Tmpfs  # noqa: E402
from suite.targets import Zramfs  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
SIZE = int(os.environ.get("SIZE", "256")) << 20
SECONDS = os.environ.get("SECONDS", "4")
MIB = 1 << 20
CLUSTERS = ("4k", "16k", "64k", "128k")
FIGURES = (("MiB held", "9.1f"), ("write", "9.0f"), ("read", "9.0f"),
           ("random", "9.0f"))


def gather(path):
    """SIZE bytes of programs and sources, or as many as there are."""
    with open(path, "wb") as out:
        for top in ("/usr/include", "/usr/lib/python3", "/usr/lib"):
            for where, directories, names in os.walk(top):
                directories.sort()
                for name in sorted(names):
                    source = os.path.join(where, name)
                    if os.path.islink(source) or not os.path.isfile(source):
                        continue
                    with open(source, "rb") as file:
                        out.write(file.read(SIZE - out.tell()))
                    if out.tell() == SIZE:
                        return


def fio_read(target, *arguments):
    out = command.run("fio", "--name=job", f"--filename={target.path}/file",
                      "--direct=1", "--ioengine=psync", "--thread",
                      "--output-format=json", *arguments)
    return json.loads(out[out.index("{"):])["jobs"][0]["read"]


def measure(place, source, codec, cluster):
    target = Zramfs(place)
    target.options = f"alg={codec},cluster={cluster},hot=8m,size=0"
    with undo.Undo() as cleanup:
        target.start(cleanup)
        begin = time.monotonic()
        command.run("dd", f"if={source}", f"of={target.path}/file", "bs=1M",
                    "oflag=direct", "status=none")
        seconds = time.monotonic() - begin
        size = os.stat(source).st_size
        target.settle()
        read = fio_read(target, "--rw=read", "--bs=1m")["bw"] / 1024
        random = fio_read(target, "--rw=randread", "--bs=4k", "--norandommap",
                          "--time_based", f"--runtime={SECONDS}")["iops"]
        return target.memory() / MIB, size / MIB / seconds, read, random


def rounds(place, source, codec):
    """cluster -> a list of each figure."""
    found = {cluster: [] for cluster in CLUSTERS}
    for number in range(ROUNDS):
        for cluster in CLUSTERS[::-1 if number % 2 else 1]:
            found[cluster].append(measure(place, source, codec, cluster))
    return {cluster: [statistics.median(column) for column in zip(*rows)]
            for cluster, rows in found.items()}


def main():
    undo.install_signal_handlers()
    with undo.Undo() as cleanup:
        place = Place(os.path.join(ROOT, os.environ.get("BUILD", "build")),
                      cleanup)
        scratch = Tmpfs(place)
        scratch.mount(cleanup, scratch.directory("data"))
        source = f"{place.mounts}/data/file"
        gather(source)
        print(f"{os.stat(source).st_size / MIB:.0f} MiB; MiB/s of 1 MiB "
              "writes and reads, 4 KiB reads a second\n"
              f"{'codec':<9}{'cluster':>8}" +
              "".join(f"{name:>9}{'':>7}" for name, _ in FIGURES))
        for codec in sys.argv[1:] or ("lz4", "zstd:3"):
            medians = rounds(place, source, codec)
            for cluster, row in medians.items():
                print(f"{codec:<9}{cluster:>8}" + "".join(
                    f"{value:{form}}{value / first:7.2f}"
                    for value, first, (_, form) in
                    zip(row, medians['4k'], FIGURES)), flush=True)


if __name__ == "__main__":
    main()
