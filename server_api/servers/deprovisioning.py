"""The delete pass: the cloud side first, then the edges, then the object itself may go (contract 6.13 and 7.7)."""

from __future__ import annotations

from datetime import datetime

from server_api.servers import naming, reference_edges
from server_api.servers.conditions import available
from server_api.servers.finalizers import blocks_deletion
from server_api.servers.model import Reason, Server
from server_api.servers.outcomes import Outcome, PassResult, Stop
from server_api.servers.ports import (
    Cloud,
    Directory,
    Missing,
    Networking,
    PortError,
    References,
    StateConflict,
    Tenancy,
)

GONE_SOON_SECONDS = 2.0
"""When to look again for an instance that Nova was asked to delete: it usually takes a second or two."""

_GONE = frozenset({"DELETED", "SOFT_DELETED"})
"""Nova statuses of an instance that is as good as deleted: with soft delete on, it may never answer 404."""


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
            self._steps(server)
        except Stop as stop:
            reason = Reason.DEPROVISIONING if stop.outcome is Outcome.YIELD else Reason.ERRORED
            return PassResult(stop.outcome, available(server.status, reason, stop.reason, now), again_in=stop.again_in)
        except StateConflict as error:
            return PassResult(
                Outcome.YIELD,
                available(server.status, Reason.DEPROVISIONING, str(error), now),
            )
        except PortError as error:
            return PassResult(Outcome.ERROR, available(server.status, Reason.ERRORED, str(error), now))
        message = "the server is deprovisioned"
        return PassResult(Outcome.SUCCESS, available(server.status, Reason.DEPROVISIONED, message, now))

    def _steps(self, server: Server) -> None:
        if blocks_deletion(server):
            raise Stop(Outcome.YIELD, "waiting for what still uses the server")
        tenancy = self._tenancy(server)
        if tenancy is not None:
            _delete_instance(tenancy, server)
            _delete_port(tenancy.networking, naming.cloud_port(server.id))
        reference_edges.release_all(self._references, server)

    def _tenancy(self, server: Server) -> Tenancy | None:
        """Return the server's project, None when it never had one in the cloud, so that nothing can be there."""
        region = self._directory.region(server.metadata.region_id or "")
        try:
            return self._cloud.tenancy(region, server.metadata.identity_id or "")
        except Missing:
            return None


def _delete_instance(tenancy: Tenancy, server: Server) -> None:
    """Delete the instance, and stop the pass until it is gone.

    Forgetting it earlier would leave it running unseen should Nova fail to delete it.
    """
    instance = tenancy.compute.find(server.metadata.name, server.id)
    if instance is None or instance.status in _GONE:
        return
    tenancy.compute.delete(instance.id)
    instance = tenancy.compute.find(server.metadata.name, server.id)
    if instance is not None and instance.status not in _GONE:
        raise Stop(Outcome.YIELD, "waiting for the cloud to delete the instance", again_in=GONE_SOON_SECONDS)


def _delete_port(networking: Networking, name: str) -> None:
    port = networking.find_port(name)
    if port is None:
        return
    for floating_ip in networking.floating_ips(port.id):
        networking.delete_floating_ip(floating_ip.id)
    networking.delete_port(port.id)
