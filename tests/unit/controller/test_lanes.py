from __future__ import annotations

from collections.abc import Hashable

import pytest

from server_api.controller.backoff import Backoff
from server_api.controller.lanes import Lanes


def project_of(key: str) -> Hashable | None:
    """The letter of a key like ``a1`` is its project; ``-1`` has none."""
    return None if key[0] == "-" else key[0]


@pytest.fixture
def lanes() -> Lanes:
    return Lanes(project_of, 2, Backoff(base=1, limit=60, spread=0))


def push(lanes: Lanes, keys: str) -> None:
    for key in keys.split():
        lanes.push(key)


def pop_all(lanes: Lanes, now: float = 0) -> str:
    keys = []
    while (key := lanes.pop(now)) is not None:
        keys.append(key)
    return " ".join(keys)


def fail(lanes: Lanes, keys: str, now: float = 0) -> None:
    """Have these keys out, and back because their project cannot be reached."""
    for key in keys.split():
        lanes.done(key, False, now)


def test_keys_of_a_project_come_in_their_order(lanes: Lanes) -> None:
    push(lanes, "a3 a1 a2")
    order = []
    while (key := lanes.pop(0)) is not None:
        order.append(key)
        lanes.done(key, True, 0)
    assert order == ["a3", "a1", "a2"]


def test_projects_take_turns(lanes: Lanes) -> None:
    push(lanes, "a1 a2 a3 b1 c1")
    assert pop_all(lanes) == "a1 b1 c1 a2"


def test_no_project_has_more_out_than_its_share_and_the_next_follows_in_order(lanes: Lanes) -> None:
    push(lanes, "a1 a2 a3 a4")
    assert pop_all(lanes) == "a1 a2"
    lanes.done("a2", True, 0)
    assert pop_all(lanes) == "a3"
    assert len(lanes) == 1


def test_keys_without_a_project_have_no_bounds(lanes: Lanes) -> None:
    push(lanes, "-1 -2 -3")
    assert pop_all(lanes) == "-1 -2 -3"
    fail(lanes, "-1")
    push(lanes, "-1")
    assert pop_all(lanes) == "-1"


def test_an_unreachable_project_waits_and_others_do_not(lanes: Lanes) -> None:
    push(lanes, "a1 a2 a3 b1")
    assert lanes.pop(0) == "a1"
    fail(lanes, "a1")
    assert pop_all(lanes) == "b1"
    assert lanes.seconds_to_next_probe(0.25) == 0.75
    assert (lanes.backing_off(), len(lanes)) == (1, 2)


def test_one_probe_is_out_at_a_time_and_its_success_lets_the_others_go(lanes: Lanes) -> None:
    push(lanes, "a1 a2 a3 a4")
    lanes.pop(0)
    fail(lanes, "a1")
    assert pop_all(lanes, 1) == "a2"
    assert lanes.seconds_to_next_probe(1) is None
    lanes.done("a2", True, 1)
    assert pop_all(lanes, 1) == "a3 a4"
    assert lanes.backing_off() == 0


def test_a_probe_that_fails_makes_the_project_wait_longer(lanes: Lanes) -> None:
    push(lanes, "a1 a2 a3")
    lanes.pop(0)
    fail(lanes, "a1")
    lanes.pop(1)
    fail(lanes, "a2", now=1)
    assert pop_all(lanes, 2.9) == ""
    assert pop_all(lanes, 3) == "a3"


def test_a_probe_that_does_not_tell_is_followed_by_the_next(lanes: Lanes) -> None:
    push(lanes, "a1 a2 a3")
    lanes.pop(0)
    fail(lanes, "a1")
    assert lanes.pop(1) == "a2"
    lanes.done("a2", None, 1)
    assert pop_all(lanes, 1) == "a3"
    assert lanes.backing_off() == 1


def test_keys_that_have_not_failed_yet_are_tried_before_those_that_have(lanes: Lanes) -> None:
    push(lanes, "a1 a2")
    assert pop_all(lanes) == "a1 a2"
    fail(lanes, "a1 a2")
    push(lanes, "a1 a2 a3")
    assert pop_all(lanes, 1) == "a3"
    lanes.done("a3", True, 1)
    assert pop_all(lanes, 1) == "a1 a2"


def test_a_key_that_is_wanted_while_its_project_waits_is_not_lost(lanes: Lanes) -> None:
    push(lanes, "a1")
    lanes.pop(0)
    fail(lanes, "a1")
    push(lanes, "a9")
    assert pop_all(lanes) == ""
    assert pop_all(lanes, 1) == "a9"


def test_a_key_that_failed_stays_in_its_lane_although_its_project_is_not_known_any_more(lanes: Lanes) -> None:
    known = {"s": "project"}
    lanes = Lanes(known.get, 2, Backoff(base=1, limit=60, spread=0))
    lanes.push("s")
    lanes.pop(0)
    fail(lanes, "s")
    known.clear()
    lanes.push("s")
    assert pop_all(lanes, 0.5) == ""
    assert pop_all(lanes, 1) == "s"
    lanes.done("s", None, 1)
    assert lanes.backing_off() == 0


def test_a_project_that_has_nothing_left_is_forgotten(lanes: Lanes) -> None:
    for number in range(100):
        key = chr(1000 + number)
        lanes.push(key)
        lanes.pop(0)
        lanes.done(key, True, 0)
    assert lanes._lanes == {}
