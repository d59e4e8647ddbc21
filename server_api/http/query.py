"""What a view takes from the query string, and what happens to all the rest of it.

A view says so once, by ``ApiBlueprint.arguments(..., location="query")``; one that does not takes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from flask import current_app, request
from marshmallow import EXCLUDE, Schema

from server_api.http.errors import BadParameter
from server_api.http.parsing import MAX_NAME, RequestParser

View = TypeVar("View", bound=Callable[..., Any])

_SCHEMA = "_query_schema"
_TYPED = "_query_is_typed"

_parser = RequestParser()


def takes(view: View, schema: type[Schema], *, typed: bool) -> View:
    """Note what a view takes. ``typed``: the values have a type, so they are bound before authentication."""
    setattr(view, _SCHEMA, schema)
    setattr(view, _TYPED, typed)
    return view


def check_types(view: Callable[..., Any]) -> None:
    """Raise BadParameter when a typed parameter of the request in hand is malformed."""
    if getattr(view, _TYPED, False):
        _parser.parse(getattr(view, _SCHEMA), request, location="query", unknown=EXCLUDE)


def refuse_unexpected() -> None:
    """Raise BadParameter when the view of the request in hand takes no query parameters and there are some.

    Those of views that do take some are refused by their schemas.
    """
    view = current_app.view_functions[cast(str, request.endpoint)]
    if request.method == "OPTIONS" or hasattr(view, _SCHEMA):
        return
    for name in request.args:
        raise BadParameter(f"query parameter {name[:MAX_NAME]}", "unknown field")
