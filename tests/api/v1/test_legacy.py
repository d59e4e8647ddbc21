"""Servers as older versions and people's hands left them: no list fails because of them, in neither version."""

from __future__ import annotations

from typing import Any

import pytest

from server_api.http.rendering import NIL_ID
from server_api.store import kinds, labels
from server_api.store.client import KubernetesClient, Listing, RawObject
from server_api.store.kinds import Kind
from tests.api.conftest import Api
from tests.api.errors import assert_error
from tests.api.v1.legacy import LEGACY, LIST, SERVERS, body, created, id_of, leave
from tests.api.world import (
    AUTHORITY,
    FLAVOR,
    IMAGE,
    NETWORK,
    ORGANIZATION,
    PROJECT,
    SECURITY_GROUP,
    World,
    condition,
    create_body,
)

V2 = "/api/v2/servers"
PLAIN = "ZWNobyBoZWxsbwo="

MINIMAL = {labels.ORGANIZATION: ORGANIZATION, labels.PROJECT: PROJECT, labels.API_VERSION: "2"}


def raw(spec: Any, status: Any = None, **its_labels: Any) -> RawObject:
    """Return an object such as a store may still hold that has no schema, or had another one once."""
    metadata = {
        "name": LEGACY,
        "labels": MINIMAL | its_labels,
        "annotations": None,
        "finalizers": None,
        "ownerReferences": None,
        "creationTimestamp": "2021-01-02T03:04:05Z",
        "resourceVersion": "1",
    }
    return {"metadata": metadata, "spec": {"image": {"id": IMAGE}} | spec, "status": status}


NULLS = dict.fromkeys(
    ("tags", "securityGroups", "networks", "volumes", "publicIPAllocation", "userData", "sshInjection")
)
ODD: dict[str, RawObject] = {
    "no networks": raw({"flavorID": FLAVOR}),
    "nothing but an image": raw({}),
    "null lists": raw({"flavorID": FLAVOR, **NULLS}, {"conditions": None, "providerCreateGates": None, "phase": None}),
    "null list in a network": raw({"flavorID": FLAVOR, "networks": [{"id": NETWORK, "allowedAddressPairs": None}]}),
    "null network": raw({"flavorID": FLAVOR, "networks": [None]}),
    "conditions of no kind": raw({}, {"conditions": [{}, None, {"type": "Available"}, {"type": "Healthy"}]}),
    "phase of no kind": raw({}, {"phase": "Levitating", "launchedAt": "yesterday", "rebuild": {}}),
    "prefix that is none": raw({"networks": [{"id": NETWORK, "allowedAddressPairs": [{"cidr": "any"}, {}]}]}),
    "times that are none": raw({}, **{labels.NAME: None}) | {"status": []},
}


