# SPDX-License-Identifier: GPL-2.0-or-later
"""What is under test: what all targets have in common, and zramfs itself.

A target is started afresh for each use, on directories below the suite's own,
and everything it sets up is pushed to the undo of that use. Started, it has a
path (of a directory, or of a device) and says what it holds and what its
daemon used.
"""

import json
import os
import time

from . import command, process
from .command import Failed

DEVICE_SIZE = 6 << 30  # sparse: what is not written takes nothing
READY_SECONDS = 10


def is_mounted(path):
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        return any(line.split()[4] == path for line in mounts)


def unmount(path):
    """Unmount; for a moment others (a closing loop device) may hold it."""
    for _ in range(50):
        if not is_mounted(path):
            return
        try:
            command.run("umount", path, timeout=60)
        except Failed as failed:
            if "busy" not in str(failed):
                raise
            time.sleep(0.1)
    if is_mounted(path):
        command.run("umount", "-l", path)
        raise Failed(f"{path}: stayed busy, unmounted lazily")


def loop_device(undo, directory):
    """A loop device on a sparse file made there, as block mode has it."""
    image = os.path.join(directory, "image")
    with open(image, "wb") as file:
        file.truncate(DEVICE_SIZE)
    device = command.run("losetup", "--direct-io=on", "--sector-size",
                         4096, "--show", "-f", image).strip()
    undo.push(f"losetup -d {device}", command.run, "losetup", "-d", device)
    return device


LOOP_SETTINGS = "losetup --direct-io=on --sector-size 4096 on a sparse file " \
    f"of {DEVICE_SIZE} bytes"


class Target:
    """What all have in common: a name, a title, and how to be missing."""

    name = ""
    title = ""
    device = False  # path is a device, not a directory
    stores = True   # what is written can be read again

    def __init__(self, place):
        self.place = place
        self.path = None
        self.undo = None

    def missing(self):
        """Why it cannot be measured on this machine; None if it can."""
        return None if os.geteuid() == 0 else "needs root"

    def settings(self):
        """The options it is measured with, for the record."""
        return self.title

    def start(self, undo):
        raise NotImplementedError

    def directory(self, name=None):
        path = os.path.join(self.place.mounts, name or self.name)
        os.makedirs(path, exist_ok=True)
        return path

    def sync(self):
        if self.device:
            fd = os.open(self.path, os.O_RDWR)
        else:
            fd = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        if not self.device:
            command.run("sync", "-f", self.path)

    def settle(self):
        """Finish what was put off, so that data is where it will stay."""
        self.sync()

    def memory(self):
        """Bytes of memory that it takes; None if nobody knows."""
        return None

    def held(self):
        """Bytes of data it says it holds; None if it does not say."""
        return None

    def unsettled(self):
        """Why a read would not come from where data stays; None if it would."""
        return None

    def repeats(self):
        """Why data that should all differ does not; None if it does."""
        return None

    def faults(self):
        """What the target itself says went wrong; None if nothing did."""
        return None

    def usage(self):
        """What its daemon used until now; {} without a daemon."""
        return {}

    def requests(self):
        """Requests served until now, by name; {} without a daemon."""
        return {}

    def details(self):
        """All that it can tell, for the record."""
        return {}


class Zramfs(Target):
    """zramfs, as a user mounts it."""

    name = "zramfs"
    title = "zramfs, files"
    options = ""

    def __init__(self, place):
        super().__init__(place)
        self.store = None  # the mount that zramfsctl is asked about
        self.hot = None    # hot= where it is not to be the default
        self.pid = None    # of the daemon

    def mount_options(self):
        return ",".join(o for o in (self.options,
                                    self.hot and f"hot={self.hot}") if o)

    def missing(self):
        return None if os.path.exists("/dev/fuse") else "no /dev/fuse"

    def settings(self):
        options = self.mount_options()
        return f"zramfs -o {options}" if options else "zramfs"

    def mount_store(self, undo, directory):
        argv = [self.place.program("zramfs"), directory]
        if self.mount_options():
            argv += ["-o", self.mount_options()]
        undo.push("end of zramfs", self._wait_gone)
        undo.push(f"umount {directory}", unmount, directory)
        command.run(*argv, timeout=60)
        self.store = directory
        self.pid = self.details()["pid"]

    def _wait_gone(self):
        """Its memory and its loop device go when the daemon does."""
        pid, self.pid = self.pid, None
        for _ in range(READY_SECONDS * 50):
            if not process.usage(pid):
                return
            time.sleep(0.02)
        raise Failed(f"the daemon {pid} is still there after the umount")

    def start(self, undo):
        self.mount_store(undo, self.directory())
        self.path = self.store

    def control(self, *argv):
        return command.run(self.place.program("zramfsctl"), *argv,
                           timeout=300)

    def details(self):
        return json.loads(self.control("stat", "--json", self.store))

    def settle(self):
        self.sync()
        self.control("compact", self.store)

    def memory(self):
        return self.details()["mem_used_total"]

    def held(self):
        return self.details()["orig_data_size"]

    def unsettled(self):
        hot = self.details()["hot_pages"]
        return f"{hot} pages are hot, not in the pool" if hot else None

    def repeats(self):
        details = self.details()
        equal = details["dedup_pages"]
        # A page of nothing or two may be equal in a filesystem's own tables.
        if equal * 50 > details["stored_pages"] + 1000:
            return f"{equal} pages are equal to others"
        return None

    def faults(self):
        count = self.details()["checksum_errors"]
        return f"{count} checksum errors" if count else None

    def usage(self):
        return process.usage(self.pid)

    def requests(self):
        return self.details()["requests"]


class ZramfsWriteback(Zramfs):
    name = "zramfs-writeback"
    title = "zramfs, files, writeback"
    options = "writeback"


class ZramfsNoopen(Zramfs):
    name = "zramfs-noopen"
    title = "zramfs, files, noopen"
    options = "noopen"


class ZramfsZstd(Zramfs):
    name = "zramfs-zstd"
    title = "zramfs, files, zstd:3"
    options = "alg=zstd:3"


class ZramfsLoop(Zramfs):
    """The loop device on an image in zramfs: what block mode stands on."""

    name = "zramfs-loop"
    title = "zramfs, loop device"
    device = True

    def missing(self):
        return super().missing() or Target.missing(self) or (
            None if command.find("losetup") else "no losetup")

    def settings(self):
        return f"{super().settings()}; {LOOP_SETTINGS}"

    def start_device(self, undo):
        self.mount_store(undo, self.directory(self.name + ".store"))
        return loop_device(undo, self.store)

    def start(self, undo):
        self.path = self.start_device(undo)


class ZramfsBlock(Zramfs):
    """Block mode: ext4 on a device in zramfs, as its own option mounts it."""

    name = "zramfs-block"
    title = "zramfs, block"
    options = f"block=ext4,size={DEVICE_SIZE}"

    def missing(self):
        return super().missing() or Target.missing(self) or (
            None if command.find("mkfs.ext4") else "no mkfs.ext4")
