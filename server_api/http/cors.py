"""Cross-origin requests (contract 1.12), for the origins that the settings name.

Off unless one is named: the callers are services, and a page in somebody's browser is none of them.
"""

from __future__ import annotations

from typing import cast

from flask import Flask, Response, current_app, request
from werkzeug.routing import MapAdapter

from server_api.http import responses
from server_api.http.errors import BadParameter
from server_api.http.routes import UNMATCHED, route_template

_HEADERS = "Authorization, Content-Type, traceparent, tracestate"
_MAX_AGE = "86400"


def install(app: Flask, setting: str) -> None:
    """Answer preflight requests, before authentication, and mark every response. Does nothing without an origin.

    ``setting`` names origins with commas between. The one that asks is allowed if it is named; any other is told the
    first, which its browser refuses.
    """
    origins = [origin for origin in map(str.strip, setting.split(",")) if origin]
    if not origins:
        return

    def mark(response: Response) -> Response:
        asking = request.headers.get("Origin", "")
        response.headers["Access-Control-Allow-Origin"] = asking if asking in origins else origins[0]
        if len(origins) > 1:
            response.vary.add("Origin")
        return response

    app.before_request(_preflight)
    app.after_request(mark)


def _preflight() -> Response | None:
    if request.method != "OPTIONS" or route_template() == UNMATCHED:
        return None
    if "Access-Control-Request-Method" not in request.headers:
        raise BadParameter("header Access-Control-Request-Method", "required")
    adapter = cast(MapAdapter, current_app.create_url_adapter(request))
    methods = ", ".join(sorted({*adapter.allowed_methods(), "OPTIONS"}))
    response = responses.empty(204)
    response.headers["Access-Control-Allow-Methods"] = methods
    response.headers["Access-Control-Allow-Headers"] = _HEADERS
    response.headers["Access-Control-Max-Age"] = _MAX_AGE
    return response
