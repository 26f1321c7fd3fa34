# SPDX-License-Identifier: GPL-2.0-or-later
"""hog.py BYTES - take memory, keep touching it, until ended.

Prints a line when all of it has been touched once.
"""

import mmap
import sys
import time

CHUNK = 1 << 20


def main():
    size = int(sys.argv[1]) // CHUNK * CHUNK
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    block = bytes(range(256)) * (CHUNK // 256)
    first = True
    while True:
        for at in range(0, size, CHUNK):
            memory[at:at + CHUNK] = block
        if first:
            print("taken", flush=True)
            first = False
        time.sleep(0.2)


main()
