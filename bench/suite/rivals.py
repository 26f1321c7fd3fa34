# SPDX-License-Identifier: GPL-2.0-or-later
"""What zramfs is measured next to; and the table of all targets."""

import glob
import os
import time

from . import command, process
from .command import Failed
from .targets import (DEVICE_SIZE, LOOP_SETTINGS, READY_SECONDS, Target,
                      Zramfs, ZramfsBlock, ZramfsLoop, ZramfsNoopen,
                      ZramfsWriteback, ZramfsZstd, is_mounted, loop_device,
                      unmount)

# Made and mounted as block mode does it, src/block_mkfs.c; but zram needs
# discard, as nobody trims it.
EXT4 = ("mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-i", "8192",
        "-O", "^has_journal,^resize_inode,^metadata_csum",
        "-E", "nodiscard,assume_storage_prezeroed=1,lazy_itable_init=0")
EXT4_MOUNT = "discard,barrier=0,noauto_da_alloc,errors=remount-ro"
TMPFS_MOUNT = "mode=1777"


def mount_ext4(undo, device, directory):
    command.run(*EXT4, device)
    undo.push(f"umount {directory}", unmount, directory)
    command.run("mount", "-t", "ext4", "-o", EXT4_MOUNT, device, directory)
    os.chmod(directory, 0o1777)
    return directory


# --- the kernel's zram ----------------------------------------------------

_CONTROL = "/sys/class/zram-control"


def _write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(str(text))


def _read(path):
    with open(path, encoding="ascii") as file:
        return file.read().strip()


class ZramDevice(Target):
    """A zram device of our own where one can be added, else an idle one."""

    name = "zram"
    title = "kernel zram, device"
    device = True
    algorithm = "lz4"

    def missing(self):
        if Target.missing(self):
            return Target.missing(self)
        if not glob.glob("/sys/block/zram*"):
            return "the kernel has no zram"
        some = glob.glob("/sys/block/zram*/comp_algorithm")[0]
        if self.algorithm not in _read(some).replace("[", "").replace(
                "]", "").split():
            return f"the kernel's zram has no {self.algorithm}"
        if not os.path.exists(f"{_CONTROL}/hot_add") and not self._idle():
            return "no zram device is idle"
        return None

    def settings(self):
        return f"zram of {DEVICE_SIZE} bytes, {self.algorithm}"

    @staticmethod
    def _idle():
        for path in sorted(glob.glob("/sys/block/zram*")):
            if _read(f"{path}/initstate") == "0":
                return path
        return None

    def _take(self, undo):
        if os.path.exists(f"{_CONTROL}/hot_add"):
            number = _read(f"{_CONTROL}/hot_add")
            undo.push(f"remove zram{number}", _write,
                      f"{_CONTROL}/hot_remove", number)
            return f"/sys/block/zram{number}"
        path = self._idle()
        if not path:
            raise Failed("no zram device is idle")
        return path

    def start_device(self, undo):
        self.sys = self._take(undo)
        _write(f"{self.sys}/comp_algorithm", self.algorithm)
        _write(f"{self.sys}/disksize", DEVICE_SIZE)
        undo.push(f"reset {self.sys}", _write, f"{self.sys}/reset", 1)
        device = f"/dev/{os.path.basename(self.sys)}"
        for _ in range(100):  # the node may come a moment later
            if os.path.exists(device):
                return device
            time.sleep(0.02)
        raise Failed(f"{device} did not appear")

    def start(self, undo):
        self.path = self.start_device(undo)

    def details(self):
        names = ("orig_data_size", "compr_data_size", "mem_used_total",
                 "mem_limit", "mem_used_max", "same_pages",
                 "pages_compacted", "huge_pages", "huge_pages_since")
        values = _read(f"{self.sys}/mm_stat").split()
        return {name: int(value) for name, value in zip(names, values)}

    def memory(self):
        return self.details()["mem_used_total"]

    def held(self):
        return self.details()["orig_data_size"]


class Zram(ZramDevice):
    name = "ext4-zram"
    title = "ext4 on zram"
    device = False

    def missing(self):
        return super().missing() or (
            None if command.find("mkfs.ext4") else "no mkfs.ext4")

    def settings(self):
        return f"{super().settings()}; {' '.join(EXT4)}; " \
            f"mount -o {EXT4_MOUNT}"

    def start(self, undo):
        device = self.start_device(undo)
        self.path = mount_ext4(undo, device, self.directory())


