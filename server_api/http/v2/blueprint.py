"""The kind of blueprint that v2's views live in."""

from __future__ import annotations

from server_api.http import query
from server_api.http.blueprint import ApiBlueprint


def servers_blueprint(name: str, import_name: str, description: str) -> ApiBlueprint:
    """Return a blueprint for operations on servers.

    Its views refuse query parameters they do not take, the misspelt and the invented: v2 promises 400 for them.
    """
    blueprint = ApiBlueprint(name, import_name, url_prefix="/api/v2/servers", description=description)
    blueprint.before_request(query.refuse_unexpected)
    return blueprint
