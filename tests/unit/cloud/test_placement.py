"""What goes over the wire to Placement."""

from __future__ import annotations

import pytest

from server_api.cloud.placement import PlacementHosts
from server_api.servers.cloud_model import ResourceProvider
from server_api.servers.ports import Denied, Refused, Unavailable

PATH = "/placement/resource_providers"


@pytest.fixture
def placement(clients):
    return PlacementHosts(lambda: clients)


def test_hosts_are_asked_for_by_class_and_traits(placement, wire, answer):
    found = [{"uuid": "1", "name": "host-1", "generation": 3}, {"uuid": "2", "name": "host-2", "generation": 1}]
    wire.answers[f"GET {PATH}"] = answer(body={"resource_providers": found})

    assert placement.providers("CUSTOM_NODE", ["CUSTOM_A", "!CUSTOM_B"]) == [
        ResourceProvider("1", "host-1"),
        ResourceProvider("2", "host-2"),
    ]
    (request,) = wire.seen("GET", PATH)
    assert request.query == {"resources": ["CUSTOM_NODE:1"], "required": ["CUSTOM_A,!CUSTOM_B"]}
    assert request.headers["OpenStack-API-Version"] == "placement 1.22"


def test_without_traits_none_are_asked_for(placement, wire, answer):
    wire.answers[f"GET {PATH}"] = answer(body={"resource_providers": []})

    assert placement.providers("CUSTOM_NODE", []) == []
    assert wire.seen("GET", PATH)[0].query == {"resources": ["CUSTOM_NODE:1"]}


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, {"errors": [{"title": "Bad Request", "detail": "Invalid traits: CUSTOM_A"}]}, Refused),
        (403, {}, Denied),
        (404, "<h1>nothing here</h1>", Unavailable),
        (500, {}, Unavailable),
        (200, {"providers": []}, Unavailable),
        (200, {"resource_providers": [{}]}, Unavailable),
        (200, "not JSON", Unavailable),
    ],
)
def test_a_failing_placement_is_told_apart_from_one_that_offers_nothing(
    placement, wire, answer, status, body, expected
):
    wire.answers[f"GET {PATH}"] = answer(status, body)

    with pytest.raises(expected) as failure:
        placement.providers("CUSTOM_NODE", ["CUSTOM_A"])
    assert failure.value.dependency == "placement"
