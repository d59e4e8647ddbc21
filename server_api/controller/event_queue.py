"""Records events without making anybody wait for it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

import structlog

from server_api.servers.model import Server
from server_api.servers.ports import Events, EventType

CAPACITY = 5000
"""Events that may wait: those of a burst over a few thousand servers. A write takes milliseconds, or seconds when the
store is slow; older news are worth less than newer ones then, and the conditions say the same."""

_log = structlog.get_logger(__name__)

_Event = tuple[Server, EventType, str, str]


class EventQueue:
    """``ports.Events`` that returns at once. One thread calls ``run``, which writes to ``events`` in order.

    When more than ``capacity`` wait, the oldest is dropped and ``on_drop`` is called.
    """

    def __init__(self, events: Events, on_drop: Callable[[], None] = lambda: None, capacity: int = CAPACITY) -> None:
        self._events = events
        self._on_drop = on_drop
        self._capacity = capacity
        self._changed = threading.Condition()
        self._waiting: deque[_Event] = deque()
        self._closed = False

    def record(self, server: Server, type_: EventType, reason: str, message: str) -> None:
        """Have an event recorded; never raises, never waits."""
        with self._changed:
            self._waiting.append((server, type_, reason, message))
            overflow = len(self._waiting) > self._capacity
            if overflow:
                self._waiting.popleft()
            self._changed.notify()
        if overflow:
            self._on_drop()

    def run(self) -> None:
        """Write events until the queue is closed and empty."""
        while (event := self._next()) is not None:
            try:
                self._events.record(*event)
            except Exception:  # noqa: BLE001 - our own defect
                # One event that cannot be told is no reason to end the process.
                _log.exception("an event was not recorded", server_id=event[0].id, reason=event[2])

    def close(self) -> None:
        """Let ``run`` return once it has written what is waiting."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _next(self) -> _Event | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            return self._waiting.popleft() if self._waiting else None
