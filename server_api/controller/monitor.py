"""Mirrors what the cloud shows into the status of every server (contract 7.8)."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import structlog

from server_api import deadline, trace
from server_api.controller.census import StateLabels
from server_api.controller.election import LostLeadership
from server_api.controller.metrics import Metrics
from server_api.controller.rota import Project, Rota
from server_api.controller.transitions import report
from server_api.servers.baremetal_phase import wants_node
from server_api.servers.cloud_model import Instance
from server_api.servers.lookup import had_instance
from server_api.servers.model import ConditionType, Phase, Reason, Server
from server_api.servers.naming import cloud_network
from server_api.servers.observed_state import observe
from server_api.servers.ports import (
    Ambiguous,
    Baremetal,
    Clock,
    Cloud,
    Directory,
    Events,
    Missing,
    PortError,
    Refused,
    ServerStore,
    StateConflict,
)
from server_api.servers.surroundings import Region

PROJECT_SECONDS = 30.0
"""Longest that reading one project may take: a bulk list is a few pages, and one slow project must not stop
the others from being looked at again."""

POLL_SECONDS = 60.0
"""After this, a poll begins with no further project; the next one begins with those that were left out."""

PROJECTS_AT_ONCE = 4
"""Projects read side by side, so that one that hangs does not hold up the poll of the rest."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _RegionView:
    """What one poll knows of a region. ``region`` is None when it could not be read."""

    region: Region | None = None
    flavor_names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Sighting:
    """A server, its instance, and the state of the bare-metal node that is being prepared for it, if one is."""

    server: Server
    instance: Instance
    node_state: str | None