class ZramLzoRle(Zram):
    name = "ext4-zram-lzo-rle"
    title = "ext4 on zram, lzo-rle"
    algorithm = "lzo-rle"


# --- the others -----------------------------------------------------------

class Tmpfs(Target):
    name = "tmpfs"
    title = "tmpfs"

    def settings(self):
        return f"mount -t tmpfs -o {TMPFS_MOUNT}"

    def mount(self, undo, directory):
        undo.push(f"umount {directory}", unmount, directory)
        command.run("mount", "-t", "tmpfs", "-o", TMPFS_MOUNT,
                    "zramfs-bench", directory)
        return directory

    def start(self, undo):
        self.path = self.mount(undo, self.directory())

    def memory(self):
        stat = os.statvfs(self.path)
        return (stat.f_blocks - stat.f_bfree) * stat.f_frsize

    def held(self):
        return self.memory()


class Btrfs(Tmpfs):
    """btrfs that compresses, on a file in tmpfs as its RAM disk."""

    name = "btrfs"
    title = "btrfs zstd:3"
    MKFS = ("mkfs.btrfs", "-q", "-m", "single", "-d", "single")
    MOUNT = "compress=zstd:3,noatime,discard=sync"

    def missing(self):
        if Target.missing(self):
            return Target.missing(self)
        with open("/proc/filesystems", encoding="ascii") as file:
            if "btrfs" not in file.read().split():
                return "the kernel has no btrfs"
        return None if command.find("mkfs.btrfs") else "no mkfs.btrfs"

    def settings(self):
        return f"{' '.join(self.MKFS)}; mount -o {self.MOUNT}, on a loop " \
            "device on a file in tmpfs; memory is what the file takes"

    def start(self, undo):
        disk = self.mount(undo, self.directory("btrfs.disk"))
        self.image = os.path.join(disk, "image")
        with open(self.image, "wb") as file:
            file.truncate(DEVICE_SIZE)
        device = command.run("losetup", "--show", "-f", self.image).strip()
        undo.push(f"losetup -d {device}", command.run, "losetup", "-d",
                  device)
        command.run(*self.MKFS, device)
        directory = self.directory()
        undo.push(f"umount {directory}", unmount, directory)
        command.run("mount", "-t", "btrfs", "-o", self.MOUNT, device,
                    directory)
        os.chmod(directory, 0o1777)
        self.path = directory

    def memory(self):
        return os.stat(self.image).st_blocks * 512

    def held(self):
        return None


class Nullfs(Target):
    """The same transport, storing nothing."""

    name = "nullfs"
    title = "nullfs"
    stores = False

    def missing(self):
        return None if os.path.exists("/dev/fuse") else "no /dev/fuse"

    def settings(self):
        return "nullfs"

    def start(self, undo):
        self.path = self.mount(undo, self.directory())

    def mount(self, undo, directory):
        child = command.start(self.place.program("bench/nullfs"), directory)
        self.pid = child.pid
        # Taken down in the reverse order: unmounted, then waited for.
        undo.push("end nullfs", command.end, child)
        undo.push(f"umount {directory}", unmount, directory)
        for _ in range(READY_SECONDS * 50):
            if is_mounted(directory):
                break
            if child.poll() is not None:
                raise Failed("nullfs: ended before it was mounted")
            time.sleep(0.02)
        else:
            raise Failed("nullfs: not mounted in time")
        os.stat(directory)  # the first request is answered
        return directory

    def settle(self):
        pass

    def usage(self):
        return process.usage(self.pid)


class NullfsLoop(Nullfs):
    """The limit of any block device whose data a FUSE daemon has."""

    name = "nullfs-loop"
    title = "nullfs, loop device"
    device = True

    def missing(self):
        return super().missing() or Target.missing(self) or (
            None if command.find("losetup") else "no losetup")

    def settings(self):
        return f"nullfs; {LOOP_SETTINGS}"

    def start(self, undo):
        directory = self.mount(undo, self.directory(self.name + ".store"))
        self.path = loop_device(undo, directory)


ALL = {cls.name: cls for cls in (
    Zramfs, ZramfsNoopen, ZramfsWriteback, ZramfsZstd, ZramfsBlock,
    ZramfsLoop, Zram,
    ZramLzoRle, ZramDevice, Tmpfs, Btrfs, Nullfs, NullfsLoop)}
