#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What small things take: files without and with a little in them, pages.

    bench/metadata.py [KIND...]  empty small directories symlinks pages

    A million files of each kind: some minutes; QUICK=1: a hundred thousand.

Files, directories and symlinks, in directories of a thousand: mem_used_total
for each, their names and the directories they are in included, compacted. The
files of 100 bytes all differ, and do not compress.

Then pages: meta_bytes (all but pages' data) without the processes' memory, for
each page of a file whose pages all differ, and for each page of its copy, all
of which are there already. The first has what there is for each distinct page,
and for each page of a file; the second the latter alone. What the pool keeps
beside each object, 4 bytes for its owner, is data to meta_bytes, and is added.
The pool's page frames, 16 bytes for each page of memory it has, are shown for
themselves: their number depends on how small the pages get.

Environment: BUILD=build, COUNT, SIZE (MiB of pages, 256).
"""

import os
import re
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from suite import command, undo  # noqa: E402
from suite.main import Place  # noqa: E402
from suite.targets import Zramfs  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
QUICK = os.environ.get("QUICK", "0") not in ("", "0")
COUNT = int(os.environ.get("COUNT", "100000" if QUICK else "1000000"))
SIZE = int(os.environ.get("SIZE", "256")) << 20
PAGE = 4096
POOL_OWNER = 4  # bytes, pool/zsmalloc.h
FRAME = 16      # bytes, struct arena_frame in src/arena/arena.h


def empty_file(name):
    os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))


def small_file(name):
    file = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    os.write(file, os.urandom(100))
    os.close(file)


# What, how it is made, how many of COUNT, and the most bytes for each.
KINDS = {
    "empty": ("empty files", empty_file, 1, 200),
    "small": ("files of 100 bytes", small_file, 1, 400),
    "directories": ("directories", os.mkdir, 10, None),
    "symlinks": ("symlinks",
                 lambda name: os.symlink("/usr/share/doc/x", name), 10, None),
}


def started(place, cleanup):
    target = Zramfs(place)
    target.options = "size=0,nr_inodes=0"
    target.start(cleanup)
    return target


def settled(target):
    """Its statistics when nothing is put off, and nothing on its way back."""
    target.settle()
    time.sleep(2)
    return target.details()


def per_name(place, make, count):
    with undo.Undo() as cleanup:
        target = started(place, cleanup)
        before = settled(target)["mem_used_total"]
        for number in range(count):
            if number % 1000 == 0:
                directory = f"{target.path}/{number // 1000:04}"
                os.mkdir(directory)
            make(f"{directory}/file{number:06}")
        return (settled(target)["mem_used_total"] - before) / count


def tables(target):
    details = settled(target)
    return details["meta_bytes"] - details["process_bytes"]


def frames(target):
    """Bytes, of the pool's pages."""
    table = target.control("stat", "--classes", target.store)
    return int(re.search(r"^ *all (.*)$", table, re.M)[1].split()[7]) * FRAME


def per_page(place):
    """Bytes for a page that differs from all others; for the frames of what
    holds it; and for a page that does not differ."""
    pages = SIZE // PAGE
    with undo.Undo() as cleanup:
        target = started(place, cleanup)
        before = tables(target)
        command.run("fio", "--name=data", f"--filename={target.path}/file",
                    "--rw=write", "--bs=1m", f"--size={SIZE}",
                    "--refill_buffers", "--allrandrepeat=0",
                    "--buffer_compress_percentage=50",
                    "--buffer_compress_chunk=4096")
        distinct = tables(target)
        # Not cp: it has the filesystem copy, which shares pages by itself.
        command.run("dd", f"if={target.path}/file", f"of={target.path}/copy",
                    "bs=1M", "status=none")
        both = tables(target)
        frame = frames(target) / pages
        return ((distinct - before) / pages - frame + POOL_OWNER, frame,
                (both - distinct) / pages)


def row(what, number, most):
    print(f"{what:<36}{number:>8.1f}" +
          (f"   at most {most}: {'yes' if round(number) <= most else 'no'}"
           if most else ""), flush=True)


def print_pages(place):
    distinct, frame, equal = per_page(place)
    row("page of a file, a distinct one", distinct, 8 + 32)
    row("  and page frames (half compresses)", frame, None)
    row("page of a file, one that is there", equal, 8)


def main():
    undo.install_signal_handlers()
    kinds = sys.argv[1:] or [*KINDS, "pages"]
    if unknown := set(kinds) - set(KINDS) - {"pages"}:
        sys.exit(f"{__doc__}\nno such kind: {' '.join(unknown)}")
    with undo.Undo() as cleanup:
        place = Place(os.path.join(ROOT, os.environ.get("BUILD", "build")),
                      cleanup)
        print("bytes for each")
        for kind in kinds:
            if kind == "pages":
                print_pages(place)
                continue
            what, make, part, most = KINDS[kind]
            count = COUNT // part
            row(f"of {count} {what}", per_name(place, make, count), most)


if __name__ == "__main__":
    main()
