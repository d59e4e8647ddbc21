"""A v2 server: what a caller may ask for and what a read shows (contract 2.4 to 2.8)."""

from __future__ import annotations

from typing import Any

from marshmallow import fields, post_load, validate

from server_api.http.schemas.base import Base64Bytes, BodySchema, Identifier, StrictBoolean
from server_api.http.schemas.metadata import (
    ProjectScopedResourceReadMetadataSchema,
    ResourceWriteMetadataSchema,
)
from server_api.http.schemas.provider_create_gate import MAX_GATES, GateSchema
from server_api.servers.model import Phase, SSHInjection
from server_api.servers.requests import Networking, ServerCreate, ServerUpdate

SSH_MODES = tuple(mode.value for mode in SSHInjection)

_NETWORK_ID = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
_REGION_ID = "b3a4cbb1-1f9e-4c31-9f43-0b9ac6b5d0c7"
_FLAVOR_ID = "c7568e2d-f9ab-453d-9a3a-51375f78426b"
_IMAGE_ID = "9e1c9ad1-5c1f-4f2a-8a6f-3c0f6f4f2a55"


class ServerV2NetworkingSchema(BodySchema):
    """How the server's port is connected."""

    security_groups = fields.List(
        Identifier(),
        data_key="securityGroups",
        metadata={"description": "IDs of security groups on the server's network. Repeated IDs count once."},
    )
    public_ip = StrictBoolean(
        data_key="publicIP", metadata={"description": "Whether the server gets a public address."}
    )
    allowed_source_addresses = fields.List(
        fields.String(),
        data_key="allowedSourceAddresses",
        metadata={
            "description": "IPv4 prefixes the server may send from besides its own address. Host bits are masked off.",
            "example": ["10.0.0.0/24"],
        },
    )

    @post_load
    def _make(self, data: dict[str, Any], **_kwargs: Any) -> Networking:
        return Networking(
            security_group_ids=tuple(data.get("security_groups", ())),
            public_ip=data.get("public_ip", False),
            allowed_source_addresses=tuple(data.get("allowed_source_addresses", ())),
        )


class ServerV2SpecSchema(BodySchema):
    """What was asked for, as far as reads show it and updates may say it."""

    flavor_id = Identifier(
        data_key="flavorId", required=True, metadata={"description": "The flavor. It cannot be changed."}
    )
    image_id = Identifier(
        data_key="imageId",
        required=True,
        metadata={
            "description": "The image the server boots from. Changing it is destructive: the root disk is rebuilt and "
            "what was on it is lost, even if the rebuild fails."
        },
    )
    networking = fields.Nested(
        ServerV2NetworkingSchema, metadata={"description": "Omitted when there is nothing in it."}
    )
    user_data = Base64Bytes(
        data_key="userData",
        metadata={
            "description": "User data for the first boot, as standard base64 with padding. An update replaces it as a "
            "whole, and without it clears it; a running server does not see the change.",
        },
    )


class ServerV2CreateSpecSchema(ServerV2SpecSchema):
    """What a create asks for."""

    network_id = Identifier(
        data_key="networkId",
        required=True,
        metadata={"description": "The network, which fixes region, identity, organization and project."},
    )
    ssh_certificate_authority_id = fields.String(
        data_key="sshCertificateAuthorityId",
        metadata={"description": "The SSH certificate authority whose signatures the server trusts."},
    )
    ssh_injection = fields.String(
        data_key="sshInjection",
        validate=validate.OneOf(SSH_MODES),
        metadata={
            "description": "How the first user gets in. Without it: `ca` with a certificate authority, otherwise "
            "`identityKeypair`."
        },
    )
    infrastructure_ref = fields.String(
        data_key="infrastructureRef",
        validate=validate.Length(min=1),
        metadata={"description": "A physical host to place the server on, past the scheduler. It cannot be changed."},
    )
    provider_create_gates = fields.List(
        fields.Nested(GateSchema),
        data_key="providerCreateGates",
        validate=validate.Length(max=MAX_GATES),
        metadata={
            "description": f"Gates to be satisfied before the cloud is asked for the server: at most {MAX_GATES}, each "
            "once. They cannot be changed."
        },
    )


class ServerV2CreateSchema(BodySchema):
    """A server to create."""

    metadata = fields.Nested(ResourceWriteMetadataSchema, required=True)
    spec = fields.Nested(ServerV2CreateSpecSchema, required=True)

    @post_load
    def _make(self, data: dict[str, Any], **_kwargs: Any) -> ServerCreate:
        spec = data["spec"]
        gates = spec.get("provider_create_gates")
        return ServerCreate(
            **_replaceable(data["metadata"], spec),
            network_id=spec["network_id"],
            ssh_certificate_authority_id=spec.get("ssh_certificate_authority_id"),
            ssh_injection=spec.get("ssh_injection"),
            infrastructure_ref=spec.get("infrastructure_ref"),
            provider_create_gates=None if gates is None else tuple(gate["condition_type"] for gate in gates),
        )


