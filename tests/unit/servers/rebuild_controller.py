"""The controller inside rebuild_world.py, and the doubles that let every call of it be answered from there.

It is the real ``Provisioner``, ``observe`` and ``wakes``.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any, NamedTuple

from server_api.controller.triggers import wakes
from server_api.servers.cloud_model import Instance, Port
from server_api.servers.cloud_requests import LATE_SECONDS
from server_api.servers.derived_status import provisioning_status
from server_api.servers.model import (
    CloudRequest,
    CloudRequestKind,
    ConditionType,
    RebuildMarker,
    Server,
    ServerStatus,
)
from server_api.servers.naming import cloud_port
from server_api.servers.observed_state import observe
from server_api.servers.outcomes import Outcome
from server_api.servers.ports import PortError, ReferentKind, Refused, StateConflict, Unavailable
from server_api.servers.provisioning import Provisioner
from tests.doubles.directory import InMemoryDirectory
from tests.doubles.references import InMemoryReferences
from tests.doubles.store import InMemoryServerStore
from tests.doubles.tenancy import JournaledCompute, OneProjectCloud
from tests.unit.servers.builders import (
    EARLIER,
    IDENTITY,
    NETWORK,
    NOW,
    SERVER,
    condition,
    identity,
    instance,
    region,
    server,
    spec,
)
from tests.unit.servers.model_search import CONFLICT, Passes, Script

DESIRED, OTHER = "desired", "other"
"""The two images. When the user changes the spec they change their names, which halves the number of states."""

RENAMED = {DESIRED: OTHER, OTHER: DESIRED}
_LOST = Unavailable("nova", "connection lost")
ANSWERS: dict[str, PortError | None] = {
    "taken": None,
    "taken, answer lost": _LOST,
    "answer lost, and it may be taken late": _LOST,
    "lost": _LOST,
    "conflict": StateConflict("nova", "busy"),
    "refused": Refused("nova", "no"),
}
WHEN_BUSY = ("conflict", "lost")


class Nova(NamedTuple):
    """The instance. ``before`` is the image a rebuild under way started from; None: no rebuild is under way."""

    image: str = DESIRED
    in_error: bool = False
    before: str | None = None

    @property
    def busy(self) -> bool:
        return self.before is not None

    def accepted(self, image: str) -> Nova:
        # Nova changes reference and task in one write, before it answers.
        return Nova(image, self.in_error, self.image)

    def renamed(self) -> Nova:
        return self._replace(image=RENAMED[self.image], before=self.before and RENAMED[self.before])

    def shown(self, readable: bool = True) -> Instance:
        status = "REBUILD" if self.busy else "ERROR" if self.in_error else "ACTIVE"
        return instance(
            status=status,
            task_state="rebuilding" if self.busy else None,
            image_id=self.image if readable else None,
            created_at=EARLIER,
            launched_at=EARLIER,
        )


class Record(NamedTuple):
    """The write-ahead record. ``outdated``: Nova has recorded a rebuild since the one it names as the last before."""

    image: str
    old: bool = False
    outdated: bool = False


class Status(NamedTuple):
    """What the store holds, as far as a rebuild depends on it. ``available`` is the condition's reason."""

    marker: tuple[str, str] | None = None
    available: str = "Provisioned"

    def as_server(self, record: Record | None = None, generation: int = 1) -> Server:
        status = ServerStatus(
            conditions=(condition(ConditionType.AVAILABLE, "", self.available),),
            scheduled_at=EARLIER,
            launched_at=EARLIER,
            provisioned_at=EARLIER,
            rebuild=RebuildMarker(*self.marker) if self.marker else None,
        )
        request = None
        if record is not None:
            sent_at = NOW - timedelta(seconds=LATE_SECONDS if record.old else 1)
            request = CloudRequest(CloudRequestKind.REBUILD, sent_at, record.image, before="last before")
        return server(
            spec(image_id=DESIRED), status, cloud_request=request, generation=generation, resource_version="1"
        )

    def renamed(self) -> Status:
        return self._replace(marker=(RENAMED[self.marker[0]], self.marker[1]) if self.marker else None)

    @staticmethod
    def of(status: ServerStatus) -> Status:
        available = status.condition(ConditionType.AVAILABLE)
        assert available is not None
        marker = status.rebuild
        return Status((marker.target_image_id, marker.state) if marker else None, available.reason)


class _Store(InMemoryServerStore):
    def __init__(self, script: Script) -> None:
        super().__init__()
        self._script = script

    def update(self, server: Server) -> Server:
        request = server.metadata.cloud_request
        conditional = bool(server.metadata.resource_version)
        self._script.ask("record", (request and request.image_id, conditional))
        return replace(server, metadata=replace(server.metadata, resource_version="2"))


class _Compute(JournaledCompute):
    def __init__(self, script: Script) -> None:
        super().__init__([])
        self._script = script

    def find(self, name: str, server_id: str) -> Instance:
        nova, readable = self._script.ask("find")
        shown: Instance = nova.shown(readable)
        return shown

    def last_rebuild(self, instance_id: str) -> str:
        answer: str = self._script.ask("last_rebuild")
        return answer

    def rebuild(self, instance_id: str, image_id: str) -> None:
        self._script.ask("rebuild", image_id)


def _run(start: tuple[Status, Record | None], script: Script) -> tuple[Status, Outcome]:
    status, record = start
    cloud = OneProjectCloud()
    cloud.compute = _Compute(script)
    cloud.networking.ports.append(Port(id="port-1", name=cloud_port(SERVER), instance_id="instance-1"))
    references = InMemoryReferences()
    references.put(ReferentKind.NETWORK, NETWORK, IDENTITY)
    provisioner = Provisioner(_Store(script), InMemoryDirectory(identity(), region()), references, cloud)
    result = provisioner.run(status.as_server(record), NOW)
    return Status.of(result.status), result.outcome


@cache
def looked(status: Status, nova: Nova, readable: bool) -> Status:
    """Return the status as a look of the monitor at the instance leaves it."""
    return Status.of(observe(status.as_server().status, nova.shown(readable), NOW, ""))


@cache
def woken(before: Status, after: Status) -> bool:
    """Say whether a status write wakes the controller."""
    return wakes(before.as_server(), after.as_server())


@cache
def wakes_when_respecified(before: Status, after: Status) -> bool:
    """Say whether a change of the spec wakes the controller."""
    return wakes(before.as_server(generation=1), after.as_server(generation=2))


@cache
def reads_as(status: Status) -> str:
    """Return the provisioning status that the API shows."""
    return provisioning_status(status.as_server())


def new_passes() -> Passes:
    """Return the passes of the code as it is now."""
    effects: dict[str, tuple[Any, ...]] = {
        "last_rebuild": ("last before", "another"),
        "record": (None, CONFLICT),
        "rebuild": tuple(dict.fromkeys(ANSWERS.values())),
    }
    return Passes(_run, effects)
