"""Writing conditions (contract 4.5)."""

from __future__ import annotations

import pytest

from server_api.servers.conditions import MESSAGE_LIMIT, available, with_condition
from server_api.servers.model import Condition, ConditionStatus, ConditionType, Reason, ServerStatus
from tests.unit.servers.builders import EARLIER, NOW, NOW_IN_SECONDS, condition

HEALTHY = condition(ConditionType.HEALTHY, "True", "Healthy", "fine")
FOREIGN = Condition("SomethingNewer", "True", "Because", "of reasons", EARLIER)


@pytest.mark.parametrize(
    ("reason", "value"),
    [
        (Reason.PROVISIONED, "True"),
        (Reason.PROVISIONING, "False"),
        (Reason.ERRORED, "False"),
        (Reason.DEPROVISIONING, "False"),
        (Reason.DEPROVISIONED, "True"),
    ],
)
def test_the_available_condition_is_true_for_what_is_done(reason: Reason, value: str) -> None:
    status = available(ServerStatus(), reason, "a message", NOW)

    assert status.conditions == (Condition("Available", value, reason, "a message", NOW_IN_SECONDS),)


def test_the_transition_time_is_in_whole_seconds_because_no_more_is_stored() -> None:
    (written,) = available(ServerStatus(), Reason.ERRORED, "", NOW).conditions

    assert NOW.microsecond
    assert written.last_transition_time == NOW_IN_SECONDS


def test_the_transition_time_stays_while_the_value_stays() -> None:
    before = ServerStatus(conditions=(condition(ConditionType.AVAILABLE, "False", "Provisioning", "waiting"),))

    (written,) = available(before, Reason.ERRORED, "it failed", NOW).conditions

    assert (written.reason, written.message) == ("Errored", "it failed")
    assert written.last_transition_time == EARLIER


def test_the_transition_time_moves_with_the_value() -> None:
    before = ServerStatus(conditions=(condition(ConditionType.AVAILABLE, "False", "Provisioning"),))

    (written,) = available(before, Reason.PROVISIONED, "", NOW).conditions

    assert written.last_transition_time == NOW_IN_SECONDS


def test_a_condition_that_was_stored_without_a_transition_time_gets_one() -> None:
    before = ServerStatus(conditions=(Condition("Available", "False", "Errored"),))

    (written,) = available(before, Reason.ERRORED, "", NOW).conditions

    assert written.last_transition_time == NOW_IN_SECONDS


def test_other_conditions_and_their_order_stay() -> None:
    errored = condition(ConditionType.AVAILABLE, "False", "Errored")
    before = ServerStatus(conditions=(FOREIGN, errored, HEALTHY), private_ip="192.168.0.7")

    after = available(before, Reason.PROVISIONED, "", NOW)

    assert [item.type for item in after.conditions] == ["SomethingNewer", "Available", "Healthy"]
    assert (after.conditions[0], after.conditions[2]) == (FOREIGN, HEALTHY)
    assert after.private_ip == "192.168.0.7"


def test_a_new_condition_goes_to_the_end() -> None:
    after = available(ServerStatus(conditions=(HEALTHY,)), Reason.ERRORED, "", NOW)

    assert [item.type for item in after.conditions] == ["Healthy", "Available"]


def test_the_same_condition_again_changes_nothing() -> None:
    before = ServerStatus(conditions=(HEALTHY,))

    after = with_condition(before, ConditionType.HEALTHY, ConditionStatus.TRUE, Reason.HEALTHY, "fine", NOW)

    assert after == before


def test_a_long_message_is_cut() -> None:
    (written,) = available(ServerStatus(), Reason.ERRORED, "x" * 5000, NOW).conditions

    assert written.message == "x" * MESSAGE_LIMIT
    assert MESSAGE_LIMIT == 1024
