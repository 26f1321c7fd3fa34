# SPDX-License-Identifier: GPL-2.0-or-later
"""How far apart the processors are: see bench/exchange.c.

Measured before and after each target of a round, for the host of a virtual
machine may move its processors apart and together again within seconds, and
what that does to a figure is more than most that is compared here.
"""

import json
import time

from . import command

PATIENCE = 60  # seconds to wait for processors that are near
ATTEMPTS = 3   # of a target in a round that had them near


def line_ns(place):
    """Nanoseconds a cache line; None where there is one processor."""
    try:
        return json.loads(command.run(
            place.program("bench/exchange"), timeout=10))["line_ns"]
    except command.Failed:
        return None


def wait(place, most):
    """Until a line takes at most so long. False when it does not come to
    that."""
    deadline = time.monotonic() + PATIENCE
    while (line_ns(place) or 0) > most:
        if time.monotonic() >= deadline:
            return False
        time.sleep(1)
    return True
