"""The error envelope (contract 2.16)."""

from __future__ import annotations

from marshmallow import fields, validate

from server_api.http.schemas.base import BodySchema

CODES = (
    "invalid_request",
    "server_error",
    "access_denied",
    "not_found",
    "conflict",
    "method_not_allowed",
    "unsupported_media_type",
    "request_entity_too_large",
    "unprocessable_content",
    "forbidden",
    # Not in the contract, where nothing limits callers. Sent only where an operator sets a limit.
    "too_many_requests",
)


class ErrorSchema(BodySchema):
    """What went wrong."""

    error = fields.String(
        required=True,
        validate=validate.OneOf(CODES),
        metadata={"description": "A stable code for programs.", "example": "not_found"},
    )
    error_description = fields.String(
        required=True,
        metadata={
            "description": "An explanation for people. It names the place in the request and never echoes values.",
            "example": "the server does not exist",
        },
    )
    trace_id = fields.String(
        validate=validate.Regexp(r"^[0-9a-f]{32}$"),
        metadata={
            "description": "The W3C trace the request belonged to. Operators find its log lines by it.",
            "example": "4bf92f3577b34da6a3ce929d0e0e4736",
        },
    )
