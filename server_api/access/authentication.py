"""The port through which a request's credentials become a principal (contract 5.1)."""

from __future__ import annotations

from typing import Protocol

from server_api.access.principal import Principal


class Unauthenticated(Exception):
    """The credentials are missing or not accepted; ``reason`` is fit for the caller and names no secret."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Authenticator(Protocol):
    """A source of principals."""

    def authenticate(self, authorization: str | None) -> Principal:
        """Return who the ``Authorization`` header belongs to. Raises Unauthenticated."""


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
