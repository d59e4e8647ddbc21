"""Creating servers in v1 (contract 1.4, 2.2 and 9.7)."""

from __future__ import annotations

import re
from typing import Any

import pytest

from server_api.servers.cloud_model import ImageState
from server_api.store import kinds, labels
from tests.api.conftest import Api
from tests.api.errors import assert_error
from tests.api.v1.legacy import LEGACY, SERVERS, body, created, id_of, servers
from tests.api.world import (
    FLAVOR,
    FOREIGN_IMAGE,
    GROUP_ON_SECOND_NETWORK,
    IDENTITY,
    IMAGE,
    NAMESPACE,
    NETWORK,
    NOWHERE,
    ORGANIZATION,
    OTHER_NETWORK,
    OTHER_PROJECT,
    PEOPLE,
    PROJECT,
    REGION,
    SECOND_IMAGE,
    SECOND_PROJECT,
    SECURITY_GROUP,
    World,
)

PLAIN = "ZWNobyBoZWxsbwo="


def pairs_of(api: Api, *pairs: dict[str, str]) -> list[dict[str, str]]:
    """Create a server with these pairs, and return those it reads with."""
    path = created(api, body(networks=[{"id": NETWORK, "allowedAddressPairs": list(pairs)}]))
    found: list[dict[str, str]] = api.get(path).get_json()["spec"]["networks"][0]["allowedAddressPairs"]
    return found


def test_w03_minimal_create(user: Api) -> None:
    response = user.post(SERVERS, body())
    assert response.status_code == 201
    document = response.get_json()
    assert re.fullmatch("[a-f][0-9a-f]{7}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", id_in(document))
    assert document["status"] == {"phase": "Pending"}
    assert document["spec"] == {"flavorId": FLAVOR, "imageId": IMAGE, "networks": [{"id": NETWORK}]}
    metadata = document["metadata"]
    assert (metadata["provisioningStatus"], metadata["healthStatus"]) == ("pending", "unknown")
    assert (metadata["organizationId"], metadata["projectId"]) == (ORGANIZATION, PROJECT)
    assert metadata["createdBy"] == PEOPLE["USER"].subject


def id_in(document: dict[str, Any]) -> str:
    return str(document["metadata"]["id"])


def test_the_phase_of_a_create_is_not_stored(user: Api) -> None:
    assert user.get(created(user)).get_json()["status"] == {}


def test_stored_object_has_the_labels_of_v1_and_belongs_to_its_network(user: Api, world: World) -> None:
    stored = world.client.get(kinds.SERVER, NAMESPACE, id_of(created(user)))
    assert stored["metadata"]["labels"] == {
        labels.NAME: "web-0",
        labels.ORGANIZATION: ORGANIZATION,
        labels.PROJECT: PROJECT,
        labels.REGION_ID: REGION,
        labels.IDENTITY_ID: IDENTITY,
        labels.PRINCIPAL_ORGANIZATION: ORGANIZATION,
        labels.PRINCIPAL_PROJECT: PROJECT,
    }
    [owner] = stored["metadata"]["ownerReferences"]
    network = world.client.get(kinds.NETWORK, NAMESPACE, NETWORK)
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Network", NETWORK, network["metadata"]["uid"])
    assert "sshInjection" not in stored["spec"]


def test_everything_sent_is_read_back(user: Api) -> None:
    tags = [{"name": "b", "value": "1"}, {"name": "a", "value": ""}, {"name": "b", "value": "2"}]
    spec = {
        "networks": [{"id": NETWORK, "allowedAddressPairs": [{"cidr": "10.0.0.0/24"}]}],
        "publicIPAllocation": {"enabled": True},
        "securityGroups": [{"id": SECURITY_GROUP}],
        "userData": PLAIN,
    }
    document = user.get(created(user, body(metadata={"description": "front", "tags": tags}, **spec))).get_json()
    assert document["spec"] == {"flavorId": FLAVOR, "imageId": IMAGE, **spec}
    assert (document["metadata"]["tags"], document["metadata"]["description"]) == (tags, "front")


@pytest.mark.parametrize("image", [NOWHERE, FOREIGN_IMAGE])
def test_w01_image_unknown_or_of_another_organization(user: Api, image: str) -> None:
    assert "/spec/imageId" in assert_error(user.post(SERVERS, body(imageId=image)), 404, "not_found")


@pytest.mark.parametrize(
    "changes",
    [
        {"state": ImageState.PENDING},
        {"architecture": "aarch64"},
        {"size_gib": 999},
        {"virtualization": "baremetal"},
        {"virtualization": "paravirtualized"},
    ],
)
def test_w02_of_the_image_only_the_existence_counts(user: Api, world: World, changes: dict[str, Any]) -> None:
    world.image(SECOND_IMAGE, **changes)
    created(user, body(imageId=SECOND_IMAGE))


def test_neither_flavor_nor_groups_nor_user_data_are_checked(user: Api, world: World) -> None:
    groups = [{"id": GROUP_ON_SECOND_NETWORK}, {"id": NOWHERE}]
    path = created(user, body(flavorId=NOWHERE, securityGroups=groups, userData=PLAIN))
    spec = world.stored(id_of(path)).spec
    assert (spec.flavor_id, spec.security_group_ids) == (NOWHERE, (GROUP_ON_SECOND_NETWORK, NOWHERE))
    assert spec.user_data == b"echo hello\n"
    assert "flavors" not in world.cloud.calls


