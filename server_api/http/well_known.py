"""The document that tells clients where to get a token (contract 2.14). Every 401 names it."""

from __future__ import annotations

from flask import Response, current_app, request

from server_api.http import authentication, responses
from server_api.http.blueprint import ApiBlueprint
from server_api.http.schemas.protected_resource import ProtectedResourceSchema

IDENTITY_URL = "IDENTITY_URL"
"""Name of the identity service's URL in the application's configuration."""

_MAX_AGE = "max-age=86400"
_EXAMPLE = {
    "resource": "https://servers.example.com",
    "authorization_servers": ["https://identity.example.com"],
    "scopes_supported": ["openid", "email", "profile"],
    "bearer_methods_supported": ["header"],
}

blueprint = ApiBlueprint("discovery", __name__, url_prefix="/.well-known", description="How to get a token.")


@blueprint.route("/openid-protected-resource", methods=["GET"])
@blueprint.response(200, ProtectedResourceSchema, description="The document.", example=_EXAMPLE)
@blueprint.errors(429, 500)
@blueprint.doc(security=[])  # type: ignore[untyped-decorator]  # flask-smorest ships no types
@authentication.not_required
def get_protected_resource() -> Response:
    """Tell where to get a token.

    Needs no credentials, and may be cached for a day.
    """
    identity_url = current_app.config[IDENTITY_URL]
    document = {
        "resource": f"https://{request.host}",
        "authorization_servers": [identity_url] if identity_url else [],
        "scopes_supported": ["openid", "email", "profile"],
        "bearer_methods_supported": ["header"],
    }
    response = responses.json(200, document)
    # Two values, as existing clients get them.
    response.headers.add("Cache-Control", _MAX_AGE)
    response.headers.add("Cache-Control", "private")
    return response
