"""A clock that stands still until a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class FixedClock:
    """``ports.Clock`` showing one moment. It has microseconds, which nothing stored may keep."""

    def __init__(self, now: datetime = datetime(2026, 3, 4, 5, 6, 7, 890, tzinfo=UTC)) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        self._now += timedelta(seconds=seconds)
