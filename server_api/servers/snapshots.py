"""Snapshots: from a server to an image of its organization (contract 1.10, 6.9 and 6.11)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from server_api import deadline
from server_api.servers.cloud_model import Image
from server_api.servers.errors import Forbidden, InvalidRequest, NotFound, Unprocessable
from server_api.servers.lookup import instance_of, readable_server, region_of, tenancy_of
from server_api.servers.model import Server, Tag
from server_api.servers.offers import visible_image
from server_api.servers.ports import (
    Caller,
    Cloud,
    Directory,
    Missing,
    PortError,
    ServerStore,
    StateConflict,
    Tenancy,
)

PERMISSION = "region:images"
TAG_PREFIX = "unikorn:tag:"

MAX_TAG_NAME = 255 - len(TAG_PREFIX)
"""Characters of a tag's name that fit into the name of a Glance property."""

MAX_TAGS = 64
"""Tags of a snapshot. Glance takes 128 properties by default, and others than tags need some."""

CLEAN_UP_SECONDS = 3.0
"""What a request may take longer for the deletion of an image that could not be published."""

# What belongs to the image it was copied from, and not to its content.
_NOT_COPIED = frozenset({"unikorn:digest", "unikorn:identity_id", "unikorn:organization:id"})

_HARDWARE = {"hw_disk_bus": "scsi", "hw_firmware_type": "uefi", "hw_scsi_model": "virtio-scsi"}
_MACHINE_TYPES = {"x86_64": "q35", "aarch64": "virt"}


@dataclass(frozen=True, slots=True)
class SnapshotCreate:
    """Body of a snapshot request."""

    name: str
    tags: tuple[Tag, ...] = ()


class Snapshots:
    """Makes images of servers."""

    def __init__(self, servers: ServerStore, directory: Directory, cloud: Cloud) -> None:
        self._servers = servers
        self._directory = directory
        self._cloud = cloud

    def create(self, caller: Caller, server_id: str, request: SnapshotCreate) -> Image:
        """Begin an image of a server's root disk and return it; it is usually not ready yet.

        Needs the right to read the server and to create images in its organization. Raises NotFound, Forbidden,
        InvalidRequest when the instance's state does not allow it, Unprocessable for a tag's name that is too long,
        PortError when the cloud fails.
        """
        server = readable_server(self._servers, caller, server_id)
        tenancy = tenancy_of(self._directory, self._cloud, server)
        if not caller.may(PERMISSION, "create", server.metadata.organization_id):
            raise Forbidden("creating images is not allowed in the server's organization")
        _check_tags(request)
        catalogue = self._cloud.catalogue(region_of(self._directory, server))
        source = visible_image(catalogue.images(), server.spec.image_id or "", server.metadata.organization_id, None)
        properties = snapshot_properties(source, server, request)
        image = _publish(tenancy, _create(tenancy, server, request.name, properties), properties)
        catalogue.add_image(image)
        return image


def snapshot_properties(source: Image, server: Server, request: SnapshotCreate) -> dict[str, str]:
    """Return the Glance properties of the new image: the source's, but for its tags and owner, and our own."""
    copied = {
        name: value
        for name, value in source.properties.items()
        if name not in _NOT_COPIED and not name.startswith(TAG_PREFIX)
    }
    if source.architecture:
        copied["architecture"] = source.architecture
    requested = {f"{TAG_PREFIX}{tag.name}": tag.value for tag in request.tags}
    organization_id = server.metadata.organization_id
    # Ours come last: no tag of a request can pass for them.
    return {
        **copied,
        **_HARDWARE,
        "hw_machine_type": _MACHINE_TYPES.get(source.architecture or "x86_64", "q35"),
        **requested,
        f"{TAG_PREFIX}images.unikorn-cloud.org:source": "snapshot",
        f"{TAG_PREFIX}images.unikorn-cloud.org:organization-id": organization_id,
        "unikorn:organization:id": organization_id,
        "unikorn:identity_id": server.metadata.identity_id or "",
    }


def _check_tags(request: SnapshotCreate) -> None:
    """Refuse what Glance does not take as a property."""
    if len(request.tags) > MAX_TAGS:
        raise Unprocessable(f"more than {MAX_TAGS} tags", "metadata.tags")
    for index, tag in enumerate(request.tags):
        if len(tag.name) > MAX_TAG_NAME:
            raise Unprocessable(f"longer than {MAX_TAG_NAME} characters", f"metadata.tags[{index}].name")
        for member, text in (("name", tag.name), ("value", tag.value)):
            if any(character > "\uffff" for character in text):
                raise Unprocessable("characters beyond U+FFFF are not possible", f"metadata.tags[{index}].{member}")


def _create(tenancy: Tenancy, server: Server, name: str, properties: Mapping[str, str]) -> str:
    instance = instance_of(tenancy, server)
    # Nova takes fewer characters for a property than Glance: tags are set when the image is published.
    untagged = {name: value for name, value in properties.items() if not name.startswith(TAG_PREFIX)}
    try:
        return tenancy.compute.create_image(instance.id, name, untagged)
    except Missing:
        raise NotFound("the server has no instance in the cloud") from None
    except StateConflict:
        raise InvalidRequest("the server cannot be snapshotted in its present state") from None


def _publish(tenancy: Tenancy, image_id: str, properties: Mapping[str, str]) -> Image:
    try:
        return tenancy.images.publish(image_id, properties)
    except Missing:
        raise NotFound("the image vanished before it was published") from None
    except StateConflict:
        _discard(tenancy, image_id)
        raise InvalidRequest("the snapshot was not published in time; try again") from None
    except PortError:
        _discard(tenancy, image_id)
        raise


def _discard(tenancy: Tenancy, image_id: str) -> None:
    """Delete what nobody would see and somebody would pay for; why it was not published is what to tell."""
    with suppress(PortError), deadline.afresh(CLEAN_UP_SECONDS):
        tenancy.images.delete(image_id)
