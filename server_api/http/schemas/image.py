"""An image: what a snapshot is asked for with, and what a read shows (contract 2.9)."""

from __future__ import annotations

from typing import Any

from marshmallow import fields, post_load, validate

from server_api.http.schemas.base import BodySchema, Identifier, Time
from server_api.http.schemas.metadata import ResourceWriteMetadataSchema, TagSchema
from server_api.servers.cloud_model import ImageState
from server_api.servers.snapshots import SnapshotCreate

ARCHITECTURES = ("x86_64", "aarch64")
VIRTUALIZATIONS = ("virtualized", "baremetal", "any")
KERNELS = ("linux",)
GPU_VENDORS = ("NVIDIA", "AMD")
SOFTWARE_VERSION = r"^v\d+\.\d+\.\d+$"


class SnapshotCreateSpecSchema(BodySchema):
    """What a snapshot is like. It has no members yet."""


class SnapshotCreateSchema(BodySchema):
    """A snapshot to create. The name and the tags become the image's; an image has no description."""

    metadata = fields.Nested(ResourceWriteMetadataSchema, required=True)
    spec = fields.Nested(SnapshotCreateSpecSchema, required=True)

    @post_load
    def _make(self, data: dict[str, Any], **_kwargs: Any) -> SnapshotCreate:
        metadata = data["metadata"]
        return SnapshotCreate(name=metadata["name"], tags=tuple(metadata.get("tags", ())))


class StaticResourceReadMetadataSchema(BodySchema):
    """What is known about a resource that nothing provisions."""

    id = Identifier(required=True, metadata={"description": "The resource's ID."})
    name = fields.String(required=True, metadata={"description": "Display name."})
    tags = fields.List(fields.Nested(TagSchema), metadata={"description": "Tags by name, omitted when there are none."})
    creation_time = Time(data_key="creationTime", required=True, description="When the resource was created.")


class ImageOperatingSystemSchema(BodySchema):
    """The operating system in an image, as far as the image tells."""

    kernel = fields.String(validate=validate.OneOf(KERNELS), metadata={"description": "Its kernel."})
    family = fields.String(metadata={"description": "The family of distributions.", "example": "debian"})
    distro = fields.String(metadata={"description": "The distribution.", "example": "ubuntu"})
    version = fields.String(metadata={"description": "The distribution's version.", "example": "24.04"})
    variant = fields.String(metadata={"description": "A variant of the distribution.", "example": "server"})
    codename = fields.String(metadata={"description": "The version's name.", "example": "noble"})


class ImageGPUSchema(BodySchema):
    """The graphics processors that an image has a driver for."""

    vendor = fields.String(
        required=True, validate=validate.OneOf(GPU_VENDORS), metadata={"description": "Who makes them."}
    )
    driver = fields.String(required=True, metadata={"description": "The driver's version.", "example": "550.90.07"})
    models = fields.List(
        fields.String(), metadata={"description": "The models it supports.", "example": ["A100", "H100"]}
    )


class ImageSpecSchema(BodySchema):
    """What is in an image. What the image does not tell, or not in a way this service knows, is omitted."""

    architecture = fields.String(
        validate=validate.OneOf(ARCHITECTURES), metadata={"description": "The processors it runs on."}
    )
    size_gib = fields.Integer(
        data_key="sizeGiB",
        required=True,
        strict=True,
        metadata={"description": "The smallest disk it fits on, in GiB; 0 while that is not known yet.", "minimum": 0},
    )
    virtualization = fields.String(
        validate=validate.OneOf(VIRTUALIZATIONS), metadata={"description": "The kinds of flavor it runs on."}
    )
    operating_system = fields.Nested(ImageOperatingSystemSchema, data_key="os", required=True)
    software_versions = fields.Dict(
        keys=fields.String(),
        values=fields.String(validate=validate.Regexp(SOFTWARE_VERSION)),
        data_key="softwareVersions",
        metadata={"description": "Versions of software in it, by name.", "example": {"kubernetes": "v1.31.2"}},
    )
    gpu = fields.Nested(ImageGPUSchema, metadata={"description": "Omitted when it is not for graphics processors."})


class ImageStatusSchema(BodySchema):
    """What became of an image."""

    state = fields.String(
        required=True,
        validate=validate.OneOf([state.value for state in ImageState]),
        metadata={"description": "Servers can be created from it once it is ready."},
    )


class ImageSchema(BodySchema):
    """An image."""

    metadata = fields.Nested(StaticResourceReadMetadataSchema, required=True)
    spec = fields.Nested(ImageSpecSchema, required=True)
    status = fields.Nested(ImageStatusSchema, required=True)


SNAPSHOT_EXAMPLE = {
    "metadata": {"name": "web-0-before-upgrade", "tags": [{"name": "team", "value": "storage"}]},
    "spec": {},
}

EXAMPLE = {
    "metadata": {
        "id": "3b0f9f0c-2f0e-4d0b-9a1e-0a6f3f1d7c55",
        "name": "web-0-before-upgrade",
        "tags": [
            {"name": "images.unikorn-cloud.org:organization-id", "value": "5f0e1c0e-6d0c-4f8e-9a53-8f3f6e0f6f10"},
            {"name": "images.unikorn-cloud.org:source", "value": "snapshot"},
            {"name": "team", "value": "storage"},
        ],
        "creationTime": "2026-05-04T09:30:00Z",
    },
    "spec": {
        "architecture": "x86_64",
        "sizeGiB": 20,
        "virtualization": "virtualized",
        "os": {"kernel": "linux", "family": "debian", "distro": "ubuntu", "version": "24.04", "codename": "noble"},
        "softwareVersions": {"kubernetes": "v1.31.2"},
    },
    "status": {"state": "pending"},
}
