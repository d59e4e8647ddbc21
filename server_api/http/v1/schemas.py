"""What v1 takes and shows (contract 2.2 and 2.3). Here and not beside v2's, so that it goes when v1 goes."""

from __future__ import annotations

from typing import Any

from marshmallow import EXCLUDE, fields, post_load, validate

from server_api.http.identifiers import canonical_uuid
from server_api.http.schemas.base import Base64Bytes, BodySchema, Identifier, QuerySchema, StrictBoolean
from server_api.http.schemas.console import ConsoleOutputQuerySchema
from server_api.http.schemas.metadata import ProjectScopedResourceReadMetadataSchema, ResourceWriteMetadataSchema
from server_api.http.schemas.server_query import TagSelector
from server_api.servers.model import AddressPair, Phase, Tag
from server_api.servers.v1.requests import ServerWrite

_NETWORK_ID = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
_FLAVOR_ID = "c7568e2d-f9ab-453d-9a3a-51375f78426b"
_IMAGE_ID = "9e1c9ad1-5c1f-4f2a-8a6f-3c0f6f4f2a55"


class ServerV1QuerySchema(QuerySchema):
    """What a list is restricted to. v1 has always ignored what it does not know."""

    class Meta:
        """marshmallow's options."""

        unknown = EXCLUDE

    tag = fields.List(
        TagSelector(metadata={"example": "team=storage"}),
        metadata={"description": "Only servers with this tag, as `name=value`. May be repeated: all of them then."},
    )

    @post_load
    def _make(self, data: dict[str, Any], **_kwargs: Any) -> tuple[Tag, ...]:
        return tuple(data.get("tag", ()))


class ConsoleOutputV1QuerySchema(ConsoleOutputQuerySchema):
    """How much of the output is wanted."""

    class Meta:
        """marshmallow's options."""

        unknown = EXCLUDE


class ServerV1AddressPairSchema(BodySchema):
    """Source addresses the server may send from."""

    cidr = fields.String(
        required=True,
        metadata={
            "description": "An IPv4 prefix. Host bits are masked off, and what is no prefix is left out in silence.",
            "example": "10.0.0.0/24",
        },
    )
    mac_address = fields.String(
        data_key="macAddress", metadata={"description": "The MAC address it may send them with."}
    )

    @post_load
    def _make(self, data: dict[str, Any], **_kwargs: Any) -> AddressPair:
        return AddressPair(data["cidr"], data.get("mac_address", ""))


class ServerV1NetworkSchema(BodySchema):
    """A network the server is on."""

    id = fields.String(required=True, metadata={"description": "The network's ID.", "example": _NETWORK_ID})
    allowed_address_pairs = fields.List(
        fields.Nested(ServerV1AddressPairSchema),
        data_key="allowedAddressPairs",
        metadata={"description": "Source addresses the server may send from besides its own."},
    )


class ServerV1PublicIPAllocationSchema(BodySchema):
    """Whether the server gets a public address."""

    enabled = StrictBoolean(required=True, metadata={"description": "Whether it gets one."})


class ServerV1SecurityGroupSchema(BodySchema):
    """A security group of the server."""

    id = fields.String(required=True, metadata={"description": "The security group's ID, which has to be a UUID."})


class ServerV1SpecSchema(BodySchema):
    """What was asked for."""

    flavor_id = Identifier(data_key="flavorId", required=True, metadata={"description": "The flavor. Not checked."})
    image_id = Identifier(
        data_key="imageId",
        required=True,
        metadata={"description": "The image the server boots from. An update ignores it, whatever it is."},
    )
    networks = fields.List(
        fields.Nested(ServerV1NetworkSchema),
        required=True,
        validate=validate.Length(min=1, max=1),
        metadata={"description": "The network the server is on: exactly one."},
    )
    public_ip_allocation = fields.Nested(
        ServerV1PublicIPAllocationSchema,
        data_key="publicIPAllocation",
        metadata={"description": "Whether the server gets a public address. An update without it clears it."},
    )
    security_groups = fields.List(
        fields.Nested(ServerV1SecurityGroupSchema),
        data_key="securityGroups",
        metadata={"description": "Security groups. Not checked; an update without them clears them."},
    )
    user_data = Base64Bytes(
        data_key="userData",
        metadata={"description": "User data for the first boot, as standard base64 with padding. Not checked."},
    )


class ServerV1WriteSchema(BodySchema):
    """A server to create, or what to replace of one."""

    metadata = fields.Nested(ResourceWriteMetadataSchema, required=True)
    spec = fields.Nested(ServerV1SpecSchema, required=True)

    @post_load
    def _make(self, data: dict[str, Any], **_kwargs: Any) -> ServerWrite:
        metadata, spec = data["metadata"], data["spec"]
        [network] = spec["networks"]
        pairs, groups = network.get("allowed_address_pairs"), spec.get("security_groups")
        allocation = spec.get("public_ip_allocation")
        return ServerWrite(
            name=metadata["name"],
            description=metadata.get("description"),
            tags=tuple(metadata.get("tags", ())),
            flavor_id=spec["flavor_id"],
            image_id=spec["image_id"],
            network_id=_uuid(network["id"]),
            address_pairs=None if pairs is None else tuple(pairs),
            security_group_ids=None if groups is None else tuple(_uuid(group["id"]) for group in groups),
            public_ip=None if allocation is None else allocation["enabled"],
            user_data=spec.get("user_data"),
        )


class ServerV1StatusSchema(BodySchema):
    """What was observed of a server."""

    phase = fields.String(
        validate=validate.OneOf([phase.value for phase in Phase]),
        metadata={"description": "The live phase; omitted before anything was observed."},
    )
    private_ip = fields.String(
        data_key="privateIP", metadata={"description": "Address on its network.", "example": "192.168.0.7"}
    )
    public_ip = fields.String(
        data_key="publicIP", metadata={"description": "Public address, if it has one.", "example": "203.0.113.7"}
    )


class ServerV1ReadSchema(BodySchema):
    """A server."""

    metadata = fields.Nested(ProjectScopedResourceReadMetadataSchema, required=True)
    spec = fields.Nested(ServerV1SpecSchema, required=True)
    status = fields.Nested(ServerV1StatusSchema, required=True)


def _uuid(text: str) -> str | None:
    """Return an ID in canonical form, None for text that is none: contract 1.4 has it found out after permissions."""
    try:
        return canonical_uuid(text)
    except ValueError:
        return None


WRITE_EXAMPLE = {
    "metadata": {"name": "web-0", "description": "Front end"},
    "spec": {
        "flavorId": _FLAVOR_ID,
        "imageId": _IMAGE_ID,
        "networks": [{"id": _NETWORK_ID, "allowedAddressPairs": [{"cidr": "10.0.0.0/24"}]}],
        "publicIPAllocation": {"enabled": True},
    },
}

READ_EXAMPLE = {
    "metadata": {
        "id": "d4fdbd1f-52a5-4c76-a2c2-5f8a7d6c0b11",
        "name": "web-0",
        "description": "Front end",
        "creationTime": "2026-05-04T09:30:00Z",
        "createdBy": "alice@example.com",
        "provisioningStatus": "provisioned",
        "healthStatus": "healthy",
        "organizationId": "5f0e1c0e-6d0c-4f8e-9a53-8f3f6e0f6f10",
        "projectId": "0c8d2f6a-7f43-4c52-8f0c-9d1a3c3b9a77",
    },
    "spec": WRITE_EXAMPLE["spec"],
    "status": {"phase": "Running", "privateIP": "192.168.0.7", "publicIP": "203.0.113.7"},
}
