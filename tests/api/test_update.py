"""Updating servers (contract 1.6 and 9.4)."""

from __future__ import annotations

import pytest

from server_api.store import kinds
from tests.api.conftest import Api
from tests.api.errors import assert_error
from tests.api.world import (
    GROUP_ON_SECOND_NETWORK,
    NETWORK,
    NOWHERE,
    PEOPLE,
    World,
    create_body,
    update_body,
)
from tests.doubles.clock import FixedClock

SERVERS = "/api/v2/servers"
CLOUD_CONFIG = "I2Nsb3VkLWNvbmZpZwo="
PLAIN = "ZWNobyBoZWxsbwo="


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
    world.patch(server.rsplit("/", 1)[1], metadata={"finalizers": ["unikorn"]})
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


def test_u15_stored_user_data_sent_again(user: Api, world: World, server: str) -> None:
    world.patch(server.rsplit("/", 1)[1], spec={"userData": PLAIN})
    response = user.put(server, update_body(userData=PLAIN))
    assert response.status_code == 202
    assert response.get_json()["spec"]["userData"] == PLAIN


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


def test_create_only_members_have_no_effect(user: Api, server: str) -> None:
    response = user.put(server, update_body(networkId=NOWHERE, infrastructureRef="host-1", sshInjection="none"))
    assert response.status_code == 202
    status = response.get_json()["status"]
    assert (status["networkId"], status["sshInjection"]) == (NETWORK, "identityKeypair")
    assert "infrastructureRef" not in status
