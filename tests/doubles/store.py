"""Stored servers in memory, with the behaviour of Kubernetes that the rules rely on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from server_api.servers.model import Server, ServerStatus
from server_api.servers.ports import AlreadyExists, Missing, PortError, ServerSelector, StateConflict

CREATED_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DELETED_AT = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)


class InMemoryServerStore:
    """``ports.ServerStore`` over a dictionary.

    ``calls`` holds the names of all methods called, ``writes`` the names of those that changed something. ``journal``
    gets a line for every update, among those of other doubles.
    """

    def __init__(self, *servers: Server, journal: list[str] | None = None) -> None:
        self._journal = journal
        self.calls: list[str] = []
        self.writes: list[str] = []
        self._version = 0
        self._servers: dict[str, Server] = {}
        self._failures: dict[str, list[PortError]] = {}
        self._races: list[Callable[[Server], Server]] = []
        for server in servers:
            self.put(server)

    def put(self, server: Server) -> Server:
        """Store a server as it is, without any precondition."""
        self._version += 1
        stored = replace(server, metadata=replace(server.metadata, resource_version=str(self._version)))
        self._servers[server.id] = stored
        return stored

    def stored(self, server_id: str) -> Server:
        """Return a server without that counting as a call."""
        return self._servers[server_id]

    def fail(self, method: str, error: PortError) -> None:
        """Let the next call of that method raise; called twice, the next two."""
        self._failures.setdefault(method, []).append(error)

    def lose_race(self, change: Callable[[Server], Server] = lambda server: server) -> None:
        """Let somebody else write ``change`` just before the next write arrives; called twice, the next two."""
        self._races.append(change)

    def get(self, server_id: str) -> Server:
        self._called("get")
        return self._existing(server_id)

    def list(self, selector: ServerSelector) -> Sequence[Server]:
        self._called("list")
        return [server for _, server in sorted(self._servers.items()) if _selects(selector, server)]

    def create(self, server: Server) -> Server:
        self._called("create")
        if server.id in self._servers:
            raise AlreadyExists("kubernetes", "servers already exists")
        self.writes.append("create")
        metadata = replace(server.metadata, uid=f"uid-{server.id}", created_at=CREATED_AT, generation=1)
        # Status is a subresource: what a create says of it is dropped.
        return self.put(replace(server, metadata=metadata, status=ServerStatus()))

    def update(self, server: Server) -> Server:
        self._called("update")
        if self._journal is not None:
            self._journal.append(f"update {server.id}")
        stored = self._unchanged(server)
        self.writes.append("update")
        generation = stored.metadata.generation + (server.spec != stored.spec)
        metadata = replace(server.metadata, generation=generation)
        return self.put(replace(server, metadata=metadata, status=stored.status))

    def patch_status(self, before: Server, after: Server) -> Server:
        self._called("patch_status")
        if before.status == after.status:
            return before
        stored = self._unchanged(before)
        self.writes.append("patch_status")
        return self.put(replace(stored, status=after.status))

    def delete(self, server_id: str) -> None:
        self._called("delete")
        stored = self._existing(server_id)
        self.writes.append("delete")
        if not stored.metadata.finalizers:
            del self._servers[server_id]
        elif stored.metadata.deleted_at is None:
            self.put(replace(stored, metadata=replace(stored.metadata, deleted_at=DELETED_AT)))

    def _called(self, method: str) -> None:
        self.calls.append(method)
        if self._failures.get(method):
            raise self._failures[method].pop(0)

    def _existing(self, server_id: str) -> Server:
        if server_id not in self._servers:
            raise Missing("kubernetes", "servers not found")
        return self._servers[server_id]

    def _unchanged(self, read: Server) -> Server:
        if self._races:
            change = self._races.pop(0)
            self.put(change(self._existing(read.id)))
        stored = self._existing(read.id)
        if stored.metadata.resource_version != read.metadata.resource_version:
            raise StateConflict("kubernetes", "the object has been modified")
        return stored


def _selects(selector: ServerSelector, server: Server) -> bool:
    metadata = server.metadata
    return (
        (not selector.organization_ids or metadata.organization_id in selector.organization_ids)
        and (not selector.project_ids or metadata.project_id in selector.project_ids)
        and (not selector.region_ids or metadata.region_id in selector.region_ids)
        and (not selector.network_ids or metadata.network_id in selector.network_ids)
        and (selector.api_version is None or metadata.api_version == selector.api_version)
    )
