"""The errors a Kubernetes API answers, each a Status object with the reason and code real clusters use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .resources import Resource

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


@dataclass(frozen=True)
class Cause:
    """Why one field of an object was refused. `field` is a path such as `spec.ports[0].name`."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"

    def document(self) -> dict[str, str]:
        """As it stands among the details of a Status."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


class ApiError(Exception):
    """An answer other than success: HTTP code, machine-readable reason, message, and details of the Status."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}
        self.headers = headers or {}

    def status(self) -> dict[str, Any]:
        """The Status object that is the body of the answer."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }


def _about(resource: Resource, name: str) -> dict[str, Any]:
    return {"name": name, "group": resource.group, "kind": resource.plural}


def bad_request(message: str) -> ApiError:
    """The request cannot be understood."""
    return ApiError(400, "BadRequest", message)


def forbidden(resource: Resource, name: str, why: str) -> ApiError:
    """The server refuses to do this to this object."""
    message = f'{resource.group_resource} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", message, _about(resource, name))


def no_such_path() -> ApiError:
    """Nothing is served at this path."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def not_found(resource: Resource, name: str) -> ApiError:
    """The resource is served, the object does not exist."""
    message = f'{resource.group_resource} "{name}" not found'
    return ApiError(404, "NotFound", message, _about(resource, name))


def method_not_allowed(message: str, allowed: Sequence[str] = ()) -> ApiError:
    """`allowed` are the methods that are served, for the Allow header."""
    headers = {"Allow": ", ".join(allowed)} if allowed else {}
    return ApiError(405, "MethodNotAllowed", message, headers=headers)


def already_exists(resource: Resource, name: str) -> ApiError:
    """The name is taken."""
    message = f'{resource.group_resource} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _about(resource, name))


def conflict(resource: Resource, name: str, why: str = MODIFIED) -> ApiError:
    """The object is not in the state the client expects: read it again."""
    message = f'Operation cannot be fulfilled on {resource.group_resource} "{name}": {why}'
    return ApiError(409, "Conflict", message, _about(resource, name))


def expired(message: str) -> ApiError:
    """The history asked for is compacted away: the client must list again."""
    return ApiError(410, "Expired", message)


def unsupported_media_type(message: str) -> ApiError:
    """The body is in a form that is not implemented."""
    return ApiError(415, "UnsupportedMediaType", message)


def unprocessable(message: str) -> ApiError:
    """The request is understood, and does not fit the object or the options there are."""
    return ApiError(422, "Invalid", message)


def invalid(resource: Resource, name: str, causes: Sequence[Cause]) -> ApiError:
    """The object breaks its schema or a rule; every offending field is named."""
    why = ", ".join(f"{cause.field}: {cause.message}" for cause in causes)
    message = f'{resource.qualified_kind} "{name}" is invalid: {why}'
    details = {
        "name": name,
        "group": resource.group,
        "kind": resource.kind,
        "causes": [cause.document() for cause in causes],
    }
    return ApiError(422, "Invalid", message, details)


def too_large_resource_version(asked: int, current: int) -> ApiError:
    """The client knows a later state than this server ever had, for example after the database was replaced."""
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Too large resource version: {asked}, current: {current}"
    return ApiError(504, "Timeout", message, details, {"Retry-After": "1"})
