"""Updating servers (contract 1.6 and 9.4)."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable
from typing import Any

import pytest

from server_api.servers.cloud_model import ImageState
from server_api.servers.model import Server
from server_api.store import kinds, labels
from server_api.store.servers import KubernetesServerStore
from tests.api.conftest import Api
from tests.api.errors import assert_error
from tests.api.world import (
    AUTHORITY,
    FLAVOR,
    FOREIGN_IMAGE,
    GROUP_ON_SECOND_NETWORK,
    IMAGE,
    NETWORK,
    NOWHERE,
    PEOPLE,
    SECOND_IMAGE,
    SECURITY_GROUP,
    World,
    create_body,
    update_body,
)
from tests.doubles.clock import FixedClock

SERVERS = "/api/v2/servers"
CLOUD_CONFIG = "I2Nsb3VkLWNvbmZpZwo="
OTHER_CLOUD_CONFIG = "I2Nsb3VkLWNvbmZpZwpwYWNrYWdlczogW25naW54XQo="
GZIP = base64.b64encode(gzip.compress(b"#cloud-config\n")).decode()
PLAIN = "ZWNobyBoZWxsbwo="


def id_of(path: str) -> str:
    return path.rsplit("/", 1)[1]


@pytest.fixture
def server(user: Api) -> str:
    body = create_body(userData=CLOUD_CONFIG, networking={"publicIP": True})
    body["metadata"] |= {"description": "before", "tags": [{"name": "a", "value": "1"}]}
    return f"{SERVERS}/{user.create(body)}"


def test_u01_missing(user: Api) -> None:
    assert_error(user.put(f"{SERVERS}/{NOWHERE}", update_body()), 404, "not_found")


def test_u02_right_to_read_only(reader: Api, server: str) -> None:
    assert_error(reader.put(server, update_body()), 403, "forbidden")


def test_u03_terminating(user: Api, world: World, server: str) -> None:
    world.patch(id_of(server), metadata={"finalizers": ["unikorn"]})
    user.delete(server)
    assert_error(user.put(server, update_body()), 400, "invalid_request")


def test_u04_network_gone(user: Api, world: World, server: str) -> None:
    world.remove(kinds.NETWORK, NETWORK)
    assert_error(user.put(server, update_body()), 404, "not_found")


def test_u05_name_is_immutable(user: Api, server: str) -> None:
    assert "/metadata/name" in assert_error(user.put(server, update_body("other")), 422, "unprocessable_content")


def test_u06_flavor_is_immutable(user: Api, server: str) -> None:
    response = user.put(server, update_body(flavorId=NOWHERE))
    assert "flavor is immutable" in assert_error(response, 422, "unprocessable_content")


def test_u07_same_image_asks_the_cloud_nothing(user: Api, world: World, server: str) -> None:
    world.cloud.calls.clear()
    assert user.put(server, update_body(metadata={"description": "after"})).status_code == 202
    assert world.cloud.calls == []


def test_u08_new_image(user: Api, world: World, server: str) -> None:
    world.image(SECOND_IMAGE)
    generation = world.stored(id_of(server)).metadata.generation
    response = user.put(server, update_body(imageId=SECOND_IMAGE))
    assert response.status_code == 202
    assert response.get_json()["spec"]["imageId"] == SECOND_IMAGE
    stored = world.stored(id_of(server))
    assert stored.spec.image_id == SECOND_IMAGE
    assert stored.metadata.generation == generation + 1
    # The controller rebuilds; the API itself touches no instance.
    assert "tenancy" not in world.cloud.calls


def test_u09_retired_flavor_does_not_stand_in_the_way(user: Api, world: World, server: str) -> None:
    world.retire(FLAVOR)
    world.image(SECOND_IMAGE, architecture="aarch64", size_gib=999, virtualization="paravirtualized")
    response = user.put(server, update_body(imageId=SECOND_IMAGE))
    assert response.status_code == 202
    assert response.get_json()["spec"]["imageId"] == SECOND_IMAGE


@pytest.mark.parametrize("retired", [pytest.param(True, id="u10"), pytest.param(False, id="offered")])
def test_u10_new_image_that_is_not_ready(user: Api, world: World, server: str, retired: bool) -> None:
    if retired:
        world.retire(FLAVOR)
    world.image(SECOND_IMAGE, state=ImageState.PENDING)
    response = user.put(server, update_body(imageId=SECOND_IMAGE))
    assert "image is not ready" in assert_error(response, 422, "unprocessable_content")


@pytest.mark.parametrize("image", [NOWHERE, FOREIGN_IMAGE])
def test_u11_new_image_unknown_or_of_another_organization(user: Api, server: str, image: str) -> None:
    assert "/spec/imageId" in assert_error(user.put(server, update_body(imageId=image)), 404, "not_found")
    assert user.get(server).get_json()["spec"]["imageId"] == IMAGE


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"architecture": "aarch64"}, "architecture is not compatible"),
        ({"size_gib": 999}, "disk is too small"),
        ({"virtualization": "baremetal"}, "virtualization is not compatible"),
        ({"virtualization": "paravirtualized"}, "virtualization type is not recognized"),
    ],
)
def test_u12_b12_new_image_that_does_not_fit_the_flavor(
    user: Api, world: World, server: str, changes: dict[str, Any], reason: str
) -> None:
    world.image(SECOND_IMAGE, **changes)
    assert reason in assert_error(user.put(server, update_body(imageId=SECOND_IMAGE)), 422, "unprocessable_content")
    assert user.get(server).get_json()["spec"]["imageId"] == IMAGE


@pytest.fixture
def trusting(user: Api) -> str:
    """A server that trusts a certificate authority."""
    return f"{SERVERS}/{user.create(create_body('trusting', sshCertificateAuthorityId=AUTHORITY))}"


def test_u13_certificate_authority_and_mode_stay(user: Api, world: World, trusting: str) -> None:
    response = user.put(trusting, update_body("trusting", userData=CLOUD_CONFIG))
    assert response.status_code == 202
    status = response.get_json()["status"]
    assert (status["sshCertificateAuthorityId"], status["sshInjection"]) == (AUTHORITY, "ca")
    spec = world.stored(id_of(trusting)).spec
    assert (spec.ssh_certificate_authority_id, spec.ssh_injection) == (AUTHORITY, "ca")


def test_u14_user_data_changed_to_unknown_text(user: Api, server: str) -> None:
    response = user.put(server, update_body(userData=PLAIN))
    assert "unsupported userData format" in assert_error(response, 422, "unprocessable_content")
    assert user.get(server).get_json()["spec"]["userData"] == CLOUD_CONFIG


def test_u15_stored_user_data_sent_again(user: Api, world: World, server: str) -> None:
    world.patch(id_of(server), spec={"userData": PLAIN})
    response = user.put(server, update_body(userData=PLAIN))
    assert response.status_code == 202
    assert response.get_json()["spec"]["userData"] == PLAIN


@pytest.mark.parametrize("payload", [OTHER_CLOUD_CONFIG, GZIP])
def test_u16_user_data_changed_to_something_valid(user: Api, server: str, payload: str) -> None:
    assert user.put(server, update_body(userData=payload)).get_json()["spec"]["userData"] == payload
    assert user.get(server).get_json()["spec"]["userData"] == payload


def test_u17_certificate_authority_and_gzip(user: Api, trusting: str) -> None:
    response = user.put(trusting, update_body("trusting", userData=GZIP))
    assert "gzip" in assert_error(response, 422, "unprocessable_content")


def test_u18_user_data_left_out_is_cleared(user: Api, server: str) -> None:
    assert "userData" not in user.put(server, update_body()).get_json()["spec"]
    assert "userData" not in user.get(server).get_json()["spec"]


def test_u19_security_group_of_another_network(user: Api, server: str) -> None:
    response = user.put(server, update_body(networking={"securityGroups": [GROUP_ON_SECOND_NETWORK]}))
    assert_error(response, 422, "unprocessable_content")


def test_u21_everything_left_out_is_cleared(user: Api, server: str) -> None:
    assert user.put(server, update_body()).status_code == 202
    body = user.get(server).get_json()
    assert not {"tags", "description"} & body["metadata"].keys()
    assert "networking" not in body["spec"]


def test_u22_creator_stays_and_modifier_is_written(user: Api, admin: Api, server: str, clock: FixedClock) -> None:
    response = admin.put(server, update_body(metadata={"description": "after"}))
    assert response.status_code == 202
    for metadata in (response.get_json()["metadata"], user.get(server).get_json()["metadata"]):
        assert metadata["createdBy"] == PEOPLE["USER"].subject
        assert metadata["modifiedBy"] == PEOPLE["ADMIN"].subject
        assert metadata["modifiedTime"] == clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")


def test_u20_pinned_host_stays(user: Api, world: World) -> None:
    world.bare_server(NOWHERE, "pinned", infrastructureRef="host-1", sshInjection="none")
    response = user.put(f"{SERVERS}/{NOWHERE}", update_body("pinned", {"description": "x"}, infrastructureRef="host-2"))
    assert response.status_code == 202
    assert response.get_json()["status"]["infrastructureRef"] == "host-1"
    assert world.stored(NOWHERE).spec.infrastructure_ref == "host-1"


def whole_server(user: Api) -> str:
    """Create a server with every optional member, said in ways that are stored in another."""
    body = create_body(
        "whole",
        userData=CLOUD_CONFIG,
        sshCertificateAuthorityId=AUTHORITY,
        networking={
            "securityGroups": [SECURITY_GROUP.upper(), SECURITY_GROUP],
            "publicIP": True,
            "allowedSourceAddresses": ["10.0.0.5/24", "10.0.0.0/24", "0.0.0.0/0"],
        },
        providerCreateGates=[{"conditionType": "b"}, {"conditionType": "a"}],
    )
    body["metadata"] |= {
        "description": "front end",
        "tags": [{"name": "b", "value": "1"}, {"name": "a", "value": ""}, {"name": "b", "value": "1"}],
    }
    return user.create(body)


def minimal_server(user: Api) -> str:
    return user.create(create_body("minimal"))


@pytest.mark.parametrize("create", [whole_server, minimal_server])
def test_b21_what_was_read_can_be_put_and_changes_nothing(
    user: Api, admin: Api, world: World, create: Callable[[Api], str]
) -> None:
    server_id = create(user)
    world.set_status(server_id, phase="Running", privateIP="192.168.0.7", macAddress="fa:16:3e:00:00:01")
    path = f"{SERVERS}/{server_id}"
    document, before = user.get(path).get_json(), world.stored(server_id).metadata
    world.cloud.calls.clear()
    for _ in range(3):
        response = admin.put(path, document)
        assert response.status_code == 202
        assert response.get_json() == document
    after = world.stored(server_id).metadata
    assert (after.generation, after.resource_version) == (before.generation, before.resource_version)
    assert world.cloud.calls == []


def test_legacy_server_is_unchanged_by_a_put_of_what_was_read(user: Api, world: World) -> None:
    pairs = [{"cidr": "10.0.0.5/24", "macAddress": "fa:16:3e:00:00:01"}, {"cidr": "10.0.0.0/24"}]
    world.bare_server(
        NOWHERE,
        networks=[{"id": NETWORK, "allowedAddressPairs": pairs}],
        sshCertificateAuthorityID=AUTHORITY,
        userData=PLAIN,
        publicIPAllocation={"enabled": False},
        securityGroups=[],
    )
    path = f"{SERVERS}/{NOWHERE}"
    document, before = user.get(path).get_json(), world.stored(NOWHERE)
    assert document["spec"]["networking"] == {"allowedSourceAddresses": ["10.0.0.0/24"]}
    assert user.put(path, document).get_json() == document
    assert world.stored(NOWHERE) == before


@pytest.fixture
def rivals(world: World, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What others write to the server, one for each write of ours and just before it."""
    waiting: list[dict[str, Any]] = []
    original = KubernetesServerStore.update

    def update(store: KubernetesServerStore, server: Server) -> Server:
        if waiting:
            world.patch(server.id, **waiting.pop(0))
        return original(store, server)

    monkeypatch.setattr(KubernetesServerStore, "update", update)
    return waiting


