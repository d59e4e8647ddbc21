"""What a caller of v1 asks for, after parsing and before any rule was applied (contract 2.2)."""

from __future__ import annotations

from dataclasses import dataclass, field

from server_api.servers.model import AddressPair, Tag


@dataclass(frozen=True, slots=True)
class ServerWrite:
    """Body of a v1 create and of a v1 update, which are the same. What is None was left out.

    IDs are UUIDs in canonical form. Those of network and security groups are None where the text was none, which v1
    finds out only after it has asked whether the caller may do this. Prefixes are texts as they were sent.
    """

    name: str
    flavor_id: str
    image_id: str
    network_id: str | None
    address_pairs: tuple[AddressPair, ...] | None = None
    description: str | None = None
    tags: tuple[Tag, ...] = ()
    security_group_ids: tuple[str | None, ...] | None = None
    public_ip: bool | None = None
    user_data: bytes | None = field(default=None, repr=False)
