from __future__ import annotations

from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from server_api.controller.metrics import Metrics
from server_api.controller.transitions import report
from server_api.servers.model import Condition, Phase, Server
from tests.unit.controller.doubles import NOW, RecordedEvents, a_server

SCHEDULED = NOW - timedelta(seconds=30)
LAUNCHED = NOW - timedelta(seconds=10)
PROVISION = "unikorn_region_server_provision_duration_seconds"
SCHEDULING = "unikorn_region_server_scheduling_duration_seconds"


def measured(*changes: tuple[Server, Server]) -> dict[str, tuple[float | None, float | None]]:
    """Count and sum of both histograms after these changes."""
    metrics = Metrics()
    for before, after in changes:
        report(before, after, metrics, RecordedEvents())
    read = metrics.registry.get_sample_value
    return {name: (read(f"{name}_count"), read(f"{name}_sum")) for name in (PROVISION, SCHEDULING)}


RUNNING = a_server(phase=Phase.RUNNING, scheduled_at=SCHEDULED, launched_at=LAUNCHED, provisioned_at=LAUNCHED)
STOPPED = a_server(phase=Phase.STOPPED, scheduled_at=SCHEDULED, launched_at=LAUNCHED, provisioned_at=LAUNCHED)


@pytest.mark.parametrize(
    "before",
    [a_server(), a_server(phase=Phase.BUILDING, scheduled_at=SCHEDULED)],
    ids=["never seen", "seen building"],
)
def test_m14_the_first_move_to_running_records_both_durations(before: Server) -> None:
    assert measured((before, RUNNING)) == {PROVISION: (1, 30), SCHEDULING: (1, 10)}


def test_m14_a_restart_records_nothing() -> None:
    assert measured((RUNNING, STOPPED), (STOPPED, RUNNING)) == {PROVISION: (0, 0), SCHEDULING: (0, 0)}


def test_a_running_server_whose_launch_time_comes_late_records_nothing() -> None:
    assert measured((a_server(phase=Phase.RUNNING), RUNNING)) == {PROVISION: (0, 0), SCHEDULING: (0, 0)}


def test_m14_a_negative_duration_is_dropped() -> None:
    early = a_server(
        phase=Phase.RUNNING, scheduled_at=NOW - timedelta(hours=1), launched_at=LAUNCHED, provisioned_at=LAUNCHED
    )
    assert measured((a_server(), early)) == {PROVISION: (1, 30), SCHEDULING: (0, 0)}


def test_a_launch_without_a_time_records_nothing_of_it() -> None:
    unknown = a_server(phase=Phase.RUNNING, scheduled_at=SCHEDULED)
    assert measured((a_server(), unknown)) == {PROVISION: (0, 0), SCHEDULING: (1, 10)}


def healthy(status: str, message: str = "") -> Server:
    return a_server(conditions=(Condition("Healthy", status, "reason", message),))


def test_phase_and_health_changes_are_logged_with_the_server() -> None:
    with capture_logs() as lines:
        report(a_server(phase=Phase.BUILDING), a_server(phase=Phase.STOPPED), Metrics(), RecordedEvents())
        report(a_server(), healthy("True"), Metrics(), RecordedEvents())
        report(healthy("True"), healthy("False"), Metrics(), RecordedEvents())
    told = [(line["event"], line["server_id"], line["old"], line["new"]) for line in lines]
    assert told == [
        ("phase changed", "s1", "Building", "Stopped"),
        ("health changed", "s1", None, "True"),
        ("health changed", "s1", "True", "False"),
    ]


def test_a_health_message_that_changes_is_not_worth_a_line() -> None:
    with capture_logs() as lines:
        report(healthy("False", "one"), healthy("False", "another"), Metrics(), RecordedEvents())
    assert lines == []


def test_what_operators_want_to_know_becomes_an_event() -> None:
    events = RecordedEvents()
    report(
        healthy("True"), a_server(conditions=(Condition("Healthy", "False", "Errored", "no host"),)), Metrics(), events
    )
    assert events.recorded == [("s1", "InstanceErrored", "no host")]
