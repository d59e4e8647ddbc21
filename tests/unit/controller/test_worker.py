from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from server_api.controller.backoff import Backoff
from server_api.controller.election import LostLeadership
from server_api.controller.lanes import Lanes
from server_api.controller.reconciler import BACKING_OFF, NEVER, Requeue
from server_api.controller.work_queue import WorkQueue
from server_api.controller.worker import ABANDONED_SECONDS, Worker
from tests.unit.controller.doubles import FakeTime


class Reconciles:
    """A reconciler that does what it is told."""

    def __init__(self) -> None:
        self.answer: Requeue | Exception | Callable[[], Requeue] = NEVER

    def reconcile(self, server_id: str) -> Requeue:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer() if callable(self.answer) else self.answer


class Shift:
    """A worker that is handed one key after the other."""

    def __init__(self) -> None:
        self.time = FakeTime()
        backoff = Backoff(base=1, limit=60, spread=0)
        self.queue = WorkQueue(backoff, lanes=Lanes(lambda _: "project", 1, backoff), monotonic=self.time)
        self.reconciler = Reconciles()
        self.worker = Worker(self.queue, self.reconciler)  # type: ignore[arg-type]

    def work(self, answer: Requeue | Exception) -> None:
        self.reconciler.answer = answer
        self.queue.add("s1")
        assert self.queue.poll() == "s1"
        self.worker.work("s1")

    def seconds_until_next(self) -> int | None:
        for waited in range(100):
            if self.queue.poll() is not None:
                self.queue.done("s1")
                return waited
            self.time.passes(1)
        return None


@pytest.fixture
def shift() -> Shift:
    return Shift()


def test_a_server_that_is_done_does_not_come_back(shift: Shift) -> None:
    shift.work(NEVER)
    assert shift.seconds_until_next() is None


def test_a_server_comes_back_when_its_pass_said(shift: Shift) -> None:
    shift.work(Requeue(after=10))
    assert shift.seconds_until_next() == 10


def test_failures_come_back_later_each_time_until_one_pass_does_not_fail(shift: Shift) -> None:
    waits = []
    for answer in (BACKING_OFF, BACKING_OFF, BACKING_OFF, NEVER, BACKING_OFF):
        shift.work(answer)
        waits.append(shift.seconds_until_next())
    assert waits == [1, 2, 4, None, 1]


def test_a_defect_in_one_pass_stops_no_worker_and_backs_off(shift: Shift) -> None:
    waits = []
    for _ in range(3):
        shift.work(ZeroDivisionError())
        waits.append(shift.seconds_until_next())
    assert waits == [1, 2, 4]


def test_an_abandoned_pass_stays_wanted_without_a_hot_loop(shift: Shift) -> None:
    shift.work(LostLeadership("lost"))
    assert shift.seconds_until_next() == ABANDONED_SECONDS


@pytest.mark.parametrize(
    ("answer", "backing_off"),
    [
        (Requeue(after=10, reached=False), 1),
        (Requeue(after=10, reached=True), 0),
        (NEVER, 0),
        (LostLeadership("lost"), 0),
        (ZeroDivisionError(), 0),
    ],
)
def test_only_a_pass_that_could_not_reach_its_project_makes_the_project_wait(
    answer: Requeue | Exception, backing_off: int
) -> None:
    shift = Shift()
    shift.work(answer)
    assert shift.queue.projects_backing_off() == backing_off


def test_a_worker_ends_with_its_queue(shift: Shift) -> None:
    def close() -> Requeue:
        shift.queue.close()
        return NEVER

    shift.reconciler.answer = close
    shift.queue.add("s1")
    shift.queue.add("s2")
    shift.worker.run(threading.Event())
    assert shift.queue.depth() == 1


def test_a_key_that_comes_after_the_stop_is_not_worked_on(shift: Shift) -> None:
    stop = threading.Event()
    stop.set()
    shift.reconciler.answer = AssertionError("worked on")
    shift.queue.add("s1")
    with capture_logs() as lines:
        shift.worker.run(stop)
    assert lines == []
