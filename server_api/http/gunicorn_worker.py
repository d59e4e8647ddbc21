"""gunicorn's threaded worker, answering what it cannot parse in the JSON envelope and not in HTML.

``worker_class`` and overriding ``handle_error`` are gunicorn's seams for this. Such requests never reach the
application: malformed or smuggled ones, and those beyond the limits in ``deploy/gunicorn.conf.py``.
"""

from __future__ import annotations

import secrets
import socket
from typing import Any

import gunicorn.http.wsgi  # type: ignore[import-untyped]
import structlog
from gunicorn.http.errors import (  # type: ignore[import-untyped]
    InvalidResponseHeader,
    InvalidResponseHeaderName,
    LimitRequestHeaders,
    LimitRequestLine,
    ParseException,
)
from gunicorn.workers.gthread import ThreadWorker  # type: ignore[import-untyped]

from server_api.http.errors import UNEXPECTED, document

_REASONS = {
    400: "Bad Request",
    414: "URI Too Long",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
}

_DESCRIPTIONS = {
    400: "the request is not valid HTTP",
    414: "the request line is too long",
    431: "there are too many request headers, or one is too large",
    500: UNEXPECTED,
}

# The header Server of every answer: what we are, and not by what we are served. gunicorn has no setting for it.
gunicorn.http.wsgi.SERVER = "server-api"

_log = structlog.get_logger(__name__)


class EnvelopeWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn ships no types
    """A threaded worker whose own errors look like the API's."""

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: Exception) -> None:
        """Answer a request that did not reach the application; gunicorn closes the connection afterwards."""
        trace_id = secrets.token_hex(16)
        status = status_of(exc)
        # The parser's texts quote the request, tokens included: only the kind of fault is logged.
        _log.warning("request refused by gunicorn", status=status, kind=type(exc).__name__, trace_id=trace_id)
        try:
            client.settimeout(1)
            client.sendall(response(status, trace_id))
        except OSError as failure:
            _log.debug("the refusal could not be sent", kind=type(failure).__name__)


def status_of(error: Exception) -> int:
    """Return the status for what went wrong outside of the application."""
    if isinstance(error, InvalidResponseHeader | InvalidResponseHeaderName):
        return 500
    if isinstance(error, LimitRequestLine):
        return 414
    if isinstance(error, LimitRequestHeaders):
        return 431
    return 400 if isinstance(error, ParseException) else 500


def response(status: int, trace_id: str) -> bytes:
    """Return a whole HTTP response with the error envelope."""
    body = document(status, _DESCRIPTIONS[status], trace_id)
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\n"
        "Connection: close\r\n"
        "Content-Type: application/json\r\n"
        "Cache-Control: no-cache\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
