"""The port through which a request's credentials become a principal (contract 5.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from server_api.access.principal import Principal


class Refusal(Exception):
    """The credentials do not let the caller in; ``reason`` is fit for the caller and names no secret."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Unauthenticated(Refusal):
    """The credentials are missing or not accepted (401)."""


class InvalidCredentials(Refusal):
    """The headers that tell of a service's certificate or principal are malformed, or not this peer's to send (400)."""


class ScopeRefused(Refusal):
    """The identity service does not let the caller act in the organization or project of the path (403)."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a request says of its caller; headers are as they were sent, None when absent.

    ``peer`` is the address at the other end of the connection. ``peer_certificate`` is the client certificate, in DER,
    that our own end of a TLS connection has verified. ``organization_id`` and ``project_id`` are those of the path.
    """

    authorization: str | None = field(default=None, repr=False)
    peer: str | None = None
    peer_certificate: bytes | None = field(default=None, repr=False)
    certificate: str | None = field(default=None, repr=False)
    certificate_verified: str | None = None
    principal: str | None = field(default=None, repr=False)
    impersonate: str | None = None
    organization_id: str | None = None
    project_id: str | None = None


class Authenticator(Protocol):
    """What turns credentials into principals."""

    def authenticate(self, credentials: Credentials) -> Principal:
        """Return who calls.

        Raises Unauthenticated, InvalidCredentials, ScopeRefused, and PortError when whom it asks has failed.
        """


def bearer_token(authorization: str | None) -> str:
    """Return the token of an ``Authorization`` header. Raises Unauthenticated unless it is ``Bearer TOKEN``."""
    if not authorization:
        raise Unauthenticated("credentials are required")
    words = authorization.split(" ")
    if len(words) != 2 or not all(words):
        raise Unauthenticated("the Authorization header must be a scheme and a token")
    if words[0].lower() != "bearer":
        raise Unauthenticated("the authorization scheme must be Bearer")
    return words[1]
