"""In-memory ports and clocks for the controller's tests."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from server_api.servers.cloud_model import Flavor, Instance
from server_api.servers.model import Metadata, NetworkAttachment, Server, ServerSpec, ServerStatus
from server_api.servers.outcomes import Outcome, PassResult
from server_api.servers.ports import (
    AlreadyExists,
    EventType,
    Missing,
    PortError,
    ServerSelector,
    StateConflict,
    Tenancy,
)
from server_api.servers.replica_ports import Change, Lease
from server_api.servers.surroundings import FlavorMetadata, Region

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def a_server(server_id: str = "s1", **changes: Any) -> Server:
    """A server; members of metadata, spec and status are changed by name."""
    metadata: dict[str, Any] = {
        "name": f"name-{server_id}",
        "organization_id": "org",
        "project_id": "project",
        "region_id": "region",
        "identity_id": "identity",
        "created_at": NOW - timedelta(seconds=40),
        "uid": f"uid-{server_id}",
        "generation": 1,
        "resource_version": "1",
    }
    spec: dict[str, Any] = {"flavor_id": "flavor", "image_id": "image", "networks": (NetworkAttachment("net"),)}
    status: dict[str, Any] = {}
    for name, value in changes.items():
        home = next(
            values
            for cls, values in ((Metadata, metadata), (ServerSpec, spec), (ServerStatus, status))
            if name in cls.__dataclass_fields__
        )
        home[name] = value
    return Server(server_id, Metadata(**metadata), ServerSpec(**spec), ServerStatus(**status))


def an_instance(server: Server, **changes: Any) -> Instance:
    """A running instance of a server."""
    instance = Instance(
        id=f"instance-{server.id}",
        name=server.metadata.name,
        server_id=server.id,
        status="ACTIVE",
        power_state=1,
        created_at=NOW - timedelta(seconds=30),
        launched_at=NOW - timedelta(seconds=10),
    )
    return replace(instance, **changes)


@dataclass
class FakeTime:
    """Seconds that pass when told to."""

    seconds: float = 100.0

    def __call__(self) -> float:
        return self.seconds

    def passes(self, seconds: float) -> None:
        self.seconds += seconds


class FixedClock:
    def now(self) -> datetime:
        return NOW


class MemoryServers:
    """A store and its feed, with versions, generations, and finalizers that hold deletion up."""

    def __init__(self, *servers: Server) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._versions = itertools.count(100)
        self._log: list[tuple[int, Server, bool]] = []
        self._servers: dict[str, Server] = {}
        self.writes: list[str] = []
        self.closed = False
        for server in servers:
            self._store(server)

    def get(self, server_id: str) -> Server:
        with self._changed:
            if server_id not in self._servers:
                raise Missing("kubernetes", "not found")
            return self._servers[server_id]

    def list(self, selector: ServerSelector) -> Sequence[Server]:
        raise NotImplementedError

    def create(self, server: Server) -> Server:
        return self._store(server)

    def update(self, server: Server) -> Server:
        with self._changed:
            stored = self._unchanged_since(server)
            self.writes.append(f"update {server.id}")
            after = replace(server, status=stored.status)
            if after.metadata.deleted_at is not None and not after.metadata.finalizers:
                del self._servers[server.id]
                self._tell(after, deleted=True)
                return after
            if after.spec != stored.spec:
                generation = stored.metadata.generation + 1
                after = replace(after, metadata=replace(after.metadata, generation=generation))
            return self._store(after)

    def patch_status(self, before: Server, after: Server) -> Server:
        with self._changed:
            stored = self._unchanged_since(before)
            assert before.status != after.status, "there is nothing to write"
            self.writes.append(f"status {before.id}")
            return self._store(replace(stored, status=after.status))

    def delete(self, server_id: str) -> None:
        with self._changed:
            stored = self.get(server_id)
            if stored.metadata.deleted_at is None:
                generation = stored.metadata.generation + 1
                metadata = replace(stored.metadata, deleted_at=NOW, generation=generation)
                stored = self._store(replace(stored, metadata=metadata))
            if not stored.metadata.finalizers:
                del self._servers[server_id]
                self._tell(stored, deleted=True)

    def snapshot(self) -> tuple[Sequence[Server], str]:
        with self._changed:
            return list(self._servers.values()), str(next(self._versions))

    def changes(self, version: str) -> Iterator[Change]:
        seen = int(version)
        while True:
            with self._changed:
                while not self.closed and not (self._log and self._log[-1][0] > seen):
                    self._changed.wait()
                if self.closed:
                    return
                news = [entry for entry in self._log if entry[0] > seen]
            for number, server, deleted in news:
                seen = number
                yield Change(str(number), server, deleted)

    def close(self) -> None:
        """End every watch."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that a write brings about."""
        with self._changed:
            assert self._changed.wait_for(condition, timeout=10)

    def has(self, server_id: str) -> bool:
        return server_id in self._servers

    def _unchanged_since(self, server: Server) -> Server:
        stored = self.get(server.id)
        if stored.metadata.resource_version != server.metadata.resource_version:
            raise StateConflict("kubernetes", "the object has changed")
        return stored

    def _store(self, server: Server) -> Server:
        with self._changed:
            number = next(self._versions)
            server = replace(server, metadata=replace(server.metadata, resource_version=str(number)))
            self._servers[server.id] = server
            self._tell(server, number=number)
            return server

    def _tell(self, server: Server, *, deleted: bool = False, number: int | None = None) -> None:
        self._log.append((number or next(self._versions), server, deleted))
        self._changed.notify_all()


