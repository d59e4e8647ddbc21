"""Threads that are missed when they die."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

import structlog

_log = structlog.get_logger(__name__)


class ThreadDied(Exception):
    """A thread that the controller cannot do without ended before its time."""


class Crew:
    """The controller's threads. A thread that ends before ``stop`` is set is noted, and sets it.

    A controller without, say, its informer looks alive and does nothing. Ending the process is the honest
    answer: whatever supervises it starts it anew, and another replica takes over at once.
    """

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._threads: list[threading.Thread] = []
        self._dead: list[str] = []

    def start(self, name: str, work: Callable[[], None]) -> threading.Thread:
        """Do ``work`` in a thread of that name."""
        thread = threading.Thread(target=self._run, args=(name, work), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def dead(self) -> list[str]:
        """Return the names of the threads that ended before their time."""
        return list(self._dead)

    def _run(self, name: str, work: Callable[[], None]) -> None:
        died = True
        try:
            work()
            died = not self._stop.is_set()
        except Exception:  # noqa: BLE001 - whatever it is, it ended the thread
            _log.exception("thread crashed", thread=name)
        finally:
            if died:
                _log.error("thread ended before its time", thread=name)
                self._dead.append(name)
                self._stop.set()


def join_all(threads: Iterable[threading.Thread], seconds: float) -> bool:
    """Wait for the threads to end, ``seconds`` in all, and say whether they did."""
    ends_at = time.monotonic() + seconds
    threads = list(threads)
    for thread in threads:
        thread.join(max(0.0, ends_at - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)
