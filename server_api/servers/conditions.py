"""Writing a condition (contract 4.5)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from server_api.servers.model import Condition, ConditionStatus, ConditionType, Reason, ServerStatus

MESSAGE_LIMIT = 1024
"""Longest message kept: a cloud's fault text may be pages long, and every read carries it."""


def with_condition(
    status: ServerStatus,
    type_: ConditionType,
    value: ConditionStatus,
    reason: Reason,
    message: str,
    now: datetime,
) -> ServerStatus:
    """Return ``status`` with that condition.

    The transition time moves only when the condition's value changes; the place in the list stays, so that an
    unchanged condition makes no difference to write.
    """
    old = status.condition(type_)
    since = old.last_transition_time if old is not None and old.status == value else None
    # Whole seconds, because that is all the stored object keeps.
    new = Condition(
        type=type_,
        status=value,
        reason=reason,
        message=message[:MESSAGE_LIMIT],
        last_transition_time=since or now.replace(microsecond=0),
    )
    if old is None:
        return replace(status, conditions=(*status.conditions, new))
    return replace(
        status,
        conditions=tuple(new if condition.type == type_ else condition for condition in status.conditions),
    )


def available(status: ServerStatus, reason: Reason, message: str, now: datetime) -> ServerStatus:
    """Return ``status`` with the Available condition for that reason."""
    done = reason in (Reason.PROVISIONED, Reason.DEPROVISIONED)
    value = ConditionStatus.TRUE if done else ConditionStatus.FALSE
    return with_condition(status, ConditionType.AVAILABLE, value, reason, message, now)
