"""Path parameters that refuse what they cannot be (contract 1.3 step 3)."""

from __future__ import annotations

import re

from werkzeug.routing import BaseConverter

from server_api.http.errors import BadParameter
from server_api.http.identifiers import canonical_uuid

DESCRIPTIONS = {
    "organizationID": "The organization's ID, in any of the textual forms of a UUID.",
    "projectID": "The project's ID, in any of the textual forms of a UUID.",
    "identityID": "The ID of an identity in the project, in any of the textual forms of a UUID.",
    "serverID": "The server's ID, in any of the textual forms of a UUID.",
}


def described(rule: str) -> list[dict[str, str]]:
    """Return what the OpenAPI document says of the parameters in a route's rule."""
    return [
        {"in": "path", "name": name, "description": description}
        for name, description in DESCRIPTIONS.items()
        if f":{name}>" in rule
    ]


def python_name(parameter: str) -> str:
    """Return what views call a path parameter: ``server_id`` for ``serverID``."""
    return re.sub("ID$", "_id", parameter)


class IDConverter(BaseConverter):
    """An ID in a path. ``parameter`` is what the path calls it.

    It matches any segment, so that a malformed ID is answered 400 and not, as a route that does not match would be,
    404. Flask keeps the exception as the request's routing exception; ``binding`` raises it first of all.
    """

    parameter = ""
    regex = "[^/]+"
    part_isolating = True

    def to_python(self, value: str) -> str:
        """Return the ID in canonical form. Raises BadParameter."""
        try:
            return canonical_uuid(value)
        except ValueError:
            raise BadParameter(f"path parameter {self.parameter}", "not a valid UUID") from None


class OrganizationIDConverter(IDConverter):
    """The ID of an organization."""

    parameter = "organizationID"


class ProjectIDConverter(IDConverter):
    """The ID of a project."""

    parameter = "projectID"


class IdentityIDConverter(IDConverter):
    """The ID of an identity."""

    parameter = "identityID"


class ServerIDConverter(IDConverter):
    """The ID of a server."""

    parameter = "serverID"


CONVERTERS: dict[str, type[IDConverter]] = {
    "organization_id": OrganizationIDConverter,
    "project_id": ProjectIDConverter,
    "identity_id": IdentityIDConverter,
    "server_id": ServerIDConverter,
}
"""Converters by the names that routes know them by."""
