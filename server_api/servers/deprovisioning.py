"""The delete pass: the cloud side first, then the edges, then the object itself may go (contract 6.13 and 7.7)."""

from __future__ import annotations

from datetime import datetime

from server_api.servers import reference_edges
from server_api.servers.cloud_requests import may_come_late
from server_api.servers.conditions import available
from server_api.servers.finalizers import blocks_deletion
from server_api.servers.lookup import had_instance
from server_api.servers.model import CloudRequestKind, Reason, Server
from server_api.servers.outcomes import Outcome, PassResult, Stop, is_unreachable
from server_api.servers.ports import Cloud, Directory, Missing, PortError, References, StateConflict, Tenancy
from server_api.servers.removal import remove_instance, remove_port


class Deprovisioner:
    """Runs delete passes."""

    def __init__(self, directory: Directory, references: References, cloud: Cloud) -> None:
        self._directory = directory
        self._references = references
        self._cloud = cloud

    def run(self, server: Server, now: datetime) -> PassResult:
        """Run one pass over a server that is being deleted; on success its finalizer may be removed.

        A dependency's failure of any kind fails the pass, with a condition that says why; it is tried again after
        growing pauses.
        """
        try:
            self._steps(server, now)
        except Stop as stop:
            reason = Reason.DEPROVISIONING if stop.outcome is Outcome.YIELD else Reason.ERRORED
            return PassResult(stop.outcome, available(server.status, reason, stop.reason, now), again_in=stop.again_in)
        except StateConflict as error:
            return PassResult(
                Outcome.YIELD,
                available(server.status, Reason.DEPROVISIONING, str(error), now),
            )
        except PortError as error:
            status = available(server.status, Reason.ERRORED, str(error), now)
            return PassResult(Outcome.ERROR, status, unreachable=is_unreachable(error))
        message = "the server is deprovisioned"
        return PassResult(Outcome.SUCCESS, available(server.status, Reason.DEPROVISIONED, message, now))

    def _steps(self, server: Server, now: datetime) -> None:
        if blocks_deletion(server):
            raise Stop(Outcome.YIELD, "waiting for what still uses the server")
        tenancy = self._tenancy(server)
        if tenancy is not None:
            remove_instance(tenancy, server)
            _wait_for_late_create(server, now)
            remove_port(tenancy.networking, server, now)
        reference_edges.release_all(self._references, server)

    def _tenancy(self, server: Server) -> Tenancy | None:
        """Return the server's project, None when it never had one in the cloud, so that nothing can be there."""
        region = self._directory.region(server.metadata.region_id or "")
        try:
            return self._cloud.tenancy(region, server.metadata.identity_id or "")
        except Missing:
            return None


def _wait_for_late_create(server: Server, now: datetime) -> None:
    """Stop while the cloud may still create an instance that nobody has seen: it would outlive the server."""
    late = may_come_late(server.metadata.cloud_request, CloudRequestKind.CREATE, now)
    if late and not had_instance(server.status):
        raise Stop(Outcome.YIELD, "waiting to see whether the cloud created the instance")
