"""What the person at the terminal sees: one line a step, with the seconds gone by."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[str], None]


class Progress:
    """Prints lines that begin with the seconds since it was made; `write` is called with each of them."""

    def __init__(self, write: Report = print) -> None:
        self._write = write
        self._began = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since this was made."""
        return time.monotonic() - self._began

    def __call__(self, message: str) -> None:
        """Print one line."""
        self._write(f"[{self.elapsed:6.1f} s] {message}")

    @contextmanager
    def step(self, message: str) -> Iterator[None]:
        """Report the work inside of the block when it is done, with the seconds it took by itself."""
        began = time.monotonic()
        yield
        self(f"{message} ({time.monotonic() - began:.1f} s)")
