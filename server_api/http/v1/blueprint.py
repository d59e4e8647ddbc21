"""The kind of blueprint that v1's views live in: deprecated, and under organization, project and identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from marshmallow import Schema

from server_api.http.blueprint import ApiBlueprint
from server_api.http.v1 import deprecation

View = TypeVar("View", bound=Callable[..., Any])

ORGANIZATION = "/organizations/<organization_id:organizationID>"
SERVERS = f"{ORGANIZATION}/projects/<project_id:projectID>/identities/<identity_id:identityID>/servers"
SERVER = f"{SERVERS}/<server_id:serverID>"


class DeprecatedBlueprint(ApiBlueprint):
    """A blueprint whose operations are documented as deprecated, answer with its headers, and can be turned off."""

    def route(self, rule: str, **options: Any) -> Callable[[View], View]:
        """Serve a view at a path. Decorates it."""
        route = super().route(rule, **options)

        def decorate(view: View) -> View:
            deprecated: View = self.doc(deprecated=True)(self.errors(410)(view))
            return route(deprecated)

        return decorate

    def response(
        self, status: int, schema: type[Schema] | Schema | None = None, **options: Any
    ) -> Callable[[View], View]:
        """Document what a view answers when all went well. Decorates it."""
        return super().response(status, schema, headers=deprecation.HEADERS, **options)


def servers_blueprint(name: str, import_name: str, description: str) -> DeprecatedBlueprint:
    """Return a blueprint for operations on servers. Query parameters that a view does not take are ignored."""
    blueprint = DeprecatedBlueprint(name, import_name, url_prefix="/api/v1", description=description)
    blueprint.before_request(deprecation.refuse_disabled)
    return blueprint
