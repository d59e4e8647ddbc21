"""Provider-create gates: what must be satisfied before the cloud is asked for anything (contract 1.11 and 7.4)."""

from __future__ import annotations

from server_api.servers.model import ConditionStatus, ServerSpec, ServerStatus


def remaining(spec: ServerSpec, status: ServerStatus) -> tuple[str, ...] | None:
    """Return the condition types still to be satisfied, in the spec's order; None when no gate was configured."""
    if spec.provider_create_gates is None:
        return None
    satisfied = {gate.condition_type for gate in status.provider_create_gates if gate.status == ConditionStatus.TRUE}
    return tuple(gate for gate in spec.provider_create_gates if gate not in satisfied)
