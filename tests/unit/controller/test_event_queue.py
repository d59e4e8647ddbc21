from __future__ import annotations

import threading

import pytest
from structlog.testing import capture_logs

from server_api.controller.event_queue import EventQueue
from server_api.servers.model import Server
from server_api.servers.ports import EventType
from tests.unit.controller.doubles import RecordedEvents, a_server


class SlowEvents(RecordedEvents):
    """Writes nothing until it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.let = threading.Event(), threading.Event()

    def record(self, server: Server, type_: EventType, reason: str, message: str) -> None:
        self.begun.set()
        assert self.let.wait(10)
        super().record(server, type_, reason, message)


def record(queue: EventQueue, *reasons: str) -> None:
    for reason in reasons:
        queue.record(a_server(), EventType.NORMAL, reason, "message")


def reasons(events: RecordedEvents) -> list[str]:
    return [reason for _, reason, _ in events.recorded]


def write_all(queue: EventQueue) -> None:
    queue.close()
    queue.run()


def test_events_are_written_in_order_and_those_left_over_before_the_end() -> None:
    events = RecordedEvents()
    queue = EventQueue(events)
    record(queue, "One", "Two", "Three")
    write_all(queue)
    assert events.recorded == [("s1", "One", "message"), ("s1", "Two", "message"), ("s1", "Three", "message")]


def test_a_burst_waits_for_nobody_however_slow_the_store_is() -> None:
    events = SlowEvents()
    queue = EventQueue(events)
    writer = threading.Thread(target=queue.run)
    writer.start()
    record(queue, "First")
    assert events.begun.wait(10)
    record(queue, *(f"Event{number}" for number in range(1000)))
    assert events.recorded == []
    events.let.set()
    queue.close()
    writer.join(10)
    assert len(events.recorded) == 1001


def test_when_too_many_wait_the_oldest_are_dropped_and_counted() -> None:
    events, dropped = RecordedEvents(), []
    queue = EventQueue(events, on_drop=lambda: dropped.append(1), capacity=3)
    record(queue, "One", "Two", "Three", "Four", "Five")
    write_all(queue)
    assert (reasons(events), len(dropped)) == (["Three", "Four", "Five"], 2)


def test_an_event_that_cannot_be_told_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    events = RecordedEvents()
    record_one = events.record

    def choke(server: Server, type_: EventType, reason: str, message: str) -> None:
        if reason == "Bad":
            raise ZeroDivisionError
        record_one(server, type_, reason, message)

    monkeypatch.setattr(events, "record", choke)
    queue = EventQueue(events)
    record(queue, "Bad", "Good")
    with capture_logs() as lines:
        write_all(queue)
    assert reasons(events) == ["Good"]
    assert [(line["server_id"], line["reason"]) for line in lines] == [("s1", "Bad")]
