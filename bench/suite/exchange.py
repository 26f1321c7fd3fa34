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


def line_ns_soon(place, most):
    """The same, as soon as it is at most so much; what it is after a while
    when it does not come to that. most 0: at once."""
    deadline = time.monotonic() + PATIENCE
    while True:
        apart = line_ns(place)
        if not most or not apart or apart <= most or \
                time.monotonic() >= deadline:
            return apart
        time.sleep(1)
