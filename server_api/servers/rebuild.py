"""The image rebuild: what one pass does about it, and what a look from outside may conclude (contract 7.6).

A rebuild wipes the root disk. So the intent is written down in one pass and submitted in a later one, and a marker that
says more than ``Initiated`` never submits again. Both tables are ordered: the first row that fits decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, StrEnum

from server_api.servers.cloud_model import Instance
from server_api.servers.model import ConditionType, Reason, RebuildMarker, Server
from server_api.servers.outcomes import Outcome


class RebuildState(StrEnum):
    """How far a rebuild got. It only ever rises, and the last two are final."""

    INITIATED = "Initiated"
    REBUILDING = "Rebuilding"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


_ACCEPTED = frozenset({RebuildState.REBUILDING, RebuildState.SUCCEEDED, RebuildState.FAILED})
_KNOWN = frozenset(RebuildState)
_RANK = {
    RebuildState.INITIATED: 0,
    RebuildState.REBUILDING: 1,
    RebuildState.SUCCEEDED: 2,
    RebuildState.FAILED: 2,
}


class Reference(Enum):
    """How the instance's image compares with another one."""

    EQUAL = "="
    DIFFERENT = "≠"
    UNREADABLE = "?"


class Action(Enum):
    """What a row has done besides its marker."""

    NOTHING = "nothing"
    OBSERVE = "observe"
    """Write health and phase as the read shows them."""

    STAMP = "stamp"
    """Write the accepted stamp: phase Building, Healthy False for reason Provisioning."""

    SUBMIT = "submit"
    """Submit the rebuild to the cloud."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What a pass decides from: the marker as it was read at the start, and a fresh read of the instance."""

    marker: RebuildMarker | None
    desired: str | None
    instance: Instance

    @property
    def reference(self) -> Reference:
        """The instance's image against the desired one."""
        return reference_to(self.instance, self.desired)

    @property
    def state(self) -> str | None:
        """The marker's state; None without a marker."""
        return self.marker.state if self.marker else None

    @property
    def accepted(self) -> bool:
        """Whether the cloud is known to have taken the marker's rebuild."""
        return self.state in _ACCEPTED

    @property
    def active(self) -> bool:
        """Whether the cloud is working on the instance."""
        return is_active(self.instance)

    @property
    def error(self) -> bool:
        """Whether the instance is in error."""
        return self.instance.status == "ERROR"

    @property
    def launched(self) -> bool:
        """Whether the instance ever ran."""
        return self.instance.launched_at is not None

    def state_in(self, *states: RebuildState) -> bool:
        """Say whether the marker has one of these states."""
        return self.state in states


@dataclass(frozen=True, slots=True)
class Decision:
    """What a pass does: the marker to write, what else, and how the pass ends unless a submission says otherwise."""

    row: int
    marker: RebuildMarker | None
    action: Action
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class _Row:
    number: int
    applies: Callable[[Situation], bool]
    marker: Callable[[Situation], RebuildMarker | None]
    action: Action
    outcome: Outcome


def reference_to(instance: Instance, image_id: str | None) -> Reference:
    """Compare the instance's image with ``image_id``."""
    if instance.image_id is None:
        return Reference.UNREADABLE
    return Reference.EQUAL if instance.image_id == image_id else Reference.DIFFERENT


def is_active(instance: Instance) -> bool:
    """Say whether the cloud is working on the instance."""
    return bool(instance.task_state) or instance.status == "REBUILD"


def raised(marker: RebuildMarker, state: RebuildState) -> RebuildMarker:
    """Return the marker in ``state``, or as it is when it is there or beyond already."""
    if marker.state in _KNOWN and _RANK[RebuildState(marker.state)] >= _RANK[state]:
        return marker
    return RebuildMarker(marker.target_image_id, state)


def decide(situation: Situation) -> Decision:
    """Return what the pass does."""
    for row in _ROWS:
        if row.applies(situation):
            return Decision(row.number, row.marker(situation), row.action, row.outcome)
    raise AssertionError("the last row applies to everything")


def advance(marker: RebuildMarker, instance: Instance) -> RebuildMarker:
    """Return the marker as a look at the instance, without any intent to act, leaves it: the monitor's table.

    It is only ever raised: never made, removed or aimed at another image.
    """
    if marker.state not in _KNOWN:
        # Of another version, whose meaning is not ours to overwrite.
        return marker
    reference, error = reference_to(instance, marker.target_image_id), instance.status == "ERROR"
    accepted = marker.state in _ACCEPTED
    if reference is Reference.EQUAL:
        if error:
            return raised(marker, RebuildState.FAILED)
        return raised(marker, RebuildState.REBUILDING if is_active(instance) else RebuildState.SUCCEEDED)
    superseded = reference is Reference.DIFFERENT and not is_active(instance)
    if accepted and (error or superseded):
        return raised(marker, RebuildState.FAILED)
    return marker


