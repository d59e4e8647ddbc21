"""What Placement is asked before a pinned server is created, and what its answer means (contract 6.6)."""

from __future__ import annotations

import pytest

from server_api.servers.cloud_model import Flavor, ResourceProvider
from server_api.servers.outcomes import Outcome, Stop
from server_api.servers.placement_preflight import Requirement, require_host, requirement_of
from server_api.servers.surroundings import PlacementPreflight
from tests.doubles.tenancy import JournaledPlacement
from tests.unit.servers.builders import FLAVOR

CLASS = {"resources:CUSTOM_NODE": "1"}
NO_MORE_TRAITS = PlacementPreflight()


def flavor(**extra_specs: str) -> Flavor:
    specs = {key.replace("__", ":"): value for key, value in extra_specs.items()}
    return Flavor(FLAVOR, "metal", cpus=1, memory_mib=1, disk_gb=1, extra_specs=specs)


def of(specs: dict[str, str], *required: str) -> Requirement:
    made = Flavor(FLAVOR, "metal", cpus=1, memory_mib=1, disk_gb=1, extra_specs=specs)
    return requirement_of(made, PlacementPreflight(required))


@pytest.mark.parametrize(
    "specs",
    [
        {"resources:CUSTOM_NODE": "1"},
        {"resources:custom_node": "2"},
        {"RESOURCES:CUSTOM_NODE": "1.5"},
        {"resources:CUSTOM_NODE": "1", "Resources:custom_node": "1"},
        {"resources:CUSTOM_NODE": "1", "resources:VCPU": "0", "resources:MEMORY_MB": "0"},
        {"resources:CUSTOM_NODE": "1", "resources:CUSTOM_OTHER": "0"},
        {"resources:CUSTOM_NODE": "1", "hw:cpu_policy": "dedicated"},
    ],
)
def test_the_one_custom_resource_class_with_an_amount_is_asked_for(specs: dict[str, str]) -> None:
    assert of(specs) == Requirement("CUSTOM_NODE", ())


@pytest.mark.parametrize(
    ("specs", "reason"),
    [
        ({}, "names 0"),
        ({"resources:VCPU": "1"}, "names 0"),
        ({"resources:CUSTOM_NODE": "0"}, "names 0"),
        ({"resources:CUSTOM_NODE": "-1"}, "names 0"),
        ({"resources:CUSTOM_A": "1", "resources:CUSTOM_B": "1"}, "names 2"),
        ({"resources:CUSTOM_NODE": "many"}, "not a number"),
        ({"resources:CUSTOM_NODE": ""}, "not a number"),
        ({**CLASS, "trait:CUSTOM_X": "maybe"}, "trait:CUSTOM_X"),
        ({**CLASS, "trait:": "required"}, "trait:"),
        ({**CLASS, "trait: ": "required"}, "trait: "),
    ],
)
def test_a_flavor_that_does_not_say_clearly_what_it_needs_is_an_error(specs: dict[str, str], reason: str) -> None:
    with pytest.raises(Stop, match=reason) as stop:
        of(specs)
    assert stop.value.outcome is Outcome.ERROR


def test_traits_are_the_flavors_in_order_and_then_the_regions_each_once() -> None:
    specs = {**CLASS, "trait:b_two": "required", "trait:A_ONE": "forbidden", "trait:C": "required"}

    assert of(specs, " c ", "d", "", "B_TWO", "d").traits == ("!A_ONE", "B_TWO", "C", "D")


@pytest.mark.parametrize("host", ["host-1", " host-1 ", "8d3f7e1a-0000-4000-8000-000000000001"])
def test_k18_a_host_that_is_offered_by_name_or_id_lets_the_create_go_on(host: str) -> None:
    placement = JournaledPlacement([])
    placement.hosts = [
        ResourceProvider("other", "host-10"),
        ResourceProvider("8d3f7e1a-0000-4000-8000-000000000001", "host-1"),
    ]

    require_host(placement, flavor(resources__CUSTOM_NODE="1"), PlacementPreflight(("CUSTOM_X",)), host)

    assert placement.queries == [("CUSTOM_NODE", ("CUSTOM_X",))]


@pytest.mark.parametrize("hosts", [[], [ResourceProvider("other", "host-10")]])
def test_k20_a_host_that_is_not_offered_is_waited_for(hosts: list[ResourceProvider]) -> None:
    placement = JournaledPlacement([])
    placement.hosts = hosts

    with pytest.raises(Stop, match="host-1") as stop:
        require_host(placement, flavor(resources__CUSTOM_NODE="1"), NO_MORE_TRAITS, "host-1")
    assert stop.value.outcome is Outcome.YIELD


def test_a_flavor_that_is_not_offered_any_more_is_an_error_and_placement_is_not_asked() -> None:
    placement = JournaledPlacement([])

    with pytest.raises(Stop, match="flavor") as stop:
        require_host(placement, None, NO_MORE_TRAITS, "host-1")
    assert (stop.value.outcome, placement.queries) == (Outcome.ERROR, [])
