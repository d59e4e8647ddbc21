"""Satisfying the gates that hold servers back from being created in the cloud."""

from __future__ import annotations

import structlog
from flask import Response

from server_api.http import audit, responses
from server_api.http.authentication import caller
from server_api.http.blueprint import ALWAYS, DEPENDENCIES
from server_api.http.schemas import provider_create_gate as schemas
from server_api.http.services import services
from server_api.http.v2.blueprint import servers_blueprint
from server_api.servers.provider_create_gates import GateAction

blueprint = servers_blueprint("provider-create-gates", __name__, "Gates that hold compute servers back.")

_log = structlog.get_logger(__name__)


@blueprint.route("/<server_id:serverID>/provider-create-gates", methods=["POST"])
@blueprint.arguments(schemas.GateActionSchema, example=schemas.ACTION_EXAMPLE)
@blueprint.response(202, description="The gate is satisfied.")
@blueprint.errors(*ALWAYS, 403, 404, 409, 413, 415, 422, *DEPENDENCIES)
def satisfy_provider_create_gate(action: GateAction, server_id: str) -> Response:
    """Satisfy a provider-create gate.

    Records who satisfied the gate, by the caller's credentials, and why. Once all of a server's gates are satisfied
    the cloud is asked for it. Satisfying a gate again replaces reason and message; nothing makes it unsatisfied.
    A gate the server was not created with is refused with 422.
    """
    audit.note(gate=action.condition_type)
    changed = services().provider_create_gates.satisfy(caller(), server_id, action)
    # The message is the caller's free text and may hold anything.
    _log.info(
        "provider-create gate satisfied",
        server_id=server_id,
        condition_type=action.condition_type,
        actor=caller().subject,
        reason=action.reason,
        changed=changed,
    )
    return responses.accepted()
