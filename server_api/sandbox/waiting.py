"""Waiting for something that happens elsewhere."""

import time
from collections.abc import Callable
from typing import TypeVar

from server_api.sandbox.errors import StepFailed

# Nova spends more time on answering than on working if it is asked more often
INTERVAL = 0.5
TIMEOUT = 60.0

T = TypeVar("T")


def wait_for(what: str, look: Callable[[], T | None], timeout: float = TIMEOUT) -> T:
    """Call `look` until it returns something true, and return that.

    Raises StepFailed, naming `what`, after `timeout` seconds.
    """
    deadline = time.monotonic() + timeout
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > deadline:
            raise StepFailed(f"{what}: not within {timeout:.0f} s")
        time.sleep(INTERVAL)
