"""Which operation of v1 a request is about."""

from __future__ import annotations

from flask import Flask, request

from server_api.http.routes import operation_id

PREFIX = "/api/v1/"

SUCCESSOR = "/api/v2/servers"


def names(app: Flask) -> frozenset[str]:
    """Return the names of v1's operations, which are their IDs in the OpenAPI document."""
    return frozenset(_name(rule.endpoint) for rule in app.url_map.iter_rules() if rule.rule.startswith(PREFIX))


def name() -> str | None:
    """Return the name of the operation that the request in hand asks for, None when it asks for none."""
    rule = request.url_rule
    if rule is None or request.method == "OPTIONS" or not rule.rule.startswith(PREFIX):
        return None
    return _name(rule.endpoint)


def successor() -> str:
    """Return the path in v2 of what the request in hand asks for; of all servers when it asks for nothing."""
    rule, values = request.url_rule, request.view_args or {}
    if rule is None:
        return SUCCESSOR
    if "server_id" not in values:
        return SUCCESSOR if "project_id" in values else f"{SUCCESSOR}?organizationID={values['organization_id']}"
    return f"{SUCCESSOR}/{values['server_id']}{rule.rule.rsplit('>', 1)[1]}"


def _name(endpoint: str) -> str:
    return operation_id(endpoint.rsplit(".", 1)[1])
