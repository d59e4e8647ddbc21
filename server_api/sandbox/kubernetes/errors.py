"""The errors a Kubernetes API answers, each a Status object with the reason and code real clusters use."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .resources import Resource


class Cause(NamedTuple):
    """Why one field of an object was refused. `field` is a path such as `spec.ports[0].name`."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"


class ApiError(Exception):
    """An answer other than success: HTTP code, machine-readable reason, message, and details of the Status."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self._status = {"status": "Failure", "message": message, "reason": reason, "details": details or {}}

    def status(self) -> dict[str, Any]:
        """The Status object that is the body of the answer."""
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, **self._status, "code": self.code}


# What is wrong with a request; each takes a message.
bad_request = partial(ApiError, 400, "BadRequest")
expired = partial(ApiError, 410, "Expired")
unsupported_media_type = partial(ApiError, 415, "UnsupportedMediaType")
unprocessable = partial(ApiError, 422, "Invalid")


def _about(code: int, reason: str, what: str, resource: Resource, name: str, why: str = "") -> ApiError:
    details = {"name": name, "group": resource.group, "kind": resource.plural}
    plural = f"{resource.plural}.{resource.group}".rstrip(".")
    return ApiError(code, reason, f'{plural} "{name}" {what}{why}', details)


# What is wrong about an object; each takes its resource and name, and the last two say why.
not_found = partial(_about, 404, "NotFound", "not found")
already_exists = partial(_about, 409, "AlreadyExists", "already exists")
forbidden = partial(_about, 403, "Forbidden", "is forbidden: ")
conflict = partial(_about, 409, "Conflict", "cannot be changed: ")


def invalid(resource: Resource, name: str, causes: Sequence[Cause]) -> ApiError:
    """The object breaks its schema or a rule; every offending field is named."""
    why = ", ".join(f"{cause.field}: {cause.message}" for cause in causes)
    named = [cause._asdict() for cause in causes]
    details = {"name": name, "group": resource.group, "kind": resource.kind, "causes": named}
    kind = f"{resource.kind}.{resource.group}".rstrip(".")
    return ApiError(422, "Invalid", f'{kind} "{name}" is invalid: {why}', details)
