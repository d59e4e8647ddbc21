"""Ports and floating IPs as Neutron keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from server_api.servers.cloud_model import FloatingIP, Port, PortOrder
from server_api.servers.ports import Missing, StateConflict

_NETWORK = "cloud-"


@dataclass
class Plug:
    """One port."""

    id: str
    order: PortOrder
    private_ip: str
    mac_address: str
    instance_id: str | None = None


@dataclass
class Address:
    """One floating IP. Neutron keeps it, bound to nothing, when its port goes."""

    id: str
    address: str
    port_id: str | None


class Neutron:
    """``ports.Networking``: networks and security groups exist whatever their names.

    ``addresses_of`` has every address that a port of that name ever had, private and floating.
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self.ports: dict[str, Plug] = {}
        self.floating: dict[str, Address] = {}
        self.addresses_of: dict[str, set[str]] = {}

    def network_id(self, name: str) -> str:
        return f"{_NETWORK}{name}"

    def security_group_id(self, name: str) -> str:
        return f"cloud-{name}"

    def ports_named(self, name: str) -> Sequence[Port]:
        return [_shown(plug) for plug in self.ports.values() if plug.order.name == name]

    def create_port(self, order: PortOrder) -> Port:
        number = next(self._numbers)
        plug = Plug(f"port-{number}", order, f"192.168.0.{number}", f"fa:16:3e:00:00:{number:02x}")
        self.ports[plug.id] = plug
        self.addresses_of.setdefault(order.name, set()).update({plug.private_ip, plug.mac_address})
        return _shown(plug)

    def update_port(self, port_id: str, order: PortOrder) -> Port:
        plug = self._existing(port_id)
        plug.order = order
        return _shown(plug)

    def delete_port(self, port_id: str) -> None:
        self.ports.pop(port_id, None)
        for floating in self.floating.values():
            if floating.port_id == port_id:
                floating.port_id = None

    def floating_ips(self, port_id: str) -> Sequence[FloatingIP]:
        return [FloatingIP(each.id, each.address) for each in self.floating.values() if each.port_id == port_id]

    def create_floating_ip(self, port_id: str) -> FloatingIP:
        plug = self._existing(port_id)
        if self.floating_ips(port_id):
            raise StateConflict("neutron", "the fixed IP has a floating IP on the external network already")
        number = next(self._numbers)
        floating = Address(f"floating-{number}", f"203.0.113.{number}", port_id)
        self.floating[floating.id] = floating
        self.addresses_of[plug.order.name].add(floating.address)
        return FloatingIP(floating.id, floating.address)

    def delete_floating_ip(self, floating_ip_id: str) -> None:
        self.floating.pop(floating_ip_id, None)

    def bind(self, port_id: str, instance_id: str) -> bool:
        """Give a port to an instance, and say whether it could be had."""
        plug = self.ports.get(port_id)
        if plug is None or plug.instance_id not in (None, instance_id):
            return False
        plug.instance_id = instance_id
        return True

    def unbind(self, instance_id: str) -> None:
        """Take back what an instance has."""
        for plug in self.ports.values():
            if plug.instance_id == instance_id:
                plug.instance_id = None

    def mac_addresses(self, instance_id: str) -> dict[str, str]:
        """Return the MAC addresses of an instance by network name."""
        return {
            plug.order.network_id.removeprefix(_NETWORK): plug.mac_address
            for plug in self.ports.values()
            if plug.instance_id == instance_id
        }

    def _existing(self, port_id: str) -> Plug:
        if port_id not in self.ports:
            raise Missing("neutron", "no such port")
        return self.ports[port_id]


def _shown(plug: Plug) -> Port:
    return Port(plug.id, plug.order.name, plug.private_ip, plug.instance_id)
