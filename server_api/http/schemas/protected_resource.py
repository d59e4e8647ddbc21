"""Where callers get their tokens (contract 2.14, RFC 9728)."""

from __future__ import annotations

from marshmallow import fields

from server_api.http.schemas.base import BodySchema


class ProtectedResourceSchema(BodySchema):
    """What a client has to know to get a token for this API."""

    resource = fields.String(required=True, metadata={"description": "The API that the tokens are for."})
    authorization_servers = fields.List(
        fields.String(),
        required=True,
        metadata={"description": "Who issues tokens; empty when the operator hands them out."},
    )
    scopes_supported = fields.List(fields.String(), required=True, metadata={"description": "Scopes to ask for."})
    bearer_methods_supported = fields.List(
        fields.String(), required=True, metadata={"description": "How a token is sent."}
    )
