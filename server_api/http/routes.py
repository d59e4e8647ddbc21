"""Names of the request in hand that are safe as labels and in logs: few, and not of the caller's making."""

from __future__ import annotations

import re

from flask import request

UNMATCHED = "unmatched"

PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
"""Routes that machines of the operator's ask every few seconds."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def route_template() -> str:
    """Return the route with its parameters unfilled, or ``unmatched``."""
    return UNMATCHED if request.url_rule is None else request.url_rule.rule


def method_name() -> str:
    """Return the method, ``OTHER`` if it is none of HTTP's usual ones."""
    return request.method if request.method in _METHODS else "OTHER"


def operation_id(view_name: str) -> str:
    """Return the ID that the OpenAPI document gives the operation of a view, which is called after it."""
    return re.sub("_([a-z])", lambda match: match[1].upper(), view_name)


def current_operation() -> str | None:
    """Return the ID of the operation that the request in hand asks for, None when its path or method is unknown."""
    endpoint = request.endpoint
    return None if endpoint is None else operation_id(endpoint.rsplit(".", 1)[-1])
