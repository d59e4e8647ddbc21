"""Metadata of resources and their tags (contract 2.1 and 2.15)."""

from __future__ import annotations

from typing import Any

from marshmallow import fields, post_load, validate

from server_api.http.schemas.base import BodySchema, FullMatch, Identifier, Time
from server_api.servers.model import Tag

NAME_PATTERN = r"^[0-9A-Za-z](?:[0-9A-Za-z-_.]{0,61}[0-9A-Za-z])?$"

PROVISIONING_STATUSES = ("unknown", "pending", "provisioning", "provisioned", "deprovisioning", "error")
HEALTH_STATUSES = ("unknown", "healthy", "degraded", "error")
PROVISIONING_REASONS = (
    "Provisioning",
    "Provisioned",
    "Errored",
    "Deprovisioning",
    "Deprovisioned",
    "DependencyNotReady",
    "DependencyFailed",
    "DependencyNotFound",
)
HEALTH_REASONS = ("Healthy", "Degraded", "Unknown")


class TagSchema(BodySchema):
    """A name and a value attached to a resource."""

    name = fields.String(required=True, metadata={"description": "What is tagged.", "example": "team"})
    value = fields.String(required=True, metadata={"description": "How it is tagged.", "example": "storage"})

    @post_load
    def _make(self, data: dict[str, Any], **_kwargs: Any) -> Tag:
        return Tag(**data)


class ResourceWriteMetadataSchema(BodySchema):
    """What a caller says about a resource."""

    name = fields.String(
        required=True,
        validate=FullMatch(NAME_PATTERN),
        metadata={"description": "Display name, and the name of the instance in the cloud.", "example": "web-0"},
    )
    description = fields.String(metadata={"description": "Free text. An update without it clears it."})
    tags = fields.List(
        fields.Nested(TagSchema),
        metadata={"description": "Tags in order; names may repeat. An update without them clears them."},
    )


class ProvisioningStatusDetailSchema(BodySchema):
    """Why a resource has its provisioning status."""

    reason = fields.String(
        required=True,
        validate=validate.OneOf(PROVISIONING_REASONS),
        metadata={"description": "Why, in one word for programs."},
    )
    message = fields.String(required=True, metadata={"description": "An explanation for people."})


class HealthStatusDetailSchema(BodySchema):
    """Why a resource has its health status."""

    reason = fields.String(
        required=True,
        validate=validate.OneOf(HEALTH_REASONS),
        metadata={"description": "Why, in one word for programs."},
    )
    message = fields.String(required=True, metadata={"description": "An explanation for people."})


class ProjectScopedResourceReadMetadataSchema(BodySchema):
    """What is known about a resource that belongs to a project."""

    id = Identifier(required=True, metadata={"description": "The resource's ID."})
    name = fields.String(required=True, validate=FullMatch(NAME_PATTERN), metadata={"description": "Display name."})
    description = fields.String(metadata={"description": "Free text."})
    tags = fields.List(fields.Nested(TagSchema), metadata={"description": "Tags, omitted when there are none."})
    creation_time = Time(data_key="creationTime", required=True, description="When the resource was created.")
    created_by = fields.String(data_key="createdBy", metadata={"description": "The subject that created it."})
    modified_time = Time(data_key="modifiedTime", description="When it was last updated.")
    modified_by = fields.String(data_key="modifiedBy", metadata={"description": "The subject that last updated it."})
    deletion_time = Time(data_key="deletionTime", description="When its deletion was asked for.")
    provisioning_status = fields.String(
        data_key="provisioningStatus",
        required=True,
        validate=validate.OneOf(PROVISIONING_STATUSES),
        metadata={"description": "How far the cloud matches what was asked for. Provisioned means settled."},
    )
    provisioning_status_detail = fields.Nested(
        ProvisioningStatusDetailSchema,
        data_key="provisioningStatusDetail",
        metadata={"description": "Omitted before the first attempt."},
    )
    health_status = fields.String(
        data_key="healthStatus",
        required=True,
        validate=validate.OneOf(HEALTH_STATUSES),
        metadata={"description": "How the resource is doing in the cloud."},
    )
    health_status_detail = fields.Nested(
        HealthStatusDetailSchema, data_key="healthStatusDetail", metadata={"description": "Omitted when unknown."}
    )
    organization_id = fields.String(
        data_key="organizationId", required=True, metadata={"description": "The organization it belongs to."}
    )
    project_id = fields.String(
        data_key="projectId", required=True, metadata={"description": "The project it belongs to."}
    )