def settled(server: Server) -> bool:
    """Say whether a rebuild has come to an end that no pass has seen yet (contract 7.1).

    Never for a rebuild under way: its own status writes would wake the controller again and again.
    """
    marker, available = server.status.rebuild, server.status.condition(ConditionType.AVAILABLE)
    if marker is None:
        return False
    if marker.state == RebuildState.FAILED:
        return available is None or available.reason != Reason.ERRORED
    return marker.state == RebuildState.SUCCEEDED


def _keep(situation: Situation) -> RebuildMarker | None:
    return situation.marker


def _remove(_: Situation) -> None:
    return None


def _arm(situation: Situation) -> RebuildMarker:
    return RebuildMarker(situation.desired or "", RebuildState.INITIATED)


def _fail(situation: Situation) -> RebuildMarker:
    # Assigned and not raised: also a rebuild that was taken for done is failed when the instance shows it.
    return RebuildMarker(situation.desired or "", RebuildState.FAILED)


def _rebuilding(situation: Situation) -> RebuildMarker | None:
    return raised(situation.marker, RebuildState.REBUILDING) if situation.marker else None


_STATE = RebuildState
_EQUAL, _DIFFERENT, _UNREADABLE = Reference.EQUAL, Reference.DIFFERENT, Reference.UNREADABLE

# A row may rely on those before it not having applied: from row 3 on the marker, if there is one, targets the desired
# image, and from row 7 on the reference can be read.
_ROWS: tuple[_Row, ...] = (
    _Row(1, lambda s: not s.desired, _remove, Action.NOTHING, Outcome.SUCCESS),
    _Row(
        2,
        lambda s: s.marker is not None and s.marker.target_image_id != s.desired,
        _arm,
        Action.NOTHING,
        Outcome.YIELD,
    ),
    _Row(3, lambda s: s.state_in(_STATE.FAILED), _keep, Action.OBSERVE, Outcome.TERMINAL),
    _Row(
        4,
        lambda s: s.marker is not None and s.error and (s.accepted or s.reference is _EQUAL),
        _fail,
        Action.OBSERVE,
        Outcome.YIELD,
    ),
    _Row(
        5,
        lambda s: s.accepted and s.reference is _DIFFERENT and not s.active,
        _fail,
        Action.OBSERVE,
        Outcome.YIELD,
    ),
    _Row(6, lambda s: s.reference is _UNREADABLE, _keep, Action.NOTHING, Outcome.YIELD),
    _Row(7, lambda s: s.reference is _EQUAL and s.error, _keep, Action.NOTHING, Outcome.SUCCESS),
    _Row(8, lambda s: s.marker is None and s.reference is _EQUAL, _keep, Action.NOTHING, Outcome.SUCCESS),
    _Row(9, lambda s: s.reference is _EQUAL and not s.active, _remove, Action.NOTHING, Outcome.YIELD),
    _Row(
        10,
        lambda s: s.reference is _EQUAL and not s.state_in(_STATE.SUCCEEDED),
        _rebuilding,
        Action.STAMP,
        Outcome.SUCCESS,
    ),
    _Row(11, lambda s: s.reference is _EQUAL, _keep, Action.NOTHING, Outcome.YIELD),
    _Row(12, lambda s: not s.launched, _keep, Action.NOTHING, Outcome.YIELD),
    _Row(13, lambda s: s.marker is None, _arm, Action.NOTHING, Outcome.YIELD),
    _Row(14, lambda s: s.state_in(_STATE.REBUILDING), _keep, Action.STAMP, Outcome.SUCCESS),
    _Row(15, lambda s: s.state_in(_STATE.SUCCEEDED), _keep, Action.NOTHING, Outcome.YIELD),
    _Row(16, lambda s: s.state_in(_STATE.INITIATED) and s.active, _keep, Action.NOTHING, Outcome.YIELD),
    _Row(17, lambda s: s.state_in(_STATE.INITIATED), _keep, Action.SUBMIT, Outcome.SUCCESS),
    _Row(18, lambda _: True, _keep, Action.NOTHING, Outcome.YIELD),
)
