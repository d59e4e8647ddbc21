"""Keys that want work, each at most once and each worked on by one worker at a time."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable

from server_api.controller.backoff import Backoff
from server_api.controller.lanes import Lanes


class WorkQueue:
    """A deduplicating queue with delays, in the semantics of client-go's.

    - A key that is added while it waits stays there once.
    - A key that is added while a worker has it comes back only when that worker calls ``done``: two workers
      never hold the same key, and nothing added meanwhile is lost.
    - A delayed key has one timer, the earliest; adding the key at once cancels it.

    A held queue gives out nothing, so that a replica that does not lead keeps everything it was told for the
    moment it does. ``lanes`` say which of the ready keys is next, and which have to wait. ``on_retry`` is called for
    every rate-limited addition, ``on_taken`` with the seconds for which a taken key was ready; ``monotonic`` returns
    seconds.
    """

    def __init__(
        self,
        backoff: Backoff,
        *,
        lanes: Lanes | None = None,
        held: bool = False,
        on_retry: Callable[[], None] = lambda: None,
        on_taken: Callable[[float], None] = lambda _: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._backoff = backoff
        self._on_retry = on_retry
        self._on_taken = on_taken
        self._monotonic = monotonic
        self._condition = threading.Condition()
        self._ready = Lanes(lambda _: None, 1, backoff) if lanes is None else lanes
        self._wanted: dict[str, float] = {}
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
                self._condition.wait(self._seconds_to_next())
            return None

    def poll(self) -> str | None:
        """Take a key if one is ready, without waiting. The caller owes a ``done``."""
        with self._condition:
            return None if self._closed else self._take()

    def done(self, key: str, reached: bool | None = None) -> None:
        """Give a key back after work on it, and say whether that reached the key's project; None: it does not tell."""
        with self._condition:
            self._in_work.discard(key)
            self._ready.done(key, reached, self._monotonic())
            if key in self._wanted:
                self._ready.push(key)
            # More than one key may have waited for this one's end, or the next time to look has changed.
            self._condition.notify_all()

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

    def in_work(self) -> int:
        """Return how many keys are being worked on."""
        with self._condition:
            return len(self._in_work)

    def projects_backing_off(self) -> int:
        """Return how many projects cannot be reached."""
        with self._condition:
            return self._ready.backing_off()

    def _add(self, key: str) -> None:
        self._due.pop(key, None)
        if self._closed or key in self._wanted:
            return
        self._wanted[key] = self._monotonic()
        if key not in self._in_work:
            self._ready.push(key)
            self._condition.notify()

    def _take(self) -> str | None:
        self._ripen()
        now = self._monotonic()
        key = None if self._held else self._ready.pop(now)
        if key is not None:
            self._in_work.add(key)
            self._on_taken(now - self._wanted.pop(key))
        return key

    def _ripen(self) -> None:
        now = self._monotonic()
        while self._timers and self._timers[0][0] <= now:
            due, key = heapq.heappop(self._timers)
            # A timer that was overtaken or replaced stays in the heap until its time and is dropped here.
            if self._due.get(key) == due:
                self._add(key)

    def _seconds_to_next(self) -> float | None:
        if self._held:
            return None
        now = self._monotonic()
        waits = [self._timers[0][0] - now] if self._timers else []
        probe = self._ready.seconds_to_next_probe(now)
        if probe is not None:
            waits.append(probe)
        return max(0.0, min(waits)) if waits else None
