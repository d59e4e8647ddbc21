"""How clients are told that v1 goes away: headers on every answer, and 410 where the operator has turned it off."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

from flask import Flask, Response, current_app, request
from werkzeug.http import http_date

from server_api.http.errors import envelope
from server_api.http.v1 import operation, usage
from server_api.settings import Settings

DEPRECATED_ON = date(2026, 12, 1)
"""Since when v1 is deprecated: the release that had the whole of v2."""

EVERYTHING = "all"

HEADERS = {
    "Deprecation": {"description": "Since when v1 is deprecated (RFC 9745).", "schema": {"type": "string"}},
    "Sunset": {"description": "From when on v1 may be gone (RFC 8594).", "schema": {"type": "string"}},
    "Link": {"description": "The same in v2, as `successor-version`.", "schema": {"type": "string"}},
}
"""What the OpenAPI document says of the headers."""

_DISABLED = "SERVER_API_V1_DISABLED"


def install(app: Flask, settings: Settings) -> None:
    """Mark and count the application's answers to requests for v1.

    Install it before what may still replace an answer: what runs after a view runs in reverse order.
    """
    deprecated = f"@{int(_midnight(DEPRECATED_ON).timestamp())}"
    sunset = http_date(_midnight(settings.v1_sunset))

    def mark(response: Response) -> Response:
        if not request.path.startswith(operation.PREFIX):
            return response
        response.headers["Deprecation"] = deprecated
        response.headers["Sunset"] = sunset
        response.headers["Link"] = f'<{operation.successor()}>; rel="successor-version"'
        called = operation.name()
        if called is not None:
            usage.record(called, response.status_code)
        return response

    app.after_request(mark)


def disable(app: Flask, setting: str) -> None:
    """Turn off the operations that the setting names, once all are registered. Raises ValueError for unknown ones."""
    known = operation.names(app)
    named = frozenset(filter(None, (word.strip() for word in setting.split(","))))
    unknown = named - known - {EVERYTHING}
    if unknown:
        raise ValueError(f"{_DISABLED}: no such operation: {min(unknown)}; there are {', '.join(sorted(known))}")
    app.config[_DISABLED] = known if EVERYTHING in named else named


def refuse_disabled() -> Response | None:
    """Answer 410 when the operation is turned off. For authenticated callers only, so that it is known who they are."""
    if operation.name() not in current_app.config[_DISABLED]:
        return None
    return envelope(410, f"this operation of v1 is gone; its successor is {operation.successor()}")


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
