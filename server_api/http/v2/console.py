"""The console of servers: what it shows, and sessions with it.

Both answers are for this caller and this moment, so nobody may keep them (contract 1.1).
"""

from __future__ import annotations

from flask import Response

from server_api.http import audit, responses
from server_api.http.authentication import caller
from server_api.http.blueprint import ALWAYS, DEPENDENCIES
from server_api.http.schemas import console as schemas
from server_api.http.services import services
from server_api.http.v2.blueprint import servers_blueprint

blueprint = servers_blueprint("console", __name__, "Consoles of compute servers.")


@blueprint.route("/<server_id:serverID>/consoleoutput", methods=["GET"])
@blueprint.arguments(schemas.ConsoleOutputQuerySchema, location="query", typed=True)
@blueprint.response(200, schemas.ConsoleOutputSchema, description="The last lines.", example=schemas.OUTPUT_EXAMPLE)
@blueprint.errors(*ALWAYS, 403, 404, *DEPENDENCIES)
def get_console_output(length: int | None, server_id: str) -> Response:
    """Read a server's console.

    Returns the last lines that the server wrote to its console. Answers 400 when the server's state in the cloud does
    not allow it, and 404 when there is nothing of the server in the cloud yet. The answer is never cached.
    """
    contents = services().console.output(caller(), server_id, length)
    return responses.json(200, {"contents": contents}, responses.NO_STORE)


@blueprint.route("/<server_id:serverID>/consolesessions", methods=["GET"])
@blueprint.response(200, schemas.ConsoleSessionSchema, description="The new session.", example=schemas.SESSION_EXAMPLE)
@blueprint.errors(*ALWAYS, 403, 404, *DEPENDENCIES)
@audit.always
def get_console_session(server_id: str) -> Response:
    """Open a console session.

    Every request opens a new one. The URL is a secret: whoever has it can use the console until the session ends.
    Answers 400 when the server's state in the cloud does not allow it. The answer is never cached.
    """
    url = services().console.session(caller(), server_id)
    return responses.json(200, {"url": url}, responses.NO_STORE)
