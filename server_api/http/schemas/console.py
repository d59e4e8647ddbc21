"""The console of a server: its output, and sessions with it (contract 1.2 and 2.11)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, fields, post_load, validate

from server_api.http.schemas.base import BodySchema, QuerySchema
from server_api.servers.console import MAX_LINES


class DecimalNumber(fields.Integer):
    """A whole number in plain decimal digits: what ``int`` would take besides (signs, blanks, ``1_0``) is refused."""

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any) -> int:
        # As many digits as any bound has: Python itself refuses to convert thousands of them.
        if not isinstance(value, str) or not re.fullmatch("[0-9]{1,9}", value, re.ASCII):
            raise ValidationError("Not a whole number in decimal digits, or too large.")
        return int(value)


class ConsoleOutputQuerySchema(QuerySchema):
    """How much of the output is wanted."""

    length = DecimalNumber(
        validate=validate.Range(min=0, max=MAX_LINES),
        metadata={
            "description": f"How many lines to return, counted from the end: at most {MAX_LINES}. Without it, or with "
            "0, the cloud decides.",
            "example": 50,
        },
    )

    @post_load
    def _make(self, data: dict[str, Any], **_kwargs: Any) -> int | None:
        length: int | None = data.get("length")
        return length


class ConsoleOutputSchema(BodySchema):
    """What a server wrote to its console."""

    contents = fields.String(required=True, metadata={"description": "The lines, oldest first."})


class ConsoleSessionSchema(BodySchema):
    """A session with a server's console."""

    url = fields.String(
        required=True,
        metadata={"description": "Where a browser finds the console. Whoever has this URL has the console."},
    )


OUTPUT_EXAMPLE = {"contents": "[    0.000000] Linux version 6.8.0\nweb-0 login: "}
SESSION_EXAMPLE = {"url": "https://console.example.com/vnc_lite.html?path=%3Ftoken%3D…"}
