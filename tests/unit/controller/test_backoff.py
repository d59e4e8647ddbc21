from __future__ import annotations

import pytest

from server_api.controller.backoff import Backoff


def test_each_failure_waits_twice_as_long_up_to_the_limit() -> None:
    backoff = Backoff(base=1, limit=10, draw=lambda: 0.5)
    assert [backoff.delay(failures) for failures in (1, 2, 3, 4, 5, 5000)] == [1, 2, 4, 8, 10, 10]


@pytest.mark.parametrize(("drawn", "delay"), [(0.0, 8.0), (0.5, 10.0), (1.0, 12.0)])
def test_delays_are_spread_around_the_middle(drawn: float, delay: float) -> None:
    assert Backoff(base=10, limit=10, spread=0.2, draw=lambda: drawn).delay(1) == pytest.approx(delay)
