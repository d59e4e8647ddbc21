"""Many servers over several cloud projects, of which store and cloud are to say the same.

Every ID follows from the numbers, so that two processes need no list to agree on them.
"""

from dataclasses import dataclass
from functools import cached_property
from uuid import UUID, uuid5

from server_api.sandbox.world import Flavor, Image, Tenant, World
from server_api.servers import naming

_SPACE = UUID("6f6e5d0a-93a5-4f0f-8f0e-0a4f2f7f8f0b")
EPOCH = "2026-01-01T00:00:00Z"
"""When everything was created and launched that is there from the beginning."""

EXTERNAL_NETWORK_ID = str(uuid5(_SPACE, "external network"))
PASSWORD = "benchmark"


@dataclass(frozen=True)
class Member:
    """One server of the fleet and what it has in the cloud."""

    number: int
    tenant: Tenant

    @property
    def name(self) -> str:
        """Name of server and instance."""
        return f"member-{self.number:05}"

    @cached_property
    def id(self) -> str:
        """ID of the server."""
        return naming.server_id(self.tenant.network_id, self.name)

    @property
    def instance_id(self) -> str:
        """ID of its instance."""
        return _id(f"instance {self.id}")

    @property
    def port_id(self) -> str:
        """ID of its port."""
        return _id(f"port {self.id}")

    @property
    def floating_ip_id(self) -> str:
        """ID of its floating IP."""
        return _id(f"floating IP {self.id}")

    @property
    def private_ip(self) -> str:
        """Address of its port."""
        return f"10.0.{self.number // 250}.{self.number % 250 + 1}"

    @property
    def public_ip(self) -> str:
        """Its floating IP."""
        return f"198.{18 + self.number // 62500}.{self.number // 250 % 250}.{self.number % 250 + 1}"

    @property
    def mac_address(self) -> str:
        """Address of its port on the wire."""
        return f"fa:16:3e:{self.number >> 16 & 255:02x}:{self.number >> 8 & 255:02x}:{self.number & 255:02x}"


@dataclass(frozen=True)
class Fleet:
    """So many servers, dealt out to so many identities of one region."""

    projects: int
    servers: int

    @cached_property
    def tenants(self) -> tuple[Tenant, ...]:
        """The identities. No key of theirs is ever used, so they are words."""
        return tuple(_tenant(number) for number in range(self.projects))

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """Every server."""
        return tuple(Member(number, self.tenants[number % self.projects]) for number in range(self.servers))

    @cached_property
    def world(self) -> World:
        """The region, in the words of the sandbox's seed. There are two images, to rebuild from one to the other."""
        return World(
            region_id=_id("region"),
            first=self.tenants[0],
            second=self.tenants[-1],
            flavors={"virtual": Flavor(_id("flavor"), "benchmark", 1, 1024, 20)},
            images={name: Image(_id(f"image {name}"), name) for name in ("first", "second")},
            callers={},
            service_password=PASSWORD,
        )


def cloud_project(tenant: Tenant) -> str:
    """Return the ID of a tenant's project in Keystone."""
    return UUID(_id(f"cloud project {tenant.name}")).hex


def _tenant(number: int) -> Tenant:
    name = f"tenant-{number}"
    ids = {
        field: _id(f"{name} {field}")
        for field in (
            "organization_id",
            "project_id",
            "identity_id",
            "network_id",
            "security_group_id",
            "authority_id",
        )
    }
    keys = {"public_key": "none", "authority_key": "none", "private_key": "none"}
    return Tenant(name=name, prefix="10.0.0.0/16", password=PASSWORD, **ids, **keys)


def _id(name: str) -> str:
    """Return a UUID that begins with a letter, as some names in Kubernetes must."""
    text = str(uuid5(_SPACE, name))
    return text if text[0].isalpha() else f"a{text[1:]}"
