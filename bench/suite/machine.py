# SPDX-License-Identifier: GPL-2.0-or-later
"""What was measured on: kernel, processor, memory, versions."""

import ctypes
import os
import platform
import re
import time

from . import command


def _first(path, pattern):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            match = re.search(pattern, file.read(), re.M)
    except OSError:
        return None
    return match.group(1).strip() if match else None


def _line(path):
    return _first(path, r"^(.*)$")


def _program_version(*argv):
    if not command.find(argv[0]):
        return None
    try:
        measured = command.measure(
            ["sh", "-c", 'exec "$@" 2>&1', "sh", *argv], timeout=10)
    except command.Failed:
        return None
    lines = measured.output.strip().splitlines()
    return lines[0] if lines else None


def _library_version(name, function, decode):
    try:
        library = ctypes.CDLL(name)
        call = getattr(library, function)
    except (OSError, AttributeError):
        return None
    return decode(call)


def _number(call):
    value = call()
    return f"{value // 10000}.{value // 100 % 100}.{value % 100}"


def _string(call):
    call.restype = ctypes.c_char_p
    return call().decode()


def _lzo(call):
    call.restype = ctypes.c_char_p
    return call().decode()


def libraries():
    """Versions of the libraries as they are loaded here."""
    return {
        "libfuse": _library_version("libfuse3.so.3", "fuse_pkgversion",
                                    _string),
        "libzstd": _library_version("libzstd.so.1", "ZSTD_versionNumber",
                                    _number),
        "liblz4": _library_version("liblz4.so.1", "LZ4_versionNumber",
                                   _number),
        "liblzo2": _library_version("liblzo2.so.2", "lzo_version_string",
                                    _lzo),
        "libxxhash": _library_version("libxxhash.so.0", "XXH_versionNumber",
                                      _number),
    }


def describe(build):
    uname = platform.uname()
    return {
        "when": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "kernel": f"{uname.system} {uname.release} {uname.version}",
        "machine": uname.machine,
        "cpu": _first("/proc/cpuinfo", r"^model name\s*:\s*(.*)$"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") *
        os.sysconf("SC_PAGE_SIZE"),
        "virtual": "hypervisor" in (
            _first("/proc/cpuinfo", r"^flags\s*:\s*(.*)$") or ""),
        "governor": _line(
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "shmem_enabled": _line(
            "/sys/kernel/mm/transparent_hugepage/shmem_enabled"),
        "system": _first("/etc/os-release", r'^PRETTY_NAME="(.*)"$'),
        "load_before": os.getloadavg()[0],
        "zramfs": _program_version(os.path.join(build, "zramfs"),
                                   "--version"),
        "libraries": libraries(),
        "programs": {
            "fio": _program_version("fio", "--version"),
            "gnuplot": _program_version("gnuplot", "--version"),
            "mkfs.ext4": _program_version("mkfs.ext4", "-V"),
            "mkfs.btrfs": _program_version("mkfs.btrfs", "--version"),
            "python": platform.python_version(),
            "cc": _program_version("cc", "--version"),
        },
    }
