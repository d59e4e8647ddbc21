"""Which changes wake the controller (contract 7.1, K07 to K12)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from server_api.controller.triggers import wakes
from server_api.servers.conditions import available
from server_api.servers.model import Condition, GateStatus, Phase, Reason, RebuildMarker, Server, ServerStatus
from tests.unit.controller.doubles import NOW, a_server

GATES = ("example.org/a", "example.org/b")


def test_a_new_server_wakes() -> None:
    assert wakes(None, a_server())


def test_a_server_that_is_gone_wakes() -> None:
    assert wakes(a_server(), None)


@pytest.mark.parametrize(
    "change",
    [{"generation": 2}, {"deleted_at": NOW}, {"uid": "another of the same name"}],
    ids=["spec", "deletion", "created again"],
)
def test_what_was_asked_for_changed(change: dict[str, Any]) -> None:
    assert wakes(a_server(), a_server(resource_version="2", **change))


@pytest.mark.parametrize(
    "change",
    [
        {"phase": Phase.RUNNING},
        {"private_ip": "192.0.2.1"},
        {"finalizers": ("unikorn",)},
        {"conditions": (Condition("Available", "False", "Errored"),)},
        {"provider_create_failures": 1},
        {},
    ],
    ids=["phase", "address", "finalizer", "condition", "failures", "nothing"],
)
def test_our_own_writes_do_not_wake(change: dict[str, Any]) -> None:
    assert not wakes(a_server(), a_server(resource_version="2", **change))


def rebuilding(state: str | None, reason: str | None = "Provisioned") -> Server:
    """A server with a rebuild in that state, whose Available condition has that reason."""
    conditions = () if reason is None else (Condition("Available", "False", reason),)
    return a_server(rebuild=state and RebuildMarker("image", state), conditions=conditions)


EVERY_REASON = (None, "Provisioning", "Provisioned", "Errored")


@pytest.mark.parametrize("reason", EVERY_REASON)
def test_k09_a_rebuild_that_succeeded_wakes_with_every_write_until_a_pass_removed_it(reason: str | None) -> None:
    assert wakes(rebuilding("Succeeded", reason), rebuilding("Succeeded", reason))
    assert wakes(rebuilding("Rebuilding", reason), rebuilding("Succeeded", reason))


@pytest.mark.parametrize("reason", [None, "Provisioned", "Provisioning"])
def test_k10_a_rebuild_that_failed_wakes_until_a_pass_told_of_it(reason: str | None) -> None:
    assert wakes(rebuilding("Rebuilding", reason), rebuilding("Failed", reason))
    assert wakes(rebuilding("Failed", reason), rebuilding("Failed", reason))


@pytest.mark.parametrize("before", ["Rebuilding", "Failed"])
def test_k11_a_parked_rebuild_is_quiet(before: str) -> None:
    assert not wakes(rebuilding(before), rebuilding("Failed", "Errored"))


@pytest.mark.parametrize("reason", EVERY_REASON)
@pytest.mark.parametrize("state", ["Initiated", "Rebuilding", "OfAnotherVersion", None])
@pytest.mark.parametrize("before", ["Initiated", "Rebuilding", "Succeeded", "Failed", None])
def test_k12_a_rebuild_that_has_not_ended_is_quiet(before: str | None, state: str | None, reason: str | None) -> None:
    assert not wakes(rebuilding(before, reason), rebuilding(state, reason))


def gated(*recorded: str, value: str = "True", gates: tuple[str, ...] | None = GATES) -> Server:
    """A server with these gates, of which some are recorded with that value."""
    made = a_server()
    records = tuple(GateStatus(gate, value, NOW, "an-actor", "Ready", "") for gate in recorded)
    return replace(
        made,
        spec=replace(made.spec, provider_create_gates=gates),
        status=replace(made.status, provider_create_gates=records),
    )


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(gated(), gated(GATES[0]), True, id="one of two"),
        pytest.param(gated(GATES[0]), gated(*GATES), True, id="the last one"),
        pytest.param(gated(GATES[0], value="Unknown"), gated(GATES[0]), True, id="from unknown"),
        pytest.param(gated(*GATES), gated(*GATES), False, id="as before"),
        pytest.param(gated(), gated("example.org/not-configured"), False, id="one that does not count"),
        pytest.param(gated(), gated(*GATES, value="False"), False, id="recorded as false"),
        pytest.param(gated(*GATES), gated(*GATES, value="Unknown"), False, id="reset for a retry"),
        pytest.param(gated(GATES[0]), gated(GATES[1]), False, id="one for the other"),
    ],
)
def test_a_gate_that_was_satisfied_wakes(before: Server, after: Server, expected: bool) -> None:
    assert wakes(before, after) is expected


def test_a_server_without_gates_is_not_woken_by_records_of_some() -> None:
    assert not wakes(gated(gates=None), gated(*GATES, gates=None))


def test_what_somebody_took_away_that_a_pass_puts_back_is_worth_a_pass() -> None:
    settled = available(ServerStatus(), Reason.PROVISIONED, "done", NOW)
    reconciled = replace(a_server(finalizers=("unikorn",)), status=settled)
    without_finalizer = replace(reconciled, metadata=replace(reconciled.metadata, finalizers=()))
    without_status = replace(reconciled, status=ServerStatus())

    assert not wakes(reconciled, reconciled)
    assert wakes(reconciled, without_finalizer)
    assert wakes(reconciled, without_status)
    assert not wakes(without_status, without_status)


def health(status: str, reason: str, **changes: Any) -> Server:
    """A server whose instance has that health."""
    return a_server(conditions=(Condition("Healthy", status, reason, "as Nova says"),), **changes)


NOT_YET_FAILED = a_server(phase=Phase.BUILDING)
FAILED = health("False", "Errored", phase=Phase.BUILDING)


def test_k08_a_create_that_fails_wakes_once_on_its_edge() -> None:
    assert wakes(NOT_YET_FAILED, FAILED)
    assert not wakes(FAILED, FAILED)
    assert not wakes(FAILED, replace(FAILED, status=replace(FAILED.status, private_ip="192.0.2.1")))


@pytest.mark.parametrize(
    "change",
    [{"phase": Phase.RUNNING}, {"launched_at": NOW}, {"provisioned_at": NOW}],
    ids=["running without a launch time", "launched", "launched before a retry"],
)
def test_k07_an_error_of_a_server_that_ran_does_not_wake(change: dict[str, Any]) -> None:
    assert not wakes(a_server(**change), health("False", "Errored", **change))


def test_a_failed_create_that_turned_out_well_wakes() -> None:
    assert wakes(FAILED, health("True", "Healthy", phase=Phase.RUNNING))


@pytest.mark.parametrize(("before", "after", "expected"), [(3, 0, True), (3, 2, True), (3, 3, False), (0, 1, False)])
def test_an_operator_who_allows_more_attempts_wakes(before: int, after: int, expected: bool) -> None:
    assert wakes(a_server(provider_create_failures=before), a_server(provider_create_failures=after)) is expected
