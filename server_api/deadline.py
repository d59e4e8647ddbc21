"""How long the work in hand may still take: one budget for a request, however many calls it makes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ends_at: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Give the work inside the block ``seconds`` in all, or what is left of an outer block's if that is less."""
    ends_at = time.monotonic() + seconds
    outer = _ends_at.get()
    token = _ends_at.set(ends_at if outer is None else min(ends_at, outer))
    try:
        yield
    finally:
        _ends_at.reset(token)


@contextmanager
def afresh(seconds: float) -> Iterator[None]:
    """Give the work inside the block ``seconds`` of its own, for what must be done although the time is spent."""
    token = _ends_at.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _ends_at.reset(token)


def remaining(limit: float) -> float:
    """Return how many seconds the next call may take: ``limit``, or less when the budget is nearly spent.

    Raises TimeoutError when nothing is left.
    """
    ends_at = _ends_at.get()
    if ends_at is None:
        return limit
    left = ends_at - time.monotonic()
    if left <= 0:
        raise TimeoutError("the deadline has passed")
    return min(limit, left)
