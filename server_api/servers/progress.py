"""A server while a pass works on it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from server_api.servers.model import CloudRequest, Server, ServerStatus
from server_api.servers.outcomes import PassEvent
from server_api.servers.ports import Clock, EventType, ServerStore


class Progress:
    """What a pass has learned of its server, written and has to tell, so that a pass that stops keeps all of it.

    ``server`` carries the status as the pass will leave it, ``stored`` is what the store holds. ``now`` is when the
    pass began.
    """

    def __init__(self, servers: ServerStore, server: Server, now: datetime, clock: Clock | None = None) -> None:
        self._servers = servers
        self._clock = clock
        self.server = server
        self.stored = server
        self.now = now
        self.events: list[PassEvent] = []

    def moment(self) -> datetime:
        """Return the time by now, which a pass over a slow cloud may have reached long after it began."""
        return self.now if self._clock is None else self._clock.now()

    def learn(self, **changes: object) -> None:
        """Change these fields of the status."""
        self.become(replace(self.server.status, **changes))  # type: ignore[arg-type]

    def become(self, status: ServerStatus) -> None:
        """Take over a status."""
        self.server = replace(self.server, status=status)

    def tell(self, type_: EventType, reason: str, message: str) -> None:
        """Have an event recorded once the status is written."""
        self.events.append(PassEvent(type_, reason, message))

    def record(self, request: CloudRequest | None) -> None:
        """Store the record of a request that is about to be sent, or that none is left that may have been.

        Raises StateConflict when anybody wrote the server since it was read, also another controller: then the request
        must not be sent. Raises whatever else a write of the store raises.
        """
        if request is None and self.stored.metadata.cloud_request is None:
            return
        metadata = replace(self.stored.metadata, cloud_request=request)
        self.stored = self._servers.update(replace(self.stored, metadata=metadata))
        self.server = replace(self.stored, status=self.server.status)
