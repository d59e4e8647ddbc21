"""What every source of callers and their rights offers, and how a request's caller is found among its credentials."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from server_api.access.authentication import Credentials, bearer_token
from server_api.access.client_certificate import ClientCertificate, ClientCertificates
from server_api.access.delegation import Delegation, decode
from server_api.access.principal import Principal


@dataclass(frozen=True, slots=True)
class Place:
    """Organization and project that a request's path names, if it does."""

    organization_id: str | None = None
    project_id: str | None = None


class IdentitySource(Protocol):
    """Where it is known who owns a token and what somebody may do.

    Both methods raise Unauthenticated, ScopeRefused, and a PortError when whoever would have to be asked has failed.
    What a principal is attributed to is none of a source's business: ``CallerAuthenticator`` adds it.
    """

    def owner(
        self, token: str, place: Place, certificate: ClientCertificate | None, delegation: Delegation | None
    ) -> Principal:
        """Return the owner of a bearer token. A service that sends one shows its own certificate and delegation."""

    def service(self, certificate: ClientCertificate, place: Place, delegation: Delegation) -> Principal:
        """Return a service that sends no token: its own rights or, impersonating, those the actor has too."""


class CallerAuthenticator:
    """``access.authentication.Authenticator`` over a source (contract 5.1 and 5.7)."""

    def __init__(self, source: IdentitySource, certificates: ClientCertificates | None = None) -> None:
        self._source = source
        self._certificates = certificates or ClientCertificates()

    def authenticate(self, credentials: Credentials) -> Principal:
        """Return who calls, and for whom. Raises as ``Authenticator``."""
        place = Place(credentials.organization_id, credentials.project_id)
        certificate = self._certificates.of(credentials)
        delegation = None
        if certificate is not None:
            delegation = decode(credentials.principal, credentials.impersonate, certificate)
        if certificate is None or delegation is None or credentials.authorization:
            token = bearer_token(credentials.authorization)
            principal = self._source.owner(token, place, certificate, delegation)
        else:
            principal = self._source.service(certificate, place, delegation)
        if delegation is None:
            return replace(principal, organization_id=place.organization_id, project_id=place.project_id)
        return replace(
            principal,
            actor=delegation.actor,
            organization_id=delegation.organization_id or None,
            project_id=delegation.project_id or None,
            impersonating=delegation.impersonate,
            service=certificate.common_name if certificate is not None else "",
        )
