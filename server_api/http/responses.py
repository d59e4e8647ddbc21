"""The kinds of successful response."""

from __future__ import annotations

from typing import Any

import orjson
from flask import Response

# Times are UTC already and told to the second (contract section 0).
_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_OMIT_MICROSECONDS

NO_STORE = {"Cache-Control": "no-store"}
"""Header of an answer that holds a secret, or is true for a moment only."""


def json(status: int, body: Any, headers: dict[str, str] | None = None) -> Response:
    """Return a response with a JSON body; ``datetime`` values are written as RFC 3339."""
    return Response(
        orjson.dumps(body, option=_OPTIONS), status=status, headers=headers, content_type="application/json"
    )


def empty(status: int) -> Response:
    """Return a response with neither content nor content type."""
    response = Response(status=status)
    del response.headers["Content-Type"]
    return response


def accepted() -> Response:
    """Return 202 with neither content nor content type (contract 1.1)."""
    return empty(202)
