"""The console of servers in v1. As in v2, both answers are for this caller and this moment: nobody may keep them."""

from __future__ import annotations

from flask import Response

from server_api.http import audit, responses
from server_api.http.authentication import caller
from server_api.http.blueprint import ALWAYS, DEPENDENCIES
from server_api.http.schemas import console as shared
from server_api.http.v1 import schemas
from server_api.http.v1.blueprint import SERVER, servers_blueprint
from server_api.http.v1.services import services
from server_api.servers.v1.scope import Scope

blueprint = servers_blueprint("console-v1", __name__, "Consoles of compute servers, in the deprecated v1.")


@blueprint.route(f"{SERVER}/consoleoutput", methods=["GET"])
@blueprint.arguments(schemas.ConsoleOutputV1QuerySchema, location="query", typed=True)
@blueprint.response(200, shared.ConsoleOutputSchema, description="The last lines.", example=shared.OUTPUT_EXAMPLE)
@blueprint.errors(*ALWAYS, 403, 404, *DEPENDENCIES)
def get_console_output_v1(length: int | None, server_id: str, **scope: str) -> Response:
    """Read a server's console."""
    contents = services().operations.console(Scope(**scope)).output(caller(), server_id, length)
    return responses.json(200, {"contents": contents}, responses.NO_STORE)


@blueprint.route(f"{SERVER}/consolesessions", methods=["GET"])
@blueprint.response(200, shared.ConsoleSessionSchema, description="The new session.", example=shared.SESSION_EXAMPLE)
@blueprint.errors(*ALWAYS, 403, 404, *DEPENDENCIES)
@audit.always
def get_console_session_v1(server_id: str, **scope: str) -> Response:
    """Open a console session.

    Every request opens a new one. The URL is a secret: whoever has it can use the console until the session ends.
    """
    url = services().operations.console(Scope(**scope)).session(caller(), server_id)
    return responses.json(200, {"url": url}, responses.NO_STORE)
