"""Creating a server's instance, once (contract 6.3 and 6.6)."""

from __future__ import annotations

from collections.abc import Callable

from server_api.servers import naming, ssh_access, tags
from server_api.servers.cloud_model import InstanceOrder, Port
from server_api.servers.cloud_requests import may_come_late
from server_api.servers.conditions import with_condition
from server_api.servers.lookup import had_instance
from server_api.servers.model import (
    CloudRequest,
    CloudRequestKind,
    ConditionStatus,
    ConditionType,
    Reason,
    SSHInjection,
)
from server_api.servers.observed_state import observe
from server_api.servers.outcomes import Outcome, Stop, is_unreachable
from server_api.servers.ports import PortError, Tenancy, Unavailable
from server_api.servers.progress import Progress

_AWAITED = "waiting to see whether the cloud created the instance"


def create_instance(
    progress: Progress, tenancy: Tenancy, port: Port, user_data: bytes | None, admit: Callable[[], None]
) -> None:
    """Create the instance that a look just now has not found.

    ``admit`` is called right before, and raises Stop if it must not be. Raises Stop when there was an instance, or one
    may still appear: a second for one request is worse than none.
    """
    _refuse_second(progress)
    order = _order(progress, tenancy, port, user_data)
    admit()
    progress.record(CloudRequest(CloudRequestKind.CREATE, progress.moment()))
    try:
        instance = tenancy.compute.create(order)
    except Unavailable as error:
        raise Stop(Outcome.YIELD, f"{_AWAITED}: {error}", unreachable=is_unreachable(error)) from None
    except PortError:
        # A definite no: the next pass may ask again.
        progress.record(None)
        raise
    network_name = naming.cloud_network(progress.server.spec.networks[0].id)
    progress.become(observe(progress.server.status, instance, progress.now, network_name))


def _refuse_second(progress: Progress) -> None:
    server = progress.server
    young = may_come_late(server.metadata.cloud_request, CloudRequestKind.CREATE, progress.now)
    if young and server.status.launched_at is None:
        # Also after a create that was answered: a list of Nova's may be a little old.
        raise Stop(Outcome.YIELD, _AWAITED)
    if had_instance(server.status):
        message = "the server's instance is no longer found in the cloud"
        unknown = ConditionStatus.UNKNOWN, Reason.UNKNOWN
        progress.become(with_condition(server.status, ConditionType.HEALTHY, *unknown, message, progress.now))
        raise Stop(Outcome.ERROR, message)


def _order(progress: Progress, tenancy: Tenancy, port: Port, user_data: bytes | None) -> InstanceOrder:
    spec = progress.server.spec
    if spec.image_id is None:
        raise Stop(Outcome.ERROR, "the server names no image")
    with_key = ssh_access.resolved_mode(spec) is SSHInjection.IDENTITY_KEYPAIR
    return InstanceOrder(
        name=progress.server.metadata.name,
        image_id=spec.image_id,
        flavor_id=spec.flavor_id,
        port_id=port.id,
        metadata=tags.instance_metadata(progress.server),
        user_data=user_data,
        key_name=tenancy.ssh_key_name if with_key else None,
        hypervisor_hostname=spec.infrastructure_ref,
    )
