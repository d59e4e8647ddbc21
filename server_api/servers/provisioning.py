"""The create and update pass: bring the cloud to what the spec says, step by step (contract 6.3, 6.5 and 7.3)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from server_api.servers import naming, reference_edges, ssh_access, tags
from server_api.servers.cloud_model import FloatingIP, Instance, InstanceOrder, Port, PortOrder
from server_api.servers.conditions import available
from server_api.servers.errors import Unprocessable
from server_api.servers.model import ConditionType, Reason, RebuildMarker, Server, ServerStatus, SSHInjection
from server_api.servers.observed_state import observe, observe_health_and_phase, rebuild_accepted
from server_api.servers.outcomes import Outcome, PassResult, Stop
from server_api.servers.ports import (
    Cloud,
    Directory,
    PortError,
    References,
    Refused,
    StateConflict,
    Tenancy,
    Unavailable,
)
from server_api.servers.provider_create_gates import remaining
from server_api.servers.rebuild import Action, Decision, RebuildState, Situation, decide, raised
from server_api.servers.surroundings import Region
from server_api.servers.user_data_augmentation import augment

MARKED_SECONDS = 1.0
"""When to look again after a rebuild's marker changed: the next step waits only for it to be written."""

LATE_SECONDS = 120.0
"""How long a request whose answer was lost may still take effect: twice what services and proxies usually allow one."""

_AWAITED_INSTANCE = "waiting to see whether the cloud created the instance"

_REASONS = {
    Outcome.SUCCESS: Reason.PROVISIONED,
    Outcome.YIELD: Reason.PROVISIONING,
    Outcome.ERROR: Reason.ERRORED,
    Outcome.TERMINAL: Reason.ERRORED,
}


class Provisioner:
    """Runs create and update passes."""

    def __init__(self, directory: Directory, references: References, cloud: Cloud) -> None:
        self._directory = directory
        self._references = references
        self._cloud = cloud

    def run(self, server: Server, now: datetime) -> PassResult:
        """Run one pass over a server that is not being deleted, and return what came of it.

        A dependency's failure is an outcome whose condition says why, never an exception. One that is down or slow
        makes the pass yield; one that refuses makes it fail.
        """
        progress = _Progress(server, now)
        outcome, message, again_in = Outcome.SUCCESS, "the server is provisioned", None
        try:
            self._steps(progress)
        except Stop as stop:
            outcome, message, again_in = stop.outcome, stop.reason, stop.again_in
        except (StateConflict, Unavailable) as error:
            # Another writer was faster, or a dependency is down: neither says that the server cannot be built.
            outcome, message = Outcome.YIELD, str(error)
        except PortError as error:
            outcome, message = Outcome.ERROR, str(error)
        status = available(progress.server.status, _REASONS[outcome], message, now)
        return PassResult(outcome, status, again_in=again_in)

    def _steps(self, progress: _Progress) -> None:
        server = progress.server
        reference_edges.hold(self._references, server)
        region = self._ready_region(server)
        _check_gates(server)
        _check_complete(server)
        tenancy = self._cloud.tenancy(region, server.metadata.identity_id or "")
        user_data = self._user_data(server)
        port = progress.converge_port(tenancy)
        progress.converge_floating_ip(tenancy, port)
        progress.converge_instance(tenancy, port, user_data)
        reference_edges.release_unused(self._references, server)

    def _ready_region(self, server: Server) -> Region:
        identity = self._directory.identity(server.metadata.identity_id or "")
        region = self._directory.region(server.metadata.region_id or "")
        if not identity.ready:
            raise Stop(Outcome.YIELD, "waiting for the identity to be provisioned")
        return region

    def _user_data(self, server: Server) -> bytes | None:
        """Return what a new instance gets: the stored bytes, or a copy that trusts the certificate authority."""
        authority_id = server.spec.ssh_certificate_authority_id
        if not authority_id or _was_seen(server.status):
            # An instance that was created has its user data, and is not to suffer from what is stored since.
            return server.spec.user_data
        authority = self._directory.ssh_certificate_authority(authority_id)
        try:
            return augment(server.spec.user_data, authority.public_key)
        except Unprocessable as refusal:
            raise Stop(Outcome.ERROR, str(refusal)) from None


