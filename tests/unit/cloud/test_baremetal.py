"""What goes over the wire to Ironic."""

from __future__ import annotations

import pytest

from server_api.cloud.baremetal import IronicNodes
from server_api.servers.ports import Ambiguous, Unavailable

PATH = "/baremetal/v1/nodes"


@pytest.fixture
def ironic(clients):
    return IronicNodes(lambda: clients)


def nodes(*states):
    return {"nodes": [{"uuid": str(number), "provision_state": state} for number, state in enumerate(states)]}


@pytest.mark.parametrize(("body", "state"), [(nodes("deploying"), "deploying"), (nodes(), None), (nodes(None), "")])
def test_m11_the_node_of_an_instance_is_found_by_the_instance_and_shows_its_state(ironic, wire, answer, body, state):
    wire.answers[f"GET {PATH}"] = answer(body=body)

    assert ironic.provision_state("instance-1") == state
    (request,) = wire.seen("GET", PATH)
    assert request.query == {"instance_uuid": ["instance-1"]}
    # Without a version Ironic hides the state.
    assert request.headers["X-OpenStack-Ironic-API-Version"] == "1.11"


def test_a_catalogue_that_names_the_version_of_ironic_is_understood(ironic, wire, answer):
    wire.endpoints["baremetal"] = "/baremetal/v1/"
    wire.answers[f"GET {PATH}"] = answer(body=nodes("active"))

    assert ironic.provision_state("instance-1") == "active"


def test_several_nodes_with_one_instance_are_ambiguous(ironic, wire, answer):
    wire.answers[f"GET {PATH}"] = answer(body=nodes("active", "deploying"))

    with pytest.raises(Ambiguous):
        ironic.provision_state("instance-1")


@pytest.mark.parametrize(("status", "body"), [(500, {}), (200, {}), (200, {"nodes": [{}]}), (200, "not JSON")])
def test_a_failing_ironic_is_told_apart_from_one_without_a_node(ironic, wire, answer, status, body):
    wire.answers[f"GET {PATH}"] = answer(status, body)

    with pytest.raises(Unavailable):
        ironic.provision_state("instance-1")


def test_a_cloud_without_ironic_is_a_failure_of_the_look_up(ironic, wire):
    del wire.endpoints["baremetal"]

    with pytest.raises(Unavailable):
        ironic.provision_state("instance-1")
