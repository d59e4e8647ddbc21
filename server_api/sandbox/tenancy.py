"""What a tenant's project in the cloud really holds, asked of Nova and Neutron themselves."""

from typing import Any

from server_api.sandbox.rest import OpenStackUser, found
from server_api.servers.naming import cloud_port

Item = dict[str, Any]


class Tenancy:
    """One project in Nova and Neutron, seen as its own user."""

    def __init__(self, user: OpenStackUser) -> None:
        self._user = user

    def instances(self, name: str | None = None) -> list[Item]:
        """Return the instances as Nova shows them, of exactly that name if one is given."""
        answer = self._user.compute.get("/servers/detail").json()["servers"]
        return [dict(item) for item in answer if name in (None, item["name"])]

    def instance(self, name: str) -> Item | None:
        """Return the instance of that name, None if there is none."""
        return next(iter(self.instances(name)), None)

    def actions(self, instance_id: str, action: str) -> list[Item]:
        """Return what was done to an instance under the name of `action`, as Nova recorded it."""
        answer = self._user.compute.get(f"/servers/{instance_id}/os-instance-actions").json()
        return [dict(item) for item in answer["instanceActions"] if item["action"] == action]

    def port(self, server_id: str) -> Item | None:
        """Return the port of one of our servers, None if there is none."""
        return found(self._user.network, "/v2.0/ports", "ports", cloud_port(server_id))

    def ports(self) -> list[Item]:
        """Return every port that was made for a server of ours."""
        answer = self._user.network.get("/v2.0/ports").json()["ports"]
        return [dict(item) for item in answer if item["name"].startswith(cloud_port(""))]

    def floating_ips(self, address: str | None = None) -> list[Item]:
        """Return the floating IPs, only the one of that address if one is given."""
        answer = self._user.network.get("/v2.0/floatingips").json()["floatingips"]
        return [dict(item) for item in answer if address in (None, item["floating_ip_address"])]
