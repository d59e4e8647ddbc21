"""The create and update pass: bring the cloud to what the spec says, step by step (contract 7.3)."""

from __future__ import annotations

from datetime import datetime

from server_api.servers import create_retry, placement_preflight, reference_edges
from server_api.servers.attachment import converge_floating_ip, converge_port
from server_api.servers.conditions import available
from server_api.servers.creation import create_instance
from server_api.servers.errors import Unprocessable
from server_api.servers.lookup import find_instance, had_instance
from server_api.servers.model import API_VERSION_2, Reason, Server
from server_api.servers.outcomes import Outcome, PassResult, Stop, is_unreachable
from server_api.servers.ports import (
    Clock,
    Cloud,
    Directory,
    PortError,
    References,
    ServerStore,
    StateConflict,
    Tenancy,
    Unavailable,
)
from server_api.servers.progress import Progress
from server_api.servers.provider_create_gates import AT_THE_GATES, remaining
from server_api.servers.rebuild_pass import converge_image
from server_api.servers.surroundings import Region
from server_api.servers.user_data_augmentation import augment

CREATE_ATTEMPTS = 3

CLASH_SECONDS = 0.5
"""When to look again after a lost write: many servers on one network hold on to it at the same time."""

_REASONS = {
    Outcome.SUCCESS: Reason.PROVISIONED,
    Outcome.YIELD: Reason.PROVISIONING,
    Outcome.ERROR: Reason.ERRORED,
    Outcome.TERMINAL: Reason.ERRORED,
}


class Provisioner:
    """Runs create and update passes.

    ``create_attempts``: how many creates of an instance may fail in all. ``clock`` tells when a request is sent; None:
    when its pass began.
    """

    def __init__(
        self,
        servers: ServerStore,
        directory: Directory,
        references: References,
        cloud: Cloud,
        create_attempts: int = CREATE_ATTEMPTS,
        clock: Clock | None = None,
    ) -> None:
        self._servers = servers
        self._directory = directory
        self._references = references
        self._cloud = cloud
        self._create_attempts = create_attempts
        self._clock = clock

    def run(self, server: Server, now: datetime) -> PassResult:
        """Run one pass over a server that is not being deleted, and return what came of it.

        A dependency's failure is an outcome whose condition says why, never an exception. One that is down or slow
        makes the pass yield; one that refuses makes it fail.
        """
        progress = Progress(self._servers, server, now, self._clock)
        stop = self._outcome(progress)
        return PassResult(
            stop.outcome,
            available(progress.server.status, _REASONS[stop.outcome], stop.reason, now),
            events=tuple(progress.events),
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
            # Another writer was faster, which is over in a moment, or the cloud is busy with what the pass wants.
            again_in = CLASH_SECONDS if error.dependency == "kubernetes" else None
            return Stop(Outcome.YIELD, str(error), again_in)
        except Unavailable as error:
            # It does not say that the server cannot be built.
            return Stop(Outcome.YIELD, str(error), unreachable=is_unreachable(error))
        except PortError as error:
            return Stop(Outcome.ERROR, str(error), unreachable=is_unreachable(error))
        return Stop(Outcome.SUCCESS, "the server is provisioned")

    def _steps(self, progress: Progress) -> None:
        server = progress.server
        reference_edges.hold(self._references, server)
        region = self._ready_region(server)
        if create_retry.due(progress, self._create_attempts):
            create_retry.remove_failed_instance(progress, self._tenancy(region, server), self._create_attempts)
        _check_gates(server)
        _check_complete(server)
        tenancy = self._tenancy(region, server)
        user_data = self._user_data(server)
        port = converge_port(progress, tenancy.networking)
        converge_floating_ip(progress, tenancy.networking, port)
        instance = find_instance(tenancy, server)
        if instance is None:
            create_instance(progress, tenancy, port, user_data, lambda: self._admit(region, tenancy, server))
        else:
            # Also when the answer to its create was lost: from here on there is one.
            progress.learn(scheduled_at=progress.server.status.scheduled_at or instance.created_at)
            if server.metadata.api_version == API_VERSION_2:
                # An older v1 stored images that were never realised: nobody asked to lose those disks.
                converge_image(progress, tenancy.compute, instance)
        reference_edges.release_unused(self._references, server)

    def _tenancy(self, region: Region, server: Server) -> Tenancy:
        return self._cloud.tenancy(region, server.metadata.identity_id or "")

    def _ready_region(self, server: Server) -> Region:
        identity = self._directory.identity(server.metadata.identity_id or "")
        region = self._directory.region(server.metadata.region_id or "")
        if not identity.ready:
            raise Stop(Outcome.YIELD, "waiting for the identity to be provisioned")
        return region

    def _user_data(self, server: Server) -> bytes | None:
        """Return what a new instance gets: the stored bytes, or a copy that trusts the certificate authority."""
        authority_id = server.spec.ssh_certificate_authority_id
        if not authority_id or had_instance(server.status):
            # An instance that was created has its user data, and is not to suffer from what is stored since.
            return server.spec.user_data
        authority = self._directory.ssh_certificate_authority(authority_id)
        try:
            return augment(server.spec.user_data, authority.public_key)
        except Unprocessable as refusal:
            raise Stop(Outcome.ERROR, str(refusal)) from None

    def _admit(self, region: Region, tenancy: Tenancy, server: Server) -> None:
        """Raise Stop unless a host takes the server that is pinned to it, where the region wants that asked."""
        host, preflight = server.spec.infrastructure_ref, region.placement_preflight
        if host is None or preflight is None:
            return
        flavors = self._cloud.catalogue(region).flavors()
        flavor = next((flavor for flavor in flavors if flavor.id == server.spec.flavor_id), None)
        placement_preflight.require_host(tenancy.placement, flavor, preflight, host)


def _check_gates(server: Server) -> None:
    if had_instance(server.status):
        # Gates guard the creation only: an instance that exists is converged whatever they say.
        return
    gates = remaining(server.spec, server.status)
    if gates:
        raise Stop(Outcome.YIELD, f"{AT_THE_GATES}: {', '.join(gates)}")


def _check_complete(server: Server) -> None:
    if not server.spec.networks:
        raise Stop(Outcome.ERROR, "the server names no network")
