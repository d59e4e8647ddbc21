"""The ports and floating IPs of one project in the OpenStack double, as Neutron shows them."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from benchmarks.fleet import EXTERNAL_NETWORK_ID, Member, cloud_project
from server_api.servers.naming import cloud_port

Record = dict[str, Any]


class Ports:
    """The ports of the project's members, each bound to its instance and with a floating IP."""

    def __init__(self, members: Iterable[Member]) -> None:
        self._ports: dict[str, Record] = {}
        self._named: defaultdict[str, list[Record]] = defaultdict(list)
        self._floating_ips: defaultdict[str, list[Record]] = defaultdict(list)
        for member in members:
            port = self.create(cloud_port(member.id), member)
            port["device_id"] = member.instance_id
            self.create_floating_ip(port["id"], member)

    def port(self, port_id: str) -> Record:
        """Return one port."""
        return self._ports[port_id]

    def named(self, name: str) -> list[Record]:
        """Return the ports of that name."""
        return self._named[name]

    def floating_ips(self, port_id: str) -> list[Record]:
        """Return the floating IPs on a port."""
        return self._floating_ips[port_id]

    def create(self, name: str, member: Member) -> Record:
        """Make a port of that name with the ID and the addresses of the member."""
        tenant = member.tenant
        port: Record = {
            "id": member.port_id,
            "name": name,
            "network_id": tenant.network_id,
            "project_id": cloud_project(tenant),
            "mac_address": member.mac_address,
            "fixed_ips": [{"subnet_id": tenant.network_id, "ip_address": member.private_ip}],
            "security_groups": [tenant.security_group_id],
            "allowed_address_pairs": [],
            "device_id": "",
            "device_owner": "",
            "status": "ACTIVE",
            "admin_state_up": True,
        }
        self._ports[port["id"]] = port
        self._named[name].append(port)
        return port

    def bind(self, port_id: str, instance_id: str) -> Record:
        """Bind a port to an instance, and return it."""
        port = self._ports[port_id]
        port["device_id"] = instance_id
        return port

    def create_floating_ip(self, port_id: str, member: Member) -> Record:
        """Make a floating IP on a port with the ID and the address of the member."""
        floating_ip = {
            "id": member.floating_ip_id,
            "floating_network_id": EXTERNAL_NETWORK_ID,
            "floating_ip_address": member.public_ip,
            "port_id": port_id,
            "status": "ACTIVE",
        }
        self._floating_ips[port_id].append(floating_ip)
        return floating_ip