class MemoryLeases:
    """Leases with optimistic concurrency; ``down`` makes them unreachable."""

    def __init__(self) -> None:
        self.lease: Lease | None = None
        self.down: PortError | None = None
        self._lock = threading.Lock()
        self._versions = itertools.count(1)

    def get(self, name: str) -> Lease | None:
        with self._lock:
            self._check()
            return self.lease

    def create(self, lease: Lease) -> Lease:
        with self._lock:
            self._check()
            if self.lease is not None:
                raise AlreadyExists("kubernetes", "the lease exists")
            return self._write(lease)

    def replace(self, lease: Lease) -> Lease:
        with self._lock:
            self._check()
            if self.lease is None:
                raise Missing("kubernetes", "no such lease")
            if self.lease.resource_version != lease.resource_version:
                raise StateConflict("kubernetes", "the lease has changed")
            return self._write(lease)

    def _check(self) -> None:
        if self.down is not None:
            raise self.down

    def _write(self, lease: Lease) -> Lease:
        self.lease = replace(lease, resource_version=str(next(self._versions)))
        return self.lease


@dataclass
class RecordedEvents:
    recorded: list[tuple[str, str, str]] = field(default_factory=list)

    def record(self, server: Server, type_: EventType, reason: str, message: str) -> None:
        self.recorded.append((server.id, reason, message))


@dataclass
class ScriptedPass:
    """A pass that does what the test says, and remembers which servers it saw."""

    act: Callable[[Server], PassResult] = lambda server: PassResult(Outcome.SUCCESS, server.status)
    seen: list[Server] = field(default_factory=list)

    def run(self, server: Server, now: datetime) -> PassResult:
        self.seen.append(server)
        return self.act(server)


@dataclass
class MemoryCompute:
    """Only the bulk list; ``failure`` is raised instead."""

    listed: list[Instance] = field(default_factory=list)
    failure: PortError | None = None
    lists: int = 0

    def instances(self) -> Sequence[Instance]:
        self.lists += 1
        if self.failure is not None:
            raise self.failure
        return self.listed


@dataclass
class MemoryNodes:
    """Bare-metal nodes by instance ID; ``failure`` is raised instead."""

    states: dict[str, str] = field(default_factory=dict)
    failure: PortError | None = None
    asked: list[str] = field(default_factory=list)

    def provision_state(self, instance_id: str) -> str | None:
        self.asked.append(instance_id)
        if self.failure is not None:
            raise self.failure
        return self.states.get(instance_id)


@dataclass
class MemoryCloud:
    """One project per identity, and the flavors of every region."""

    projects: dict[tuple[str, str], MemoryCompute] = field(default_factory=dict)
    exported: list[Flavor] = field(default_factory=lambda: [Flavor("flavor", "small", 1, 512, 1)])
    flavors_failure: PortError | None = None
    nodes: MemoryNodes = field(default_factory=MemoryNodes)

    def catalogue(self, region: Region) -> Any:
        return self

    def flavors(self) -> Sequence[Flavor]:
        if self.flavors_failure is not None:
            raise self.flavors_failure
        return self.exported

    def tenancy(self, region: Region, identity_id: str) -> Tenancy:
        try:
            compute: Any = self.projects[region.id, identity_id]
        except KeyError:
            raise Missing("keystone", "no project") from None
        unused: Any = None
        return Tenancy(
            compute, networking=unused, images=unused, placement=unused, baremetal=self.nodes, ssh_key_name=None
        )


@dataclass
class MemoryDirectory:
    """Regions that exist unless they are said to be broken, and what they say of flavors."""

    broken: dict[str, PortError] = field(default_factory=dict)
    flavor_metadata: tuple[FlavorMetadata, ...] = ()

    def region(self, region_id: str) -> Region:
        if region_id in self.broken:
            raise self.broken[region_id]
        return Region(
            region_id,
            f"name-of-{region_id}",
            "openstack",
            "http://keystone",
            "ns",
            "secret",
            flavor_metadata=self.flavor_metadata,
        )
