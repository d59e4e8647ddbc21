"""How long to wait before trying again something that keeps failing."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

_LARGEST_EXPONENT = 16  # more only overflows a float: any base is past every limit by then


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential delays with jitter.

    The first failure waits ``base`` seconds, each further one twice as long, at most ``limit``. Every delay
    is spread by up to ``spread`` of itself, so that what failed together does not come back together.
    ``draw`` returns a number between 0 and 1.
    """

    base: float
    limit: float
    spread: float = 0.2
    draw: Callable[[], float] = random.random

    def delay(self, failures: int) -> float:
        """Return the seconds to wait after that many failures in a row; ``failures`` counts from 1."""
        delay = min(self.limit, self.base * 2.0 ** min(failures - 1, _LARGEST_EXPONENT))
        return delay * (1 + self.spread * (2 * self.draw() - 1))
