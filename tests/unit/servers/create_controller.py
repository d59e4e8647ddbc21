"""The controller inside create_world.py, and the doubles that let every call of it be answered from there.

It is the real ``Reconciler``, ``Provisioner``, ``Deprovisioner``, ``observe`` and ``wakes``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

import structlog.testing

from server_api.controller.metrics import Metrics
from server_api.controller.reconciler import Reconciler
from server_api.controller.triggers import wakes
from server_api.servers import create_retry
from server_api.servers.cloud_model import Instance as ShownInstance
from server_api.servers.cloud_model import InstanceOrder, Port, PortOrder, PowerState
from server_api.servers.cloud_requests import LATE_SECONDS
from server_api.servers.deprovisioning import Deprovisioner
from server_api.servers.finalizers import FINALIZER
from server_api.servers.model import (
    CloudRequest,
    CloudRequestKind,
    ConditionType,
    GateStatus,
    Server,
    ServerStatus,
)
from server_api.servers.naming import cloud_network, cloud_port
from server_api.servers.observed_state import observe
from server_api.servers.ports import EventType, PortError, ReferentKind, Refused, Unavailable
from server_api.servers.provisioning import Provisioner
from tests.doubles.clock import FixedClock
from tests.doubles.directory import InMemoryDirectory
from tests.doubles.references import InMemoryReferences
from tests.doubles.store import DELETED_AT, InMemoryServerStore
from tests.doubles.tenancy import JournaledCompute, JournaledNetworking, OneProjectCloud
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

GATE = "ReadyForServers"
CAP = 2
"""How many creates may fail in all."""

CREATE, CREATE_PORT = CloudRequestKind.CREATE.value, CloudRequestKind.CREATE_PORT.value
_LOST = Unavailable("the cloud", "connection lost")
ANSWERS: dict[str, PortError | None] = {
    "taken": None,
    "taken, answer lost": _LOST,
    "answer lost, and it may be taken late": _LOST,
    "lost": _LOST,
    "refused": Refused("the cloud", "no"),
}
TO_A_CREATE = tuple(ANSWERS)
TO_A_DELETE = ("taken", "taken, answer lost", "lost")


class Instance(NamedTuple):
    """What Nova has. ``leaving``: it was asked to delete it."""

    status: str = "BUILD"
    launched: bool = False
    leaving: bool = False

    @property
    def seen(self) -> Instance:
        """What a look shows that anything here depends on."""
        return self._replace(leaving=False)

    def shown(self) -> ShownInstance:
        return instance(
            status=self.status,
            power_state=PowerState.RUNNING if self.status == "ACTIVE" else None,
            created_at=EARLIER,
            launched_at=EARLIER if self.launched else None,
        )


_INSTANCES = (Instance(), Instance("ACTIVE", True), Instance("ERROR"), Instance("ERROR", True))
ANY_INSTANCE = Instance("ACTIVE", launched=True)
"""What a deletion finds when it finds something: it does not matter to it in which state that is."""


BOUND = "the instance on the port"
"""What a port says instead of ``instance-1``, so that a look at what was found before can be told from one at that."""


class Record(NamedTuple):
    """The write-ahead record."""

    kind: str
    old: bool = False


class Status(NamedTuple):
    """The stored status, as far as anything here depends on it."""

    healthy: tuple[str, str] | None = None
    phase: str | None = None
    scheduled: bool = False
    launched: bool = False
    provisioned: bool = False
    failures: int = 0
    retrying: bool = False
    available: str | None = None
    gate: str | None = None

    @staticmethod
    def of(status: ServerStatus) -> Status:
        healthy, available = status.condition(ConditionType.HEALTHY), status.condition(ConditionType.AVAILABLE)
        return Status(
            (healthy.status, healthy.reason) if healthy else None,
            status.phase,
            status.scheduled_at is not None,
            status.launched_at is not None,
            status.provisioned_at is not None,
            status.provider_create_failures,
            status.provider_create_retrying,
            available.reason if available else None,
            status.provider_create_gates[0].status if status.provider_create_gates else None,
        )

    @property
    def as_stored(self) -> ServerStatus:
        conditions = []
        if self.healthy is not None:
            conditions.append(condition(ConditionType.HEALTHY, *self.healthy))
        if self.available is not None:
            conditions.append(condition(ConditionType.AVAILABLE, "", self.available))
        gates = () if self.gate is None else (GateStatus(GATE, self.gate, EARLIER, "", "", ""),)
        return ServerStatus(
            conditions=tuple(conditions),
            phase=self.phase,
            scheduled_at=EARLIER if self.scheduled else None,
            launched_at=EARLIER if self.launched else None,
            provisioned_at=EARLIER if self.provisioned else None,
            provider_create_failures=self.failures,
            provider_create_retrying=self.retrying,
            provider_create_gates=gates,
        )


class Stored(NamedTuple):
    """The stored server."""

    status: Status = Status()
    record: Record | None = None
    finalizer: bool = False
    deleted: bool = False
    gated: bool = False


class _Store(InMemoryServerStore):
    def __init__(self, script: Script, read: Server) -> None:
        super().__init__(read)
        self._script = script

    def update(self, server: Server) -> Server:
        before, after = self.stored(server.id).metadata, server.metadata
        if before.finalizers != after.finalizers:
            self._script.ask_to_write("finalizer", FINALIZER in after.finalizers)
            return self.put(server)
        kind = after.cloud_request.kind.value if after.cloud_request else None
        if after.resource_version:
            self._script.ask_to_write("record", (kind, True))
        else:
            self._script.ask("record", (kind, False))
        return self.put(server)

    def patch_status(self, before: Server, after: Server) -> Server:
        status = Status.of(after.status)
        if status != Status.of(before.status):
            self._script.ask_to_write("write", status)
        return self.put(after)


class _Compute(JournaledCompute):
    def __init__(self, script: Script) -> None:
        super().__init__([])
        self._script = script

    def find(self, name: str, server_id: str) -> ShownInstance | None:
        found: Instance | None = self._script.ask("find")
        return found and found.shown()

    def get(self, instance_id: str) -> ShownInstance | None:
        found: Instance | None = self._script.ask("get", instance_id)
        return found and found.shown()

    def create(self, order: InstanceOrder) -> ShownInstance:
        self._script.ask("create")
        # All that Nova's answer says.
        return ShownInstance(id="instance-1", name=order.name, status="BUILD", server_id=SERVER)

    def delete(self, instance_id: str) -> None:
        self._script.ask("delete")


class _Networking(JournaledNetworking):
    def __init__(self, script: Script) -> None:
        super().__init__([])
        self._script = script

    def ports_named(self, name: str) -> Sequence[Port]:
        bound: bool | None = self._script.ask("ports")
        if bound is None:
            return []
        return [Port("port-1", cloud_port(SERVER), instance_id=BOUND if bound else None)]

    def create_port(self, order: PortOrder) -> Port:
        self._script.ask("create-port")
        return Port("port-1", order.name)

    def update_port(self, port_id: str, order: PortOrder) -> Port:
        return Port(port_id, order.name)

    def delete_port(self, port_id: str) -> None:
        self._script.ask("delete-port")


class _Events:
    def record(self, server: Server, type_: EventType, reason: str, message: str) -> None:
        pass


_METRICS = Metrics()


class Controller:
    """The code under test, and every point of its passes."""

    def __init__(self) -> None:
        self._directory = InMemoryDirectory(identity(), region())
        self._server = lru_cache(None)(_as_server)
        effects: dict[str, tuple[Any, ...]] = {
            "record": (None, CONFLICT),
            "write": (None, CONFLICT),
            "finalizer": (None, CONFLICT),
            "create": tuple(dict.fromkeys(ANSWERS[answer] for answer in TO_A_CREATE)),
            "create-port": (None, _LOST),
            "delete": (None, _LOST),
            "delete-port": (None, _LOST),
        }
        ports = (None, False, True)
        looks = {"find": (None, *_INSTANCES), "get": (None, *_INSTANCES), "ports": ports}
        self._lone = Passes(self._run, effects)
        self._beside_others = Passes(self._run, effects, looks)
        looks = {"find": (None, ANY_INSTANCE), "get": (None, ANY_INSTANCE), "ports": ports}
        self.deprovisioning = Passes(self._run, effects, looks, compares_looks=True)
        self.wakes = lru_cache(None)(self._wakes)
        self.looked = lru_cache(None)(_looked)
        self.removes = lru_cache(None)(_removes)

    def provisioning(self, controllers: int) -> Passes:
        """Return the create passes of a world with so many controllers.

        With one there are few overtaken passes, and to compare them takes longer than it saves.
        """
        return self._lone if controllers == 1 else self._beside_others

    def _wakes(self, before: Stored, after: Stored) -> bool:
        return wakes(self._server(before), self._server(after))

    def _run(self, start: Stored, script: Script) -> bool:
        """Do what the controller does once, and return whether it is to be done again."""
        cloud = OneProjectCloud()
        cloud.compute, cloud.networking = _Compute(script), _Networking(script)
        references = InMemoryReferences()
        references.put(ReferentKind.NETWORK, NETWORK, IDENTITY)
        store = _Store(script, self._server(start))
        reconciler = Reconciler(
            store,
            Provisioner(store, self._directory, references, cloud, CAP),
            Deprovisioner(store, self._directory, references, cloud),
            _Events(),
            FixedClock(NOW),
            _METRICS,
            retry_seconds=10,
        )
        with structlog.testing.capture_logs():
            requeue = reconciler.reconcile(SERVER)
        return requeue.after is not None or requeue.backing_off


def _as_server(stored: Stored) -> Server:
    request = None
    if stored.record is not None:
        sent_at = NOW - timedelta(seconds=LATE_SECONDS if stored.record.old else 1)
        request = CloudRequest(CloudRequestKind(stored.record.kind), sent_at)
    return server(
        spec(provider_create_gates=(GATE,) if stored.gated else None),
        stored.status.as_stored,
        cloud_request=request,
        finalizers=(FINALIZER,) if stored.finalizer else (),
        deleted_at=DELETED_AT if stored.deleted else None,
    )


def _looked(status: Status, seen: Instance) -> Status:
    return Status.of(observe(status.as_stored, seen.shown(), NOW, cloud_network(NETWORK)))


def _removes(stored: Stored) -> bool:
    return stored.deleted or stored.status.retrying or create_retry.failed(stored.status.as_stored)
