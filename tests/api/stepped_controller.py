"""The controller one step at a time: its real parts, without its threads, on a clock that the test moves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

import orjson

from server_api.controller.backoff import Backoff
from server_api.controller.informer import Informer
from server_api.controller.metrics import Metrics
from server_api.controller.monitor import Monitor
from server_api.controller.reconciler import Reconciler, Requeue
from server_api.sandbox.kubernetes import EmbeddedKubernetes
from server_api.servers.deprovisioning import Deprovisioner
from server_api.servers.model import Server
from server_api.servers.ports import Clock, Cloud, Expired, References, ServerStore
from server_api.servers.provisioning import Provisioner
from server_api.servers.replica_ports import Change
from server_api.store import kinds
from server_api.store.client import KubernetesClient
from server_api.store.directory import KubernetesDirectory
from server_api.store.events import KubernetesEvents
from server_api.store.feed import KubernetesServerFeed
from server_api.store.references import KubernetesReferences
from server_api.store.server_object import from_object
from server_api.store.servers import KubernetesServerStore
from tests.api.world import NAMESPACE
from tests.doubles.clock import FixedClock
from tests.doubles.fault_plan import FaultPlan, Planned
from tests.doubles.programmable_cloud import ProgrammableCloud

RETRY_SECONDS = 10.0
_BACKOFF = Backoff(base=1.0, limit=300.0, spread=0.0)
_RESOURCE = (kinds.GROUP, kinds.SERVER.plural)


class StepQueue:
    """Which servers want a pass, and when: each once, at the earliest time it was asked for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[str, datetime] = {}
        self._failures: dict[str, int] = {}

    def add(self, server_id: str) -> None:
        self._due[server_id] = self._clock.now()

    def due(self) -> list[str]:
        """Return the servers whose pass is due, by ID."""
        now = self._clock.now()
        return sorted(server_id for server_id, when in self._due.items() if when <= now)

    def waiting(self) -> bool:
        """Return whether any server wants a pass, now or later."""
        return bool(self._due)

    def take(self, server_id: str) -> None:
        self._due.pop(server_id, None)

    def again(self, server_id: str, requeue: Requeue) -> None:
        """Want the pass that the last one asked for."""
        after = requeue.after
        if requeue.backing_off:
            failures = self._failures[server_id] = self._failures.get(server_id, 0) + 1
            after = _BACKOFF.delay(failures)
        else:
            self._failures.pop(server_id, None)
        if after is not None:
            due = self._clock.now() + timedelta(seconds=after)
            self._due[server_id] = min(due, self._due.get(server_id, due))


class SteppedFeed:
    """``replica_ports.ServerFeed`` that tells of every change so far and then sets ``stop``, where a watch would wait.

    It reads the log of the embedded API, so that it tells of the same changes as a watch and in the same order.
    """

    def __init__(self, kubernetes: EmbeddedKubernetes, client: KubernetesClient) -> None:
        self._kubernetes = kubernetes
        self._feed = KubernetesServerFeed(client, NAMESPACE)
        self.stop = threading.Event()
        self.expired = False

    def snapshot(self) -> tuple[Sequence[Server], str]:
        return self._feed.snapshot()

    def changes(self, version: str) -> Iterator[Change]:
        if self.expired:
            self.expired = False
            raise Expired("kubernetes", "too old resource version")
        with self._kubernetes.app.store.read() as view:
            changes = view.changes(_RESOURCE, NAMESPACE, int(version))
        for change in changes:
            server = from_object(orjson.loads(change.after.body))
            yield Change(server.metadata.resource_version, server, deleted=change.type == "DELETED")
        self.stop.set()


@dataclass(frozen=True)
class Cluster:
    """What a controller runs against."""

    kubernetes: EmbeddedKubernetes
    client: KubernetesClient
    cloud: ProgrammableCloud
    clock: FixedClock


class SteppedController:
    """One process of the controller. A new one is what comes after a crash. ``plan`` is of its calls."""

    def __init__(self, cluster: Cluster) -> None:
        self.plan = cluster.cloud.plan()
        self.queue = StepQueue(cluster.clock)
        self._feed = SteppedFeed(cluster.kubernetes, cluster.client)
        self._informer = Informer(self._feed, self.queue.add, _BACKOFF)
        servers, cloud = _servers(cluster, self.plan), cluster.cloud.seen_through(self.plan)
        self.reconciler = reconciler(cluster, self.plan)
        self._monitor = Monitor(
            self._informer.servers,
            self.queue.add,
            servers,
            KubernetesDirectory(cluster.client, NAMESPACE),
            cloud,
            KubernetesEvents(cluster.client, NAMESPACE),
            cluster.clock,
            Metrics(),
        )

    def hear(self) -> None:
        """Learn of everything that was written so far."""
        self._feed.stop.clear()
        self._informer.run(self._feed.stop)

    def lose_watch(self) -> None:
        """Have to list everything anew the next time."""
        self._feed.expired = True

    def pass_over(self, server_id: str) -> Requeue:
        """Run one pass, whether it is due or not, and queue the next one. Raises Crash."""
        self.queue.take(server_id)
        requeue = self.reconciler.reconcile(server_id)
        self.queue.again(server_id, requeue)
        return requeue

    def look(self) -> None:
        """Run one poll of the monitor. Raises Crash."""
        self._monitor.poll(threading.Event())


def reconciler(cluster: Cluster, plan: FaultPlan) -> Reconciler:
    """Return what a controller does with one server, with those faults."""
    servers = _servers(cluster, plan)
    effects = frozenset({"hold", "release"})
    references = Planned(KubernetesReferences(cluster.client, NAMESPACE), plan, "references", "kubernetes", effects)
    parts: tuple[KubernetesDirectory, References, Cloud] = (
        KubernetesDirectory(cluster.client, NAMESPACE),
        cast(References, references),
        cluster.cloud.seen_through(plan),
    )
    return Reconciler(
        servers,
        Provisioner(servers, *parts),
        Deprovisioner(servers, *parts),
        KubernetesEvents(cluster.client, NAMESPACE),
        cluster.clock,
        Metrics(),
        RETRY_SECONDS,
    )


def _servers(cluster: Cluster, plan: FaultPlan) -> ServerStore:
    store = KubernetesServerStore(cluster.client, NAMESPACE)
    return cast(ServerStore, Planned(store, plan, "store", "kubernetes", frozenset({"update", "patch_status"})))


Meanwhile = Callable[[], object]
