"""Names of the request in hand that are safe as labels: few, and not of the caller's making."""

from __future__ import annotations

from flask import request

UNMATCHED = "unmatched"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def route_template() -> str:
    """Return the route with its parameters unfilled, or ``unmatched``."""
    return UNMATCHED if request.url_rule is None else request.url_rule.rule


def method_name() -> str:
    """Return the method, ``OTHER`` if it is none of HTTP's usual ones."""
    return request.method if request.method in _METHODS else "OTHER"
