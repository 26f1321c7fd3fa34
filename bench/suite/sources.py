# SPDX-License-Identifier: GPL-2.0-or-later
"""Real source trees: fetched once, unpacked to plain tar archives.

A plain archive keeps the decompression of the download out of the figures.
"""

import gzip
import lzma
import os
import shutil
import tarfile

from . import command
from .command import Failed
from .steps import SUITE


def _fetch(package):
    script = os.path.join(os.path.dirname(SUITE), "tests", "fetch-source")
    return command.run(script, package, timeout=300).strip()


class Source:
    """One package's source as a tar archive in the suite's scratch."""

    def __init__(self, package):
        self.package = package
        self.archive = None
        self.directory = None  # the archive's one top directory
        self.files = 0
        self.reason = None

    def prepare(self, scratch):
        """Leaves a reason where the source cannot be had."""
        if self.archive or self.reason:
            return
        try:
            fetched = _fetch(self.package)
            archive = os.path.join(scratch, f"{self.package}.tar")
            with tarfile.open(fetched) as packed:
                names = packed.getmembers()
            self.files = sum(1 for n in names if n.isfile() or n.issym())
            self.directory = names[0].name.split("/")[0]
            opener = lzma.open if fetched.endswith(".xz") else gzip.open
            with opener(fetched) as packed, open(archive, "wb") as plain:
                shutil.copyfileobj(packed, plain)
            self.archive = archive
        except (Failed, OSError, tarfile.TarError) as error:
            self.reason = f"no source of {self.package}: {error}"

    def unpack(self, directory):
        command.run("tar", "-C", directory, "-xf", self.archive)