class _Progress:
    """The server while a pass runs: its status grows step by step, so that a pass that stops keeps what it learned."""

    def __init__(self, server: Server, now: datetime) -> None:
        self.server = server
        self._now = now

    def converge_port(self, tenancy: Tenancy) -> Port:
        networking = tenancy.networking
        order = PortOrder(
            name=naming.cloud_port(self.server.id),
            network_id=networking.network_id(naming.cloud_network(self.server.spec.networks[0].id)),
            security_group_ids=tuple(
                networking.security_group_id(naming.cloud_security_group(group_id))
                # Each once: v1 stored them as they came, and Neutron refuses a list with duplicates.
                for group_id in dict.fromkeys(self.server.spec.security_group_ids or ())
            ),
            allowed_address_pairs=self.server.spec.networks[0].allowed_address_pairs or (),
        )
        port = networking.find_port(order.name)
        port = networking.create_port(order) if port is None else networking.update_port(port.id, order)
        self._learn(private_ip=port.private_ip)
        return port

    def converge_floating_ip(self, tenancy: Tenancy, port: Port) -> None:
        bound = tenancy.networking.floating_ips(port.id)
        if len(bound) > 1:
            raise Stop(Outcome.ERROR, f"{len(bound)} floating IPs are bound to the server's port")
        floating_ip: FloatingIP | None = next(iter(bound), None)
        if self.server.spec.public_ip and floating_ip is None:
            floating_ip = tenancy.networking.create_floating_ip(port.id)
        elif not self.server.spec.public_ip and floating_ip is not None:
            tenancy.networking.delete_floating_ip(floating_ip.id)
            floating_ip = None
        self._learn(public_ip=floating_ip.address if floating_ip else None)

    def converge_instance(self, tenancy: Tenancy, port: Port, user_data: bytes | None) -> None:
        instance = tenancy.compute.find(self.server.metadata.name, self.server.id)
        if instance is not None:
            # Also when the answer to its create was lost: from here on there is one.
            self._learn(scheduled_at=self.server.status.scheduled_at or instance.created_at or self._now)
            self._converge_image(tenancy, instance)
            return
        self._refuse_second_instance()
        order = self._instance_order(tenancy, port, user_data)
        # Nova's answer names no time. Ours says until the next read that there is one, or may be.
        self._learn(scheduled_at=self._now)
        try:
            instance = tenancy.compute.create(order)
        except Unavailable as error:
            raise Stop(Outcome.YIELD, f"{_AWAITED_INSTANCE}: {error}") from None
        except PortError:
            self._learn(scheduled_at=None)
            raise
        network_name = naming.cloud_network(self.server.spec.networks[0].id)
        self._set(observe(self.server.status, instance, self._now, network_name))

    def _refuse_second_instance(self) -> None:
        """Stop when there was an instance, or one may still appear: a second for one request is worse than none."""
        asked_at = self.server.status.scheduled_at
        if asked_at is None:
            return
        if _was_seen(self.server.status):
            raise Stop(Outcome.ERROR, "the server's instance is no longer found in the cloud")
        # Nobody ever saw it: the answer to its create was lost, and the create may still be waiting in the cloud.
        if (self._now - asked_at).total_seconds() < LATE_SECONDS:
            raise Stop(Outcome.YIELD, _AWAITED_INSTANCE)

    def _converge_image(self, tenancy: Tenancy, instance: Instance) -> None:
        """Do what the rebuild's table says (contract 7.6)."""
        status = self.server.status
        decision = decide(Situation(status.rebuild, self.server.spec.image_id, instance))
        self._set(replace(status, rebuild=decision.marker))
        if decision.action is Action.SUBMIT:
            self._submit_rebuild(tenancy, instance)
        elif decision.action is Action.STAMP:
            self._set(rebuild_accepted(self.server.status, self._now))
        elif decision.action is Action.OBSERVE:
            self._set(observe_health_and_phase(self.server.status, instance, self._now))
        if decision.outcome is not Outcome.SUCCESS:
            again_in = None if decision.marker == status.rebuild else MARKED_SECONDS
            raise Stop(decision.outcome, _explain(decision, instance), again_in)

    def _submit_rebuild(self, tenancy: Tenancy, instance: Instance) -> None:
        image_id = self.server.spec.image_id or ""
        try:
            tenancy.compute.rebuild(instance.id, image_id)
        except StateConflict as error:
            raise Stop(Outcome.YIELD, f"the cloud does not take the rebuild yet: {error.detail}") from None
        except Refused as error:
            # It will not take it the next time either. Only another image, or a new server, ends this.
            self._set(replace(self.server.status, rebuild=RebuildMarker(image_id, RebuildState.FAILED)))
            raise Stop(
                Outcome.TERMINAL, f"server_rebuild_failed: the cloud refused the rebuild: {error.detail}"
            ) from None
        except Unavailable as error:
            # It may be taken all the same, and late. The monitor sees it when it is; to submit it again before that
            # could wipe the disk a second time.
            raise Stop(
                Outcome.YIELD, f"waiting to see whether the cloud took the rebuild: {error}", LATE_SECONDS
            ) from None
        except PortError as error:
            raise Stop(Outcome.ERROR, f"the rebuild was not submitted: {error}") from None
        self._set(replace(self.server.status, rebuild=RebuildMarker(image_id, RebuildState.REBUILDING)))
        self._set(rebuild_accepted(self.server.status, self._now))

    def _instance_order(self, tenancy: Tenancy, port: Port, user_data: bytes | None) -> InstanceOrder:
        spec = self.server.spec
        if spec.image_id is None:
            raise Stop(Outcome.ERROR, "the server names no image")
        with_key = ssh_access.resolved_mode(spec) is SSHInjection.IDENTITY_KEYPAIR
        return InstanceOrder(
            name=self.server.metadata.name,
            image_id=spec.image_id,
            flavor_id=spec.flavor_id,
            port_id=port.id,
            metadata=tags.instance_metadata(self.server),
            user_data=user_data,
            key_name=tenancy.ssh_key_name if with_key else None,
            hypervisor_hostname=spec.infrastructure_ref,
        )

    def _learn(self, **changes: str | datetime | None) -> None:
        self._set(replace(self.server.status, **changes))  # type: ignore[arg-type]

    def _set(self, status: ServerStatus) -> None:
        self.server = replace(self.server, status=status)


