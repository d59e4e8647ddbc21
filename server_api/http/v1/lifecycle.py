"""Creating, reading, updating and deleting servers in v1.

The views' docstrings are the operations' summaries and descriptions in the OpenAPI document.
"""

from __future__ import annotations

from flask import Response

from server_api.http import responses
from server_api.http.authentication import caller
from server_api.http.blueprint import ALWAYS, DEPENDENCIES
from server_api.http.v1 import schemas
from server_api.http.v1.blueprint import ORGANIZATION, SERVER, SERVERS, servers_blueprint
from server_api.http.v1.rendering import server_document
from server_api.http.v1.services import services
from server_api.servers.model import Tag
from server_api.servers.v1.requests import ServerWrite
from server_api.servers.v1.scope import Scope

blueprint = servers_blueprint("servers-v1", __name__, "Compute servers, in the deprecated v1.")


@blueprint.route(f"{ORGANIZATION}/servers", methods=["GET"])
@blueprint.arguments(schemas.ServerV1QuerySchema, location="query")
@blueprint.response(
    200, schemas.ServerV1ReadSchema(many=True), description="The servers, by ID.", example=[schemas.READ_EXAMPLE]
)
@blueprint.errors(*ALWAYS, 403, *DEPENDENCIES)
def list_servers_v1(tags: tuple[Tag, ...], organization_id: str) -> Response:
    """List an organization's servers.

    Returns servers of v1 and of v2, in the order of their IDs. The caller needs the right to read servers in the whole
    organization. Query parameters other than `tag` are ignored.
    """
    found = services().lifecycle.list(caller(), organization_id, tags)
    return responses.json(200, [server_document(server) for server in found])


@blueprint.route(SERVERS, methods=["POST"])
@blueprint.arguments(schemas.ServerV1WriteSchema, example=schemas.WRITE_EXAMPLE)
@blueprint.response(201, schemas.ServerV1ReadSchema, description="The server as stored.", example=schemas.READ_EXAMPLE)
@blueprint.errors(*ALWAYS, 403, 404, 409, 413, 415, 422, *DEPENDENCIES)
def create_server_v1(request: ServerWrite, **scope: str) -> Response:
    """Create a server.

    Names are not unique: every create makes another server. The image has to exist; nothing else about image, flavor,
    security groups or user data is checked, so that a server that cannot be built is found out by its status.
    """
    return responses.json(201, server_document(services().lifecycle.create(caller(), Scope(**scope), request)))


@blueprint.route(SERVER, methods=["GET"])
@blueprint.response(200, schemas.ServerV1ReadSchema, description="The server.", example=schemas.READ_EXAMPLE)
@blueprint.errors(*ALWAYS, 403, 404, *DEPENDENCIES)
def get_server_v1(server_id: str, **scope: str) -> Response:
    """Read a server."""
    return responses.json(200, server_document(services().lifecycle.get(caller(), Scope(**scope), server_id)))


@blueprint.route(SERVER, methods=["PUT"])
@blueprint.arguments(schemas.ServerV1WriteSchema, example=schemas.WRITE_EXAMPLE)
@blueprint.response(202, schemas.ServerV1ReadSchema, description="The server as stored.", example=schemas.READ_EXAMPLE)
@blueprint.errors(*ALWAYS, 403, 404, 409, 413, 415, 422, *DEPENDENCIES)
def update_server_v1(request: ServerWrite, server_id: str, **scope: str) -> Response:
    """Update a server.

    Replaces description, tags, flavor, network, public address, security groups and user data; what is left out is
    cleared. The name cannot change. The image is ignored: only v2 can change it. What only v2 can say of a server stays
    as it is, and of a server of v2 flavor and network cannot change.

    The caller needs the right to create servers.
    """
    server = services().lifecycle.update(caller(), Scope(**scope), server_id, request)
    return responses.json(202, server_document(server))


@blueprint.route(SERVER, methods=["DELETE"])
@blueprint.response(202, description="Deletion is under way.")
@blueprint.errors(*ALWAYS, 403, 404, *DEPENDENCIES)
def delete_server_v1(server_id: str, **scope: str) -> Response:
    """Delete a server.

    Asks for deletion; the server can be read until nothing of it is left in the cloud. Asking again is accepted.
    """
    services().lifecycle.delete(caller(), Scope(**scope), server_id)
    return responses.accepted()
