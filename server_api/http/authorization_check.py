"""Finds views that answered without asking what the caller may do.

A view that forgets its check looks right to every caller with rights, so nobody notices; Keystone fails such answers,
and so do we in tests. In production it is an alarm: an ERROR line and a counter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import structlog
from flask import Flask, Response, current_app, g, request
from prometheus_client import Counter

from server_api.access.authorization import AuthorizedCaller
from server_api.http.errors import UNEXPECTED, envelope

View = TypeVar("View", bound=Callable[..., Any])

_EXEMPT = "_needs_no_permission"

UNCHECKED = Counter(
    "server_api_unauthorized_answers_total", "Answers given without an authorization check: a defect.", ["route"]
)

_log = structlog.get_logger(__name__)


def not_required(view: View) -> View:
    """Say that a view needs an authenticated caller and no permission. Decorates it."""
    setattr(view, _EXEMPT, True)
    return view


def install(app: Flask, *, strict: bool) -> None:
    """Watch the application's answers; ``strict`` turns an unchecked one into a 500."""

    def check(response: Response) -> Response:
        if not _is_unchecked(response):
            return response
        route = str(request.url_rule)
        UNCHECKED.labels(route).inc()
        _log.error("a view answered without an authorization check", route=route, method=request.method)
        return envelope(500, UNEXPECTED) if strict else response

    app.after_request(check)


def _is_unchecked(response: Response) -> bool:
    caller: AuthorizedCaller | None = g.get("caller")
    if caller is None or caller.consulted or response.status_code >= 400:
        return False
    view = current_app.view_functions[cast(str, request.endpoint)]
    return not getattr(view, _EXEMPT, False)
