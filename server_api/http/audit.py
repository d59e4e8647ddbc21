"""Who did what, as whom, where and with what outcome: one event for each request that matters (contract 5.8).

Those are requests that change something or ask to, that hand out a secret, and that are denied: 401, 403, and headers
of a service's certificate that are not believed. What is refused before anybody is asked who they are, unknown paths
for example, is in the access log only; so is what a limit turns away, for whoever may flood us must not flood the
audit log.

An event holds names, IDs and the status, never a body, a header or a query string.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import orjson
from flask import Flask, Response, current_app, g, request

from server_api import trace
from server_api.access.authorization import AuthorizedCaller
from server_api.audit_log import AuditLog
from server_api.http.client_address import client_address
from server_api.http.path_parameters import python_name
from server_api.http.routes import current_operation, method_name
from server_api.http.version import NAME, semantic_version
from server_api.servers.model import Server

View = TypeVar("View", bound=Callable[..., Any])

MUTATING = frozenset({"POST", "PUT", "PATCH", "DELETE"})

_ALWAYS = "_is_always_audited"
_COLLECTIONS = frozenset({"servers"})
_LIMITED = 429
_IDENTITY_UNKNOWN = (400, 401, 403)
_LONGEST_NAME = 512


def always(view: View) -> View:
    """Audit a view although it changes nothing, because it hands out a secret. Decorates it."""
    setattr(view, _ALWAYS, True)
    return view


def install(app: Flask, log: AuditLog) -> None:
    """Write the events of the application's requests.

    Install it before what may still replace an answer: what runs after a view runs in reverse order.
    """

    def record(response: Response) -> Response:
        if _matters(response.status_code):
            log.write(_event(response))
        return response

    app.after_request(record)


def expect_caller(app: Flask) -> None:
    """Take from here on for denied what ends without a caller. Install it right before authentication."""
    app.before_request(_expect_caller)


def note(**details: str | Mapping[str, str | None]) -> None:
    """Add to the event of the request in hand, if there will be one. IDs and names only."""
    g.setdefault("audit_details", {}).update(details)


def note_update(before: Server, after: Server) -> None:
    """Note the images, if an update of a server exchanged them: that is a rebuild, which destroys its disk."""
    if before.spec.image_id != after.spec.image_id:
        note(rebuild={"from": before.spec.image_id, "to": after.spec.image_id})


def resource(rule: str, values: Mapping[str, str], created_id: str | None = None) -> dict[str, str]:
    """Return what a request was about, as ``type`` and, if known, ``id`` (contract 5.8).

    What it made, by the rule's last segment; what that segment would have been a name for, if it made nothing; else
    the object that the rule names last. ``values`` are the parameters by the names they have in the rule.
    """
    segments = rule.strip("/").split("/")
    if created_id is not None:
        return {"type": segments[-1], "id": created_id}
    parameters = [position for position, segment in enumerate(segments) if segment.startswith("<")]
    if segments[-1] in _COLLECTIONS or not parameters:
        return {"type": segments[-1]}
    last = parameters[-1]
    return {"type": segments[last - 1], "id": values[segments[last].strip("<>").rpartition(":")[2]]}


def outcome(status: int) -> str:
    """Return in a word what a status means."""
    if status in (401, 403):
        return "denied"
    if status >= 500:
        return "failed"
    return "refused" if status >= 400 else "success"


def _expect_caller() -> None:
    g.is_caller_expected = True


def _matters(status: int) -> bool:
    rule = request.url_rule
    if rule is None or request.method == "OPTIONS" or not rule.rule.startswith("/api/") or status == _LIMITED:
        return False
    if _caller() is None:
        return status in _IDENTITY_UNKNOWN and g.get("is_caller_expected", False)
    view = current_app.view_functions[cast(str, request.endpoint)]
    return status in (401, 403) or request.method in MUTATING or hasattr(view, _ALWAYS)


def _caller() -> AuthorizedCaller | None:
    known: AuthorizedCaller | None = g.get("caller")
    return known


def _event(response: Response) -> dict[str, Any]:
    rule, known, caller = cast(Any, request.url_rule), request.view_args or {}, _caller()
    scope = {name: known[python_name(name)] for name in sorted(rule.arguments) if python_name(name) in known}
    event: dict[str, Any] = {
        "component": {"name": NAME, "version": semantic_version()},
        "actor": None,
        "operation": {"verb": method_name(), "id": current_operation()},
        "scope": scope,
        "resource": resource(rule.rule, scope, _created_id(response)),
        # Whoever could not say who they are was denied, whatever the status.
        "result": {"status": response.status_code, "outcome": outcome(response.status_code) if caller else "denied"},
        "peer": client_address(),
        "trace_id": trace.current(),
    }
    if caller is not None:
        event |= _who(caller) | _where(caller)
        if response.status_code == 403 and caller.lacking is not None:
            event["lacking"] = dict(zip(("permission", "operation"), caller.lacking, strict=True))
    event |= g.get("audit_details", {})
    return event


def _who(caller: AuthorizedCaller) -> dict[str, Any]:
    actor = {"subject": caller.subject[:_LONGEST_NAME], "accountType": caller.account_type}
    organization_id, project_id = caller.attribution
    principal = {
        "actor": caller.actor[:_LONGEST_NAME],
        "organizationId": organization_id,
        "projectId": project_id,
        "impersonated": caller.impersonating,
    }
    if caller.service:
        actor["service"] = caller.service[:_LONGEST_NAME]
    return {"actor": actor, "principal": principal}


def _where(caller: AuthorizedCaller) -> dict[str, Any]:
    """Return whose object the request named, which a path of v2 does not say."""
    if caller.concerned is None:
        return {}
    organization_id, project_id = caller.concerned
    return {"tenant": {"organizationId": organization_id, "projectId": project_id}}


def _created_id(response: Response) -> str | None:
    if response.status_code != 201:
        return None
    created: str = orjson.loads(response.get_data())["metadata"]["id"]
    return created
