# SPDX-License-Identifier: GPL-2.0-or-later
"""What was set up is taken down in the reverse order, whatever happens.

Signals that end the suite raise Interrupted in the main thread. While things
are set up they wait until it is known how to take those down; while things are
taken down they are ignored, so that a second Ctrl-C leaves nothing behind.
"""

import contextlib
import signal

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal asked the suite to end."""


_deferring = False
_pending = None


def _interrupt(number, _frame):
    global _pending
    if _deferring:
        _pending = number
    else:
        raise Interrupted(signal.Signals(number).name)


@contextlib.contextmanager
def deferred():
    """Signals that come meanwhile take effect at the end."""
    global _deferring, _pending
    _deferring = True
    try:
        yield
    finally:
        _deferring = False
        number, _pending = _pending, None
    if number:
        _interrupt(number, None)


def install_signal_handlers():
    for number in ENDING:
        signal.signal(number, _interrupt)


class Undo:
    """A stack of actions; leaving the context runs them, last first."""

    def __init__(self):
        self._actions = []
        self.problems = []

    def push(self, what, function, *arguments):
        self._actions.append((what, function, arguments))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.run()

    def run(self):
        before = {n: signal.signal(n, signal.SIG_IGN) for n in ENDING}
        try:
            while self._actions:
                what, function, arguments = self._actions.pop()
                try:
                    function(*arguments)
                except Exception as error:  # the next must have its turn
                    self.problems.append(f"{what}: {error}")
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