@pytest.fixture(params=ODD.values(), ids=ODD.keys())
def odd(request: pytest.FixtureRequest, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One odd object among the servers in the store, which no API server would take today."""
    listing, get = KubernetesClient.list, KubernetesClient.get

    def list_with_it(client: KubernetesClient, kind: Kind, namespace: str, selector: str = "") -> Listing:
        found = listing(client, kind, namespace, selector)
        return Listing([*found.items, request.param], found.version) if kind == kinds.SERVER else found

    def get_it(client: KubernetesClient, kind: Kind, namespace: str, name: str) -> RawObject:
        return dict(request.param) if name == LEGACY else get(client, kind, namespace, name)

    monkeypatch.setattr(KubernetesClient, "list", list_with_it)
    monkeypatch.setattr(KubernetesClient, "get", get_it)


@pytest.mark.usefixtures("odd")
def test_b41_no_list_fails_because_of_one_odd_object(user: Api, admin: Api) -> None:
    """The client of these tests checks that the answers are valid by the OpenAPI document."""
    sound = user.create(create_body())
    for path in (LIST, V2):
        response = admin.get(path)
        assert response.status_code == 200, response.text
        assert [server["metadata"]["id"] for server in response.get_json()] == sorted([sound, LEGACY])
    for path in (f"{SERVERS}/{LEGACY}", f"{V2}/{LEGACY}"):
        assert admin.get(path).status_code == 200


def test_what_stands_for_what_is_missing(admin: Api, world: World) -> None:
    path = leave(world, without=(labels.REGION_ID, labels.NAME), networks=[])
    world.patch(LEGACY, metadata={"labels": {labels.API_VERSION: "2"}})
    old, new = admin.get(path).get_json(), admin.get(f"{V2}/{LEGACY}").get_json()
    assert old["spec"]["networks"] == [{"id": NIL_ID}]
    assert (new["status"]["regionId"], new["status"]["networkId"]) == (NIL_ID, NIL_ID)
    assert (old["metadata"]["name"], new["metadata"]["name"]) == (LEGACY, LEGACY)
    world.patch(LEGACY, metadata={"labels": {labels.NETWORK_ID: NETWORK}})
    assert admin.get(path).get_json()["spec"]["networks"] == [{"id": NETWORK}]
    assert admin.get(f"{V2}/{LEGACY}").get_json()["status"]["networkId"] == NETWORK


def test_nothing_that_stands_for_what_is_missing_can_be_put(user: Api, world: World) -> None:
    path = leave(world, networks=[])
    assert_error(user.put(path, user.get(path).get_json()), 404, "not_found")
    document = user.get(path).get_json()
    document["spec"]["networks"] = [{"id": NETWORK}]
    assert user.put(path, document).status_code == 202
    assert world.stored(LEGACY).spec.networks[0].id == NETWORK


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"userData": PLAIN},
        {"sshCertificateAuthorityID": AUTHORITY, "userData": "H4sIAAAAAAAAA0vOSE0BAAjHg8kEAAAA"},
        {"securityGroups": [], "publicIPAllocation": {"enabled": False}, "tags": []},
        {"provider": "openstack", "networks": [{"id": NETWORK, "allowedAddressPairs": []}]},
        {"networks": [{"id": NETWORK, "allowedAddressPairs": [{"cidr": "10.0.0.0/24", "macAddress": ""}]}]},
    ],
)
def test_what_v1_reads_of_a_legacy_server_it_can_put_and_nothing_changes(
    user: Api, world: World, spec: dict[str, Any]
) -> None:
    path = leave(world, **spec)
    document, before = user.get(path).get_json(), world.stored(LEGACY)
    response = user.put(path, document)
    assert response.status_code == 202
    assert response.get_json()["spec"] == document["spec"]
    after = world.stored(LEGACY)
    assert (after.spec, after.metadata.generation) == (before.spec, before.metadata.generation)
    assert after.metadata.api_version is None


def test_legacy_server_without_a_status_and_with_one(user: Api, admin: Api, world: World) -> None:
    path = leave(world, securityGroups=[{"id": SECURITY_GROUP}])
    assert user.get(path).get_json()["status"] == {}
    assert user.get(path).get_json()["metadata"]["provisioningStatus"] == "pending"
    world.set_status(LEGACY, phase="Running")
    assert user.get(path).get_json()["status"] == {"phase": "Running"}
    world.set_status(LEGACY, conditions=[condition("Healthy", "True", "Healthy")])
    [server] = admin.get(LIST).get_json()
    assert (server["metadata"]["healthStatus"], server["metadata"]["provisioningStatus"]) == ("healthy", "pending")


def test_servers_without_a_version_are_not_v2s(user: Api, world: World) -> None:
    leave(world)
    old = id_of(created(user))
    assert user.get(V2).get_json() == []
    for server_id in (LEGACY, old):
        assert_error(user.get(f"{V2}/{server_id}"), 404, "not_found")


def test_a_legacy_server_can_be_deleted_and_its_name_taken_again(user: Api, world: World) -> None:
    path = leave(world)
    created(user, body("old"))
    assert user.delete(path).status_code == 202
    assert_error(user.get(path), 404, "not_found")
