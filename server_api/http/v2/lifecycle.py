"""Creating, reading, updating and deleting servers.

The views' docstrings are the operations' summaries and descriptions in the OpenAPI document.
"""

from __future__ import annotations

from flask import Response

from server_api.http import audit, responses
from server_api.http.authentication import caller
from server_api.http.blueprint import ALWAYS, DEPENDENCIES
from server_api.http.schemas import server as schemas
from server_api.http.schemas.server_query import ServerQuerySchema
from server_api.http.services import services
from server_api.http.v2.blueprint import servers_blueprint
from server_api.http.v2.rendering import server_document
from server_api.servers.requests import ServerCreate, ServerQuery, ServerUpdate

blueprint = servers_blueprint("servers", __name__, "Compute servers.")


@blueprint.route("", methods=["GET"])
@blueprint.arguments(ServerQuerySchema, location="query")
@blueprint.response(
    200, schemas.ServerV2ReadSchema(many=True), description="The servers, by ID.", example=[schemas.READ_EXAMPLE]
)
@blueprint.errors(*ALWAYS, 403, *DEPENDENCIES)
def list_servers(query: ServerQuery) -> Response:
    """List servers.

    Returns the servers that match every filter given and that the caller may read, in the order of their IDs.
    Servers in projects the caller may not read are left out.
    """
    found = services().lifecycle.list(caller(), query)
    return responses.json(200, [server_document(server) for server in found])


@blueprint.route("", methods=["POST"])
@blueprint.arguments(schemas.ServerV2CreateSchema, example=schemas.CREATE_EXAMPLE)
@blueprint.response(201, schemas.ServerV2ReadSchema, description="The server as stored.", example=schemas.READ_EXAMPLE)
@blueprint.errors(*ALWAYS, 403, 404, 409, 413, 415, 422, *DEPENDENCIES)
def create_server(request: ServerCreate) -> Response:
    """Create a server.

    Stores what is asked for and returns at once; the server is then built in the cloud, and its provisioning status
    tells how far that is. Names are unique on a network: a second create with the same name is a conflict.
    """
    return responses.json(201, server_document(services().lifecycle.create(caller(), request)))


@blueprint.route("/<server_id:serverID>", methods=["GET"])
@blueprint.response(200, schemas.ServerV2ReadSchema, description="The server.", example=schemas.READ_EXAMPLE)
@blueprint.errors(*ALWAYS, 403, 404, *DEPENDENCIES)
def get_server(server_id: str) -> Response:
    """Read a server."""
    return responses.json(200, server_document(services().lifecycle.get(caller(), server_id)))


@blueprint.route("/<server_id:serverID>", methods=["PUT"])
@blueprint.arguments(schemas.ServerV2UpdateSchema, example=schemas.UPDATE_EXAMPLE)
@blueprint.response(202, schemas.ServerV2ReadSchema, description="The server as stored.", example=schemas.READ_EXAMPLE)
@blueprint.errors(*ALWAYS, 403, 404, 409, 413, 415, 422, *DEPENDENCIES)
def update_server(request: ServerUpdate, server_id: str) -> Response:
    """Update a server.

    Replaces description, tags, image, networking and user data; what is left out is cleared. Name and flavor cannot
    change and must be sent as they are. User data is never applied to the running guest, nor by a rebuild.

    **Another image is destructive**: the server's root disk is rebuilt from it and everything on that disk is lost,
    even if the rebuild fails. ID, addresses, volumes and flavor stay. Until the rebuild has settled the server reads
    as `provisioning`.

    A body that says what is stored already changes nothing.
    """
    server = services().lifecycle.update(caller(), server_id, request, audit.note_update)
    return responses.json(202, server_document(server))


@blueprint.route("/<server_id:serverID>", methods=["DELETE"])
@blueprint.response(202, description="Deletion is under way.")
@blueprint.errors(*ALWAYS, 403, 404, *DEPENDENCIES)
def delete_server(server_id: str) -> Response:
    """Delete a server.

    Asks for deletion; the server can be read until nothing of it is left in the cloud. Asking again is accepted.
    """
    services().lifecycle.delete(caller(), server_id)
    return responses.accepted()
