"""How a controller pass ends, and what follows from it (contract 7.2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from server_api.servers.model import Server, ServerStatus
from server_api.servers.ports import Denied, EventType, PortError, Unavailable


class Outcome(StrEnum):
    """Result of one pass."""

    SUCCESS = "success"
    """Done: wait for a trigger."""

    YIELD = "yield"
    """Not there yet: look again soon."""

    ERROR = "error"
    """Failed: try again."""

    TERMINAL = "terminal"
    """Failed for good: parked until somebody changes something."""


@dataclass(frozen=True, slots=True)
class PassEvent:
    """A Kubernetes Event to record once the pass's status is written."""

    type: EventType
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PassResult:
    """What a pass came to: the status to write (conditions included) and the events to record.

    ``again_in`` is in how many seconds to look again; None leaves it to the outcome's usual interval. ``stored`` is the
    server as the pass itself last wrote it, which ``status`` is to replace the status of; None when it wrote nothing.
    ``unreachable``: the outcome is that of a dependency that is down, slow or does not let us in, and would be the same
    for any other server of the project.
    """

    outcome: Outcome
    status: ServerStatus
    events: tuple[PassEvent, ...] = ()
    again_in: float | None = None
    stored: Server | None = None
    unreachable: bool = False


class Stop(Exception):
    """Ends a pass early with that outcome; ``reason`` becomes the condition's message."""

    def __init__(
        self, outcome: Outcome, reason: str, again_in: float | None = None, *, unreachable: bool = False
    ) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason
        self.again_in = again_in
        self.unreachable = unreachable


_OF_EVERY_PASS = frozenset({"keystone", "nova", "neutron"})


def is_unreachable(error: PortError) -> bool:
    """Say whether the cloud would fail any other server of the project in the same way.

    A right that one service denies is not such a failure: a quota that is used up reads the same, and deletions end
    that. Nor is that of a service which only some servers need.
    """
    if error.dependency not in _OF_EVERY_PASS:
        return False
    return isinstance(error, Unavailable) or (isinstance(error, Denied) and error.dependency == "keystone")
