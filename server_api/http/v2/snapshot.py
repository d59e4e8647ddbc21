"""Images made of servers."""

from __future__ import annotations

from flask import Response

from server_api.http import responses
from server_api.http.authentication import caller
from server_api.http.blueprint import ALWAYS, DEPENDENCIES
from server_api.http.schemas import image as schemas
from server_api.http.services import services
from server_api.http.v2.blueprint import servers_blueprint
from server_api.http.v2.image_rendering import image_document
from server_api.servers.snapshots import SnapshotCreate

blueprint = servers_blueprint("snapshots", __name__, "Images made of compute servers.")


@blueprint.route("/<server_id:serverID>/snapshot", methods=["POST"])
@blueprint.arguments(schemas.SnapshotCreateSchema, example=schemas.SNAPSHOT_EXAMPLE)
@blueprint.response(201, schemas.ImageSchema, description="The new image.", example=schemas.EXAMPLE)
@blueprint.errors(*ALWAYS, 403, 404, 413, 415, 422, *DEPENDENCIES)
def create_snapshot(request: SnapshotCreate, server_id: str) -> Response:
    """Make an image of a server.

    Begins a copy of the server's root disk and returns the image, which usually is not ready yet. It keeps what the
    server's own image says of operating system and software, gets the name and tags of the request, and belongs to
    the server's organization. Besides reading the server, the caller needs the right to create images in that
    organization. Answers 400 when the server's state in the cloud does not allow it.
    """
    image = services().snapshots.create(caller(), server_id, request)
    return responses.json(201, image_document(image))
