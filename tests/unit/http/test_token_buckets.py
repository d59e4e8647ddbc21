"""Token buckets: how fast they empty and fill, and that processes share them."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server_api.http import token_buckets
from server_api.http.token_buckets import Buckets, Limit

LIMIT = Limit(rate=2, burst=5)


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 100_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def buckets(clock: Clock) -> Buckets:
    return Buckets(sets=64, clock=clock)


def test_a_full_bucket_serves_its_burst_and_no_more(buckets: Buckets) -> None:
    assert [buckets.take("a", LIMIT).remaining for _ in range(5)] == [4, 3, 2, 1, 0]
    refused = buckets.take("a", LIMIT)
    assert refused.retry_after == pytest.approx(0.5)
    assert refused.full_in == pytest.approx(2.5)


def test_a_refused_request_costs_nothing(buckets: Buckets, clock: Clock) -> None:
    for _ in range(20):
        buckets.take("a", LIMIT)
    clock.now += 0.5
    assert buckets.take("a", LIMIT).retry_after == 0
    assert buckets.take("a", LIMIT).retry_after > 0


def test_what_retry_after_says_is_enough(buckets: Buckets, clock: Clock) -> None:
    for _ in range(5):
        buckets.take("a", LIMIT)
    clock.now += buckets.take("a", LIMIT).retry_after
    assert buckets.take("a", LIMIT).retry_after == 0


def test_each_name_has_its_own_bucket(buckets: Buckets) -> None:
    for _ in range(6):
        buckets.take("a", LIMIT)
    assert buckets.take("b", LIMIT).remaining == 4


def test_looking_takes_nothing(buckets: Buckets) -> None:
    assert [buckets.look("a", LIMIT).remaining for _ in range(3)] == [5, 5, 5]


def test_a_smaller_limit_holds_at_once(buckets: Buckets) -> None:
    large = Limit(rate=1, burst=1000)
    for _ in range(1000):
        buckets.take("a", large)
    assert buckets.take("a", LIMIT).retry_after <= 1 / LIMIT.rate


def test_a_flood_of_names_needs_no_more_memory_and_pushes_out_the_fullest(clock: Clock) -> None:
    buckets = Buckets(sets=1, clock=clock)
    for _ in range(5):
        buckets.take("kept", LIMIT)
    for number in range(1000):
        buckets.take(f"other {number}", LIMIT)
    assert buckets.take("kept", LIMIT).retry_after > 0


@settings(max_examples=50, deadline=None)
@given(pauses=st.lists(st.floats(0, 3), min_size=1, max_size=60))
def test_no_window_of_time_lets_through_more_than_burst_and_flow(pauses: list[float]) -> None:
    clock = Clock()
    buckets = Buckets(sets=1, clock=clock)
    accepted = []
    for pause in pauses:
        clock.now += pause
        if buckets.take("a", LIMIT).retry_after == 0:
            accepted.append(clock.now)
    for first, start in enumerate(accepted):
        for last, end in enumerate(accepted[first:]):
            assert last + 1 <= LIMIT.burst + (end - start) * LIMIT.rate + 1e-3


def test_processes_that_are_forked_share_the_table() -> None:
    buckets = Buckets(sets=1)
    slow = Limit(rate=0.01, burst=100)
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            for _ in range(25):
                buckets.take("a", slow)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    assert buckets.look("a", slow).remaining == 0


def test_a_process_that_is_not_told_to_share_has_a_table_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert token_buckets.table() is not token_buckets.table()
    monkeypatch.setattr(token_buckets, "_shared", None)
    token_buckets.share()
    assert token_buckets.table() is token_buckets.table()


def test_limits_are_read() -> None:
    assert Limit.parse("") is None
    assert Limit.parse("0.5:3") == Limit(0.5, 3)
    assert Limit(0.5, 3).window == 6


@pytest.mark.parametrize(
    "text", ["10", ":", "10:", "0:5", "10:0", "-1:5", "nan:5", "inf:5", "10:5:1", "ten:5", "10:2.5"]
)
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="RATE:BURST"):
        Limit.parse(text)
