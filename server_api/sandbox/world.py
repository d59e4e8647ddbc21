"""What the seed puts into a sandbox: organizations, flavors, images and callers, with their IDs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)

from server_api.sandbox.memory import Memory
from server_api.sandbox.openstack.configuration import FLAVOR_TRAIT, HOST_RESOURCE_CLASS

SERVERS = "region:servers"
GATES = "region:servers:v2/provider-create-gates"
IMAGES = "region:images"
REFERENCES = ("region:networks:v2", "region:securitygroups:v2", "region:sshcertificateauthorities:v2")
EVERYTHING = ("create", "read", "update", "delete")

SERVICE = "unikorn-compute"
"""Common name of the service that calls with a certificate. What it may do, contract 5.4 says."""
SERVICE_GRANTS = {
    SERVERS: EVERYTHING,
    GATES: ("update",),
    IMAGES: ("create", "read"),
    **dict.fromkeys(REFERENCES, ("read",)),
}


@dataclass(frozen=True)
class Tenant:
    """One organization with one project, and what they own in the region.

    `prefix` is the IPv4 prefix of its network; `password` is that of its Keystone user; `private_key` is in
    OpenSSH's format, and `public_key` belongs to it; `authority_key` is its SSH certificate authority's public key.
    """

    name: str
    prefix: str
    organization_id: str
    project_id: str
    identity_id: str
    network_id: str
    security_group_id: str
    authority_id: str
    public_key: str
    authority_key: str
    password: str = field(repr=False)
    private_key: str = field(repr=False)

    @property
    def cloud_name(self) -> str:
        """Name of its Keystone project and user (contract 6.2)."""
        return f"unikorn-identity-{self.identity_id}"

    @classmethod
    def recalled(cls, memory: Memory, name: str, prefix: str) -> "Tenant":
        """Return the tenant as `memory` knows it, making it up if it does not."""
        private_key = memory.recall(f"{name}.private_key", _new_private_key)
        authority_key = memory.recall(f"{name}.authority_key", lambda: _public_key(_new_private_key()))
        return cls(
            name=name,
            prefix=prefix,
            organization_id=memory.id(f"{name}.organization"),
            project_id=memory.id(f"{name}.project"),
            identity_id=memory.id(f"{name}.identity"),
            network_id=memory.id(f"{name}.network"),
            security_group_id=memory.id(f"{name}.security_group"),
            authority_id=memory.id(f"{name}.authority"),
            public_key=_public_key(private_key),
            authority_key=authority_key,
            password=memory.secret(f"{name}.password"),
            private_key=private_key,
        )


@dataclass(frozen=True)
class Flavor:
    """A flavor in Nova, memory in MiB and disk in GB; the region's configuration says `metadata` of it."""

    id: str
    name: str
    vcpus: int
    memory: int
    disk: int
    metadata: Mapping[str, Any] = field(default_factory=dict)
    extra_specs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Image:
    """A public image in Glance, `min_disk` in GiB. One without content stays queued, hence is never ready."""

    id: str
    name: str
    architecture: str = "x86_64"
    virtualization: str = "virtualized"
    min_disk: int = 5
    organization_id: str | None = None
    content: bool = True

    @property
    def properties(self) -> dict[str, str]:
        """The properties of contract 6.9."""
        properties = {
            "architecture": self.architecture,
            "unikorn:os:kernel": "linux",
            "unikorn:os:family": "debian",
            "unikorn:os:distro": "ubuntu",
            "unikorn:os:version": "24.04",
            "unikorn:virtualization": self.virtualization,
        }
        if self.organization_id:
            properties["unikorn:organization:id"] = self.organization_id
        return properties


