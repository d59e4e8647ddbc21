"""The seed's half in OpenStack. Every function makes sure of something, and changes nothing that is right already."""

from dataclasses import dataclass, field
from typing import Any

from server_api.sandbox.rest import DOMAIN, OpenStackUser, ensured, found
from server_api.sandbox.world import Flavor, Image, Tenant
from server_api.servers.naming import SSH_KEY_NAME, cloud_network, cloud_security_group

EXTERNAL_NETWORK = "sandbox-external"
# addresses that RFC 5737 sets aside for documentation: nobody's
EXTERNAL_PREFIX = "203.0.113.0/24"
SERVICE_ACCOUNT = "unikorn-region"
IMAGE_CONTENT = b"an image that no machine will ever boot\n" * 1024


@dataclass(frozen=True)
class Account:
    """A user in Keystone, and the project it works in."""

    user_id: str
    project_id: str
    password: str = field(repr=False)


class OpenStackSeed:
    """Seeds the OpenStack at `auth_url` with the rights of its administrator."""

    def __init__(self, auth_url: str, admin_password: str) -> None:
        self._auth_url = auth_url
        self._admin = OpenStackUser(auth_url, "admin", admin_password, "admin")

    def service_account(self, password: str) -> Account:
        """Make sure of the region's own user, administrator of the region's project."""
        return self._account(SERVICE_ACCOUNT, password, "admin")

    def tenant(self, tenant: Tenant, service_account: Account) -> Account:
        """Make sure of a tenant's project, user, key pair, network, router and security group."""
        account = self._account(tenant.cloud_name, tenant.password, "member")
        self._grant(service_account.user_id, account.project_id, "admin")
        user = OpenStackUser(self._auth_url, tenant.cloud_name, tenant.password, tenant.cloud_name)
        _key_pair(user, tenant)
        self.network(user, tenant.network_id, tenant.prefix)
        _security_group(user, tenant.security_group_id)
        return account

    def network(self, user: OpenStackUser, network_id: str, prefix: str) -> None:
        """Make sure of a network with a subnet, and of a router from it to the external network."""
        name = cloud_network(network_id)
        network = ensured(user.network, "/v2.0/networks", "network", name)
        # nothing answers DHCP here, and a port would wait for it
        subnet = ensured(
            user.network,
            "/v2.0/subnets",
            "subnet",
            name,
            network_id=network["id"],
            cidr=prefix,
            ip_version=4,
            enable_dhcp=False,
        )
        router = ensured(
            user.network,
            "/v2.0/routers",
            "router",
            name,
            external_gateway_info={"network_id": self.external_network()},
        )
        interfaces = user.network.get("/v2.0/ports", params={"device_id": router["id"], "network_id": network["id"]})
        if not interfaces.json()["ports"]:
            path = f"/v2.0/routers/{router['id']}/add_router_interface"
            user.network.put(path, json={"subnet_id": subnet["id"]})

    def external_network(self) -> str:
        """Make sure of the network that floating IPs come from, and return its ID."""
        network = ensured(
            self._admin.network,
            "/v2.0/networks",
            "network",
            EXTERNAL_NETWORK,
            **{
                "router:external": True,
                "provider:network_type": "flat",
                "provider:physical_network": "external",
            },
        )
        ensured(
            self._admin.network,
            "/v2.0/subnets",
            "subnet",
            EXTERNAL_NETWORK,
            network_id=network["id"],
            cidr=EXTERNAL_PREFIX,
            ip_version=4,
            enable_dhcp=False,
        )
        return str(network["id"])

    def flavor(self, flavor: Flavor) -> None:
        """Make sure of a public flavor."""
        if self._admin.compute.get(f"/flavors/{flavor.id}", raise_exc=False).status_code == 404:
            members = {"id": flavor.id, "name": flavor.name, "vcpus": flavor.vcpus}
            sizes = {"ram": flavor.memory, "disk": flavor.disk}
            self._admin.compute.post("/flavors", json={"flavor": members | sizes})
        if flavor.extra_specs:
            body = {"extra_specs": dict(flavor.extra_specs)}
            self._admin.compute.post(f"/flavors/{flavor.id}/os-extra_specs", json=body)

    def image(self, image: Image) -> None:
        """Make sure of a public image, and of its content if it has any."""
        answer = self._admin.image.get(f"/v2/images/{image.id}", raise_exc=False)
        if answer.status_code == 404:
            members: dict[str, Any] = {
                "id": image.id,
                "name": image.name,
                "visibility": "public",
                "disk_format": "raw",
                "container_format": "bare",
                "min_disk": image.min_disk,
            }
            answer = self._admin.image.post("/v2/images", json=members | image.properties)
        if image.content and answer.json()["status"] == "queued":
            self._admin.image.put(
                f"/v2/images/{image.id}/file",
                data=IMAGE_CONTENT,
                headers={"Content-Type": "application/octet-stream"},
            )

    def _account(self, name: str, password: str, role: str) -> Account:
        project = ensured(self._admin.identity, "/projects", "project", name, domain_id=DOMAIN)
        user = found(self._admin.identity, "/users", "users", name, domain_id=DOMAIN)
        if user is None:
            body = {"user": {"name": name, "password": password, "domain_id": DOMAIN}}
            user = self._admin.identity.post("/users", json=body).json()["user"]
        self._grant(user["id"], project["id"], role)
        if not OpenStackUser(self._auth_url, name, password, name).may_log_in():
            # it is older than our memory of its password
            self._admin.identity.patch(f"/users/{user['id']}", json={"user": {"password": password}})
        return Account(user["id"], project["id"], password)

    def _grant(self, user_id: str, project_id: str, role: str) -> None:
        roles = self._admin.identity.get("/roles", params={"name": role}).json()["roles"]
        self._admin.identity.put(f"/projects/{project_id}/users/{user_id}/roles/{roles[0]['id']}")


def _key_pair(user: OpenStackUser, tenant: Tenant) -> None:
    path = f"/os-keypairs/{SSH_KEY_NAME}"
    answer = user.compute.get(path, raise_exc=False)
    if answer.status_code == 200:
        if answer.json()["keypair"]["public_key"].split()[:2] == tenant.public_key.split()[:2]:
            return
        user.compute.delete(path)
    body = {"name": SSH_KEY_NAME, "type": "ssh", "public_key": tenant.public_key}
    user.compute.post("/os-keypairs", json={"keypair": body})


def _security_group(user: OpenStackUser, group_id: str) -> None:
    name = cloud_security_group(group_id)
    if found(user.network, "/v2.0/security-groups", "security_groups", name):
        return
    answer = user.network.post("/v2.0/security-groups", json={"security_group": {"name": name}})
    rule = {
        "security_group_id": answer.json()["security_group"]["id"],
        "direction": "ingress",
        "protocol": "tcp",
        "port_range_min": 22,
        "port_range_max": 22,
    }
    user.network.post("/v2.0/security-group-rules", json={"security_group_rule": rule})
