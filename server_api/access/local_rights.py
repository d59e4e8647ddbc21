"""Rights that are known here, from a file: what services and those they impersonate may do (contract 5.7)."""

from __future__ import annotations

from typing import Protocol

from server_api.access.acl import Acl
from server_api.access.authentication import InvalidCredentials
from server_api.access.client_certificate import ClientCertificate
from server_api.access.delegation import Delegation
from server_api.access.principal import Principal


class Rights(Protocol):
    """Rights by name. Whoever is not known has none."""

    def of_service(self, common_name: str) -> Acl:
        """Return what a service may do."""

    def of_actor(self, actor: str, type_: str) -> Acl:
        """Return what a user or service account may do; an empty type is either."""


def service(rights: Rights, certificate: ClientCertificate, delegation: Delegation) -> Principal:
    """Return a service: its own rights or, impersonating, those of the actor that it has everywhere itself."""
    own = rights.of_service(certificate.common_name)
    if delegation.impersonate:
        acl = rights.of_actor(delegation.actor, delegation.type).limited_to(own.everywhere)
    else:
        acl = own
    return Principal(certificate.common_name, "system", acl)


def refuse_to_impersonate(delegation: Delegation | None) -> None:
    """Raise InvalidCredentials for a service that sends somebody's token and asks to be somebody else."""
    if delegation is not None and delegation.impersonate:
        raise InvalidCredentials("X-Impersonate cannot be combined with a bearer token")
