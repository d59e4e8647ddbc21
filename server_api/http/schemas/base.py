"""What all schemas share: strict fields, and what happens to unknown members."""

from __future__ import annotations

import base64
import binascii
import inspect
import re
from collections.abc import Mapping
from typing import Any

from marshmallow import EXCLUDE, RAISE, Schema, ValidationError, fields, validate

from server_api.http.identifiers import canonical_uuid


class BodySchema(Schema):
    """A JSON object. Unknown members are ignored at every level, so that what was read can be written back."""

    class Meta:
        """marshmallow's options."""

        unknown = EXCLUDE

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Let the docstring of each schema be its description in the OpenAPI document."""
        super().__init_subclass__(**arguments)
        cls.Meta = type("Meta", (cls.Meta,), {"description": inspect.getdoc(cls)})  # type: ignore[assignment, misc]


class QuerySchema(Schema):
    """Query parameters. Unknown ones are refused: a misspelt filter must not select everything."""

    class Meta:
        """marshmallow's options."""

        unknown = RAISE


class StrictBoolean(fields.Field[bool]):
    """``true`` or ``false`` and nothing that merely looks like it."""

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any) -> bool:
        if not isinstance(value, bool):
            raise ValidationError("Not a boolean.")
        return value


class Identifier(fields.Field[str]):
    """A UUID in any textual form of contract section 0, loaded in canonical form."""

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any) -> str:
        try:
            return canonical_uuid(value)
        except ValueError:
            raise ValidationError("Not a valid UUID.") from None


class Base64Bytes(fields.Field[bytes]):
    """Bytes as standard base64 with padding, and without line breaks."""

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any) -> bytes:
        if not isinstance(value, str):
            raise ValidationError("Not valid base64 (standard alphabet, with padding).")
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise ValidationError("Not valid base64 (standard alphabet, with padding).") from None


class FullMatch(validate.Regexp):
    """Like ``Regexp``, for the whole text: Python's ``$`` also matches before a trailing line break."""

    def __call__(self, value: Any) -> Any:
        """Return the value. Raises ValidationError."""
        if re.fullmatch(self.regex, value) is None:
            raise ValidationError("Does not match the required pattern.")
        return value


class Time(fields.DateTime):
    """A moment, as RFC 3339 in UTC."""

    def __init__(self, *, data_key: str, description: str, required: bool = False) -> None:
        super().__init__(
            format="iso",
            data_key=data_key,
            required=required,
            metadata={"description": description, "example": "2026-05-04T09:30:00Z"},
        )
