"""The delete pass: the cloud side first, then the edges, then the object itself may go (contract 6.13 and 7.7)."""

from __future__ import annotations

from datetime import datetime

from server_api.servers import naming, reference_edges
from server_api.servers.cloud_requests import may_come_late
from server_api.servers.conditions import available
from server_api.servers.finalizers import blocks_deletion
from server_api.servers.lookup import find_instance
from server_api.servers.model import CloudRequestKind, Reason, Server
from server_api.servers.outcomes import Outcome, PassResult, Stop, is_unreachable
from server_api.servers.ports import (
    Cloud,
    Directory,
    Missing,
    Networking,
    PortError,
    References,
    ServerStore,
    StateConflict,
    Tenancy,
)
from server_api.servers.progress import Progress
from server_api.servers.removal import remove_instance, remove_ports

_REASONS = {Outcome.SUCCESS: Reason.DEPROVISIONED, Outcome.YIELD: Reason.DEPROVISIONING}


class Deprovisioner:
    """Runs delete passes."""

    def __init__(self, servers: ServerStore, directory: Directory, references: References, cloud: Cloud) -> None:
        self._servers = servers
        self._directory = directory
        self._references = references
        self._cloud = cloud

    def run(self, server: Server, now: datetime) -> PassResult:
        """Run one pass over a server that is being deleted; on success its finalizer may be removed.

        A dependency's failure of any kind fails the pass, with a condition that says why; it is tried again after
        growing pauses.
        """
        progress = Progress(self._servers, server, now)
        stop = self._outcome(progress)
        return PassResult(
            stop.outcome,
            available(server.status, _REASONS.get(stop.outcome, Reason.ERRORED), stop.reason, now),
            again_in=stop.again_in,
            stored=progress.stored,
            unreachable=stop.unreachable,
        )

    def _outcome(self, progress: Progress) -> Stop:
        try:
            self._steps(progress)
        except Stop as stop:
            return stop
        except StateConflict as error:
            return Stop(Outcome.YIELD, str(error))
        except PortError as error:
            return Stop(Outcome.ERROR, str(error), unreachable=is_unreachable(error))
        return Stop(Outcome.SUCCESS, "the server is deprovisioned")

    def _steps(self, progress: Progress) -> None:
        server = progress.server
        if blocks_deletion(server):
            raise Stop(Outcome.YIELD, "waiting for what still uses the server")
        tenancy = self._tenancy(server)
        if tenancy is not None:
            _remove_instance(progress, tenancy)
            _remove_port(progress, tenancy.networking)
        reference_edges.release_all(self._references, server)

    def _tenancy(self, server: Server) -> Tenancy | None:
        """Return the server's project, None when it never had one in the cloud, so that nothing can be there."""
        region = self._directory.region(server.metadata.region_id or "")
        try:
            return self._cloud.tenancy(region, server.metadata.identity_id or "")
        except Missing:
            return None


def _remove_instance(progress: Progress, tenancy: Tenancy) -> None:
    """Delete the instance. Raises Stop until it is gone, and while one may appear that would outlive the server."""
    instance = find_instance(tenancy, progress.server)
    young = may_come_late(progress.server.metadata.cloud_request, CloudRequestKind.CREATE, progress.now)
    if instance is None:
        if young:
            # Also when somebody saw it: a list of Nova's may be a little old.
            raise Stop(Outcome.YIELD, "waiting to see whether the cloud created the instance")
        return
    if young:
        # Seen, so that there is nothing left to wait for once it is gone.
        progress.record(None)
    remove_instance(tenancy.compute, instance)


def _remove_port(progress: Progress, networking: Networking) -> None:
    """Delete the port. Raises Stop when there is none, and the cloud may still be about to create it."""
    ports = networking.ports_named(naming.cloud_port(progress.server.id))
    remove_ports(networking, ports)
    if not ports and may_come_late(progress.server.metadata.cloud_request, CloudRequestKind.CREATE_PORT, progress.now):
        raise Stop(Outcome.YIELD, "waiting to see whether the cloud created the port")
