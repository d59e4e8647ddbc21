"""The OpenAPI document at ``/openapi.json`` and a page to browse it at ``/docs``.

The page's assets come from the package swagger-ui-bundle and are served from here: nothing leaves the machine, and a
Content-Security-Policy holds the browser to that.
"""

from __future__ import annotations

from typing import cast

import orjson
from flask import Blueprint, Flask, Response, current_app, send_from_directory
from flask_smorest import Api
from swagger_ui_bundle import swagger_ui_path
from werkzeug.exceptions import NotFound

from server_api.http import authentication, limits
from server_api.http.blueprint import ERROR_COMPONENTS
from server_api.http.errors import ErrorHandlers, code_of
from server_api.http.path_parameters import CONVERTERS, IDConverter
from server_api.http.schemas.base import Base64Bytes, Identifier, StrictBoolean
from server_api.http.schemas.error import ErrorSchema
from server_api.http.schemas.server_query import LabelID, TagSelector
from server_api.http.version import semantic_version

# The bundled Swagger UI reads OpenAPI 3.0 and not yet 3.1.
OPENAPI_VERSION = "3.0.3"

_DESCRIPTION = """The life of compute servers in a cloud region: creating, reading, updating and deleting them, their
power, their consoles, and images made of them.

Every request needs a bearer token; a service may show its client certificate instead, and says in `X-Principal` whom it
works for. Unknown members of a body are ignored, so that what was read can be written back;
unknown query parameters are refused. Every error has the same body; quote its `trace_id` when you report one.

A server as an older version, or somebody's hand, may have left it is shown with the nil UUID
(`00000000-0000-0000-0000-000000000000`) in place of a required ID that it lacks.
"""

_CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        # Swagger UI sets styles from its script and brings small pictures as data URLs.
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)

_ASSETS = frozenset({"swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"})

_PAGE = """<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>server-api</title>
    <link rel="icon" type="image/png" href="docs/favicon-32x32.png">
    <link rel="stylesheet" href="docs/swagger-ui.css">
  </head>
  <body>
    <div id="swagger-ui"></div>
    <script src="docs/swagger-ui-bundle.js"></script>
    <script src="docs/start.js"></script>
  </body>
</html>
"""

# validatorUrl: otherwise the page asks a validator on the internet for a badge.
_START = """SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
});
"""

_EXTENSION = "server-api-openapi"

blueprint = Blueprint("documentation", __name__)


class DocumentedApi(ErrorHandlers, Api):  # type: ignore[misc]  # flask-smorest ships no types
    """flask-smorest's ``Api`` with our errors, our names and our field types."""

    # Every operation names the errors it answers with, so there is no catch-all.
    DEFAULT_ERROR_RESPONSE_NAME = None


def build_api(app: Flask) -> DocumentedApi:
    """Return the API that collects the application's blueprints into one document."""
    app.config.update(
        API_TITLE="server-api",
        API_VERSION=semantic_version(),
        OPENAPI_VERSION=OPENAPI_VERSION,
        API_SPEC_OPTIONS={
            "info": {"description": _DESCRIPTION},
            "security": [{"bearer": []}],
        },
    )
    api = DocumentedApi(app)
    api.register_field(StrictBoolean, "boolean", None)
    api.register_field(Identifier, "string", "uuid")
    api.register_field(Base64Bytes, "string", "byte")
    api.register_field(LabelID, "string", None)
    api.register_field(TagSelector, "string", None)
    for converter in CONVERTERS.values():
        api.register_converter(converter, _id_schema)
    api.spec.components.security_scheme("bearer", {"type": "http", "scheme": "bearer"})
    _describe_errors(api)
    return api


def publish(app: Flask, api: DocumentedApi) -> None:
    """Serve the document, once every blueprint is registered, and the page."""
    # flask-smorest describes the header of its own pagination, which no operation here uses.
    api.spec.components.schemas.pop("PaginationMetadata", None)
    app.extensions[_EXTENSION] = orjson.dumps(api.spec.to_dict(), option=orjson.OPT_NON_STR_KEYS)
    app.register_blueprint(blueprint)


@blueprint.get("/openapi.json")
@authentication.not_required
def openapi_document() -> Response:
    """Return the OpenAPI document."""
    return Response(cast(bytes, current_app.extensions[_EXTENSION]), content_type="application/json")


@blueprint.get("/docs")
@authentication.not_required
def page() -> Response:
    """Return the page that shows the document."""
    return _protected(Response(_PAGE, content_type="text/html; charset=utf-8"))


@blueprint.get("/docs/<name>")
@authentication.not_required
def asset(name: str) -> Response:
    """Return one of the page's assets. Raises NotFound."""
    if name == "start.js":
        return _protected(Response(_START, content_type="text/javascript; charset=utf-8"))
    if name not in _ASSETS:
        raise NotFound
    return _protected(send_from_directory(str(swagger_ui_path), name, max_age=3600))


def _protected(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = _CONTENT_SECURITY_POLICY
    return response


def _id_schema(_converter: IDConverter) -> dict[str, str]:
    return {"type": "string", "format": "uuid"}


def _describe_errors(api: DocumentedApi) -> None:
    for status, (name, description) in ERROR_COMPONENTS.items():
        example = {
            "error": code_of(status),
            "error_description": description,
            "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        }
        content = {"application/json": {"schema": ErrorSchema, "example": example}}
        response = {"description": description, "content": content}
        if status == 429:
            response["headers"] = limits.HEADERS
        api.spec.components.response(name, response)
