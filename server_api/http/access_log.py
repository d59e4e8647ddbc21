"""One log line per request: what, by whom, with what result and how long. No query string, header or body."""

from __future__ import annotations

import time

import structlog
from flask import Flask, Response, g, request

from server_api.http import authentication
from server_api.http.routes import PROBES, method_name, route_template

_log = structlog.get_logger("server_api.access")


def install(app: Flask) -> None:
    """Log the application's requests. Install it first: what runs after the response runs in reverse order."""
    app.before_request(_start)
    app.after_request(_finish)


def _start() -> None:
    g.started_at = time.perf_counter()


def _finish(response: Response) -> Response:
    route = route_template()
    # They would drown the rest.
    write = _log.debug if route in PROBES and response.status_code < 400 else _log.info
    write(
        "request",
        method=method_name(),
        route=route,
        status=response.status_code,
        duration_ms=round(1000 * (time.perf_counter() - g.started_at), 1),
        subject=authentication.subject(),
        ids=request.view_args or None,
    )
    return response
