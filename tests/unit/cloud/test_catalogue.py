"""How long lists are kept, and who loads them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from server_api import deadline
from server_api.cloud.catalogue import ExpiringLists
from server_api.servers.ports import TimedOut, Unavailable


class Timer:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def timer():
    return Timer()


@pytest.fixture
def lists(timer):
    return ExpiringLists("nova", 60, timer)


class Loader:
    """Counts how often it is called, and returns the count."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return [self.calls]


def test_a_list_is_loaded_once_until_it_expires(lists, timer, region):
    load = Loader()

    timer.now = 59
    assert (lists.get(region, load, 5), lists.get(region, load, 5)) == ([1], [1])
    timer.now = 119.5
    assert lists.get(region, load, 5) == [2]


def test_an_empty_list_is_kept_too(lists, region):
    assert lists.get(region, list, 5) == []
    assert lists.get(region, Loader(), 5) == []


def test_a_region_configured_otherwise_is_loaded_anew(lists, region):
    load = Loader()
    lists.get(region, load, 5)

    assert lists.get(replace(region, flavor_ids=frozenset({"1"})), load, 5) == [2]


def test_a_failure_is_the_answer_and_is_not_kept(lists, timer, region):
    def fail():
        raise Unavailable("nova", "down")

    lists.get(region, Loader(), 5)
    timer.now = 61
    with pytest.raises(Unavailable):
        lists.get(region, fail, 5)

    assert lists.get(region, Loader(), 5) == [1]


def test_concurrent_callers_share_one_loading(lists, region):
    calls = []
    twice = threading.Event()

    def load():
        calls.append(1)
        if len(calls) > 1:
            twice.set()
        twice.wait(0.2)
        return ["loaded"]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: lists.get(region, load, 5), range(8)))

    assert (answers, len(calls)) == ([["loaded"]] * 8, 1)


def test_waiting_for_another_threads_loading_ends_with_the_deadline(lists, region):
    loading, release = threading.Event(), threading.Event()

    def slowly():
        loading.set()
        release.wait(10)
        return []

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lists.get, region, slowly, 5)
        loading.wait(5)
        with deadline.within(0.05), pytest.raises(TimedOut, match="nova"):
            lists.get(region, list, 5)
        release.set()
        assert first.result(5) == []


def test_another_region_does_not_wait(lists, region):
    loading, release = threading.Event(), threading.Event()

    def slowly():
        loading.set()
        release.wait(10)
        return []

    with ThreadPoolExecutor(1) as pool:
        pool.submit(lists.get, region, slowly, 5)
        loading.wait(5)
        assert lists.get(replace(region, id="other"), Loader(), 5) == [1]
        release.set()


def is_(value):
    return lambda item: item == value


def test_what_is_added_is_found_at_once_and_last(lists, region):
    before = lists.get(region, Loader(), 5)

    lists.add(region, "new", is_("new"))

    assert lists.get(region, Loader(), 5) == [1, "new"]
    assert before == [1]


def test_what_is_known_already_is_not_added(lists, region):
    lists.get(region, Loader(), 5)

    lists.add(region, "another 1", is_(1))

    assert lists.get(region, Loader(), 5) == [1]


def test_what_is_added_is_found_in_its_own_region_only(lists, region):
    other = replace(region, id="other")
    lists.get(region, Loader(), 5)
    lists.get(other, Loader(), 5)

    lists.add(other, "new", is_("new"))

    assert lists.get(region, Loader(), 5) == [1]


def test_what_was_added_is_dropped_by_the_next_loading_unless_that_has_it(lists, timer, region):
    load = Loader()
    lists.get(region, load, 5)
    timer.now = 30
    lists.add(region, "new", is_("new"))

    timer.now = 59
    assert lists.get(region, load, 5) == [1, "new"]
    timer.now = 61
    assert lists.get(region, load, 5) == [2]


def test_what_is_added_before_anything_is_loaded_is_left_to_the_loading(lists, region):
    lists.add(region, "new", is_("new"))

    assert lists.get(region, Loader(), 5) == [1]


@pytest.mark.parametrize("listed", [["old"], ["old", "new"]])
def test_what_is_added_during_a_loading_is_in_its_result_once(lists, region, listed):
    loading, release = threading.Event(), threading.Event()

    def slowly():
        loading.set()
        release.wait(10)
        return listed

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lists.get, region, slowly, 5)
        loading.wait(5)
        lists.add(region, "new", is_("new"))
        release.set()
        assert first.result(5) == ["old", "new"]

    assert lists.get(region, Loader(), 5) == ["old", "new"]
