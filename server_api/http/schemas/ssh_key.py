"""The private key that opens a server (contract 2.10)."""

from __future__ import annotations

from marshmallow import fields

from server_api.http.schemas.base import BodySchema


class SSHKeySchema(BodySchema):
    """A private SSH key."""

    private_key = fields.String(
        data_key="privateKey", required=True, metadata={"description": "The key as PEM text, as it is stored."}
    )


EXAMPLE = {"privateKey": "-----BEGIN OPENSSH PRIVATE KEY-----\n…\n-----END OPENSSH PRIVATE KEY-----\n"}