def test_w04_the_same_name_twice_is_two_servers(user: Api) -> None:
    assert created(user) != created(user)


def test_w05_identity_of_another_project(user: Api, admin: Api, world: World) -> None:
    placed = {labels.ORGANIZATION: ORGANIZATION, labels.PROJECT: SECOND_PROJECT, labels.REGION_ID: REGION}
    world.add(kinds.IDENTITY, LEGACY, placed, {"provider": "openstack"})
    for identity in (LEGACY, NOWHERE):
        assert "identity" in assert_error(user.post(servers(identity=identity), body()), 404, "not_found")
    assert_error(admin.post(servers(project=SECOND_PROJECT), body()), 404, "not_found")


def test_region_of_the_identity_absent_or_without_servers(user: Api, world: World) -> None:
    world.client.patch(kinds.REGION, NAMESPACE, REGION, {"spec": {"provider": "kubernetes"}})
    assert_error(user.post(SERVERS, body()), 400, "invalid_request")
    world.remove(kinds.REGION, REGION)
    assert_error(user.post(SERVERS, body()), 404, "not_found")


@pytest.mark.parametrize("network", [NOWHERE, OTHER_NETWORK, "not-a-uuid", "", "../networks"])
def test_network_absent_of_another_project_or_no_id_at_all(user: Api, network: str) -> None:
    response = user.post(SERVERS, body(networks=[{"id": network}]))
    assert "/spec/networks/0/id" in assert_error(response, 404, "not_found")


def test_network_of_v1_is_as_good_as_any(user: Api, world: World) -> None:
    world.network(NOWHERE, version=None)
    created(user, body(networks=[{"id": NOWHERE}]))


@pytest.mark.parametrize("networks", [[], [{"id": NETWORK}, {"id": NETWORK}], None, {}, [{}], [NETWORK]])
def test_w08_other_than_one_network(user: Api, networks: Any) -> None:
    assert "/spec/networks" in assert_error(user.post(SERVERS, body(networks=networks)), 400, "invalid_request")


def test_malformed_id_of_a_security_group(user: Api) -> None:
    groups = [{"id": SECURITY_GROUP}, {"id": "web"}]
    response = user.post(SERVERS, body(securityGroups=groups))
    assert "/spec/securityGroups/1/id" in assert_error(response, 422, "unprocessable_content")


@pytest.mark.parametrize("text", ["definitely-not-a-cidr", "", "10.0.0.1", "10.0.0.0/33", "010.0.0.0/8", "::/x"])
def test_w09_pair_that_is_no_prefix_is_dropped(user: Api, text: str) -> None:
    assert pairs_of(user, {"cidr": "10.0.0.0/8"}, {"cidr": text}, {"cidr": "10.1.0.0/16"}) == [
        {"cidr": "10.0.0.0/8"},
        {"cidr": "10.1.0.0/16"},
    ]
    assert pairs_of(user, {"cidr": text}) == []


def test_w10_host_bits_of_a_pair_are_masked(user: Api, world: World) -> None:
    request = body(networks=[{"id": NETWORK, "allowedAddressPairs": [{"cidr": "192.168.1.7/24"}]}])
    [network] = world.stored(id_of(created(user, request))).spec.networks
    assert [pair.cidr for pair in network.allowed_address_pairs or ()] == ["192.168.1.0/24"]


def test_w11_mac_address_of_a_pair_is_kept_and_none_is_shown_without_one(user: Api) -> None:
    pairs = [{"cidr": "10.0.0.0/8", "macAddress": "fa:16:3e:00:00:01"}, {"cidr": "10.1.0.0/16"}]
    assert pairs_of(user, *pairs) == pairs


def test_pair_of_ipv6_is_refused_and_not_dropped(user: Api) -> None:
    """It is a prefix, so v1 would not skip it, and the stored object cannot hold it."""
    pairs = [{"cidr": "10.0.0.0/8"}, {"cidr": "fd00::/64"}]
    response = user.post(SERVERS, body(networks=[{"id": NETWORK, "allowedAddressPairs": pairs}]))
    assert "/allowedAddressPairs/1/cidr" in assert_error(response, 422, "unprocessable_content")


@pytest.mark.parametrize("enabled", [False, True])
def test_w12_public_ip_allocation_is_echoed(user: Api, enabled: bool) -> None:
    path = created(user, body(publicIPAllocation={"enabled": enabled}))
    assert user.get(path).get_json()["spec"]["publicIPAllocation"] == {"enabled": enabled}


def test_b52_part_of_a_nested_object_is_no_nested_object(user: Api) -> None:
    for spec in ({"publicIPAllocation": {}}, {"networks": [{"id": NETWORK, "allowedAddressPairs": [{}]}]}):
        assert_error(user.post(SERVERS, body(**spec)), 400, "invalid_request")


def test_server_of_another_project_may_not_be_created(user: Api, other: Api) -> None:
    assert_error(other.post(SERVERS, body()), 403, "forbidden")
    assert_error(user.post(servers(project=OTHER_PROJECT), body()), 403, "forbidden")
