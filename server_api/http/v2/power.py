"""Starting, stopping and rebooting servers. The verbs take no body; one that is sent is not read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from flask import Response

from server_api.http import responses
from server_api.http.authentication import caller
from server_api.http.blueprint import ALWAYS, DEPENDENCIES
from server_api.http.services import services
from server_api.http.v2.blueprint import servers_blueprint

View = TypeVar("View", bound=Callable[..., Any])

blueprint = servers_blueprint("power", __name__, "Power of compute servers.")


def _verb(name: str) -> Callable[[View], View]:
    """Route and document a power verb, which all have the same answers. Decorates a view."""

    def decorate(view: View) -> View:
        documented = blueprint.errors(*ALWAYS, 403, 404, *DEPENDENCIES)(view)
        accepted = blueprint.response(202, description="The cloud accepted it.")(documented)
        routed: View = blueprint.route(f"/<server_id:serverID>/{name}", methods=["POST"])(accepted)
        return routed

    return decorate


@_verb("start")
def start_server(server_id: str) -> Response:
    """Start a server.

    Answers 400 when the server's state in the cloud does not allow it, for example when it runs already.
    """
    services().power.start(caller(), server_id)
    return responses.accepted()


@_verb("stop")
def stop_server(server_id: str) -> Response:
    """Stop a server.

    The guest is asked to shut down. Answers 400 when the server's state in the cloud does not allow it.
    """
    services().power.stop(caller(), server_id)
    return responses.accepted()


@_verb("softreboot")
def soft_reboot_server(server_id: str) -> Response:
    """Reboot a server through its guest.

    Answers 400 when the server's state in the cloud does not allow it.
    """
    services().power.soft_reboot(caller(), server_id)
    return responses.accepted()


@_verb("hardreboot")
def hard_reboot_server(server_id: str) -> Response:
    """Reboot a server by a power cycle.

    The guest is not asked. Answers 400 when the server's state in the cloud does not allow it.
    """
    services().power.hard_reboot(caller(), server_id)
    return responses.accepted()
