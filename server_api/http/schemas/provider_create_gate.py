"""Provider-create gates: what a create configures and what satisfies one of them (contract 1.11)."""

from __future__ import annotations

from typing import Any

from marshmallow import fields, post_load, validate

from server_api.http.schemas.base import BodySchema, FullMatch
from server_api.servers.provider_create_gates import GateAction

MAX_GATES = 16
MAX_CONDITION_TYPE = 316
MAX_REASON = 1024
MAX_MESSAGE = 32_768

CONDITION_TYPE_PATTERN = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
REASON_PATTERN = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"


def _condition_type() -> fields.String:
    return fields.String(
        data_key="conditionType",
        required=True,
        validate=[validate.Length(min=1, max=MAX_CONDITION_TYPE), FullMatch(CONDITION_TYPE_PATTERN)],
        metadata={
            "description": "The condition's type, in the form of a Kubernetes label key.",
            "example": "example.unikorn-cloud.org/pre-create-ready",
        },
    )


class GateSchema(BodySchema):
    """A condition that must be satisfied before the cloud is asked to create the server."""

    condition_type = _condition_type()


class GateActionSchema(BodySchema):
    """That a gate is satisfied, and why."""

    condition_type = _condition_type()
    reason = fields.String(
        required=True,
        validate=[validate.Length(min=1, max=MAX_REASON), FullMatch(REASON_PATTERN)],
        metadata={"description": "Why, in one word for programs.", "example": "AllocationReady"},
    )
    message = fields.String(
        required=True,
        validate=validate.Length(max=MAX_MESSAGE),
        metadata={"description": "Why, for people; may be empty.", "example": "Two addresses are set aside."},
    )

    @post_load
    def _make(self, data: dict[str, Any], **_kwargs: Any) -> GateAction:
        return GateAction(**data)


ACTION_EXAMPLE = {
    "conditionType": "example.unikorn-cloud.org/pre-create-ready",
    "reason": "AllocationReady",
    "message": "Two addresses are set aside.",
}
