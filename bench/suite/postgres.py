# SPDX-License-Identifier: GPL-2.0-or-later
"""PostgreSQL with its data directory in the target, asked by pgbench."""

import glob
import os
import re
from dataclasses import dataclass

from . import command, undo
from .command import Failed
from .steps import Outcome, Step

USER = "postgres"


def programs():
    """Where PostgreSQL's own programs are; None where they are not."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    found += [p for p in [command.find("initdb")] if p]
    for initdb in reversed(found):
        directory = os.path.dirname(initdb)
        if all(os.path.exists(os.path.join(directory, p))
               for p in ("initdb", "pg_ctl", "pgbench")):
            return directory
    return None


def missing():
    if not programs():
        return "no PostgreSQL (initdb, pg_ctl, pgbench)"
    if os.geteuid() == 0:
        try:
            command.run("id", USER)
        except Failed:
            return f"no user {USER}: the server does not run as root"
    return None


@dataclass
class Pgbench(Step):
    scale: int = 1
    seconds: int = 10
    clients: int = 2
    place: object = None

    def _run(self, program, *argv, **keywords):
        return command.run(os.path.join(programs(), program), *argv,
                           cwd=self.place.sockets,
                           user=USER if os.geteuid() == 0 else None,
                           **keywords)

    def run(self, target):
        data = os.path.join(target.path, "postgres")
        sockets = self.place.sockets
        os.chmod(sockets, 0o777)
        self._run("initdb", "-D", data, "--no-sync", "-A", "trust")
        log = os.path.join(sockets, "log")
        with undo.Undo() as cleanup:
            with undo.deferred():
                self._run("pg_ctl", "-D", data, "-l", log, "-w", "-o",
                          f"-c listen_addresses='' -k {sockets}", "start")
                cleanup.push("remove the server's log", os.unlink, log)
                cleanup.push("stop the server", self._run, "pg_ctl", "-D",
                             data, "-m", "immediate", "-w", "stop")
            outcomes = self._measure(sockets)
        if cleanup.problems:
            raise Failed(cleanup.problems[0])
        return outcomes, {}

    def _measure(self, sockets):
        self._run("pgbench", "-q", "-i", "-s", self.scale, "-h", sockets,
                  "postgres")
        outcomes = []
        for row, flags in (("pgbench read and write", ()),
                           ("pgbench read only", ("-S",))):
            output = self._run("pgbench", *flags, "-n", "-h", sockets, "-c",
                               self.clients, "-j", self.clients, "-T",
                               self.seconds, "postgres")
            rate = re.search(r"^tps = ([0-9.]+)", output, re.M)
            failed = re.search(r"failed transactions: (\d+)", output)
            if not rate:
                raise Failed("pgbench: no rate")
            why = None
            if failed and int(failed.group(1)):
                why = f"{failed.group(1)} failed transactions"
            outcomes.append(Outcome(row, float(rate.group(1)), "1/s",
                                    {"scale": self.scale}, why))
        return outcomes