def test_lost_race_is_tried_once_more_from_a_fresh_read(
    user: Api, world: World, server: str, rivals: list[dict[str, Any]]
) -> None:
    rivals.append({"metadata": {"finalizers": ["unikorn"]}})
    response = user.put(server, update_body(metadata={"description": "after"}))
    assert response.status_code == 202
    metadata = world.stored(id_of(server)).metadata
    assert (metadata.description, metadata.finalizers) == ("after", ("unikorn",))


def test_race_lost_twice_is_a_conflict(user: Api, server: str, rivals: list[dict[str, Any]]) -> None:
    rivals.extend([{"metadata": {"finalizers": ["a/a"]}}, {"metadata": {"finalizers": ["a/a", "b/b"]}}])
    assert_error(user.put(server, update_body(metadata={"description": "after"})), 409, "conflict")
    assert user.get(server).get_json()["metadata"]["description"] == "before"


def test_second_attempt_is_checked_like_the_first(
    user: Api, world: World, server: str, rivals: list[dict[str, Any]]
) -> None:
    """What the other one wrote may have changed what is allowed."""
    rivals.append({"metadata": {"labels": {labels.API_VERSION: "1"}}})
    assert_error(user.put(server, update_body(metadata={"description": "after"})), 404, "not_found")


def test_create_only_members_have_no_effect(user: Api, server: str) -> None:
    response = user.put(server, update_body(networkId=NOWHERE, infrastructureRef="host-1", sshInjection="none"))
    assert response.status_code == 202
    status = response.get_json()["status"]
    assert (status["networkId"], status["sshInjection"]) == (NETWORK, "identityKeypair")
    assert "infrastructureRef" not in status
