"""The one place where what went wrong with the Kubernetes API becomes an error of the ports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import urllib3.exceptions

from server_api.servers.ports import (
    AlreadyExists,
    Denied,
    Expired,
    Missing,
    PortError,
    Refused,
    StateConflict,
    TimedOut,
    Unavailable,
)
from server_api.store import tolerant

KUBERNETES = "kubernetes"

_MOST_CAUSES = 5
# RBAC and admission both answer 403 Forbidden; only the text tells that the object was refused and not the caller.
_ADMISSION = ("denied the request", "exceeded quota", "is being terminated")


@dataclass(frozen=True, slots=True)
class Attempt:
    """What was tried, for the error if it fails: "update servers/<id>". A collection has no name."""

    verb: str
    plural: str
    name: str | None = None

    def __str__(self) -> str:
        return f"{self.verb} {self.plural}/{self.name}" if self.name else f"{self.verb} {self.plural}"


def from_response(status: int, body: bytes, headers: Mapping[str, str], attempt: Attempt) -> PortError:
    """Return the error for an answer other than 2xx. It names fields and reasons, never values: they may be secret."""
    try:
        document = tolerant.mapping(orjson.loads(body)) if body else {}
    except orjson.JSONDecodeError:
        document = {}
    return from_status(status, document, headers, attempt)


def from_status(status: int, document: Mapping[str, Any], headers: Mapping[str, str], attempt: Attempt) -> PortError:
    """Return the error for a Status document, as the body of an answer or the object of a watch's ERROR event."""
    reason = tolerant.text(document.get("reason")) or "no reason given"
    details = tolerant.mapping(document.get("details"))
    detail = f"{attempt}: {status} {reason}{_causes(details)}"
    retry_after = headers.get("Retry-After")
    if status == 404:
        # A missing definition, namespace or proxy route is a 404 too, and no proof that the object does not exist.
        if attempt.name and (details.get("kind"), details.get("name")) == (attempt.plural, attempt.name):
            return Missing(KUBERNETES, detail)
        return Unavailable(KUBERNETES, f"{detail} (is the namespace there, and did migrations run?)")
    if status in (401, 403):
        message = tolerant.text(document.get("message")) or ""
        if status == 403 and any(text in message for text in _ADMISSION):
            return Refused(KUBERNETES, detail)
        return Denied(KUBERNETES, detail)
    if status == 409:
        return (AlreadyExists if reason == "AlreadyExists" else StateConflict)(KUBERNETES, detail)
    if status == 412:
        return StateConflict(KUBERNETES, detail)
    if status == 410:
        return Expired(KUBERNETES, detail)
    if status in (408, 504):
        return TimedOut(KUBERNETES, detail, retry_after)
    if status == 429 or not 400 <= status < 500:
        return Unavailable(KUBERNETES, detail, retry_after)
    return Refused(KUBERNETES, detail)


def from_transport(error: Exception, attempt: Attempt) -> PortError:
    """Return the error for a call that got no answer."""
    # A refused connection is a time-out by urllib3's class hierarchy.
    refused = isinstance(error, urllib3.exceptions.NewConnectionError)
    if not refused and isinstance(error, TimeoutError | urllib3.exceptions.TimeoutError):
        return TimedOut(KUBERNETES, f"{attempt}: no answer in time")
    # The class only: the text of a urllib3 error can hold the address with its query.
    return Unavailable(KUBERNETES, f"{attempt}: {type(error).__name__}")


def nonsense(attempt: Attempt) -> Unavailable:
    """Return the error for an answer that is no JSON object."""
    return Unavailable(KUBERNETES, f"{attempt}: the answer is not a JSON object")


def _causes(details: Mapping[str, Any]) -> str:
    causes = [
        f"{tolerant.text(cause.get('field')) or 'object'} ({tolerant.text(cause.get('reason')) or 'invalid'})"
        for cause in tolerant.mappings(details.get("causes"))
    ]
    return f": {', '.join(causes[:_MOST_CAUSES])}" if causes else ""
