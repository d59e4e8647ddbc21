"""One budget of time for all the work inside a block."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from server_api import deadline


class Monotonic:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def moved_by_hand(monkeypatch: pytest.MonkeyPatch) -> Monotonic:
    clock = Monotonic()
    monkeypatch.setattr("server_api.deadline.time.monotonic", clock)
    return clock


def test_without_a_deadline_a_call_may_take_its_limit() -> None:
    assert deadline.remaining(7.0) == 7.0


def test_a_call_may_take_its_limit_or_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = moved_by_hand(monkeypatch)
    with deadline.within(10.0):
        assert deadline.remaining(3.0) == 3.0
        assert deadline.remaining(30.0) == 10.0
        clock.seconds += 8.0
        assert deadline.remaining(3.0) == 2.0


@pytest.mark.parametrize("late", [0.0, 0.5])
def test_b61_nothing_is_left_once_the_deadline_has_passed(monkeypatch: pytest.MonkeyPatch, late: float) -> None:
    clock = moved_by_hand(monkeypatch)
    with deadline.within(10.0):
        clock.seconds += 10.0 + late
        with pytest.raises(TimeoutError, match="the deadline has passed"):
            deadline.remaining(3.0)


def test_the_deadline_ends_with_the_block_even_when_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = moved_by_hand(monkeypatch)

    def fail() -> None:
        with deadline.within(1.0):
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    clock.seconds += 100.0

    assert deadline.remaining(3.0) == 3.0


def test_a_deadline_is_for_the_thread_that_set_it() -> None:
    seen: list[float] = []
    ask: Callable[[], None] = lambda: seen.append(deadline.remaining(60.0))  # noqa: E731
    with deadline.within(0.001):
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()

    assert seen == [60.0]


def test_an_inner_block_never_has_longer_than_the_outer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    moved_by_hand(monkeypatch)
    with deadline.within(2.0), deadline.within(10.0):
        assert deadline.remaining(30.0) == 2.0


def test_what_must_be_done_all_the_same_has_time_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = moved_by_hand(monkeypatch)
    with deadline.within(2.0):
        clock.seconds += 5.0
        with deadline.afresh(3.0):
            assert deadline.remaining(30.0) == 3.0
        with pytest.raises(TimeoutError):
            deadline.remaining(30.0)
