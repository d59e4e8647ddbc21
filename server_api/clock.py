"""The time, as processes know it; tests bring their own (``servers.ports.Clock``)."""

from __future__ import annotations

from datetime import UTC, datetime


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the present moment in UTC."""
        return datetime.now(UTC)
