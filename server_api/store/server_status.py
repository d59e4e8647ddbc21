"""A server's status: from the stored object, and the smallest patch between two (contract 4.4 and 4.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from server_api.servers.model import (
    Condition,
    ConditionType,
    GateStatus,
    RebuildMarker,
    ServerStatus,
)
from server_api.store.tolerant import boolean, integer, mappings, moment, text, timestamp

_KNOWN_CONDITIONS = frozenset(ConditionType)


def status_from(status: Mapping[str, Any]) -> ServerStatus:
    """Return the status in a stored object's ``status``."""
    return ServerStatus(
        conditions=tuple(condition_from(item) for item in mappings(status.get("conditions"))),
        phase=text(status.get("phase")),
        private_ip=text(status.get("privateIP")),
        public_ip=text(status.get("publicIP")),
        mac_address=text(status.get("macAddress")),
        launched_at=moment(status.get("launchedAt")),
        scheduled_at=moment(status.get("scheduledAt")),
        provisioned_at=moment(status.get("provisionedAt")),
        provider_create_failures=integer(status.get("providerCreateFailures")) or 0,
        provider_create_retrying=boolean(status.get("providerCreateRetrying")) or False,
        rebuild=_rebuild_from(status.get("rebuild")),
        provider_create_gates=tuple(map(_gate_from, mappings(status.get("providerCreateGates")))),
    )


def condition_from(condition: Mapping[str, Any]) -> Condition:
    """Return one condition of any kind of object."""
    return Condition(
        type=text(condition.get("type")) or "",
        status=text(condition.get("status")) or "Unknown",
        reason=text(condition.get("reason")) or "",
        message=text(condition.get("message")) or "",
        last_transition_time=moment(condition.get("lastTransitionTime")),
    )


def status_patch(stored: Mapping[str, Any], before: ServerStatus, after: ServerStatus) -> dict[str, Any]:
    """Return the merge patch of ``status`` that makes ``before`` into ``after``; empty when nothing differs.

    A cleared field is null. A merge patch replaces lists whole, so conditions and gates carry along what the stored
    items hold beyond the model, and conditions of a type that the rules do not know stay.
    """
    old, new = _written(before), _written(after)
    patch = {key: new[key] for key in new if new[key] != old[key]}
    if "conditions" in patch:
        patch["conditions"] = _conditions(stored.get("conditions"), patch["conditions"] or []) or None
    if patch.get("providerCreateGates"):
        patch["providerCreateGates"] = _over(
            stored.get("providerCreateGates"), "conditionType", patch["providerCreateGates"]
        )
    return patch


def _written(status: ServerStatus) -> dict[str, Any]:
    """Return every field as it is stored, None for an absent one."""
    return {
        "conditions": [_condition(condition) for condition in status.conditions] or None,
        "phase": status.phase,
        "privateIP": status.private_ip,
        "publicIP": status.public_ip,
        "macAddress": status.mac_address,
        "launchedAt": timestamp(status.launched_at),
        "scheduledAt": timestamp(status.scheduled_at),
        "provisionedAt": timestamp(status.provisioned_at),
        "providerCreateFailures": status.provider_create_failures or None,
        "providerCreateRetrying": status.provider_create_retrying or None,
        "rebuild": _rebuild(status.rebuild),
        "providerCreateGates": [_gate(gate) for gate in status.provider_create_gates] or None,
    }


def _condition(condition: Condition) -> dict[str, Any]:
    written = {
        "type": condition.type,
        "status": str(condition.status),
        "reason": str(condition.reason),
        "message": condition.message,
    }
    if transition := timestamp(condition.last_transition_time):
        written["lastTransitionTime"] = transition
    return written


def _conditions(stored: Any, written: list[dict[str, Any]]) -> list[dict[str, Any]]:
    named = {condition["type"] for condition in written}
    strangers = [
        dict(item)
        for item in mappings(stored)
        if item.get("type") not in named and item.get("type") not in _KNOWN_CONDITIONS
    ]
    return _over(stored, "type", written) + strangers


def _over(stored: Any, key: str, written: list[dict[str, Any]]) -> list[dict[str, Any]]:
    known = {item.get(key): item for item in mappings(stored)}
    return [{**known.get(item[key], {}), **item} for item in written]


def _rebuild_from(rebuild: Any) -> RebuildMarker | None:
    if not isinstance(rebuild, dict):
        return None
    return RebuildMarker(text(rebuild.get("targetImageID")) or "", text(rebuild.get("state")) or "")


def _rebuild(marker: RebuildMarker | None) -> dict[str, str] | None:
    return {"targetImageID": marker.target_image_id, "state": str(marker.state)} if marker else None


def _gate_from(gate: Mapping[str, Any]) -> GateStatus:
    return GateStatus(
        condition_type=text(gate.get("conditionType")) or "",
        status=text(gate.get("status")) or "Unknown",
        last_transition_time=moment(gate.get("lastTransitionTime")),
        actor=text(gate.get("actor")) or "",
        reason=text(gate.get("reason")) or "",
        message=text(gate.get("message")) or "",
    )


def _gate(gate: GateStatus) -> dict[str, Any]:
    return {
        "conditionType": gate.condition_type,
        "status": str(gate.status),
        "lastTransitionTime": timestamp(gate.last_transition_time),
        "actor": gate.actor,
        "reason": gate.reason,
        "message": gate.message,
    }
