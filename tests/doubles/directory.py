"""The objects around servers, in memory."""

from __future__ import annotations

from typing import Protocol, TypeVar

from server_api.servers.ports import Missing, PortError
from server_api.servers.surroundings import (
    Identity,
    IdentityCredentials,
    Network,
    Region,
    SecurityGroup,
    ServiceAccount,
    SSHCertificateAuthority,
)


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


Kind = TypeVar("Kind", bound=_HasId)
Item = Network | SecurityGroup | SSHCertificateAuthority | Identity | Region


class InMemoryDirectory:
    """``ports.Directory`` over what it was given; ``calls`` holds ``kind id`` of every look-up."""

    def __init__(self, *items: Item) -> None:
        self.calls: list[str] = []
        self._items: dict[tuple[type, str], Item] = {}
        self._failures: dict[type, PortError] = {}
        self.put(*items)

    def put(self, *items: Item) -> None:
        """Add objects, or replace them."""
        for item in items:
            self._items[type(item), item.id] = item

    def remove(self, item: Item) -> None:
        """Take an object away."""
        del self._items[type(item), item.id]

    def fail(self, kind: type, error: PortError) -> None:
        """Let every look-up of that kind raise."""
        self._failures[kind] = error

    def network(self, network_id: str) -> Network:
        return self._find(Network, network_id)

    def security_group(self, group_id: str) -> SecurityGroup:
        return self._find(SecurityGroup, group_id)

    def ssh_certificate_authority(self, authority_id: str) -> SSHCertificateAuthority:
        return self._find(SSHCertificateAuthority, authority_id)

    def identity(self, identity_id: str) -> Identity:
        return self._find(Identity, identity_id)

    def region(self, region_id: str) -> Region:
        return self._find(Region, region_id)

    def _find(self, kind: type[Kind], id_: str) -> Kind:
        self.calls.append(f"{kind.__name__} {id_}")
        if kind in self._failures:
            raise self._failures[kind]
        item = self._items.get((kind, id_))
        if not isinstance(item, kind):
            raise Missing("kubernetes", f"{kind.__name__} not found")
        return item


class InMemoryCredentials:
    """``ports.Credentials`` over what it was given: by identity ID, and by region ID."""

    def __init__(
        self,
        identities: dict[str, IdentityCredentials] | None = None,
        service_accounts: dict[str, ServiceAccount] | None = None,
    ) -> None:
        self._identities = identities or {}
        self._service_accounts = service_accounts or {}

    def identity_credentials(self, identity_id: str) -> IdentityCredentials:
        if identity_id not in self._identities:
            raise Missing("kubernetes", "openstackidentities not found")
        return self._identities[identity_id]

    def service_account(self, region: Region) -> ServiceAccount:
        if region.id not in self._service_accounts:
            raise Missing("kubernetes", "secrets not found")
        return self._service_accounts[region.id]