@dataclass(frozen=True)
class Caller:
    """Who may talk to the API: a bearer token and its rights in one tenant's organization or project."""

    role: str
    token: str = field(repr=False)
    tenant: Tenant
    grants: Mapping[str, tuple[str, ...]]
    whole_organization: bool = False

    @property
    def acl(self) -> dict[str, Any]:
        """The document of contract 5.3."""
        granted = endpoints(self.grants)
        # a right of the organization alone would need the identity service at each create (contract 5.5)
        organization: dict[str, Any] = {
            "id": self.tenant.organization_id,
            "projects": [{"id": self.tenant.project_id, "endpoints": granted}],
        }
        if self.whole_organization:
            organization["endpoints"] = granted
        return {"organizations": [organization]}


@dataclass(frozen=True)
class World:
    """Everything the seed makes sure of. Design section 5 says what it is for."""

    region_id: str
    first: Tenant
    second: Tenant
    flavors: Mapping[str, Flavor]
    images: Mapping[str, Image]
    callers: Mapping[str, Caller]
    service_password: str = field(repr=False)

    @property
    def tenants(self) -> tuple[Tenant, Tenant]:
        """Both organizations, the first of which is that of ADMIN, USER and READER."""
        return self.first, self.second

    @classmethod
    def recalled(cls, memory: Memory) -> "World":
        """Return the world as `memory` knows it, making up what it does not know yet."""
        first = Tenant.recalled(memory, "first", "192.168.10.0/24")
        second = Tenant.recalled(memory, "second", "192.168.20.0/24")
        return cls(
            region_id=memory.id("region"),
            first=first,
            second=second,
            flavors=_flavors(memory),
            images=_images(memory, second),
            callers=_callers(memory, first, second),
            service_password=memory.secret("service.password"),
        )


def endpoints(grants: Mapping[str, tuple[str, ...]]) -> list[dict[str, Any]]:
    """Return grants as an access control list has them (contract 5.3)."""
    return [{"name": name, "operations": list(operations)} for name, operations in grants.items()]


def _flavors(memory: Memory) -> dict[str, Flavor]:
    # what Placement is asked for before a server is pinned to a host
    host_needs = {f"resources:{HOST_RESOURCE_CLASS}": "1", f"trait:{FLAVOR_TRAIT}": "required"}
    sizes: dict[str, tuple[int, int, int, dict[str, Any], dict[str, str]]] = {
        "virtual": (1, 1024, 20, {}, {}),
        "baremetal": (8, 16384, 200, {"baremetal": True, "cpu": {"family": "EPYC"}}, {}),
        "pinned": (2, 2048, 20, {"pinnedOnly": True}, host_needs),
    }
    return {name: Flavor(memory.id(f"flavor.{name}"), f"sandbox-{name}", *size) for name, size in sizes.items()}


def _images(memory: Memory, second: Tenant) -> dict[str, Image]:
    kinds: dict[str, dict[str, Any]] = {
        "ready": {},
        "ready-too": {"virtualization": "any"},
        "foreign": {"organization_id": second.organization_id},
        "aarch64": {"architecture": "aarch64"},
        "baremetal": {"virtualization": "baremetal"},
        "too-large": {"min_disk": 1000},
        "not-ready": {"content": False},
    }
    return {name: Image(id=memory.id(f"image.{name}"), name=f"sandbox-{name}", **kind) for name, kind in kinds.items()}


def _callers(memory: Memory, first: Tenant, second: Tenant) -> dict[str, Caller]:
    read = dict.fromkeys(REFERENCES, ("read",))
    user = {SERVERS: EVERYTHING, **read}
    admin = {
        SERVERS: EVERYTHING,
        GATES: ("update",),
        IMAGES: ("create", "read"),
        **read,
    }
    return {
        "ADMIN": Caller("ADMIN", memory.secret("token.ADMIN"), first, admin, whole_organization=True),
        "USER": Caller("USER", memory.secret("token.USER"), first, user),
        "READER": Caller("READER", memory.secret("token.READER"), first, {SERVERS: ("read",), **read}),
        "OTHER": Caller("OTHER", memory.secret("token.OTHER"), second, user),
    }


def _new_private_key() -> str:
    key = Ed25519PrivateKey.generate()
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()


def _public_key(private_key: str) -> str:
    key = load_ssh_private_key(private_key.encode(), password=None)
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
