"""Ready keys in lanes, one for each project, so that no project takes more than its share of the workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from server_api.controller.backoff import Backoff
from server_api.controller.project_backoff import ProjectBackoff


@dataclass(slots=True)
class _Lane:
    """One project's keys: ``suspects`` are those whose last pass could not reach the project, ``fresh`` the rest."""

    project: Hashable
    state: ProjectBackoff
    fresh: deque[str] = field(default_factory=deque)
    suspects: deque[str] = field(default_factory=deque)
    in_work: int = 0
    suspected: int = 0

    def is_idle(self) -> bool:
        return not (self.fresh or self.suspects or self.in_work or self.suspected)


class Lanes:
    """Keys that are ready for work, given out lane after lane, and in each lane in the order they came.

    ``project_of`` names a key's lane; keys for which it returns None share one that has no bounds. Of any other lane
    at most ``width`` keys are out at once, and only one, now and then, while its project cannot be reached
    (``ProjectBackoff``). Then its keys stay in their lane, those included that somebody has just asked for: their
    passes would fail like the probe, and each would hold a worker until its time-outs. Keys that have not failed yet
    go first, so that a few servers which the cloud chokes on do not hold up the others.

    Not safe for use by several threads. ``now`` is in seconds of any one clock.
    """

    def __init__(self, project_of: Callable[[str], Hashable | None], width: int, delays: Backoff) -> None:
        self._project_of = project_of
        self._width = width
        self._delays = delays
        self._lanes: dict[Hashable, _Lane] = {}
        self._turns: deque[_Lane] = deque()
        self._out: dict[str, _Lane] = {}
        self._suspected: dict[str, _Lane] = {}

    def __len__(self) -> int:
        return sum(len(lane.fresh) + len(lane.suspects) for lane in self._turns)

    def push(self, key: str) -> None:
        """Add a key that is not in a lane."""
        suspect_in = self._suspected.get(key)
        lane = suspect_in or self._lane(self._project_of(key))
        if not (lane.fresh or lane.suspects):
            self._turns.append(lane)
        (lane.fresh if suspect_in is None else lane.suspects).append(key)

    def pop(self, now: float) -> str | None:
        """Take the next key that may be worked on; None when there is none now. It is out until ``done``."""
        for _ in range(len(self._turns)):
            lane = self._turns.popleft()
            key = None
            if self._has_room(lane) and lane.state.allows(now):
                key = (lane.fresh or lane.suspects).popleft()
                lane.in_work += 1
                self._out[key] = lane
            if lane.fresh or lane.suspects:
                self._turns.append(lane)
            if key is not None:
                return key
        return None

    def done(self, key: str, reached: bool | None, now: float) -> None:
        """Take note that work on a key ended, and whether it reached the project; None: it does not tell."""
        lane = self._out.pop(key)
        lane.in_work -= 1
        if self._suspected.pop(key, None) is not None:
            lane.suspected -= 1
        if lane.project is not None and reached is not None:
            lane.state.note(reached, now)
            if not reached:
                self._suspected[key] = lane
                lane.suspected += 1
        if lane.is_idle():
            self._lanes.pop(lane.project, None)

    def seconds_to_next_probe(self, now: float) -> float | None:
        """Return how long until time alone lets another key out; None when it never will."""
        waits = [
            lane.state.probe_at - now for lane in self._turns if self._has_room(lane) and not lane.state.allows(now)
        ]
        return min(waits, default=None)

    def backing_off(self) -> int:
        """Return how many projects cannot be reached."""
        return sum(lane.state.is_open for lane in self._lanes.values())

    def _lane(self, project: Hashable) -> _Lane:
        lane = self._lanes.get(project)
        if lane is None:
            lane = self._lanes[project] = _Lane(project, ProjectBackoff(self._delays))
        return lane

    def _has_room(self, lane: _Lane) -> bool:
        if lane.project is None:
            return True
        return lane.in_work < (1 if lane.state.is_open else self._width)