class Monitor:
    """Polls the cloud: one bulk list per project, one conditional write per server that changed.

    ``known`` returns the servers as they were last seen. A server that somebody else wrote meanwhile is left alone:
    the next poll sees both. So is one whose instance is not found, or not alone; ``wake`` is called with the ID of a
    server that once had one and does not say so yet, because only a pass can tell what that means. ``servers`` is
    fenced.
    """

    def __init__(
        self,
        known: Callable[[], Sequence[Server]],
        wake: Callable[[str], None],
        servers: ServerStore,
        directory: Directory,
        cloud: Cloud,
        events: Events,
        clock: Clock,
        metrics: Metrics,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._known = known
        self._wake = wake
        self._servers = servers
        self._directory = directory
        self._cloud = cloud
        self._events = events
        self._clock = clock
        self._metrics = metrics
        self._monotonic = monotonic
        self._rota = Rota(monotonic)
        self._without_nodes: set[tuple[str, str]] = set()

    def run(self, stop: threading.Event, interval: float, is_leading: Callable[[], bool]) -> None:
        """Poll while leading, ``interval`` seconds after the last poll ended, until ``stop`` is set."""
        while not stop.wait(interval):
            if is_leading():
                self._poll_safely(stop)
            else:
                # Else a former leader would report for ever what was true when it led.
                self._metrics.census.replace(())

    def _poll_safely(self, stop: threading.Event) -> None:
        began = time.monotonic()
        try:
            self.poll(stop)
        except LostLeadership:
            _log.info("poll abandoned, not leading any more")
        except Exception:  # noqa: BLE001 - our own defect
            # A defect of ours that one server or project brings out must not end the mirroring of all the
            # others.
            _log.exception("poll crashed")
        self._metrics.poll_seconds.observe(time.monotonic() - began)

    def poll(self, stop: threading.Event) -> None:
        """Look at every server once. Ends early when ``stop`` is set. Raises LostLeadership."""
        watched = [
            server
            for server in self._known()
            if server.metadata.deleted_at is None and server.metadata.region_id is not None
        ]
        views = {region_id: self._view(region_id) for region_id in sorted(_region_ids(watched))}
        ends_at = self._monotonic() + POLL_SECONDS
        mirrored: dict[str, Server] = {}

        def look(project: Project) -> None:
            region = views[project.region_id].region
            if region is not None and not stop.is_set() and self._monotonic() < ends_at:
                mirrored.update(self._look_at(project, region, stop))

        with ThreadPoolExecutor(PROJECTS_AT_ONCE, thread_name_prefix="monitor") as pool:
            # Reading the results is what raises an error of theirs here.
            list(pool.map(look, self._rota.order(watched)))
        if not stop.is_set():
            self._count((mirrored.get(server.id, server) for server in watched), views)

    def _view(self, region_id: str) -> _RegionView:
        try:
            with deadline.within(PROJECT_SECONDS):
                region = self._directory.region(region_id)
        except PortError as error:
            _log.warning("a region could not be read", region_id=region_id, error=str(error))
            return _RegionView()
        try:
            with deadline.within(PROJECT_SECONDS):
                flavors = self._cloud.catalogue(region).flavors()
        except PortError as error:
            # Their names are only for the metrics.
            _log.warning("a region's flavors could not be read", region_id=region_id, error=str(error))
            return _RegionView(region)
        return _RegionView(region, {flavor.id: flavor.name for flavor in flavors})

    def _look_at(self, project: Project, region: Region, stop: threading.Event) -> dict[str, Server]:
        """Mirror one project, and return what its servers are now, as far as they were looked at."""
        names = {"region_id": project.region_id, "identity_id": project.identity_id}
        token = trace.begin()
        try:
            mirrored = self._mirror(project, region, stop)
        except PortError as error:
            self._metrics.poll_failures.inc()
            if self._rota.note(project, broken=True):
                _log.warning("a project cannot be read", **names, error=str(error))
            return {}
        finally:
            trace.end(token)
        if self._rota.note(project, broken=False):
            _log.info("a project can be read again", **names)
        return mirrored

    def _mirror(self, project: Project, region: Region, stop: threading.Event) -> dict[str, Server]:
        with deadline.within(PROJECT_SECONDS):
            try:
                tenancy = self._cloud.tenancy(region, project.identity_id)
            except Missing:
                # The identity has no project yet, or not any more: there is nothing to be seen.
                return {}
            sightings = self._sightings(project, region, tenancy.compute.instances(), tenancy.baremetal)
        mirrored: dict[str, Server] = {}
        for sighting in sightings:
            if stop.is_set():
                break
            mirrored[sighting.server.id] = self._mirror_one(sighting)
        return mirrored

    def _sightings(
        self, project: Project, region: Region, instances: Sequence[Instance], baremetal: Baremetal
    ) -> list[_Sighting]:
        """Return what is seen of which servers, and have those woken of which not the one instance is seen."""
        owned = _by_owner(instances)
        nodes = _Nodes(baremetal)
        sightings = []
        for server in project.servers:
            found = _instances_of(server, owned)
            if len(found) == 1:
                instance = found[0]
                wanted = wants_node(instance, region, server.spec.flavor_id)
                sightings.append(_Sighting(server, instance, nodes.state(instance) if wanted else None))
            else:
                self._check_unseen(server, len(found))
        self._tell_of_nodes(project, nodes)
        return sightings

    def _check_unseen(self, server: Server, found: int) -> None:
        available = server.status.condition(ConditionType.AVAILABLE)
        told = available is not None and available.reason == Reason.ERRORED
        if not told and not server.spec.pause and (found or had_instance(server.status)):
            _log.info("a server's instance is missing or not the only one", server_id=server.id, found=found)
            self._wake(server.id)

    def _tell_of_nodes(self, project: Project, nodes: _Nodes) -> None:
        if nodes.failure is None:
            self._without_nodes.discard(project.key)
        elif project.key not in self._without_nodes:
            self._without_nodes.add(project.key)
            _log.warning("bare-metal nodes cannot be read", identity_id=project.identity_id, error=str(nodes.failure))

    def _mirror_one(self, sighting: _Sighting) -> Server:
        server = sighting.server
        network_name = cloud_network(server.spec.networks[0].id) if server.spec.networks else ""
        status = observe(
            server.status, sighting.instance, self._clock.now(), network_name, node_state=sighting.node_state
        )
        if status == server.status:
            return server
        try:
            written = self._servers.patch_status(server, replace(server, status=status))
        except StateConflict:
            self._metrics.conflicts.labels("monitor").inc()
            return server
        except Missing:
            return server
        except Refused as error:
            _log.warning("an observed status was refused", server_id=server.id, error=str(error))
            return server
        report(server, written, self._metrics, self._events)
        return written

    def _count(self, servers: Iterable[Server], views: Mapping[str, _RegionView]) -> None:
        self._metrics.census.replace(_labels(server, views[server.metadata.region_id or ""]) for server in servers)


class _Nodes:
    """Looks up bare-metal nodes during one look at a project. A failure is kept, and is none of the poll's."""

    def __init__(self, baremetal: Baremetal) -> None:
        self._baremetal = baremetal
        self.failure: PortError | None = None
        self._given_up = False

    def state(self, instance: Instance) -> str | None:
        """Return the provision state of an instance's node, None when there is none or nobody can say."""
        if self._given_up:
            return None
        try:
            return self._baremetal.provision_state(instance.id)
        except PortError as error:
            self.failure = error
            # Ambiguity is about this node; anything else is likely to be true of the next as well, and takes time.
            self._given_up = not isinstance(error, Ambiguous)
            return None


def _labels(server: Server, view: _RegionView) -> StateLabels:
    return StateLabels(
        state=(server.status.phase or Phase.PENDING).lower(),
        region_id=server.metadata.region_id or "",
        region_name=view.region.name if view.region else "",
        flavor_id=server.spec.flavor_id,
        flavor_name=view.flavor_names.get(server.spec.flavor_id, ""),
    )


def _region_ids(servers: Iterable[Server]) -> set[str]:
    return {server.metadata.region_id for server in servers if server.metadata.region_id}


def _by_owner(instances: Iterable[Instance]) -> Mapping[str, Sequence[Instance]]:
    """Return our instances by server ID."""
    owned: defaultdict[str, list[Instance]] = defaultdict(list)
    for instance in instances:
        if instance.server_id is not None:
            owned[instance.server_id].append(instance)
    return owned


def _instances_of(server: Server, owned: Mapping[str, Sequence[Instance]]) -> Sequence[Instance]:
    """Return a server's instances: of those with its ID those with its name, or else one that was renamed in Nova."""
    ours = owned.get(server.id, ())
    return [instance for instance in ours if instance.name == server.metadata.name] or ours
