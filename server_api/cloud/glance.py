"""Images, through python-glanceclient (contract 6.10 and 6.11)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from server_api.cloud.errors import translated
from server_api.cloud.images import PREFIX, image_from
from server_api.cloud.sessions import CloudClients
from server_api.servers.cloud_model import Image
from server_api.servers.ports import Missing, StateConflict, Unavailable

PAGE_SIZE = 1000
"""Glance's own default for the most it returns at once."""

UPLOADING = "saving"
"""Glance's status of an image whose content is on its way."""
UPLOAD_POLL_SECONDS = 0.25
UPLOAD_POLLS = 16
"""How often it is looked whether the upload is over: it leaves a request the time to delete the image."""

_JSON_PATCH = {"Content-Type": "application/openstack-images-v2.1-json-patch"}


@translated("glance")
def public_images(clients: CloudClients) -> list[Mapping[str, Any]]:
    """Return every public image, as Glance's JSON: organizations' own images are public too and fenced by property."""
    return list(clients.glance.images.list(filters={"visibility": "public"}, page_size=PAGE_SIZE))


class GlanceTenancyImages:
    """The port ``TenancyImages``. ``clients`` logs in as the region's service account on the tenant's project."""

    def __init__(self, clients: Callable[[], CloudClients]) -> None:
        self._clients = clients

    @translated("glance")
    def publish(self, image_id: str, properties: Mapping[str, str]) -> Image:
        """Let everybody see the image, with ``properties`` and no others of ours, and return it.

        Raises Missing, StateConflict when the image stays occupied by its upload, Unavailable when Glance's answer is
        no image that the catalogue would show.
        """
        glance = self._clients().glance
        for _ in range(UPLOAD_POLLS):
            record = _published(glance, f"/v2/images/{image_id}", properties)
            if record is not None:
                return _image(record)
            time.sleep(UPLOAD_POLL_SECONDS)
        raise StateConflict("glance", "the image is being uploaded, and the end of that would undo its publication")

    def delete(self, image_id: str) -> None:
        """Delete the image; one already gone is no error."""
        try:
            with translated("glance"):
                self._clients().glance.images.delete(image_id)
        except Missing:
            return


def _published(glance: Any, path: str, properties: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Publish the image and return Glance's JSON of it, None when its upload is under way and would win.

    An upload ends by writing the whole image back as it was when the upload began. Published in between, the image
    would be private again in the end, and have the properties that were removed. An upload that begins while Glance
    works on the change is lost with the image, and nothing can be done about it: hypervisors take longer than that
    to make a snapshot.
    """
    _, present = glance.http_client.get(path)
    if present["status"] == UPLOADING:
        return None
    # Nova copies the properties of the image that the instance was made from, whatever it is asked for.
    removed = [name for name in present if name.startswith(PREFIX) and name not in properties]
    # One request, so that nobody ever sees the image with what it inherited. glanceclient's own update would read the
    # image twice more, and the schema of all images.
    record: Mapping[str, Any]
    _, record = glance.http_client.patch(path, headers=_JSON_PATCH, data=json.dumps(_patch(properties, removed)))
    return None if record["status"] == UPLOADING else record


def _image(record: Mapping[str, Any]) -> Image:
    image = image_from(record)
    if image is None:
        raise Unavailable("glance", "the image was published and is none that the catalogue would show")
    return image


def _patch(properties: Mapping[str, str], removed: list[str]) -> list[dict[str, str]]:
    return [
        *({"op": "remove", "path": _pointer(name)} for name in removed),
        # "add" also replaces.
        *({"op": "add", "path": _pointer(name), "value": value} for name, value in properties.items()),
        {"op": "replace", "path": "/visibility", "value": "public"},
    ]


def _pointer(name: str) -> str:
    """RFC 6901."""
    return "/" + name.replace("~", "~0").replace("/", "~1")
