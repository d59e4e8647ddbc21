"""What a caller of v2 asks for, after parsing and before any rule was applied (contract 2.4, 2.5 and 2.15)."""

from __future__ import annotations

from dataclasses import dataclass, field

from server_api.servers.model import Tag


@dataclass(frozen=True, slots=True)
class Networking:
    """The ``networking`` member of a server's spec. Source addresses are texts as they were sent."""

    security_group_ids: tuple[str, ...] = ()
    public_ip: bool = False
    allowed_source_addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerUpdate:
    """Body of a v2 update. What is None or empty clears the stored value."""

    name: str
    flavor_id: str
    image_id: str
    description: str | None = None
    tags: tuple[Tag, ...] = ()
    networking: Networking = Networking()
    user_data: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ServerCreate:
    """Body of a v2 create. IDs are UUIDs in canonical form."""

    name: str
    network_id: str
    flavor_id: str
    image_id: str
    description: str | None = None
    tags: tuple[Tag, ...] = ()
    networking: Networking = Networking()
    user_data: bytes | None = field(default=None, repr=False)
    ssh_certificate_authority_id: str | None = None
    ssh_injection: str | None = None
    infrastructure_ref: str | None = None
    provider_create_gates: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ServerQuery:
    """What a list is restricted to: OR within a field, AND across fields; tags must all match (contract 2.15)."""

    organization_ids: frozenset[str] = frozenset()
    project_ids: frozenset[str] = frozenset()
    region_ids: frozenset[str] = frozenset()
    network_ids: frozenset[str] = frozenset()
    tags: tuple[Tag, ...] = ()
