"""From what Nova shows to what the status says (contract 4.5 and 6.12)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from server_api.servers.cloud_model import Instance, PowerState
from server_api.servers.model import Condition, ConditionType, ServerStatus
from server_api.servers.observed_state import observe
from tests.unit.servers.builders import EARLIER, NOW, NOW_IN_SECONDS, condition, instance

OURS = "network-ours"
MAC = "fa:16:3e:00:00:01"
LATER = EARLIER + timedelta(hours=1)


def seen(before: ServerStatus | None = None, **shown: Any) -> ServerStatus:
    return observe(before or ServerStatus(), instance(**shown), NOW, OURS)


def health(status: ServerStatus) -> Condition:
    found = status.condition(ConditionType.HEALTHY)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("shown", "value", "reason"),
    [
        ("ACTIVE", "True", "Healthy"),
        ("ERROR", "False", "Errored"),
        ("REBUILD", "False", "Provisioning"),
        ("UNKNOWN", "Unknown", "Unknown"),
        ("BUILD", "False", "Degraded"),
        ("SHUTOFF", "False", "Degraded"),
        ("PAUSED", "False", "Degraded"),
        ("SUSPENDED", "False", "Degraded"),
        ("REBOOT", "False", "Degraded"),
        ("SOMETHING_NEWER", "False", "Degraded"),
    ],
)
def test_health_follows_the_status_of_the_instance(shown: str, value: str, reason: str) -> None:
    written = health(seen(status=shown))

    assert (written.status, written.reason) == (value, reason)
    assert written.last_transition_time == NOW_IN_SECONDS
    assert shown in written.message


def test_b31_b14_the_fault_of_a_failed_instance_is_told() -> None:
    assert "No valid host was found." in health(seen(status="ERROR", fault="No valid host was found.")).message


def test_a_failed_instance_without_a_fault_is_told_plainly() -> None:
    assert health(seen(status="ERROR")).message == "the instance is ERROR"


def test_b26_an_error_shows_with_the_first_look_at_it() -> None:
    building = seen(status="BUILD")

    assert health(observe(building, instance(status="ERROR"), NOW, OURS)).reason == "Errored"


def test_an_old_fault_of_an_instance_that_recovered_is_not_told() -> None:
    assert "No valid host" not in health(seen(status="ACTIVE", fault="No valid host was found.")).message


@pytest.mark.parametrize("before", [None, "Pending", "Queued", "Building", "Running", "Stopping", "Stopped"])
@pytest.mark.parametrize(
    ("shown", "power_state", "after"),
    [
        ("BUILD", PowerState.NOSTATE, "Building"),
        ("BUILD", PowerState.RUNNING, "Building"),
        ("REBUILD", PowerState.RUNNING, "Building"),
        ("REBUILD", PowerState.SHUTDOWN, "Building"),
        ("ACTIVE", PowerState.RUNNING, "Running"),
        ("ERROR", PowerState.RUNNING, "Running"),
        ("SHUTOFF", PowerState.SHUTDOWN, "Stopped"),
        ("ACTIVE", PowerState.SHUTDOWN, "Stopped"),
        ("ACTIVE", PowerState.NOSTATE, "unchanged"),
        ("ERROR", PowerState.NOSTATE, "unchanged"),
        ("PAUSED", PowerState.PAUSED, "unchanged"),
        ("SUSPENDED", PowerState.SUSPENDED, "unchanged"),
        ("ERROR", PowerState.CRASHED, "unchanged"),
        ("ACTIVE", 99, "unchanged"),
    ],
)
def test_m12_m13_the_phase_follows_status_and_power_state(
    before: str | None, shown: str, power_state: int, after: str
) -> None:
    status = seen(ServerStatus(phase=before), status=shown, power_state=power_state)

    assert status.phase == (before or "Pending" if after == "unchanged" else after)


@pytest.mark.parametrize(
    ("shown", "addresses", "stored", "after"),
    [
        pytest.param("ACTIVE", {OURS: MAC}, None, MAC, id="stored"),
        pytest.param("ACTIVE", {OURS: MAC}, "fa:16:3e:ff:ff:ff", MAC, id="overwritten when different"),
        pytest.param("ACTIVE", {}, MAC, MAC, id="kept when none is shown"),
        pytest.param("ACTIVE", {OURS: ""}, MAC, MAC, id="kept when an empty one is shown"),
        pytest.param("ACTIVE", {"network-other": MAC}, None, None, id="not that of another network"),
        pytest.param("BUILD", {OURS: MAC}, None, None, id="not of an instance that is building"),
        pytest.param("SHUTOFF", {OURS: MAC}, "fa:16:3e:ff:ff:ff", "fa:16:3e:ff:ff:ff", id="not of a stopped one"),
    ],
)
def test_m08_the_mac_address_is_that_of_an_active_instance_on_our_network(
    shown: str, addresses: dict[str, str], stored: str | None, after: str | None
) -> None:
    assert seen(ServerStatus(mac_address=stored), status=shown, mac_addresses=addresses).mac_address == after


def test_times_are_taken_from_the_instance() -> None:
    status = seen(created_at=EARLIER, launched_at=LATER)

    assert (status.scheduled_at, status.launched_at, status.provisioned_at) == (EARLIER, LATER, LATER)


def test_times_the_instance_does_not_show_are_kept() -> None:
    before = ServerStatus(scheduled_at=EARLIER, launched_at=EARLIER, provisioned_at=EARLIER)

    status = seen(before)

    assert (status.scheduled_at, status.launched_at, status.provisioned_at) == (EARLIER, EARLIER, EARLIER)


def test_an_instance_without_times_gives_none() -> None:
    status = seen(status="BUILD")

    assert (status.scheduled_at, status.launched_at, status.provisioned_at) == (None, None, None)


def test_m09_the_first_launch_counts_as_provisioned_even_without_a_power_state() -> None:
    status = seen(ServerStatus(phase="Building"), power_state=PowerState.NOSTATE, launched_at=LATER)

    assert status.provisioned_at == LATER
    assert status.phase == "Building"


def test_m09_the_first_launch_counts_while_the_instance_is_building() -> None:
    assert seen(status="BUILD", launched_at=LATER).provisioned_at == LATER


def test_m10_a_later_launch_does_not_change_when_the_server_was_provisioned() -> None:
    status = seen(ServerStatus(launched_at=EARLIER, provisioned_at=EARLIER), launched_at=LATER)

    assert (status.launched_at, status.provisioned_at) == (LATER, EARLIER)


def test_what_the_instance_says_nothing_of_stays() -> None:
    before = ServerStatus(private_ip="192.168.0.7", public_ip="203.0.113.9", provider_create_failures=2)

    status = seen(before)

    assert (status.private_ip, status.public_ip, status.provider_create_failures) == ("192.168.0.7", "203.0.113.9", 2)


def test_the_same_look_twice_changes_nothing_the_second_time() -> None:
    shown: Instance = instance(mac_addresses={OURS: MAC}, created_at=EARLIER, launched_at=LATER)
    once = observe(ServerStatus(), shown, NOW, OURS)

    assert observe(once, shown, NOW + timedelta(hours=1), OURS) == once


def test_the_transition_time_of_health_moves_only_with_its_value() -> None:
    before = ServerStatus(conditions=(condition(ConditionType.HEALTHY, "False", "Degraded"),))

    assert health(seen(before, status="ERROR")).last_transition_time == EARLIER
    assert health(seen(before, status="ACTIVE")).last_transition_time == NOW_IN_SECONDS
