"""Starting, stopping and rebooting servers in v1. The verbs take no body; one that is sent is not read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from flask import Response

from server_api.http import responses
from server_api.http.authentication import caller
from server_api.http.blueprint import ALWAYS, DEPENDENCIES
from server_api.http.v1.blueprint import SERVER, servers_blueprint
from server_api.http.v1.services import services
from server_api.servers.power import Power
from server_api.servers.v1.scope import Scope

View = TypeVar("View", bound=Callable[..., Any])

blueprint = servers_blueprint("power-v1", __name__, "Power of compute servers, in the deprecated v1.")


def _verb(name: str) -> Callable[[View], View]:
    """Route and document a power verb, which all have the same answers. Decorates a view."""

    def decorate(view: View) -> View:
        documented = blueprint.errors(*ALWAYS, 403, 404, *DEPENDENCIES)(view)
        accepted = blueprint.response(202, description="The cloud accepted it.")(documented)
        return blueprint.route(f"{SERVER}/{name}", methods=["POST"])(accepted)

    return decorate


@_verb("start")
def start_server_v1(server_id: str, **scope: str) -> Response:
    """Start a server."""
    _power(scope).start(caller(), server_id)
    return responses.accepted()


@_verb("stop")
def stop_server_v1(server_id: str, **scope: str) -> Response:
    """Stop a server."""
    _power(scope).stop(caller(), server_id)
    return responses.accepted()


@_verb("softreboot")
def soft_reboot_server_v1(server_id: str, **scope: str) -> Response:
    """Reboot a server through its guest."""
    _power(scope).soft_reboot(caller(), server_id)
    return responses.accepted()


@_verb("hardreboot")
def hard_reboot_server_v1(server_id: str, **scope: str) -> Response:
    """Reboot a server by a power cycle."""
    _power(scope).hard_reboot(caller(), server_id)
    return responses.accepted()


def _power(scope: dict[str, str]) -> Power:
    return services().operations.power(Scope(**scope))
