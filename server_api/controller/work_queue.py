"""Keys that want work, each at most once and each worked on by one worker at a time."""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable

from server_api.controller.backoff import Backoff


class WorkQueue:
    """A deduplicating queue with delays, in the semantics of client-go's.

    - A key that is added while it waits stays there once.
    - A key that is added while a worker has it comes back only when that worker calls ``done``: two workers
      never hold the same key, and nothing added meanwhile is lost.
    - A delayed key has one timer, the earliest; adding the key at once cancels it.

    A held queue gives out nothing, so that a replica that does not lead keeps everything it was told for the
    moment it does. ``on_retry`` is called for every rate-limited addition; ``monotonic`` returns seconds.
    """

    def __init__(
        self,
        backoff: Backoff,
        *,
        held: bool = False,
        on_retry: Callable[[], None] = lambda: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._backoff = backoff
        self._on_retry = on_retry
        self._monotonic = monotonic
        self._condition = threading.Condition()
        self._ready: deque[str] = deque()
        self._wanted: set[str] = set()
        self._in_work: set[str] = set()
        self._timers: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._held = held
        self._closed = False

    def add(self, key: str) -> None:
        """Want work on a key now."""
        with self._condition:
            self._add(key)

    def add_after(self, key: str, seconds: float) -> None:
        """Want work on a key some time from now, unless it is wanted sooner already."""
        with self._condition:
            due = self._monotonic() + seconds
            if self._closed or key in self._wanted or self._due.get(key, due + 1) <= due:
                return
            self._due[key] = due
            heapq.heappush(self._timers, (due, key))
            self._condition.notify()

    def add_rate_limited(self, key: str) -> None:
        """Want work on a key again after a failure: later each time, until ``forget``."""
        with self._condition:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
        self._on_retry()
        self.add_after(key, self._backoff.delay(failures))

    def forget(self, key: str) -> None:
        """Forget a key's failures: its next one waits the shortest time again."""
        with self._condition:
            self._failures.pop(key, None)

    def get(self) -> str | None:
        """Wait for a key and take it; None once the queue is closed. The caller owes a ``done``."""
        with self._condition:
            while not self._closed:
                key = self._take()
                if key is not None:
                    return key
                self._condition.wait(self._seconds_to_next_timer())
            return None

    def poll(self) -> str | None:
        """Take a key if one is ready, without waiting. The caller owes a ``done``."""
        with self._condition:
            return None if self._closed else self._take()

    def done(self, key: str) -> None:
        """Give a key back after work on it."""
        with self._condition:
            self._in_work.discard(key)
            if key in self._wanted:
                self._ready.append(key)
                self._condition.notify()

    def hold(self) -> None:
        """Give out nothing until ``resume``; keys already taken are not affected."""
        with self._condition:
            self._held = True

    def resume(self) -> None:
        """Give out keys again."""
        with self._condition:
            self._held = False
            self._condition.notify_all()

    def close(self) -> None:
        """Give out nothing any more, and let every waiting ``get`` return."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def depth(self) -> int:
        """Return how many keys wait to be worked on now; those with a timer do not count."""
        with self._condition:
            return len(self._ready)

    def _add(self, key: str) -> None:
        self._due.pop(key, None)
        if self._closed or key in self._wanted:
            return
        self._wanted.add(key)
        if key not in self._in_work:
            self._ready.append(key)
            self._condition.notify()

    def _take(self) -> str | None:
        self._ripen()
        if self._held or not self._ready:
            return None
        key = self._ready.popleft()
        self._wanted.discard(key)
        self._in_work.add(key)
        return key

    def _ripen(self) -> None:
        now = self._monotonic()
        while self._timers and self._timers[0][0] <= now:
            due, key = heapq.heappop(self._timers)
            # A timer that was overtaken or replaced stays in the heap until its time and is dropped here.
            if self._due.get(key) == due:
                self._add(key)

    def _seconds_to_next_timer(self) -> float | None:
        if self._held or not self._timers:
            return None
        return max(0.0, self._timers[0][0] - self._monotonic())
