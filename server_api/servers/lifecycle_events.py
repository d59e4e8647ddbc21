"""The transitions of a server that an operator wants to read in ``kubectl describe``.

Each event is the edge between two stored statuses, so that an unchanged status tells nothing a second time and a
controller that starts anew repeats nothing (known failure B-47).
"""

from __future__ import annotations

from collections.abc import Callable

from server_api.servers.model import ConditionType, Reason, Server
from server_api.servers.outcomes import PassEvent
from server_api.servers.ports import EventType
from server_api.servers.provider_create_gates import AT_THE_GATES, remaining
from server_api.servers.rebuild import RebuildState

_Rule = Callable[[Server, Server], PassEvent | None]


def events_of(before: Server, after: Server) -> tuple[PassEvent, ...]:
    """Return what happened between two versions of one server, of which ``after`` was written over ``before``."""
    events = (rule(before, after) for rule in _RULES)
    return tuple(event for event in events if event is not None)


def _begun(before: Server, after: Server) -> PassEvent | None:
    if _reason(before, ConditionType.AVAILABLE) is not None or _reason(after, ConditionType.AVAILABLE) is None:
        return None
    if after.metadata.deleted_at is not None:
        return None
    return _normal("Provisioning", f"provisioning has begun{_by_whom(after)}")


def _gates(before: Server, after: Server) -> PassEvent | None:
    message = _message(after, ConditionType.AVAILABLE)
    was, is_ = _waits_at_gates(before), _waits_at_gates(after)
    if is_ and not was:
        return _normal("WaitingForGates", message)
    # A deletion ends the waiting too, and so does a pass that does not get as far, but neither opens anything.
    if was and not is_ and after.metadata.deleted_at is None and not remaining(after.spec, after.status):
        return _normal("GatesOpen", "every provider-create gate is satisfied")
    return None


def _created(before: Server, after: Server) -> PassEvent | None:
    if before.status.scheduled_at is not None or after.status.scheduled_at is None:
        return None
    return _normal("InstanceCreated", "the cloud has an instance of the server")


def _launched(before: Server, after: Server) -> PassEvent | None:
    if before.status.launched_at is not None or after.status.launched_at is None:
        return None
    return _normal("InstanceLaunched", "the instance runs for the first time")


def _health(before: Server, after: Server) -> PassEvent | None:
    old, new = _reason(before, ConditionType.HEALTHY), _reason(after, ConditionType.HEALTHY)
    message = _message(after, ConditionType.HEALTHY)
    if new == Reason.ERRORED:
        # The cloud's own words for it may come later than the state.
        changed = old != new or message != _message(before, ConditionType.HEALTHY)
        return _warning("InstanceErrored", message) if changed else None
    if old == Reason.ERRORED and new in (Reason.HEALTHY, Reason.DEGRADED):
        return _normal("InstanceRecovered", message)
    return None


def _rebuild(before: Server, after: Server) -> PassEvent | None:
    old, new = before.status.rebuild, after.status.rebuild
    if new == old:
        return None
    if new is None:
        # Recorded as succeeded, it was told of then; a record without a desired image is just dropped.
        done = old is not None and old.state not in (RebuildState.SUCCEEDED, RebuildState.FAILED)
        realised = old is not None and old.target_image_id == after.spec.image_id
        return _normal("RebuildSucceeded", _image(old.target_image_id)) if old and done and realised else None
    image = _image(new.target_image_id)
    if new.state == RebuildState.FAILED:
        failed = _reason(after, ConditionType.HEALTHY) == Reason.ERRORED
        fault = f": {_message(after, ConditionType.HEALTHY)}" if failed else ""
        return _warning("RebuildFailed", f"{image}{fault}")
    reason = _REBUILD_REASONS.get(new.state)
    return None if reason is None else _normal(reason, image)


def _available(before: Server, after: Server) -> PassEvent | None:
    old, new = _reason(before, ConditionType.AVAILABLE), _reason(after, ConditionType.AVAILABLE)
    message = _message(after, ConditionType.AVAILABLE)
    if new == Reason.ERRORED and new != old:
        if after.metadata.deleted_at is not None:
            return _warning("DeprovisioningFailed", message)
        asked_for = _by_whom(after) if after.status.provisioned_at is None else ""
        return _warning("ProvisioningFailed", f"{message}{asked_for}")
    if _is_provisioned(after) and not _is_provisioned(before):
        return _normal("Provisioned", message)
    if new == Reason.DEPROVISIONED and new != old:
        return _normal("Deprovisioned", message)
    return None


_RULES: tuple[_Rule, ...] = (_begun, _gates, _created, _launched, _health, _rebuild, _available)

_REBUILD_REASONS: dict[str, str] = {
    RebuildState.INITIATED: "RebuildInitiated",
    RebuildState.REBUILDING: "Rebuilding",
    RebuildState.SUCCEEDED: "RebuildSucceeded",
}


def _is_provisioned(server: Server) -> bool:
    """Say whether the server is settled: while a rebuild is recorded it is not, whatever the condition says."""
    return _reason(server, ConditionType.AVAILABLE) == Reason.PROVISIONED and server.status.rebuild is None


def _waits_at_gates(server: Server) -> bool:
    return _message(server, ConditionType.AVAILABLE).startswith(AT_THE_GATES)


def _reason(server: Server, type_: ConditionType) -> str | None:
    condition = server.status.condition(type_)
    return condition.reason if condition else None


def _message(server: Server, type_: ConditionType) -> str:
    condition = server.status.condition(type_)
    return condition.message if condition else ""


def _by_whom(server: Server) -> str:
    creator = server.metadata.principal_creator or server.metadata.creator
    return f" (asked for by {creator})" if creator else ""


def _image(image_id: str) -> str:
    return f"image {image_id}"


def _normal(reason: str, message: str) -> PassEvent:
    return PassEvent(EventType.NORMAL, reason, message)


def _warning(reason: str, message: str) -> PassEvent:
    return PassEvent(EventType.WARNING, reason, message)
