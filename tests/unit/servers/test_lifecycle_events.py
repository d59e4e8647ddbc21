"""Which events tell of a change of status (known failures B-31, B-35 and B-47)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from server_api.servers.lifecycle_events import AT_THE_GATES, events_of
from server_api.servers.model import GateStatus, RebuildMarker, Server, ServerStatus
from server_api.servers.ports import EventType, ReferentKind
from server_api.servers.provisioning import Provisioner
from tests.doubles.directory import InMemoryDirectory
from tests.doubles.references import InMemoryReferences
from tests.doubles.store import InMemoryServerStore
from tests.doubles.tenancy import OneProjectCloud
from tests.unit.servers.builders import (
    EARLIER,
    IDENTITY,
    IMAGE,
    NETWORK,
    NOW,
    OTHER_ID,
    condition,
    identity,
    region,
    server,
    spec,
)

GATE = "example.org/ready"
FAULT = "the instance is ERROR: No valid host was found"


def status(available: str | None = None, healthy: str | None = None, **changes: Any) -> ServerStatus:
    """A status whose conditions have these reasons; ``reason: message`` sets the message too."""
    conditions = [
        condition(type_, "True" if reason in ("Provisioned", "Healthy") else "False", reason, message)
        for type_, text in (("Available", available), ("Healthy", healthy))
        if text is not None
        for reason, _, message in [text.partition(": ")]
    ]
    return ServerStatus(conditions=tuple(conditions), **changes)


def told(before: ServerStatus, after: ServerStatus, made: Server | None = None) -> list[tuple[str, str]]:
    """Severity and reason of each event."""
    made = made or server(spec())
    events = events_of(replace(made, status=before), replace(made, status=after))
    return [(event.type.value, event.reason) for event in events]


def messages(before: ServerStatus, after: ServerStatus, made: Server | None = None) -> list[str]:
    made = made or server(spec())
    return [event.message for event in events_of(replace(made, status=before), replace(made, status=after))]


def with_metadata(**changes: Any) -> Server:
    made = server(spec())
    return replace(made, metadata=replace(made.metadata, **changes))


def marker(state: str, image_id: str = IMAGE) -> RebuildMarker:
    return RebuildMarker(image_id, state)


SETTLED = status("Provisioned", "Healthy", scheduled_at=EARLIER, launched_at=EARLIER, provisioned_at=EARLIER)
BUILDING = status("Provisioned", "Degraded", scheduled_at=EARLIER)
REBUILDING = status("Provisioned", "Provisioning", launched_at=EARLIER, rebuild=marker("Rebuilding"))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(status(), status("Provisioning"), ["Normal Provisioning"], id="first pass"),
        pytest.param(
            status("Provisioning"),
            status("Provisioned", "Degraded", scheduled_at=NOW),
            ["Normal InstanceCreated", "Normal Provisioned"],
            id="instance seen",
        ),
        pytest.param(BUILDING, replace(SETTLED, conditions=BUILDING.conditions), ["Normal InstanceLaunched"], id="up"),
        pytest.param(
            BUILDING,
            status("Provisioned", f"Errored: {FAULT}", scheduled_at=EARLIER),
            ["Warning InstanceErrored"],
            id="errored",
        ),
        pytest.param(
            status(healthy="Errored"),
            status(healthy=f"Errored: {FAULT}"),
            ["Warning InstanceErrored"],
            id="the fault comes later",
        ),
        pytest.param(
            status(healthy="Errored"), status(healthy="Healthy"), ["Normal InstanceRecovered"], id="recovered"
        ),
        pytest.param(
            status(healthy="Errored"), status(healthy="Degraded"), ["Normal InstanceRecovered"], id="recovered, and off"
        ),
        pytest.param(status(healthy="Errored"), status(healthy="Provisioning"), [], id="replaced by a retry"),
        pytest.param(status("Provisioning"), status("Errored"), ["Warning ProvisioningFailed"], id="pass failed"),
        pytest.param(status("Errored"), status("Provisioned"), ["Normal Provisioned"], id="mended"),
        pytest.param(SETTLED, replace(SETTLED, rebuild=marker("Initiated")), ["Normal RebuildInitiated"], id="armed"),
        pytest.param(
            replace(SETTLED, rebuild=marker("Initiated")),
            replace(SETTLED, rebuild=marker("Rebuilding")),
            ["Normal Rebuilding"],
            id="taken",
        ),
        pytest.param(
            REBUILDING, replace(REBUILDING, rebuild=marker("Succeeded")), ["Normal RebuildSucceeded"], id="done"
        ),
        pytest.param(
            replace(REBUILDING, rebuild=marker("Succeeded")),
            replace(REBUILDING, rebuild=None),
            ["Normal Provisioned"],
            id="settled after it was told",
        ),
        pytest.param(
            status("Provisioning", rebuild=marker("Rebuilding")),
            status("Provisioning"),
            ["Normal RebuildSucceeded"],
            id="done without being seen",
        ),
        pytest.param(
            status("Provisioning", rebuild=marker("Initiated", OTHER_ID)), status("Provisioning"), [], id="dropped"
        ),
        pytest.param(
            REBUILDING, replace(REBUILDING, rebuild=marker("Failed")), ["Warning RebuildFailed"], id="rebuild failed"
        ),
        pytest.param(
            status("Errored", rebuild=marker("Failed")),
            status("Errored", rebuild=marker("Initiated", OTHER_ID)),
            ["Normal RebuildInitiated"],
            id="aimed anew",
        ),
        pytest.param(
            status("Provisioning"),
            status("Provisioned", rebuild=marker("Rebuilding")),
            ["Normal Rebuilding"],
            id="provisioned, but not settled",
        ),
        pytest.param(REBUILDING, replace(REBUILDING, rebuild=marker("OfAnotherVersion")), [], id="unknown state"),
    ],
)
def test_each_transition_is_told_once(before: ServerStatus, after: ServerStatus, expected: list[str]) -> None:
    assert [" ".join(event) for event in told(before, after)] == expected


@pytest.mark.parametrize(
    "unchanged",
    [
        SETTLED,
        BUILDING,
        REBUILDING,
        status(),
        status("Errored: because", f"Errored: {FAULT}"),
        status(f"Provisioning: {AT_THE_GATES}: {GATE}"),
        status("Errored", rebuild=marker("Failed")),
    ],
)
def test_b47_an_unchanged_status_tells_nothing(unchanged: ServerStatus) -> None:
    assert told(unchanged, unchanged) == []
    assert told(unchanged, replace(unchanged, private_ip="192.0.2.1")) == []


def test_b47_a_failure_whose_words_change_is_not_told_again() -> None:
    assert told(status("Errored: request req-1 failed"), status("Errored: request req-2 failed")) == []


def test_b31_the_clouds_fault_is_in_the_event() -> None:
    assert messages(BUILDING, status("Provisioned", f"Errored: {FAULT}", scheduled_at=EARLIER)) == [FAULT]
    failed = status("Provisioned", f"Errored: {FAULT}", launched_at=EARLIER, rebuild=marker("Failed"))
    assert messages(REBUILDING, failed) == [FAULT, f"image {IMAGE}: {FAULT}"]


@pytest.mark.parametrize(
    ("metadata", "who"),
    [({"creator": "a-service", "principal_creator": "alice"}, "alice"), ({"creator": "bob"}, "bob")],
)
def test_b35_a_create_that_fails_tells_of_itself_and_of_who_asked_for_it(metadata: dict[str, Any], who: str) -> None:
    made = with_metadata(**{"creator": None, "principal_creator": None, **metadata})
    refused = status("Errored: nova: quota exceeded")
    assert messages(status(), refused, made) == [
        f"provisioning has begun (asked for by {who})",
        f"nova: quota exceeded (asked for by {who})",
    ]


def test_a_create_nobody_is_known_to_have_asked_for_is_told_without_a_name() -> None:
    made = with_metadata(creator=None, principal_creator=None)
    assert messages(status(), status("Provisioning"), made) == ["provisioning has begun"]


def test_a_failure_of_a_server_that_ran_is_not_its_creators() -> None:
    made = with_metadata(creator="bob")
    assert messages(SETTLED, replace(SETTLED, conditions=status("Errored: because").conditions), made) == ["because"]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("Deprovisioning: waiting", []),
        ("Errored: keystone: denied", ["Warning DeprovisioningFailed"]),
        ("Deprovisioned: done", ["Normal Deprovisioned"]),
    ],
)
def test_a_deletion_tells_of_its_end_and_of_its_failures(after: str, expected: list[str]) -> None:
    made = with_metadata(deleted_at=NOW)
    assert [" ".join(event) for event in told(status(), status(after), made)] == expected


GATED = server(spec(provider_create_gates=(GATE,)))
WAITING = status(f"Provisioning: {AT_THE_GATES}: {GATE}")
OPEN = (GateStatus(GATE, "True", NOW, "actor", "Ready", ""),)


def test_waiting_for_gates_is_told_with_their_names_and_so_is_its_end() -> None:
    assert told(status("Provisioning"), WAITING, GATED) == [("Normal", "WaitingForGates")]
    assert messages(status("Provisioning"), WAITING, GATED) == [f"{AT_THE_GATES}: {GATE}"]
    opened = replace(WAITING, provider_create_gates=OPEN)
    passed = replace(status("Provisioning: waiting for Nova"), provider_create_gates=OPEN)
    assert told(opened, passed, GATED) == [("Normal", "GatesOpen")]


def test_a_pass_that_does_not_get_as_far_as_the_gates_opens_none() -> None:
    assert told(WAITING, status("Provisioning: waiting for the identity"), GATED) == []


def test_a_deletion_opens_no_gates() -> None:
    deleted = replace(GATED, metadata=replace(GATED.metadata, deleted_at=NOW))
    opened = replace(WAITING, provider_create_gates=OPEN)
    assert told(opened, replace(status("Deprovisioning"), provider_create_gates=OPEN), deleted) == []


def test_what_a_pass_says_at_the_gates_is_recognised() -> None:
    references = InMemoryReferences()
    references.put(ReferentKind.NETWORK, NETWORK, IDENTITY)
    directory = InMemoryDirectory(identity(), region())
    result = Provisioner(InMemoryServerStore(GATED), directory, references, OneProjectCloud()).run(GATED, NOW)
    assert told(GATED.status, result.status, GATED) == [("Normal", "Provisioning"), ("Normal", "WaitingForGates")]


def test_every_event_has_a_severity_operators_can_filter_by() -> None:
    events = events_of(server(spec(), BUILDING), server(spec(), status("Errored", f"Errored: {FAULT}")))
    assert {event.type for event in events} == {EventType.WARNING}
