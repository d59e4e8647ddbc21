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
from server_api.controller.transitions import report
from server_api.servers.cloud_model import Instance
from server_api.servers.model import Phase, Server
from server_api.servers.naming import cloud_network
from server_api.servers.observed_state import observe
from server_api.servers.ports import (
    Clock,
    Cloud,
    Directory,
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

PROJECTS_AT_ONCE = 4
"""Projects read side by side, so that one that hangs does not hold up the poll of the rest."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Project:
    """The servers of one identity in one region: one cloud project."""

    region_id: str
    identity_id: str
    servers: tuple[Server, ...]


@dataclass(frozen=True, slots=True)
class _RegionView:
    """What one poll knows of a region. ``region`` is None when it could not be read."""

    region: Region | None = None
    flavor_names: Mapping[str, str] = field(default_factory=dict)


class Monitor:
    """Polls the cloud: one bulk list per project, one conditional write per server that changed.

    ``known`` returns the servers as they were last seen. A server whose instance is not found is left alone,
    and so is one that somebody else wrote meanwhile: the next poll sees both. ``servers`` is fenced.
    """

    def __init__(
        self,
        known: Callable[[], Sequence[Server]],
        servers: ServerStore,
        directory: Directory,
        cloud: Cloud,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._known = known
        self._servers = servers
        self._directory = directory
        self._cloud = cloud
        self._clock = clock
        self._metrics = metrics
        self._broken: set[tuple[str, str]] = set()

    def run(self, stop: threading.Event, interval: float, is_leading: Callable[[], bool]) -> None:
        """Poll every ``interval`` seconds while leading, until ``stop`` is set."""
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
        mirrored: dict[str, Server] = {}

        def look(project: _Project) -> None:
            region = views[project.region_id].region
            if region is not None and not stop.is_set():
                mirrored.update(self._look_at(project, region, stop))

        with ThreadPoolExecutor(PROJECTS_AT_ONCE, thread_name_prefix="monitor") as pool:
            # Reading the results is what raises an error of theirs here.
            list(pool.map(look, _projects(watched)))
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

    def _look_at(self, project: _Project, region: Region, stop: threading.Event) -> dict[str, Server]:
        """Mirror one project, and return what its servers are now, as far as they were looked at."""
        key = project.region_id, project.identity_id
        token = trace.begin()
        try:
            mirrored = self._mirror(project, region, stop)
        except PortError as error:
            self._metrics.poll_failures.inc()
            if key not in self._broken:
                self._broken.add(key)
                _log.warning("a project cannot be read", region_id=key[0], identity_id=key[1], error=str(error))
            return {}
        finally:
            trace.end(token)
        if key in self._broken:
            self._broken.discard(key)
            _log.info("a project can be read again", region_id=key[0], identity_id=key[1])
        return mirrored

    def _mirror(self, project: _Project, region: Region, stop: threading.Event) -> dict[str, Server]:
        with deadline.within(PROJECT_SECONDS):
            try:
                tenancy = self._cloud.tenancy(region, project.identity_id)
            except Missing:
                # The identity has no project yet, or not any more: there is nothing to be seen.
                return {}
            instances = _by_owner(tenancy.compute.instances())
        mirrored: dict[str, Server] = {}
        for server in project.servers:
            if stop.is_set():
                break
            found = instances.get((server.metadata.name, server.id), ())
            if len(found) > 1:
                _log.warning("several instances claim to be one server", server_id=server.id)
            elif found:
                mirrored[server.id] = self._mirror_one(server, found[0])
        return mirrored

    def _mirror_one(self, server: Server, instance: Instance) -> Server:
        network_name = cloud_network(server.spec.networks[0].id) if server.spec.networks else ""
        status = observe(server.status, instance, self._clock.now(), network_name)
        if status == server.status:
            return server
        after = replace(server, status=status)
        try:
            self._servers.patch_status(server, after)
        except StateConflict:
            self._metrics.conflicts.labels("monitor").inc()
            return server
        except Missing:
            return server
        except Refused as error:
            _log.warning("an observed status was refused", server_id=server.id, error=str(error))
            return server
        report(server, after, self._metrics)
        return after

    def _count(self, servers: Iterable[Server], views: Mapping[str, _RegionView]) -> None:
        self._metrics.census.replace(_labels(server, views[server.metadata.region_id or ""]) for server in servers)


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


def _projects(servers: Iterable[Server]) -> list[_Project]:
    groups: defaultdict[tuple[str, str], list[Server]] = defaultdict(list)
    for server in servers:
        if server.metadata.region_id and server.metadata.identity_id:
            groups[server.metadata.region_id, server.metadata.identity_id].append(server)
    return [_Project(region_id, identity_id, tuple(group)) for (region_id, identity_id), group in groups.items()]


def _by_owner(instances: Iterable[Instance]) -> Mapping[tuple[str, str], Sequence[Instance]]:
    """Return our instances by exact name and server ID, as ``Compute.find`` looks for one (contract 6.2)."""
    owned: defaultdict[tuple[str, str], list[Instance]] = defaultdict(list)
    for instance in instances:
        if instance.server_id is not None:
            owned[instance.name, instance.server_id].append(instance)
    return owned
