"""The cache that fetches once however many ask: also under threads, never another key's value."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server_api import deadline
from server_api.access.single_flight import SingleFlightCache


class Time:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def cache(size: int = 10) -> tuple[SingleFlightCache[str, str], Time]:
    time = Time()
    return SingleFlightCache(size, time), time


def test_a_value_is_kept_for_as_long_as_its_fetch_said() -> None:
    values, time = cache()
    fetched: list[str] = []

    def fetch() -> tuple[str, float]:
        fetched.append("x")
        return "value", 5.0

    assert values.get("a", fetch) == "value"
    time.now += 4.9
    assert values.get("a", fetch) == "value"
    assert len(fetched) == 1
    time.now += 0.2
    values.get("a", fetch)
    assert len(fetched) == 2


@pytest.mark.parametrize("seconds", [0.0, -3.0])
def test_a_value_without_a_lifetime_is_returned_and_not_kept(seconds: float) -> None:
    values, _ = cache()

    assert values.get("a", lambda: ("once", seconds)) == "once"
    assert values.get("a", lambda: ("again", seconds)) == "again"
    assert len(values) == 0


def test_a_failure_is_raised_and_not_kept() -> None:
    values, _ = cache()

    def fail() -> tuple[str, float]:
        raise LookupError("no")

    with pytest.raises(LookupError):
        values.get("a", fail)
    assert values.get("a", lambda: ("fine", 1.0)) == "fine"


def test_the_number_of_values_is_bounded() -> None:
    values, _ = cache(size=3)
    for key in "abcde":
        values.get(key, lambda key=key: (key, 100.0))  # type: ignore[misc]
    assert len(values) == 3


def test_a_forgotten_value_is_fetched_anew() -> None:
    values, _ = cache()
    values.get("a", lambda: ("old", 100.0))

    values.forget("a")
    values.forget("never there")

    assert values.get("a", lambda: ("new", 100.0)) == "new"


def at_once(count: int, call: Callable[[int], str]) -> list[str]:
    """Call from that many threads, all of which are there before the first begins."""
    ready = threading.Barrier(count)

    def run(number: int) -> str:
        ready.wait()
        return call(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_b80_twenty_calls_at_once_are_one_fetch() -> None:
    values, _ = cache()
    fetched: list[int] = []
    others_wait = threading.Event()

    def fetch() -> tuple[str, float]:
        fetched.append(1)
        others_wait.wait(0.2)
        return "value", 100.0

    assert at_once(20, lambda _: values.get("a", fetch)) == ["value"] * 20
    assert len(fetched) == 1


def test_those_who_waited_get_the_failure_too() -> None:
    values, _ = cache()
    fetched: list[int] = []

    def fail() -> tuple[str, float]:
        fetched.append(1)
        threading.Event().wait(0.2)
        raise LookupError("no")

    def call(_: int) -> str:
        try:
            return values.get("a", fail)
        except LookupError:
            return "failed"

    assert at_once(8, call) == ["failed"] * 8
    assert len(fetched) == 1


def test_a_thread_that_runs_out_of_its_own_time_does_not_fail_the_others() -> None:
    values, _ = cache()
    leading, hurried_has_ended = threading.Event(), threading.Event()

    def slow() -> tuple[str, float]:
        leading.set()
        hurried_has_ended.wait(0.1)
        raise TimeoutError("my own deadline")

    def hurried() -> None:
        with deadline.within(0.05), pytest.raises(TimeoutError):
            values.get("a", slow)

    thread = threading.Thread(target=hurried)
    thread.start()
    assert leading.wait(5)
    with deadline.within(10.0):
        assert values.get("a", lambda: ("value", 100.0)) == "value"
    thread.join()


def test_waiting_ends_with_the_own_deadline() -> None:
    values, _ = cache()
    leading, end = threading.Event(), threading.Event()

    def slow() -> tuple[str, float]:
        leading.set()
        end.wait(10)
        return "late", 100.0

    thread = threading.Thread(target=values.get, args=("a", slow))
    thread.start()
    assert leading.wait(5)
    with deadline.within(0.05), pytest.raises(TimeoutError):
        values.get("a", slow)
    end.set()
    thread.join()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from("abcdef"), min_size=8, max_size=24), st.integers(1, 4), st.booleans())
def test_whatever_is_asked_at_once_each_gets_the_value_of_its_own_key(keys: list[str], size: int, keep: bool) -> None:
    values: SingleFlightCache[str, str] = SingleFlightCache(size)
    fetched: Counter[str] = Counter()
    lock = threading.Lock()

    def call(number: int) -> str:
        key = keys[number]

        def fetch() -> tuple[str, float]:
            with lock:
                fetched[key] += 1
            return f"value of {key}", 100.0 if keep else 0.0

        return values.get(key, fetch)

    assert at_once(len(keys), call) == [f"value of {key}" for key in keys]
    assert set(fetched) == set(keys)
