"""Updating servers in v1 (contract 1.4, behaviour on v1, and 9.7)."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from server_api.servers.model import Server
from server_api.store import kinds, labels
from server_api.store.servers import KubernetesServerStore
from tests.api.conftest import Api
from tests.api.errors import assert_error
from tests.api.v1.legacy import SERVERS, body, created, id_of, servers
from tests.api.world import (
    AUTHORITY,
    FLAVOR,
    IMAGE,
    NAMESPACE,
    NETWORK,
    NOWHERE,
    OTHER_NETWORK,
    PEOPLE,
    SECOND_IMAGE,
    SECOND_NETWORK,
    SECURITY_GROUP,
    World,
    create_body,
)
from tests.doubles.clock import FixedClock

PLAIN = "ZWNobyBoZWxsbwo="
GATE = {"conditionType": "gate"}


@pytest.fixture
def server(user: Api) -> str:
    pairs = [{"cidr": "10.0.0.0/8", "macAddress": "fa:16:3e:00:00:01"}]
    spec = {
        "networks": [{"id": NETWORK, "allowedAddressPairs": pairs}],
        "publicIPAllocation": {"enabled": True},
        "securityGroups": [{"id": SECURITY_GROUP}],
        "userData": PLAIN,
    }
    metadata = {"description": "before", "tags": [{"name": "a", "value": "1"}]}
    return created(user, body(metadata=metadata, **spec))


def test_w06_another_image_is_ignored_and_the_rest_applies(user: Api, world: World, server: str) -> None:
    world.image(SECOND_IMAGE)
    response = user.put(server, body(imageId=SECOND_IMAGE, userData="bmV3"))
    assert response.status_code == 202
    for document in (response.get_json(), user.get(server).get_json()):
        assert (document["spec"]["imageId"], document["spec"]["userData"]) == (IMAGE, "bmV3")
    stored = world.stored(id_of(server))
    assert (stored.spec.image_id, stored.status.rebuild) == (IMAGE, None)


@pytest.mark.parametrize("image", [NOWHERE, IMAGE])
def test_w07_b23_image_that_was_deleted_asks_the_cloud_nothing(
    user: Api, world: World, server: str, image: str
) -> None:
    world.cloud.offered_images.clear()
    world.cloud.calls.clear()
    response = user.put(server, body(imageId=image, metadata={"description": "after"}))
    assert response.status_code == 202
    assert response.get_json()["spec"]["imageId"] == IMAGE
    assert world.cloud.calls == []


def test_image_has_to_be_an_id_all_the_same(user: Api, server: str) -> None:
    for image in ("latest", None):
        assert "/spec/imageId" in assert_error(user.put(server, body(imageId=image)), 400, "invalid_request")


def test_w13_right_to_update_is_not_enough(user: Api, server: str, client: FlaskClient) -> None:
    """Contract 5.3: PUT is authorised by create."""
    assert_error(Api(client, "UPDATER").put(server, body()), 403, "forbidden")
    assert Api(client, "CREATOR").put(server, body()).status_code == 202
    assert_error(Api(client, "CREATOR").get(server), 403, "forbidden")


def test_w16_creator_stays_and_modifier_is_written(user: Api, admin: Api, server: str, clock: FixedClock) -> None:
    response = admin.put(server, user.get(server).get_json())
    assert response.status_code == 202
    for metadata in (response.get_json()["metadata"], user.get(server).get_json()["metadata"]):
        assert metadata["createdBy"] == PEOPLE["USER"].subject
        assert metadata["modifiedBy"] == PEOPLE["ADMIN"].subject
        assert metadata["modifiedTime"] == clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")


def test_what_was_read_can_be_put_and_changes_nothing_that_was_asked_for(user: Api, world: World, server: str) -> None:
    document, before = user.get(server).get_json(), world.stored(id_of(server))
    assert user.put(server, document).get_json()["spec"] == document["spec"]
    after = world.stored(id_of(server))
    assert (after.spec, after.metadata.generation) == (before.spec, before.metadata.generation)


def test_b52_everything_left_out_is_cleared(user: Api, server: str) -> None:
    assert user.put(server, body()).status_code == 202
    document = user.get(server).get_json()
    assert document["spec"] == {"flavorId": FLAVOR, "imageId": IMAGE, "networks": [{"id": NETWORK}]}
    assert not {"tags", "description"} & document["metadata"].keys()


def test_everything_that_can_be_said_is_replaced(user: Api, server: str) -> None:
    spec = {
        "flavorId": NOWHERE,
        "networks": [{"id": SECOND_NETWORK, "allowedAddressPairs": [{"cidr": "10.9.0.0/16"}]}],
        "publicIPAllocation": {"enabled": False},
        "securityGroups": [],
        "userData": "bmV3",
    }
    tags = [{"name": "b", "value": "2"}]
    assert user.put(server, body(metadata={"description": "after", "tags": tags}, **spec)).status_code == 202
    document = user.get(server).get_json()
    assert document["spec"] == {"imageId": IMAGE, **spec}
    assert (document["metadata"]["tags"], document["metadata"]["description"]) == (tags, "after")


def test_name_is_immutable(user: Api, server: str) -> None:
    assert "/metadata/name" in assert_error(user.put(server, body("other")), 422, "unprocessable_content")
    assert user.get(server).get_json()["metadata"]["name"] == "web-0"


def test_identity_or_network_of_another_project(user: Api, server: str) -> None:
    elsewhere = f"{servers(identity=NOWHERE)}/{id_of(server)}"
    assert "identity" in assert_error(user.put(elsewhere, body()), 404, "not_found")
    for network in (OTHER_NETWORK, NOWHERE, "x"):
        response = user.put(server, body(networks=[{"id": network}]))
        assert "/spec/networks/0/id" in assert_error(response, 404, "not_found")


def test_bad_pairs_are_dropped_and_bad_group_ids_refused_as_in_a_create(user: Api, server: str) -> None:
    pairs = [{"cidr": "nonsense"}, {"cidr": "10.0.0.5/24"}]
    answer = user.put(server, body(networks=[{"id": NETWORK, "allowedAddressPairs": pairs}])).get_json()
    assert answer["spec"]["networks"] == [{"id": NETWORK, "allowedAddressPairs": [{"cidr": "10.0.0.0/24"}]}]
    response = user.put(server, body(securityGroups=[{"id": "web"}]))
    assert "/spec/securityGroups/0/id" in assert_error(response, 422, "unprocessable_content")


def test_server_being_deleted_can_be_updated(user: Api, world: World, server: str) -> None:
    """Contract 1.4: v1 never looked at it."""
    world.patch(id_of(server), metadata={"finalizers": ["unikorn"]})
    user.delete(server)
    assert user.put(server, body()).status_code == 202


@pytest.fixture
def whole(user: Api, world: World) -> str:
    """A server of v2 with everything that only v2 can say."""
    request = create_body(
        "whole", sshCertificateAuthorityId=AUTHORITY, infrastructureRef="host-1", providerCreateGates=[GATE]
    )
    server_id = user.create(request)
    world.patch(server_id, spec={"volumes": [{"id": "v"}], "pause": True}, metadata={"labels": {"team": "storage"}})
    return f"{SERVERS}/{server_id}"


def test_labels_and_fields_that_only_v2_knows_survive(user: Api, world: World, whole: str) -> None:
    before = world.client.get(kinds.SERVER, NAMESPACE, id_of(whole))
    response = user.put(whole, body("whole", metadata={"description": "after"}, userData=PLAIN, imageId=NOWHERE))
    assert response.status_code == 202
    after = world.client.get(kinds.SERVER, NAMESPACE, id_of(whole))
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert after["metadata"]["labels"][labels.API_VERSION] == "2"
    assert after["metadata"]["labels"][labels.NETWORK_ID] == NETWORK
    assert after["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]
    assert after["spec"] == before["spec"] | {"userData": PLAIN}
    assert {"sshCertificateAuthorityID", "sshInjection", "infrastructureRef", "providerCreateGates", "volumes"} <= set(
        after["spec"]
    )
    read = user.get(f"/api/v2/servers/{id_of(whole)}").get_json()
    assert (read["spec"]["imageId"], read["spec"]["userData"]) == (IMAGE, PLAIN)


@pytest.mark.parametrize(
    ("spec", "place"),
    [({"flavorId": NOWHERE}, "/spec/flavorId"), ({"networks": [{"id": SECOND_NETWORK}]}, "/spec/networks/0/id")],
)
def test_what_is_fixed_in_v2_cannot_be_changed_through_v1(user: Api, whole: str, spec: Any, place: str) -> None:
    before = user.get(whole).get_json()
    assert place in assert_error(user.put(whole, body("whole", **spec)), 422, "unprocessable_content")
    assert user.get(whole).get_json() == before


@pytest.fixture
def rivals(world: World, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What others write to the server, one for each write of ours and just before it."""
    waiting: list[dict[str, Any]] = []
    original = KubernetesServerStore.update

    def update(store: KubernetesServerStore, written: Server) -> Server:
        if waiting:
            world.patch(written.id, **waiting.pop(0))
        return original(store, written)

    monkeypatch.setattr(KubernetesServerStore, "update", update)
    return waiting


def test_lost_race_is_tried_once_more_and_then_a_conflict(
    user: Api, world: World, server: str, rivals: list[dict[str, Any]]
) -> None:
    rivals.append({"metadata": {"finalizers": ["a/a"]}})
    assert user.put(server, body(metadata={"description": "after"})).status_code == 202
    assert world.stored(id_of(server)).metadata.finalizers == ("a/a",)
    rivals.extend([{"metadata": {"finalizers": ["b/b"]}}, {"metadata": {"finalizers": ["c/c"]}}])
    assert_error(user.put(server, body(metadata={"description": "later"})), 409, "conflict")
    assert user.get(server).get_json()["metadata"]["description"] == "after"
