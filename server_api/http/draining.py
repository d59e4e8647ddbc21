"""The announcement that this program is about to stop, shared by gunicorn's master and its workers.

On SIGTERM the master announces it, and ``/readyz`` fails in every worker. Only ``drain_seconds`` later, when load
balancers have taken the pod out, does gunicorn stop: until then the listener stays open and everything is answered.
This module must be imported by the master before it forks, which ``deploy/gunicorn.conf.py`` does.
"""

from __future__ import annotations

import mmap
import signal
from collections.abc import Callable
from types import FrameType

_flag = mmap.mmap(-1, 1)

Handler = Callable[[int, FrameType | None], object]


def announce() -> None:
    """Let ``/readyz`` fail from now on."""
    _flag[0] = 1


def withdraw() -> None:
    """Take the announcement back."""
    _flag[0] = 0


def is_announced() -> bool:
    """Say whether this program is about to stop."""
    return _flag[0] == 1


def delay_sigterm(stop: Handler, seconds: float) -> None:
    """Let SIGTERM announce the stop at once and call ``stop`` after ``seconds``; a second SIGTERM calls it at once.

    ``stop`` is the handler gunicorn's master installed for SIGTERM. To be called in the master only.
    """

    def on_sigterm(number: int, frame: FrameType | None) -> None:
        if is_announced() or seconds <= 0:
            announce()
            stop(number, frame)
            return
        announce()
        signal.setitimer(signal.ITIMER_REAL, seconds)

    signal.signal(signal.SIGALRM, lambda _number, frame: stop(signal.SIGTERM, frame))
    signal.signal(signal.SIGTERM, on_sigterm)
