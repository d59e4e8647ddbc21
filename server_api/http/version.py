"""Which program answers (contract 2.13)."""

from __future__ import annotations

import re

from flask import Response

import server_api
from server_api.http import authorization_check, responses
from server_api.http.blueprint import ALWAYS, DEPENDENCIES, ApiBlueprint
from server_api.http.schemas.version import SEMANTIC_VERSION, ServiceVersionSchema

NAME = "unikorn-region-server-api"

blueprint = ApiBlueprint("version", __name__, url_prefix="/api", description="The service itself.")


@blueprint.route("/version", methods=["GET"])
@blueprint.response(
    200, ServiceVersionSchema, description="Name and version.", example={"name": NAME, "version": "1.2.3"}
)
@blueprint.errors(*ALWAYS, 403, *DEPENDENCIES)
@authorization_check.not_required
def get_version() -> Response:
    """Tell the service's name and version.

    Any authenticated caller may ask.
    """
    return responses.json(200, {"name": NAME, "version": semantic_version()}, {"Cache-Control": "no-cache"})


def semantic_version() -> str:
    """Return the program's version, 0.0.0 when it was not stamped with a semantic one."""
    return server_api.__version__ if re.fullmatch(SEMANTIC_VERSION, server_api.__version__) else "0.0.0"
