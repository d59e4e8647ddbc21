import os
import signal
from collections.abc import Iterator

import pytest

from server_api.http import draining


@pytest.fixture
def stops() -> Iterator[list[int]]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGALRM)}
    yield []
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number, handler in before.items():
        signal.signal(number, handler)
    draining.withdraw()


def install(stops: list[int], seconds: float) -> None:
    draining.delay_sigterm(lambda number, _frame: stops.append(number), seconds)


def test_the_stop_is_announced_first_and_comes_later(stops: list[int]) -> None:
    install(stops, 0.05)
    os.kill(os.getpid(), signal.SIGTERM)
    assert draining.is_announced()
    assert stops == []
    signal.sigtimedwait([], 1)  # Returns early, when the handler of the alarm has run.
    assert stops == [signal.SIGTERM]


def test_a_second_sigterm_stops_at_once(stops: list[int]) -> None:
    install(stops, 60)
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)
    assert stops == [signal.SIGTERM]


def test_without_a_delay_it_stops_at_once(stops: list[int]) -> None:
    install(stops, 0)
    os.kill(os.getpid(), signal.SIGTERM)
    assert draining.is_announced()
    assert stops == [signal.SIGTERM]


def test_a_forked_worker_sees_the_announcement() -> None:
    go = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(go[0], 1)
        os._exit(0 if draining.is_announced() else 1)
    draining.announce()
    os.write(go[1], b"x")
    _, status = os.waitpid(child, 0)
    draining.withdraw()
    for descriptor in go:
        os.close(descriptor)
    assert os.waitstatus_to_exitcode(status) == 0
