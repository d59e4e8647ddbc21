"""Knows every stored server, and says which ones want a pass."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import structlog

from server_api.controller.backoff import Backoff
from server_api.controller.triggers import wakes
from server_api.servers.model import Server
from server_api.servers.ports import Expired, PortError, Unavailable
from server_api.servers.replica_ports import Change, ServerFeed

_SHORTEST_WATCH_SECONDS = 1.0
"""A watch that ends sooner, having shown nothing, is broken; asking again at once would be a hot loop."""

_log = structlog.get_logger(__name__)


class Informer:
    """Follows a feed of servers: a snapshot, then its changes, again and again.

    ``wake`` is called with the ID of a server that wants a pass: everything after a snapshot (also what
    vanished since the one before), afterwards only what ``triggers.wakes`` says. One thread calls ``run``;
    everything else may be called from anywhere.
    """

    def __init__(
        self,
        feed: ServerFeed,
        wake: Callable[[str], None],
        backoff: Backoff,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._feed = feed
        self._wake = wake
        self._backoff = backoff
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._servers: dict[str, Server] = {}
        self._version: str | None = None
        self._failures = 0
        self._blind = False
        self._last_heard: float | None = None
        self.synced = threading.Event()
        """Set once the first snapshot is there."""

    def servers(self) -> Sequence[Server]:
        """Return every server as it was last seen."""
        with self._lock:
            return tuple(self._servers.values())

    def project_of(self, server_id: str) -> tuple[str, str] | None:
        """Return region and identity of a server, which are one cloud project; None for one that has none."""
        with self._lock:
            server = self._servers.get(server_id)
        if server is None or server.metadata.region_id is None or server.metadata.identity_id is None:
            return None
        return server.metadata.region_id, server.metadata.identity_id

    def paused(self) -> int:
        """Return how many known servers are paused."""
        return sum(server.spec.pause for server in self.servers())

    def wake_all(self) -> None:
        """Want a pass over every known server: a new leader does not know what the last one left."""
        for server in self.servers():
            self._wake(server.id)

    def silent_seconds(self) -> float:
        """Return for how long the feed has shown no sign of life; infinite before the first one."""
        last_heard = self._last_heard
        return float("inf") if last_heard is None else self._monotonic() - last_heard

    @property
    def failing(self) -> bool:
        """Whether the last attempt to follow the feed failed, so that the servers known here may be stale."""
        return self._blind

    def run(self, stop: threading.Event) -> None:
        """Follow the feed until ``stop`` is set. A failing feed is tried again, at growing intervals."""
        while not stop.is_set():
            pause = self._follow(stop)
            if pause:
                stop.wait(pause)

    def _follow(self, stop: threading.Event) -> float:
        """Take a snapshot if one is due, follow one watch to its end, and return how long to pause then."""
        try:
            if self._version is None:
                self._version = self._take_snapshot()
            if self._watch(self._version, stop):
                return 0
            raise Unavailable("kubernetes", "the watch ended as soon as it began")
        except Expired:
            # The list must come anew: asking for the same version again would fail for ever (B-40). The first
            # time at once; if a fresh list's version is expired too, something is wrong and haste does not
            # help.
            _log.info("the watch has expired", failures=self._failures)
            first = self._failures == 0
            pause = self._note_failure()
            return 0 if first else pause
        except PortError as error:
            # What happened while nobody watched is unknown, and the connection may be half dead (B-39): list
            # again.
            pause = self._note_failure()
            _log.warning("following the servers failed", error=str(error), again_in=round(pause, 1))
            return pause

    def _note_failure(self) -> float:
        self._version = None
        self._blind = True
        self._failures += 1
        return self._backoff.delay(self._failures)

    def _take_snapshot(self) -> str:
        listed, version = self._feed.snapshot()
        servers = {server.id: server for server in listed}
        with self._lock:
            vanished = self._servers.keys() - servers.keys()
            self._servers = servers
        # Failures stay counted until a watch works: a list that works does not make a broken watch less
        # broken.
        self._last_heard = self._monotonic()
        self._blind = False
        for server_id in (*servers, *sorted(vanished)):
            self._wake(server_id)
        self.synced.set()
        return version

    def _watch(self, version: str, stop: threading.Event) -> bool:
        """Follow one watch to its end, and say whether it was of any use."""
        began = self._monotonic()
        useful = False
        for change in self._feed.changes(version):
            self._heard()
            useful = True
            self._version = change.version
            self._apply(change)
            if stop.is_set():
                return True
        if useful or stop.is_set() or self._monotonic() - began >= _SHORTEST_WATCH_SECONDS:
            self._heard()
            return True
        return False

    def _heard(self) -> None:
        self._last_heard = self._monotonic()
        self._blind = False
        self._failures = 0

    def _apply(self, change: Change) -> None:
        after = change.server
        if after is None:
            return
        with self._lock:
            before = self._servers.get(after.id)
            if change.deleted:
                self._servers.pop(after.id, None)
            else:
                self._servers[after.id] = after
        if wakes(before, None if change.deleted else after):
            self._wake(after.id)
