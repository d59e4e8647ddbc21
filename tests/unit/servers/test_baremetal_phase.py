"""The phase of a server on bare metal (contract 6.12)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from server_api.servers.baremetal_phase import phase_of, wants_node
from server_api.servers.model import Phase, ServerStatus
from server_api.servers.observed_state import observe
from server_api.servers.surroundings import FlavorMetadata
from tests.unit.servers.builders import EARLIER, FLAVOR, NOW, OTHER_ID, instance, region

QUEUED = [
    "available",
    "manageable",
    "enroll",
    "cleaning",
    "clean wait",
    "clean hold",
    "verifying",
    "inspecting",
    "inspect wait",
    "adopting",
    "a state of a later Ironic",
    "",
]
BUILDING = [
    "deploying",
    "wait call-back",
    "deploy hold",
    "active",
    "clean failed",
    "inspect failed",
    "adopt failed",
    "deploy failed",
    "error",
]


@pytest.mark.parametrize(
    ("state", "phase"), [*((state, Phase.QUEUED) for state in QUEUED), *((state, Phase.BUILDING) for state in BUILDING)]
)
def test_m11_the_nodes_state_says_whether_the_server_waits_in_line_or_is_being_built(state: str, phase: Phase) -> None:
    assert phase_of(state) is phase
    assert observe(ServerStatus(), instance(status="BUILD"), NOW, "", state).phase == phase


def test_m11_without_a_known_node_a_server_that_nova_builds_is_building() -> None:
    assert observe(ServerStatus(), instance(status="BUILD"), NOW, "", None).phase == Phase.BUILDING


@pytest.mark.parametrize(("status", "phase"), [("ACTIVE", "Running"), ("REBUILD", "Building")])
def test_a_node_says_nothing_of_an_instance_that_nova_does_not_build(status: str, phase: str) -> None:
    seen = instance(status=status, launched_at=EARLIER)

    assert observe(ServerStatus(), seen, NOW, "", "available").phase == phase


@pytest.mark.parametrize(
    ("metadata", "wanted"),
    [
        (FlavorMetadata(FLAVOR, baremetal=True), True),
        (FlavorMetadata(FLAVOR), False),
        (FlavorMetadata(OTHER_ID, baremetal=True), False),
    ],
)
def test_m12_the_node_is_looked_up_only_for_a_flavor_the_region_calls_bare_metal(
    metadata: FlavorMetadata, wanted: bool
) -> None:
    with_metadata = replace(region(), flavor_metadata=(metadata,))

    assert wants_node(instance(status="BUILD"), with_metadata, FLAVOR) is wanted


@pytest.mark.parametrize("status", ["ACTIVE", "ERROR", "REBUILD", "SHUTOFF"])
def test_m12_the_node_is_looked_up_only_while_nova_builds(status: str) -> None:
    with_metadata = replace(region(), flavor_metadata=(FlavorMetadata(FLAVOR, baremetal=True),))

    assert not wants_node(instance(status=status), with_metadata, FLAVOR)
