from __future__ import annotations

import threading
from collections import Counter

import pytest

from server_api.controller.backoff import Backoff
from server_api.controller.lanes import Lanes
from server_api.controller.work_queue import WorkQueue
from tests.unit.controller.doubles import FakeTime


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def queue(time: FakeTime) -> WorkQueue:
    return WorkQueue(Backoff(base=1, limit=8, spread=0), monotonic=time)


def test_a_key_added_twice_is_worked_on_once(queue: WorkQueue) -> None:
    queue.add("a")
    queue.add("a")
    assert queue.depth() == 1
    assert queue.poll() == "a"
    queue.done("a")
    assert queue.poll() is None


def test_keys_come_in_the_order_they_were_added(queue: WorkQueue) -> None:
    for key in ("b", "a", "c", "a"):
        queue.add(key)
    assert [queue.poll() for _ in range(4)] == ["b", "a", "c", None]


def test_a_key_in_work_is_not_given_to_a_second_worker_and_comes_back_after_the_first(queue: WorkQueue) -> None:
    queue.add("a")
    assert queue.poll() == "a"
    queue.add("a")
    assert queue.poll() is None
    queue.done("a")
    assert queue.poll() == "a"


def test_a_timer_that_runs_out_during_work_waits_for_its_end(queue: WorkQueue, time: FakeTime) -> None:
    queue.add("a")
    queue.poll()
    queue.add_after("a", 1)
    time.passes(2)
    assert queue.poll() is None
    queue.done("a")
    assert queue.poll() == "a"


def test_a_delayed_key_comes_at_its_time(queue: WorkQueue, time: FakeTime) -> None:
    queue.add_after("a", 10)
    time.passes(9.9)
    assert queue.poll() is None
    time.passes(0.1)
    assert queue.poll() == "a"


@pytest.mark.parametrize("delays", [(3, 10), (10, 3)])
def test_of_two_timers_of_a_key_the_earlier_counts_and_fires_once(
    queue: WorkQueue, time: FakeTime, delays: tuple[float, float]
) -> None:
    for delay in delays:
        queue.add_after("a", delay)
    time.passes(3)
    assert queue.poll() == "a"
    queue.done("a")
    time.passes(20)
    assert queue.poll() is None


def test_an_event_overtakes_the_timer_of_its_key(queue: WorkQueue, time: FakeTime) -> None:
    queue.add_after("a", 10)
    queue.add("a")
    assert queue.poll() == "a"
    queue.done("a")
    time.passes(20)
    assert queue.poll() is None


def test_failures_wait_longer_each_time_until_forgotten(queue: WorkQueue, time: FakeTime) -> None:
    def waited() -> float:
        queue.add_rate_limited("a")
        before = time.seconds
        while queue.poll() is None:
            time.passes(1)
        queue.done("a")
        return time.seconds - before

    assert [waited() for _ in range(5)] == [1, 2, 4, 8, 8]
    queue.forget("a")
    assert waited() == 1


def test_rate_limited_additions_are_counted(time: FakeTime) -> None:
    retries: list[int] = []
    queue = WorkQueue(Backoff(1, 8), on_retry=lambda: retries.append(1), monotonic=time)
    queue.add_rate_limited("a")
    queue.add_after("b", 1)
    assert len(retries) == 1


def test_a_held_queue_keeps_everything_for_later(queue: WorkQueue, time: FakeTime) -> None:
    queue.hold()
    queue.add("a")
    queue.add_after("b", 1)
    time.passes(2)
    assert queue.poll() is None
    queue.resume()
    assert {queue.poll(), queue.poll()} == {"a", "b"}


def test_a_closed_queue_lets_waiting_workers_go_and_gives_out_nothing() -> None:
    queue = WorkQueue(Backoff(1, 8))
    got: list[str | None] = []
    workers = [threading.Thread(target=lambda: got.append(queue.get())) for _ in range(3)]
    for worker in workers:
        worker.start()
    queue.close()
    for worker in workers:
        worker.join(10)
    queue.add("a")
    assert got == [None, None, None]
    assert queue.get() is None


def test_a_waiting_worker_gets_a_key_when_its_timer_runs_out() -> None:
    queue = WorkQueue(Backoff(1, 8))
    got: list[str | None] = []
    worker = threading.Thread(target=lambda: got.append(queue.get()))
    worker.start()
    queue.add_after("a", 0.02)
    worker.join(10)
    assert got == ["a"]


def test_no_two_workers_ever_hold_one_key_and_no_addition_is_lost() -> None:
    queue = WorkQueue(Backoff(1, 8))
    keys = ["a", "b", "c"]
    held: Counter[str] = Counter()
    together: list[str] = []
    added: Counter[str] = Counter()
    seen_after: dict[str, int] = {}
    lock = threading.Lock()

    def work() -> None:
        while (key := queue.get()) is not None:
            with lock:
                held[key] += 1
                if held[key] > 1:
                    together.append(key)
                seen_after[key] = added[key]
            with lock:
                held[key] -= 1
            queue.done(key)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for number in range(600):
        key = keys[number % 3]
        with lock:
            added[key] += 1
        queue.add(key)
    settled = threading.Event()
    for _ in range(1000):
        with lock:
            if all(seen_after.get(key) == 200 for key in keys):
                break
        settled.wait(0.01)
    queue.close()
    for worker in workers:
        worker.join(10)
    assert together == []
    assert seen_after == {"a": 200, "b": 200, "c": 200}


def test_how_long_a_key_was_ready_is_told_when_it_is_taken(time: FakeTime) -> None:
    told: list[float] = []
    queue = WorkQueue(Backoff(1, 8), on_taken=told.append, monotonic=time)
    queue.add("a")
    queue.add_after("b", 5)
    time.passes(3)
    queue.poll()
    time.passes(2)
    queue.poll()
    assert told == [3, 0]


def test_keys_in_work_are_counted(queue: WorkQueue) -> None:
    queue.add("a")
    queue.add("b")
    queue.poll()
    assert (queue.in_work(), queue.depth()) == (1, 1)
    queue.done("a")
    assert queue.in_work() == 0


def one_project(delays: Backoff, width: int = 1) -> WorkQueue:
    return WorkQueue(Backoff(1, 8), lanes=Lanes(lambda key: "project", width, delays))


def test_a_worker_that_waits_for_a_place_in_a_project_gets_it_when_it_is_free() -> None:
    queue = one_project(Backoff(1, 8))
    queue.add("a")
    queue.add("b")
    assert queue.get() == "a"
    got: list[str | None] = []
    worker = threading.Thread(target=lambda: got.append(queue.get()), daemon=True)
    worker.start()
    queue.done("a", True)
    worker.join(10)
    assert got == ["b"]


def test_a_waiting_worker_gets_the_probe_of_an_unreachable_project_when_it_is_due() -> None:
    queue = one_project(Backoff(0.02, 1), width=2)
    queue.add("a")
    queue.add("b")
    assert queue.get() == "a"
    queue.done("a", False)
    assert queue.projects_backing_off() == 1
    got: list[str | None] = []
    worker = threading.Thread(target=lambda: got.append(queue.get()), daemon=True)
    worker.start()
    worker.join(10)
    assert got == ["b"]
