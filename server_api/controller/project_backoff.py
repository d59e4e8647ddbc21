"""When the servers of a project that cannot be reached get their next pass."""

from __future__ import annotations

import math
from dataclasses import dataclass

from server_api.controller.backoff import Backoff


@dataclass(slots=True)
class ProjectBackoff:
    """Whether passes over the servers of one project may begin.

    A pass that could not reach the project opens the back-off: nothing begins for a while. Then one pass at a time may,
    as a probe. A probe that fails too makes the next while longer; the first pass that gets through ends it all.
    ``now`` is in seconds of any one clock.
    """

    delays: Backoff
    failures: int = 0
    probe_at: float = -math.inf

    @property
    def is_open(self) -> bool:
        """Whether the project is backing off."""
        return self.failures > 0

    def allows(self, now: float) -> bool:
        """Say whether a pass may begin, if none is running."""
        return now >= self.probe_at

    def note(self, reached: bool, now: float) -> None:
        """Take note of a pass that did, or did not, reach the project."""
        if reached:
            self.failures, self.probe_at = 0, -math.inf
        elif self.allows(now):
            self.failures += 1
            self.probe_at = now + self.delays.delay(self.failures)
        # Else it began before the back-off opened: what failed together counts as one failure.
