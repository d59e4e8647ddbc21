"""Reading request bodies and query strings, and saying what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import marshmallow
import orjson
from flask import Request
from webargs.flaskparser import FlaskParser
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from server_api.http.errors import BadParameter

MAX_FAULTS = 5
"""How many faults of one body are named; a list of a thousand bad items is told by its first ones."""

MAX_NAME = 64


class RequestParser(FlaskParser):
    """webargs with a strict content type, orjson, and errors that name the place (contract 3.6)."""

    DEFAULT_VALIDATION_STATUS = 400

    def __init__(self) -> None:
        # None: each schema's own Meta decides. webargs would tell the outermost schema only, and not nested ones.
        super().__init__(unknown=None)

    def load_json(self, req: Request, schema: marshmallow.Schema) -> Any:
        """Return the decoded body. Raises UnsupportedMediaType, RequestEntityTooLarge, BadParameter."""
        _require_json(req)
        body = req.get_data(cache=False)
        # A body without a length, werkzeug cuts off at the limit in silence; ``application`` sets it one byte higher.
        if req.max_content_length is not None and len(body) >= req.max_content_length:
            raise RequestEntityTooLarge
        if not body.strip():
            raise BadParameter("body", "required")
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError:
            raise BadParameter("body", "not valid JSON") from None

    def load_querystring(self, req: Request, schema: marshmallow.Schema) -> Any:
        """Return the query parameters for the schema.

        Raises BadParameter when one cannot be decoded, or is given more often than it can be heeded.
        """
        _require_text(req.args)
        for name, field in schema.load_fields.items():
            key = field.data_key or name
            # webargs would take one of them in silence (B-51).
            if not isinstance(field, marshmallow.fields.List) and len(req.args.getlist(key)) > 1:
                raise BadParameter(f"query parameter {key}", "given more than once")
        return super().load_querystring(req, schema)

    def handle_error(
        self,
        error: marshmallow.ValidationError,
        req: Request,
        schema: marshmallow.Schema,
        *,
        error_status_code: int | None,
        error_headers: Mapping[str, str] | None,
    ) -> NoReturn:
        """Raise a BadParameter naming each place and reason, never a value."""
        messages: dict[str, Any] = error.normalized_messages()  # type: ignore[no-untyped-call]
        location, faults = next(iter(messages.items()))
        described = [_describe(location, path, reason) for path, reason in _flatten(faults)]
        more = len(described) - MAX_FAULTS
        text = "; ".join(described[:MAX_FAULTS]) + (f"; and {more} more" if more > 0 else "")
        raise BadParameter("", text) from None


def _require_json(req: Request) -> None:
    charset = req.mimetype_params.get("charset", "utf-8").lower()
    if req.mimetype != "application/json" or charset not in {"utf-8", "utf8"}:
        raise UnsupportedMediaType


def _require_text(arguments: MultiDict[str, str]) -> None:
    for name, value in arguments.items(multi=True):
        if "�" in name or "�" in value or "\x00" in name or "\x00" in value:
            raise BadParameter("query string", "not valid UTF-8 text")


def _flatten(faults: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield path and reason of every fault in marshmallow's nested messages."""
    if isinstance(faults, dict):
        for name, inner in faults.items():
            # marshmallow reports what concerns an object as a whole under the name _schema.
            yield from _flatten(inner, path if name == "_schema" else (*path, str(name)))
    elif isinstance(faults, list):
        for inner in faults:
            yield from _flatten(inner, path)
    else:
        yield path, str(faults)


def _describe(location: str, path: tuple[str, ...], reason: str) -> str:
    reason = reason[:1].lower() + reason[1:].removesuffix(".")
    names = [name[:MAX_NAME] for name in path]
    if location == "query":
        # A second element, if any, is the position in a repeated parameter.
        return f"query parameter {names[0]}: {reason}" if names else f"query string: {reason}"
    return f"/{'/'.join(names)}: {reason}" if names else f"body: {reason}"
