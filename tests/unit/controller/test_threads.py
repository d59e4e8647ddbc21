from __future__ import annotations

import threading

from server_api.controller.threads import Crew, join_all


def test_a_thread_that_crashes_is_noted_and_stops_the_rest() -> None:
    stop = threading.Event()
    crew = Crew(stop)

    def crash() -> None:
        raise ZeroDivisionError

    crew.start("bystander", lambda: (stop.wait(10), None)[1])
    crew.start("informer", crash)
    assert stop.wait(10)
    assert crew.dead() == ["informer"]


def test_a_thread_that_ends_before_its_time_is_noted_and_stops_the_rest() -> None:
    stop = threading.Event()
    crew = Crew(stop)
    crew.start("worker-0", lambda: None)
    assert stop.wait(10)
    assert crew.dead() == ["worker-0"]


def test_threads_that_end_because_of_the_stop_are_well() -> None:
    stop = threading.Event()
    crew = Crew(stop)
    threads = [crew.start(name, lambda: (stop.wait(10), None)[1]) for name in ("a", "b")]
    stop.set()
    assert join_all(threads, 10)
    assert crew.dead() == []


def test_joining_waits_no_longer_than_it_may() -> None:
    release = threading.Event()
    thread = threading.Thread(target=release.wait, args=(10,))
    thread.start()
    assert not join_all([thread], 0.01)
    release.set()
    assert join_all([thread], 10)
