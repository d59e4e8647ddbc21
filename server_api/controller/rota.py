"""In which order the monitor looks at cloud projects."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from server_api.servers.model import Server


@dataclass(frozen=True, slots=True)
class Project:
    """The servers of one identity in one region: one cloud project."""

    region_id: str
    identity_id: str
    servers: tuple[Server, ...]

    @property
    def key(self) -> tuple[str, str]:
        """What it is known by."""
        return self.region_id, self.identity_id


class Rota:
    """Orders projects so that each gets its turn.

    Those that could be read come first, and among equals the one whose turn is longest ago: a poll that runs out of
    time has then looked at whatever it could, and the next begins where it ended. ``monotonic`` returns seconds.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._looked_at: dict[tuple[str, str], float] = {}
        self._broken: set[tuple[str, str]] = set()

    def order(self, servers: Iterable[Server]) -> Sequence[Project]:
        """Return the projects of these servers in the order to look at them, and forget all others."""
        groups: defaultdict[tuple[str, str], list[Server]] = defaultdict(list)
        for server in servers:
            if server.metadata.region_id and server.metadata.identity_id:
                groups[server.metadata.region_id, server.metadata.identity_id].append(server)
        self._broken &= groups.keys()
        self._looked_at = {key: when for key, when in self._looked_at.items() if key in groups}
        keys = sorted(groups, key=lambda key: (key in self._broken, self._looked_at.get(key, 0.0)))
        return [Project(*key, tuple(groups[key])) for key in keys]

    def note(self, project: Project, *, broken: bool) -> bool:
        """Take note that a project was looked at, and say whether it broke or was mended since the last time."""
        key = project.key
        self._looked_at[key] = self._monotonic()
        changed = broken != (key in self._broken)
        (self._broken.add if broken else self._broken.discard)(key)
        return changed
