#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The same data in zramfs and in kernel zram: what memory holds of it.

    bench/zram.py [FILE...]

The data is a file without equal pages and without pages of one repeated word,
so that neither dedup nor same-filled pages help anybody. It is written to a
raw zram device, and to a file in zramfs. Without FILE there are four: pages of
which 75, 66 and 50 percent compress to nothing and the rest not at all (fio's
buffer_compress_percentage), and the pages of /usr/lib, each once.

zram counts the pages of its allocator, and neither its table, 16 bytes for
each page, nor its allocator's handles, 8 bytes for each. zramfs counts all:
tables, index, checksums, and the memory of its processes. The parts are shown;
the last column is the ratio when zram's tables and handles are counted too.

What can be reached depends on the data. zramfs keeps 4 bytes for each page of
a file, 24 in the object table, 4 in the index and 4 in the pool: 36 for each
page here. That is 3.4 % of the 1055 bytes to which fio's pages of 75 % come
down, of which zram itself loses 2.2 %; so no pool, not one without any holes,
brings such data to 1.02 of zram. With pages of some 2300 bytes, as those of
/usr/lib are, it is 1.6 %, less than what longer zspages save.

Environment: BUILD=build, SIZE=512 (MiB), CODECS="lz4 lzo".
"""

import hashlib
import os
import re
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from suite import command, undo  # noqa: E402
from suite.main import Place  # noqa: E402
from suite.rivals import ZramDevice  # noqa: E402
from suite.targets import Zramfs  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SIZE = int(os.environ.get("SIZE", "512")) << 20
CODECS = os.environ.get("CODECS", "lz4 lzo").split()
PAGE = 4096
MIB = 1 << 20
GOAL = 1.02
ZRAM_TABLES = 16 + 8  # bytes a page: struct zram_table_entry, and a handle


# --- data ---------------------------------------------------------------------

def fio_file(path, percentage):
    """Pages that all differ, and compress by so many percent."""
    command.run("fio", "--name=data", f"--filename={path}", "--rw=write",
                "--bs=1m", f"--size={SIZE}", "--refill_buffers",
                "--allrandrepeat=0", "--buffer_compress_chunk=4096",
                f"--buffer_compress_percentage={percentage}")


def regular_files(directory):
    for where, directories, names in os.walk(directory):
        directories.sort()
        for name in sorted(names):
            path = os.path.join(where, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def pages_of(path):
    """Whole pages; the last is filled up with zeros, as a filesystem's is."""
    with open(path, "rb") as file:
        while page := file.read(PAGE):
            yield page.ljust(PAGE, b"\0")


def distinct_pages(paths):
    seen = set()
    for path in paths:
        for page in pages_of(path):
            if page == page[:8] * (PAGE // 8):
                continue
            digest = hashlib.blake2b(page, digest_size=16).digest()
            if digest not in seen:
                seen.add(digest)
                yield page


def write_distinct(path, paths):
    left = SIZE // PAGE
    with open(path, "wb") as file:
        for page in distinct_pages(paths):
            if not left:
                break
            file.write(page)
            left -= 1


# --- measuring ------------------------------------------------------------------

def in_zram(place, codec, path):
    """Its mm_stat, filled with the file."""
    target = ZramDevice(place)
    target.algorithm = codec
    if target.missing():
        sys.exit(f"zram: {target.missing()}")
    with undo.Undo() as cleanup:
        target.start(cleanup)
        command.run("dd", f"if={path}", f"of={target.path}", "bs=1M",
                    "oflag=direct", "status=none")
        return target.details()


def pool_pages(target):
    """Bytes of the zspages."""
    table = target.control("stat", "--classes", target.store)
    return int(re.search(r"^ *all (.*)$", table, re.M)[1].split()[7]) * PAGE


def in_zramfs(place, codec, path):
    """Its statistics, with a file of that contents."""
    target = Zramfs(place)
    target.options = f"alg={codec},size=0"
    with undo.Undo() as cleanup:
        target.start(cleanup)
        command.run("dd", f"if={path}", f"of={target.path}/file", "bs=1M",
                    "status=none")
        target.settle()
        time.sleep(2)  # for buffers of requests to be given back
        details = target.details()
        details["pool"] = pool_pages(target)
        return details


def mib(value):
    return f"{value / MIB:9.2f}"


def row(name, codec, zram, ours):
    used = ours["mem_used_total"]
    tables = used - ours["pool"] - ours["process_bytes"]
    ratio = used / zram["mem_used_total"]
    fair = used / (zram["mem_used_total"] +
                   zram["orig_data_size"] // PAGE * ZRAM_TABLES)
    print(f"{name:<12} {codec:<5}" + mib(zram["compr_data_size"]) +
          mib(zram["mem_used_total"]) + mib(ours["compr_data_size"]) +
          mib(used) + mib(ours["pool"]) + mib(tables) +
          mib(ours["process_bytes"]) +
          f" {ratio:7.3f} {fair:7.3f}", flush=True)
    return ratio


def files(place, given):
    """The name and the path of each file of data."""
    path = os.path.join(place.scratch, "data")
    if given:
        for source in given:
            write_distinct(path, [source])
            yield os.path.basename(source), path
        return
    for percentage in (75, 66, 50):
        fio_file(path, percentage)
        yield f"fio, {percentage} %", path
    write_distinct(path, regular_files("/usr/lib"))
    yield "/usr/lib", path


def main():
    undo.install_signal_handlers()
    ratios = {}
    with undo.Undo() as cleanup:
        place = Place(os.path.join(ROOT, os.environ.get("BUILD", "build")),
                      cleanup)
        print(f"MiB held; at most {SIZE // MIB} MiB of data; "
              "of zramfs's total: pool, tables, processes")
        print(f"{'':<18}{'zram':>18}{'zramfs':>18}")
        print(f"{'data':<12} {'codec':<5}" +
              "".join(f"{n:>9}" for n in ("data", "total", "data", "total",
                                          "pool", "tables", "process")) +
              "   ratio    fair")
        for name, path in files(place, sys.argv[1:]):
            for codec in CODECS:
                ratios[name, codec] = row(name, codec,
                                          in_zram(place, codec, path),
                                          in_zramfs(place, codec, path))
            os.unlink(path)
    above = [" ".join(what) for what, ratio in ratios.items() if ratio > GOAL]
    print(f"Wanted is at most {GOAL}." +
          (f" Above it: {'; '.join(above)}." if above else ""))


if __name__ == "__main__":
    main()
