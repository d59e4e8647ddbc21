"""What the replicas of a controller need from outside: to follow the stored servers, and to agree on a leader.

The errors are those of ``ports``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from server_api.servers.model import Server


@dataclass(frozen=True, slots=True)
class Change:
    """Something a watch saw. ``server`` is None for a bookmark; ``deleted`` for its last state."""

    version: str
    server: Server | None
    deleted: bool = False


class ServerFeed(Protocol):
    """All servers, and what happens to them from then on."""

    def snapshot(self) -> tuple[Sequence[Server], str]:
        """Return every server and the version of that list."""

    def changes(self, version: str) -> Iterator[Change]:
        """Yield changes after ``version`` until the connection ends, which is no error.

        Raises Expired when the version is too old, Unavailable when the API went silent.
        """


@dataclass(frozen=True, slots=True)
class Lease:
    """A leadership lease (coordination.k8s.io). Empty ``holder``: released."""

    name: str
    holder: str
    duration_seconds: int
    acquired_at: datetime | None
    renewed_at: datetime | None
    transitions: int
    resource_version: str = ""


class Leases(Protocol):
    """Where replicas agree on a leader."""

    def get(self, name: str) -> Lease | None:
        """Return the lease, None if it does not exist."""

    def create(self, lease: Lease) -> Lease:
        """Create it. Raises AlreadyExists."""

    def replace(self, lease: Lease) -> Lease:
        """Write it if nobody wrote since it was read. Raises StateConflict, Missing."""