class ServerV2UpdateSchema(BodySchema):
    """What to replace of a server. Members that only a create knows are ignored."""

    metadata = fields.Nested(ResourceWriteMetadataSchema, required=True)
    spec = fields.Nested(ServerV2SpecSchema, required=True)

    @post_load
    def _make(self, data: dict[str, Any], **_kwargs: Any) -> ServerUpdate:
        return ServerUpdate(**_replaceable(data["metadata"], data["spec"]))


def _replaceable(metadata: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """Return what creates and updates have in common, as arguments of either request."""
    return {
        "name": metadata["name"],
        "description": metadata.get("description"),
        "tags": tuple(metadata.get("tags", ())),
        "flavor_id": spec["flavor_id"],
        "image_id": spec["image_id"],
        "networking": spec.get("networking", Networking()),
        "user_data": spec.get("user_data"),
    }


class ServerV2StatusSchema(BodySchema):
    """What was observed of a server, and what creation fixed."""

    region_id = Identifier(data_key="regionId", required=True, metadata={"description": "The region the server is in."})
    network_id = Identifier(
        data_key="networkId", required=True, metadata={"description": "The network the server is on."}
    )
    ssh_certificate_authority_id = fields.String(
        data_key="sshCertificateAuthorityId", metadata={"description": "The SSH certificate authority it trusts."}
    )
    ssh_injection = fields.String(
        data_key="sshInjection",
        required=True,
        validate=validate.OneOf(SSH_MODES),
        metadata={"description": "How the first user gets in."},
    )
    infrastructure_ref = fields.String(
        data_key="infrastructureRef", metadata={"description": "The physical host it was placed on."}
    )
    remaining_provider_create_gates = fields.List(
        fields.String(),
        data_key="remainingProviderCreateGates",
        metadata={"description": "Gates not yet satisfied; omitted when none was configured."},
    )
    power_state = fields.String(
        data_key="powerState",
        validate=validate.OneOf([phase.value for phase in Phase]),
        metadata={"description": "The live phase; omitted before anything was observed."},
    )
    private_ip = fields.String(
        data_key="privateIP", metadata={"description": "Address on its network.", "example": "192.168.0.7"}
    )
    public_ip = fields.String(
        data_key="publicIP", metadata={"description": "Public address, if it has one.", "example": "203.0.113.7"}
    )
    mac_address = fields.String(
        data_key="macAddress", metadata={"description": "MAC address of its port.", "example": "fa:16:3e:4c:2c:30"}
    )


class ServerV2ReadSchema(BodySchema):
    """A server."""

    metadata = fields.Nested(ProjectScopedResourceReadMetadataSchema, required=True)
    spec = fields.Nested(ServerV2SpecSchema, required=True)
    status = fields.Nested(ServerV2StatusSchema, required=True)


CREATE_EXAMPLE = {
    "metadata": {"name": "web-0", "description": "Front end", "tags": [{"name": "team", "value": "storage"}]},
    "spec": {
        "networkId": _NETWORK_ID,
        "flavorId": _FLAVOR_ID,
        "imageId": _IMAGE_ID,
        "networking": {"publicIP": True, "allowedSourceAddresses": ["10.0.0.0/24"]},
        "userData": "I2Nsb3VkLWNvbmZpZwpwYWNrYWdlczogW25naW54XQo=",
    },
}

UPDATE_EXAMPLE = {
    "metadata": {"name": "web-0", "description": "Front end, second row"},
    "spec": {"flavorId": _FLAVOR_ID, "imageId": _IMAGE_ID, "networking": {"publicIP": True}},
}

READ_EXAMPLE = {
    "metadata": {
        "id": "fe259b5e-8ccd-579f-b2ad-8dc4b919d738",
        "name": "web-0",
        "description": "Front end",
        "tags": [{"name": "team", "value": "storage"}],
        "creationTime": "2026-05-04T09:30:00Z",
        "createdBy": "alice@example.com",
        "provisioningStatus": "provisioned",
        "healthStatus": "healthy",
        "organizationId": "5f0e1c0e-6d0c-4f8e-9a53-8f3f6e0f6f10",
        "projectId": "0c8d2f6a-7f43-4c52-8f0c-9d1a3c3b9a77",
    },
    "spec": {"flavorId": _FLAVOR_ID, "imageId": _IMAGE_ID, "networking": {"publicIP": True}},
    "status": {
        "regionId": _REGION_ID,
        "networkId": _NETWORK_ID,
        "sshInjection": "identityKeypair",
        "powerState": "Running",
        "privateIP": "192.168.0.7",
        "publicIP": "203.0.113.7",
        "macAddress": "fa:16:3e:4c:2c:30",
    },
}
