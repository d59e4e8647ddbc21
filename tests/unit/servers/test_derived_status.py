"""provisioningStatus (contract 4.7) and healthStatus (4.8)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from server_api.servers.derived_status import health_status, is_masked, provisioning_status
from server_api.servers.model import ConditionType, RebuildMarker, Server, ServerStatus
from tests.unit.servers.builders import EARLIER, IMAGE, condition, server

REASONS = [
    ("Provisioning", "provisioning"),
    ("DependencyNotReady", "provisioning"),
    ("DependencyFailed", "provisioning"),
    ("Provisioned", "provisioned"),
    ("Errored", "error"),
    ("DependencyNotFound", "error"),
    ("Deprovisioning", "deprovisioning"),
    ("Deprovisioned", "deprovisioning"),
    ("SomethingNewer", "provisioning"),
    ("", "provisioning"),
]
MARKER_STATES = ["Initiated", "Rebuilding", "Succeeded", "Failed", "SomethingNewer"]


def available(reason: str, rebuild: RebuildMarker | None = None, deleted_at: datetime | None = None) -> Server:
    # A Healthy condition that says something else, and a condition status that must not matter.
    conditions = (
        condition(ConditionType.HEALTHY, "False", "Errored"),
        condition(ConditionType.AVAILABLE, "Unknown", reason),
    )
    return server(status=ServerStatus(conditions=conditions, rebuild=rebuild), deleted_at=deleted_at)


@pytest.mark.parametrize(("reason", "expected"), REASONS)
def test_r05_provisioning_status_follows_the_reason_of_the_available_condition(reason: str, expected: str) -> None:
    assert provisioning_status(available(reason)) == expected


def test_c01_a_server_without_a_condition_is_pending() -> None:
    healthy = condition(ConditionType.HEALTHY, "True", "Healthy")

    assert provisioning_status(server()) == "pending"
    assert provisioning_status(server(status=ServerStatus(conditions=(healthy,)))) == "pending"


@pytest.mark.parametrize(("reason", "_"), REASONS)
def test_r19_a_server_being_deleted_is_deprovisioning_whatever_else_is_known(reason: str, _: str) -> None:
    marker = RebuildMarker(IMAGE, "Failed")

    assert provisioning_status(available(reason, marker, deleted_at=EARLIER)) == "deprovisioning"
    assert provisioning_status(server(deleted_at=datetime(2026, 1, 1, tzinfo=UTC))) == "deprovisioning"


@pytest.mark.parametrize("state", MARKER_STATES)
def test_r06_r07_a_recorded_rebuild_hides_provisioned(state: str) -> None:
    assert provisioning_status(available("Provisioned", RebuildMarker(IMAGE, state))) == "provisioning"


@pytest.mark.parametrize("state", MARKER_STATES)
def test_r08_a_recorded_rebuild_hides_no_error(state: str) -> None:
    assert provisioning_status(available("Errored", RebuildMarker(IMAGE, state))) == "error"


def test_a_recorded_rebuild_alone_leaves_a_server_pending() -> None:
    assert provisioning_status(server(status=ServerStatus(rebuild=RebuildMarker(IMAGE, "Initiated")))) == "pending"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("Healthy", "healthy"),
        ("Degraded", "degraded"),
        ("Errored", "error"),
        ("Unknown", "unknown"),
        ("Provisioning", "unknown"),
        ("SomethingNewer", "unknown"),
        ("", "unknown"),
    ],
)
def test_health_status_follows_the_reason_of_the_healthy_condition(reason: str, expected: str) -> None:
    conditions = (
        condition(ConditionType.AVAILABLE, "True", "Provisioned"),
        condition(ConditionType.HEALTHY, "True", reason),
    )

    assert health_status(server(status=ServerStatus(conditions=conditions))) == expected


def test_health_is_unknown_without_a_condition() -> None:
    errored = condition(ConditionType.AVAILABLE, "False", "Errored")

    assert health_status(server()) == "unknown"
    assert health_status(server(status=ServerStatus(conditions=(errored,)))) == "unknown"


def test_only_a_provisioned_server_with_a_recorded_rebuild_is_masked() -> None:
    marker = RebuildMarker("x", "Initiated")
    for reason, rebuild, masked in (
        ("Provisioned", marker, True),
        ("Provisioned", None, False),
        ("Errored", marker, False),
    ):
        status = ServerStatus((condition(ConditionType.AVAILABLE, "True", reason),), rebuild=rebuild)
        assert is_masked(server(status=status)) is masked
