"""The claim that lets only one process migrate at a time: a Lease that its holder keeps renewing."""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Self

from server_api.servers.ports import AlreadyExists, Missing, PortError, StateConflict
from server_api.servers.replica_ports import Lease, Leases

NAME = "server-api-migrations"


class ClaimLost(Exception):
    """The claim could not be renewed in time, so another process may be migrating by now."""


class Claim:
    """A context manager that waits for the claim, holds it inside the block and gives it back.

    A holder that crashed stops renewing and is replaced after ``duration`` seconds. That is told by the waiting
    process's own clock, from when it saw the last renewal, so clocks need not agree. ``check`` is the fence: it raises
    ClaimLost ``margin`` seconds before anybody may take over, and a call that began before ends within the margin.
    """

    def __init__(
        self,
        leases: Leases,
        *,
        duration: float = 60.0,
        margin: float = 20.0,
        retry: float = 1.0,
        waiting: Callable[[str], None] = lambda holder: None,
    ) -> None:
        self._leases = leases
        self._duration = duration
        self._margin = margin
        self._retry = retry
        self._waiting = waiting
        self._holder = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._renewed_at = 0.0
        self._stop = threading.Event()
        self._renewer = threading.Thread(target=self._keep_renewing, name="migration-claim", daemon=True)

    def check(self) -> None:
        """Return while the claim is certainly ours. Raises ClaimLost."""
        if time.monotonic() - self._renewed_at > self._duration - self._margin:
            raise ClaimLost(f"the claim {NAME} could not be renewed in time")

    def __enter__(self) -> Self:
        watched: tuple[object, ...] = ()
        watched_since = time.monotonic()
        while True:
            lease = self._leases.get(NAME)
            seen = (lease.holder, lease.renewed_at, lease.resource_version) if lease else ()
            if seen != watched:
                watched, watched_since = seen, time.monotonic()
                if lease is not None and lease.holder:
                    self._waiting(lease.holder)
            silent = time.monotonic() - watched_since
            if (lease is None or not lease.holder or silent > max(lease.duration_seconds, 1)) and self._take(lease):
                self._renewer.start()
                return self
            time.sleep(self._retry)

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._renewer.join()
        try:
            lease = self._leases.get(NAME)
            if lease is not None and lease.holder == self._holder:
                self._leases.replace(replace(lease, holder="", duration_seconds=1))
        except PortError:
            return  # It runs out by itself.

    def _take(self, lease: Lease | None) -> bool:
        started = time.monotonic()
        now = datetime.now(UTC)
        mine = Lease(NAME, self._holder, max(1, round(self._duration)), now, now, 0)
        try:
            if lease is None:
                self._leases.create(mine)
            else:
                version, transitions = lease.resource_version, lease.transitions + 1
                self._leases.replace(replace(mine, transitions=transitions, resource_version=version))
        except (AlreadyExists, StateConflict, Missing):
            return False
        self._renewed_at = started
        return True

    def _keep_renewing(self) -> None:
        while not self._stop.wait(self._duration / 6):
            started = time.monotonic()
            try:
                lease = self._leases.get(NAME)
                if lease is None or lease.holder != self._holder:
                    self._renewed_at = -self._duration
                    return
                self._leases.replace(replace(lease, renewed_at=datetime.now(UTC)))
                self._renewed_at = started
            except PortError:
                continue  # Tried again until the fence falls.
