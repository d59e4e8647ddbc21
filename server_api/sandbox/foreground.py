"""A sandbox that lives as long as the command that started it."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from server_api.sandbox.region import Region

LOOK_INTERVAL = 1.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """We were asked to stop. Not an Exception, so that no handler of errors takes it for one."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn the first SIGINT, SIGTERM or SIGHUP inside of the block into Interrupted, and ignore further ones.

    A second Ctrl-C would otherwise cut the stopping short and leave processes behind.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted

    before = {each: signal.signal(each, interrupt) for each in SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def stay(region: Region, report: Callable[[str], None]) -> None:
    """Return only by an exception, and report each process that dies meanwhile, once."""
    alive = region.running()
    while True:
        time.sleep(LOOK_INTERVAL)
        now = region.running()
        for name in sorted(alive - now):
            report(f"{name} has died; read {region.log_of(name)}")
        alive = now