def with_what_was_begun(stored: ServerStatus, before: ServerStatus, after: ServerStatus) -> ServerStatus:
    """Return ``stored`` with what a pass from ``before`` to ``after`` has begun in the cloud.

    For a pass whose status was not written because somebody else wrote: what the cloud was asked for must not be
    forgotten, or the next pass would ask again.
    """
    if before.scheduled_at is None and stored.scheduled_at is None:
        stored = replace(stored, scheduled_at=after.scheduled_at)
    marker, standing = after.rebuild, stored.rebuild
    if marker is None or standing is None or marker.state != RebuildState.REBUILDING or marker == before.rebuild:
        return stored
    if standing.target_image_id != marker.target_image_id:
        return stored
    return replace(stored, rebuild=raised(standing, RebuildState.REBUILDING))


def _was_seen(status: ServerStatus) -> bool:
    """Say whether anybody ever saw the instance: its health is written then, and not before."""
    return status.condition(ConditionType.HEALTHY) is not None


def _explain(decision: Decision, instance: Instance) -> str:
    if decision.outcome is Outcome.TERMINAL:
        fault = f": {instance.fault}" if instance.fault else ""
        return f"server_rebuild_failed: choose another image or replace the server{fault}"
    state = decision.marker.state if decision.marker else "none"
    return f"waiting for the image to be realised (rebuild: {state}, instance: {instance.status})"


def _check_gates(server: Server) -> None:
    if server.status.scheduled_at is not None:
        # Gates guard the creation only: an instance that exists is converged whatever they say.
        return
    gates = remaining(server.spec, server.status)
    if gates:
        raise Stop(Outcome.YIELD, f"waiting for provider-create gates: {', '.join(gates)}")


def _check_complete(server: Server) -> None:
    if not server.spec.networks:
        raise Stop(Outcome.ERROR, "the server names no network")
