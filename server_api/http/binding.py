"""Path parameters and typed query parameters are bound before anybody is authenticated (contract 1.3 step 3).

A malformed one is told to anybody, as is an unknown path or a wrong method. Everything else about a request is looked
at only once its caller is known.
"""

from __future__ import annotations

from typing import cast

from flask import Flask, current_app, request

from server_api.http import query


def install(app: Flask) -> None:
    """Bind the parameters of the application's requests. Install it before authentication."""
    app.before_request(_bind)


def _bind() -> None:
    # Flask itself raises this only after all functions like this one have run.
    if request.routing_exception is not None:
        raise request.routing_exception
    if request.method != "OPTIONS":
        query.check_types(current_app.view_functions[cast(str, request.endpoint)])
