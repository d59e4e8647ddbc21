"""A bounded cache that fetches what it does not have once, however many ask for it at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

from cachetools import TLRUCache

from server_api import deadline

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

LONGEST_WAIT = 60.0
"""Seconds to wait for another thread's fetch where no deadline says less."""


@dataclass(frozen=True, slots=True)
class _Entry(Generic[Value]):
    value: Value
    ends_at: float


class _Abandoned(Exception):
    """The thread that fetched ran out of its own time, which says nothing of what was fetched."""


class SingleFlightCache(Generic[Key, Value]):
    """At most ``size`` values by key, the least recently used of which is dropped first. Thread-safe.

    ``timer`` returns seconds: wall-clock time when lifetimes end at a time of day, else the monotonic clock.
    """

    def __init__(self, size: int, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._entries: TLRUCache[Key, _Entry[Value]] = TLRUCache(
            maxsize=size, ttu=lambda _key, entry, _now: entry.ends_at, timer=timer
        )
        self._flights: dict[Key, Future[Value]] = {}
        self._lock = Lock()

    def get(self, key: Key, fetch: Callable[[], tuple[Value, float]]) -> Value:
        """Return the value of a key. ``fetch`` returns it with the seconds it may be kept; none: it is not kept.

        What ``fetch`` raises is raised in every thread that waited for it, and not kept. Raises TimeoutError when the
        deadline of this thread passes first.
        """
        while True:
            with self._lock:
                entry = self._entries.get(key)
                if entry is not None:
                    return entry.value
                flight = self._flights.get(key)
                if flight is None:
                    leading = self._flights[key] = Future()
            if flight is None:
                return self._fetch(key, leading, fetch)
            try:
                return flight.result(deadline.remaining(LONGEST_WAIT))
            except _Abandoned:
                continue

    def forget(self, key: Key) -> None:
        """Drop a value, so that it is fetched anew."""
        with self._lock:
            self._entries.pop(key, None)

    def __len__(self) -> int:
        with self._lock:
            return len(self._entries)

    def _fetch(self, key: Key, flight: Future[Value], fetch: Callable[[], tuple[Value, float]]) -> Value:
        try:
            value, seconds = fetch()
        except BaseException as error:
            self._end(key)
            flight.set_exception(_Abandoned() if _out_of_time() or not isinstance(error, Exception) else error)
            raise
        with self._lock:
            if seconds > 0:
                self._entries[key] = _Entry(value, self._timer() + seconds)
            del self._flights[key]
        flight.set_result(value)
        return value

    def _end(self, key: Key) -> None:
        with self._lock:
            del self._flights[key]


def _out_of_time() -> bool:
    try:
        deadline.remaining(LONGEST_WAIT)
    except TimeoutError:
        return True
    return False
