"""Provider-create gates: what must be satisfied before the cloud is asked for anything (contract 1.11 and 7.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from server_api.servers.errors import Conflict, Forbidden, InvalidRequest, NotFound, Unprocessable
from server_api.servers.lookup import readable_server
from server_api.servers.model import ConditionStatus, GateStatus, Server, ServerSpec, ServerStatus
from server_api.servers.ports import Caller, Clock, Missing, ServerStore, StateConflict

PERMISSION = "region:servers:v2/provider-create-gates"
"""The permission to satisfy gates, needed besides the right to read the server."""

AT_THE_GATES = "waiting for provider-create gates"
"""What the Available condition's message begins with while gates hold a server back (contract 7.4)."""

_ATTEMPTS = 3
"""How often a lost race is tried again: the controller and the monitor write the same status."""


@dataclass(frozen=True, slots=True)
class GateAction:
    """What a caller says of a gate it satisfies."""

    condition_type: str
    reason: str
    message: str


def remaining(spec: ServerSpec, status: ServerStatus) -> tuple[str, ...] | None:
    """Return the condition types still to be satisfied, in the spec's order; None when no gate was configured."""
    if spec.provider_create_gates is None:
        return None
    satisfied = {gate.condition_type for gate in status.provider_create_gates if gate.status == ConditionStatus.TRUE}
    return tuple(gate for gate in spec.provider_create_gates if gate not in satisfied)


def check_unique(gates: Sequence[str] | None) -> None:
    """Raise Unprocessable when a condition type is listed twice."""
    repeated = [gate for gate, count in Counter(gates or ()).items() if count > 1]
    if repeated:
        raise Unprocessable(f"{repeated[0]} is listed twice", "spec.providerCreateGates")


def satisfied(status: ServerStatus, action: GateAction, actor: str, now: datetime) -> ServerStatus:
    """Return ``status`` with the gate satisfied by ``actor``.

    Satisfying it again refreshes actor, reason and message; the transition time stays, since the value does.
    """
    gates = {gate.condition_type: gate for gate in status.provider_create_gates}
    old = gates.get(action.condition_type)
    since = old.last_transition_time if old is not None and old.status == ConditionStatus.TRUE else None
    gates[action.condition_type] = GateStatus(
        condition_type=action.condition_type,
        status=ConditionStatus.TRUE,
        last_transition_time=since or now.replace(microsecond=0),
        actor=actor,
        reason=action.reason,
        message=action.message,
    )
    return replace(status, provider_create_gates=tuple(gates.values()))


def closed_again(spec: ServerSpec, status: ServerStatus, now: datetime) -> ServerStatus:
    """Return ``status`` with every gate to be satisfied anew: what it was satisfied for has failed and is removed."""
    return replace(
        status,
        provider_create_gates=tuple(
            GateStatus(
                condition_type=gate,
                status=ConditionStatus.UNKNOWN,
                last_transition_time=now.replace(microsecond=0),
                actor="region",
                reason="ProviderCreateRetry",
                message="the instance failed and was removed; the next attempt waits for this gate again",
            )
            for gate in spec.provider_create_gates or ()
        ),
    )


class ProviderCreateGates:
    """The use case of services that hold a server back until they are ready for it."""

    def __init__(self, servers: ServerStore, clock: Clock) -> None:
        self._servers = servers
        self._clock = clock

    def satisfy(self, caller: Caller, server_id: str, action: GateAction) -> bool:
        """Record that a gate of the server is satisfied, by the authenticated subject and nobody else.

        Returns whether it was not before.

        Raises NotFound, Forbidden, InvalidRequest while the server is being deleted, Unprocessable for a gate it does
        not have, Conflict when others kept writing.
        """
        for _ in range(1 + _ATTEMPTS):
            server = self._permitted(caller, server_id)
            self._check(server, action)
            status = satisfied(server.status, action, caller.subject, self._clock.now())
            try:
                self._servers.patch_status(server, replace(server, status=status))
            except StateConflict:
                continue
            except Missing:
                raise NotFound("the server does not exist") from None
            return remaining(server.spec, server.status) != remaining(server.spec, status)
        raise Conflict("the server was changed by somebody else meanwhile")

    def _permitted(self, caller: Caller, server_id: str) -> Server:
        server = readable_server(self._servers, caller, server_id)
        metadata = server.metadata
        if not caller.may(PERMISSION, "update", metadata.organization_id, metadata.project_id):
            raise Forbidden("satisfying provider-create gates is not allowed")
        return server

    @staticmethod
    def _check(server: Server, action: GateAction) -> None:
        if server.metadata.deleted_at is not None:
            raise InvalidRequest("the server is being deleted")
        if action.condition_type not in (server.spec.provider_create_gates or ()):
            raise Unprocessable("the server has no such gate", "conditionType")
