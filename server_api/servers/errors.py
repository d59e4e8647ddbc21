"""How a use case turns a caller down. HTTP renders each as one status (contract 3.2)."""

from __future__ import annotations


class Rejection(Exception):
    """A request that was understood and is not done.

    ``reason`` is shown to the caller: it never holds secrets, nor values of unbounded length. ``field`` names the
    member of the request it is about, as a path such as ``spec.networkId``.
    """

    def __init__(self, reason: str, field: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.field = field

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}" if self.field else self.reason


class InvalidRequest(Rejection):
    """The request is malformed, or not possible in the server's present state (400)."""


class Unverified(Rejection):
    """What the caller's right depends on could not be looked up (401)."""


class Forbidden(Rejection):
    """The caller lacks a permission (403)."""


class NotFound(Rejection):
    """Something the request names does not exist, or not for this caller (404)."""


class Conflict(Rejection):
    """The name is taken, or somebody else changed the object meanwhile (409)."""


class Unprocessable(Rejection):
    """The request is well formed and breaks a rule (422)."""
