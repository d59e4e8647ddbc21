"""A server's place in the network: its port and its floating IP (contract 6.5)."""

from __future__ import annotations

from server_api.servers import naming
from server_api.servers.cloud_model import FloatingIP, Port, PortOrder
from server_api.servers.outcomes import Outcome, Stop
from server_api.servers.ports import Networking
from server_api.servers.progress import Progress


def converge_port(progress: Progress, networking: Networking) -> Port:
    """Create the port, or bring it up to date, and learn its address."""
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
    port = networking.find_port(order.name)
    port = networking.create_port(order) if port is None else networking.update_port(port.id, order)
    progress.learn(private_ip=port.private_ip)
    return port


def converge_floating_ip(progress: Progress, networking: Networking, port: Port) -> None:
    """Bind a floating IP to the port, or take it away, and learn its address. Raises Stop when there are several."""
    bound = networking.floating_ips(port.id)
    if len(bound) > 1:
        raise Stop(Outcome.ERROR, f"{len(bound)} floating IPs are bound to the server's port")
    wanted = progress.server.spec.public_ip
    floating_ip: FloatingIP | None = next(iter(bound), None)
    if wanted and floating_ip is None:
        floating_ip = networking.create_floating_ip(port.id)
    elif not wanted and floating_ip is not None:
        networking.delete_floating_ip(floating_ip.id)
        floating_ip = None
    progress.learn(public_ip=floating_ip.address if floating_ip else None)
