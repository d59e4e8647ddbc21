"""The status of a server read, and the smallest patch between two."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from server_api.servers.model import Condition, GateStatus, RebuildMarker, ServerStatus
from server_api.store.server_status import status_from, status_patch

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TEXT = "2026-01-02T03:04:05Z"
FULL = ServerStatus(
    conditions=(Condition("Available", "True", "Provisioned", "", MOMENT),),
    phase="Running",
    private_ip="10.0.0.5",
    public_ip="203.0.113.5",
    mac_address="fa:16:3e:00:00:01",
    launched_at=MOMENT,
    scheduled_at=MOMENT,
    provisioned_at=MOMENT,
    provider_create_failures=2,
    provider_create_retrying=True,
    rebuild=RebuildMarker("image-1", "Initiated"),
    provider_create_gates=(GateStatus("example.com/ready", "True", MOMENT, "carol", "Ready", ""),),
)


def test_a_whole_status_survives_writing_and_reading() -> None:
    patch = status_patch({}, ServerStatus(), FULL)
    assert status_from(patch) == FULL


def test_nothing_is_written_when_nothing_differs() -> None:
    assert status_patch({}, FULL, FULL) == {}


def test_only_what_differs_is_written() -> None:
    after = replace(FULL, phase="Stopped", public_ip=None)
    assert status_patch({}, FULL, after) == {"phase": "Stopped", "publicIP": None}


def test_a_difference_below_a_second_is_none() -> None:
    assert status_patch({}, FULL, replace(FULL, launched_at=MOMENT.replace(microsecond=5))) == {}


@pytest.mark.parametrize(
    ("field", "empty", "key"),
    [
        ("phase", None, "phase"),
        ("private_ip", None, "privateIP"),
        ("launched_at", None, "launchedAt"),
        ("scheduled_at", None, "scheduledAt"),
        ("provider_create_failures", 0, "providerCreateFailures"),
        ("provider_create_retrying", False, "providerCreateRetrying"),
        ("rebuild", None, "rebuild"),
        ("provider_create_gates", (), "providerCreateGates"),
        ("conditions", (), "conditions"),
    ],
)
def test_a_cleared_field_is_null(field: str, empty: Any, key: str) -> None:
    assert status_patch({}, FULL, replace(FULL, **{field: empty})) == {key: None}


def test_conditions_keep_what_others_wrote_into_them() -> None:
    stored = {
        "conditions": [
            {"type": "Available", "status": "True", "observedGeneration": 3, "lastTransitionTime": TEXT},
            {"type": "OfOthers", "status": "True", "reason": "Kept"},
        ]
    }
    before = status_from(stored)
    after = replace(before, conditions=(Condition("Available", "False", "Errored", "no host", MOMENT),))
    assert status_patch(stored, before, after)["conditions"] == [
        {
            "type": "Available",
            "status": "False",
            "reason": "Errored",
            "message": "no host",
            "lastTransitionTime": TEXT,
            "observedGeneration": 3,
        },
        {"type": "OfOthers", "status": "True", "reason": "Kept"},
    ]


def test_a_known_condition_that_was_dropped_goes() -> None:
    stored = {"conditions": [{"type": "Healthy", "status": "True"}]}
    before = status_from(stored)
    assert status_patch(stored, before, replace(before, conditions=())) == {"conditions": None}


def test_reasons_and_states_of_other_versions_are_read_as_they_are() -> None:
    status = status_from(
        {
            "phase": "Hibernating",
            "conditions": [{"type": "Available", "status": "False", "reason": "DependencyNotReady"}],
            "rebuild": {"targetImageID": "image-1", "state": "Verifying"},
        }
    )
    assert status.phase == "Hibernating"
    assert status.conditions[0].reason == "DependencyNotReady"
    assert status.rebuild == RebuildMarker("image-1", "Verifying")


@pytest.mark.parametrize("nonsense", [None, "text", 3, [], [None, "text"]])
def test_b41_nonsense_in_a_status_reads_as_absent(nonsense: Any) -> None:
    fields = ("conditions", "phase", "launchedAt", "rebuild", "providerCreateFailures", "providerCreateGates")
    status = status_from(dict.fromkeys(fields, nonsense) | {"privateIP": "10.0.0.5"})
    assert status.conditions == ()
    assert status.launched_at is None
    assert status.rebuild is None
    assert status.provider_create_gates == ()
    assert status.private_ip == "10.0.0.5"
