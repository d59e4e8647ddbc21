"""A server's place in the network: its port and its floating IP (contract 6.5)."""

from __future__ import annotations

from server_api.servers import naming
from server_api.servers.cloud_model import FloatingIP, Port, PortOrder
from server_api.servers.cloud_requests import may_come_late
from server_api.servers.model import CloudRequest, CloudRequestKind
from server_api.servers.outcomes import Outcome, Stop, is_unreachable
from server_api.servers.ports import Networking, PortError, Unavailable
from server_api.servers.progress import Progress

_CREATES = (CloudRequestKind.CREATE_PORT, CloudRequestKind.CREATE)
_SAYING_MORE = (CloudRequestKind.CREATE, CloudRequestKind.REBUILD)
_AWAITED = "waiting to see whether the cloud created the port"


def converge_port(progress: Progress, networking: Networking) -> Port:
    """Create the port, or bring it up to date, and learn its address. Raises Stop while its create is waited for."""
    spec = progress.server.spec
    order = PortOrder(
        name=naming.cloud_port(progress.server.id),
        network_id=networking.network_id(naming.cloud_network(spec.networks[0].id)),
        security_group_ids=tuple(
            networking.security_group_id(naming.cloud_security_group(group_id))
            # Each once: v1 stored them as they came, and Neutron refuses a list with duplicates.
            for group_id in dict.fromkeys(spec.security_group_ids or ())
        ),
        allowed_address_pairs=spec.networks[0].allowed_address_pairs or (),
    )
    found = networking.ports_named(order.name)
    # The one that the instance is on, should a late create have left another.
    port = next((port for port in found if port.instance_id), next(iter(found), None))
    port = _create_port(progress, networking, order) if port is None else networking.update_port(port.id, order)
    progress.learn(private_ip=port.private_ip)
    return port


def _create_port(progress: Progress, networking: Networking, order: PortOrder) -> Port:
    """Create the port, with a record ahead: one that came into being after the server was deleted would stay for ever.

    Raises Stop while an earlier create may still take effect.
    """
    standing = progress.server.metadata.cloud_request
    if any(may_come_late(standing, kind, progress.now) for kind in _CREATES):
        raise Stop(Outcome.YIELD, _AWAITED)
    if standing is not None and standing.kind is CloudRequestKind.REBUILD:
        # There is one record, and that of a rebuild says more: somebody took the port from an instance that exists.
        return networking.create_port(order)
    progress.record(CloudRequest(CloudRequestKind.CREATE_PORT, progress.moment()))
    try:
        return networking.create_port(order)
    except Unavailable as error:
        raise Stop(Outcome.YIELD, f"{_AWAITED}: {error}", unreachable=is_unreachable(error)) from None
    except PortError:
        # A definite no: the next pass may ask again.
        progress.record(None)
        raise


def converge_floating_ip(progress: Progress, networking: Networking, port: Port) -> None:
    """Bind a floating IP to the port, or take it away, and learn its address.

    Raises Stop when there are several, and while one may still come into being that is no longer wanted.
    """
    bound = networking.floating_ips(port.id)
    if len(bound) > 1:
        raise Stop(Outcome.ERROR, f"{len(bound)} floating IPs are bound to the server's port")
    floating_ip: FloatingIP | None = next(iter(bound), None)
    if progress.server.spec.public_ip:
        floating_ip = floating_ip or _create_floating_ip(progress, networking, port)
    elif floating_ip is not None:
        networking.delete_floating_ip(floating_ip.id)
        floating_ip = None
    elif may_come_late(progress.server.metadata.cloud_request, CloudRequestKind.CREATE_FLOATING_IP, progress.now):
        raise Stop(Outcome.YIELD, "waiting to see whether the cloud created a floating IP that is no longer wanted")
    progress.learn(public_ip=floating_ip.address if floating_ip else None)


def _create_floating_ip(progress: Progress, networking: Networking, port: Port) -> FloatingIP:
    """Create the floating IP, with a record ahead: one that came late to a server that wants none would open it to all.

    A second one is no danger: Neutron binds only one to an address.
    """
    standing = progress.server.metadata.cloud_request
    if any(may_come_late(standing, kind, progress.now) for kind in _SAYING_MORE):
        return networking.create_floating_ip(port.id)
    progress.record(CloudRequest(CloudRequestKind.CREATE_FLOATING_IP, progress.moment()))
    floating_ip = networking.create_floating_ip(port.id)
    progress.record(None)
    return floating_ip
