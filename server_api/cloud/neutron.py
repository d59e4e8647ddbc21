"""Ports and floating IPs of one project, through openstacksdk (contract 6.2 and 6.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from server_api.cloud.errors import translated
from server_api.cloud.sessions import CloudClients
from server_api.servers.cloud_model import FloatingIP, Port, PortOrder
from server_api.servers.ports import Ambiguous, Denied, Missing
from server_api.servers.surroundings import Region

ExternalNetworks: TypeAlias = Callable[[], Sequence[str]]
"""Looks up the IDs of the external networks that the region exports."""


class NeutronNetworking:
    """The port ``Networking`` over Neutron.

    Names are looked up among the project's own objects only: another tenant may share with us a network that is
    called like ours.
    """

    def __init__(self, clients: CloudClients, external_networks: ExternalNetworks) -> None:
        self._clients = clients
        self._external_networks = external_networks

    @translated("neutron")
    def network_id(self, name: str) -> str:
        """Return the ID of the project's network of exactly that name. Raises Missing, Ambiguous."""
        return _required("network", name, self._named(self._clients.network.networks, name))

    @translated("neutron")
    def security_group_id(self, name: str) -> str:
        """Return the ID of the project's security group of exactly that name. Raises Missing, Ambiguous."""
        return _required("security group", name, self._named(self._clients.network.security_groups, name))

    @translated("neutron")
    def ports_named(self, name: str) -> Sequence[Port]:
        """Return the project's ports of exactly that name, by ID."""
        found = self._named(self._clients.network.ports, name)
        return sorted(map(_port_from, found), key=lambda port: port.id)

    @translated("neutron")
    def create_port(self, order: PortOrder) -> Port:
        """Create a port. No security group means none, not the project's default one (B-33)."""
        return _port_from(
            self._clients.network.create_port(
                name=order.name,
                network_id=order.network_id,
                security_group_ids=list(order.security_group_ids),
                allowed_address_pairs=_address_pairs(order),
            )
        )

    @translated("neutron")
    def update_port(self, port_id: str, order: PortOrder) -> Port:
        """Set groups and address pairs of a port. Raises Missing."""
        return _port_from(
            self._clients.network.update_port(
                port_id,
                security_group_ids=list(order.security_group_ids),
                allowed_address_pairs=_address_pairs(order),
            )
        )

    def delete_port(self, port_id: str) -> None:
        """Delete a port, whoever is still said to be on it; one already gone is no error."""
        try:
            try:
                self._delete_port(port_id)
            except Denied:
                # Neutron's policy for a member while the port belongs to an instance: also when Nova failed to take it
                # off, or keeps a deleted instance for a while.
                self._unbind_port(port_id)
                self._delete_port(port_id)
        except Missing:
            return

    @translated("neutron")
    def _delete_port(self, port_id: str) -> None:
        self._clients.network.delete_port(port_id)

    @translated("neutron")
    def _unbind_port(self, port_id: str) -> None:
        self._clients.network.update_port(port_id, device_id="", device_owner="")

    @translated("neutron")
    def floating_ips(self, port_id: str) -> Sequence[FloatingIP]:
        """Return the floating IPs bound to a port."""
        found = self._clients.network.ips(port_id=port_id)
        return [_floating_ip_from(ip) for ip in found if ip.port_id == port_id]

    def create_floating_ip(self, port_id: str) -> FloatingIP:
        """Create a floating IP on the first exported external network.

        Raises Missing when none is exported, or when no router connects the port's network with it.
        """
        exported = self._external_networks()
        if not exported:
            raise Missing("neutron", "no external network is exported by the region")
        with translated("neutron"):
            created = self._clients.network.create_ip(floating_network_id=exported[0], port_id=port_id)
            return _floating_ip_from(created)

    def delete_floating_ip(self, floating_ip_id: str) -> None:
        """Delete a floating IP; one already gone is no error."""
        try:
            with translated("neutron"):
                self._clients.network.delete_ip(floating_ip_id)
        except Missing:
            return

    def _named(self, list_: Callable[..., Iterable[Any]], name: str) -> list[Any]:
        found = list_(name=name, project_id=self._clients.project_id)
        return [item for item in found if item.name == name]


@translated("neutron")
def exported_external_networks(clients: CloudClients, region: Region) -> Sequence[str]:
    """Return the IDs of the external networks a region exports, in Neutron's order (contract 6.5).

    The region's IDs select by membership and its tags must all be there; an empty selector does not restrict.
    """
    external = clients.network.networks(is_router_external=True)
    return [
        network.id
        for network in external
        if not region.external_network_ids or network.id in region.external_network_ids
        if region.external_network_tags <= set(network.tags or ())
    ]


def _single(kind: str, name: str, found: Sequence[Any]) -> Any | None:
    if len(found) > 1:
        raise Ambiguous("neutron", f"several objects of kind {kind} are named {name}")
    return found[0] if found else None


def _required(kind: str, name: str, found: Sequence[Any]) -> str:
    item = _single(kind, name, found)
    if item is None:
        raise Missing("neutron", f"there is no {kind} named {name}")
    return str(item.id)


def _address_pairs(order: PortOrder) -> list[dict[str, str]]:
    """Neutron refuses an empty MAC address; left out, it means the port's own."""
    return [
        {"ip_address": pair.cidr} | ({"mac_address": pair.mac_address} if pair.mac_address else {})
        for pair in order.allowed_address_pairs
    ]


def _port_from(port: Any) -> Port:
    addresses = [fixed["ip_address"] for fixed in port.fixed_ips or ()]
    return Port(
        id=port.id,
        name=port.name,
        private_ip=addresses[0] if addresses else None,
        instance_id=port.device_id or None,
    )


def _floating_ip_from(ip: Any) -> FloatingIP:
    return FloatingIP(id=ip.id, address=ip.floating_ip_address)
