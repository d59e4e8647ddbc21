"""The service's name and version (contract 2.13)."""

from __future__ import annotations

from marshmallow import fields, validate

from server_api.http.schemas.base import BodySchema

SEMANTIC_VERSION = (
    r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$"
)


class ServiceVersionSchema(BodySchema):
    """Which program answers."""

    name = fields.String(
        required=True, metadata={"description": "The program's name.", "example": "unikorn-region-server-api"}
    )
    version = fields.String(
        required=True,
        validate=validate.Regexp(SEMANTIC_VERSION),
        metadata={"description": "Its semantic version; 0.0.0 when it was not stamped.", "example": "1.2.3"},
    )
