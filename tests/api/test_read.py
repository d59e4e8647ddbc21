"""Reading, listing and deleting servers (contract 1.9, 2.6, 2.15 and 9.3)."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from server_api.store import kinds, labels
from tests.api.conftest import Api
from tests.api.errors import assert_error
from tests.api.world import (
    AUTHORITY,
    FLAVOR,
    IMAGE,
    NAMESPACE,
    NETWORK,
    NOWHERE,
    ORGANIZATION,
    OTHER_NETWORK,
    OTHER_ORGANIZATION,
    OTHER_PROJECT,
    PROJECT,
    REGION,
    SECOND_NETWORK,
    SECOND_PROJECT,
    World,
    condition,
    create_body,
)

SERVERS = "/api/v2/servers"


def ids(api: Api, query: str = "") -> list[str]:
    """Return the IDs a list answers with, in its order."""
    response = api.get(f"{SERVERS}{query}")
    assert response.status_code == 200, response.text
    return [server["metadata"]["id"] for server in response.get_json()]


def tagged(name: str, **tags: str) -> dict[str, Any]:
    body = create_body(name)
    body["metadata"]["tags"] = [{"name": key, "value": value} for key, value in tags.items()]
    return body


@pytest.fixture
def server_id(user: Api) -> str:
    return user.create(create_body())


def test_r01_missing(user: Api) -> None:
    assert_error(user.get(f"{SERVERS}/{NOWHERE}"), 404, "not_found")


@pytest.mark.parametrize("version", [None, "1"])
def test_r02_server_of_another_api_version(user: Api, world: World, server_id: str, version: str | None) -> None:
    world.patch(server_id, metadata={"labels": {labels.API_VERSION: version}})
    assert_error(user.get(f"{SERVERS}/{server_id}"), 404, "not_found")
    assert ids(user) == []


def test_r03_organization_without_rights_in_it(client: FlaskClient, server_id: str) -> None:
    assert_error(Api(client, "GUEST").get(f"{SERVERS}/{server_id}"), 403, "forbidden")


def test_server_of_another_organization_is_forbidden(other: Api, server_id: str) -> None:
    for method, suffix in (("GET", ""), ("DELETE", ""), ("POST", "/start")):
        assert_error(other.request(method, f"{SERVERS}/{server_id}{suffix}"), 403, "forbidden")


def test_r04_observed_values_are_shown(user: Api, world: World, server_id: str) -> None:
    observed = {"macAddress": "fa:16:3e:00:00:01", "privateIP": "192.168.0.7", "publicIP": "203.0.113.7"}
    world.set_status(server_id, phase="Running", **observed)
    status = user.get(f"{SERVERS}/{server_id}").get_json()["status"]
    assert {name: status[name] for name in observed} == observed
    assert status["powerState"] == "Running"


@pytest.mark.parametrize(
    ("reason", "rebuild", "expected"),
    [
        pytest.param("Provisioned", None, "provisioned", id="r05"),
        pytest.param("Provisioned", "Rebuilding", "provisioning", id="r06"),
        pytest.param("Provisioned", "Initiated", "provisioning", id="r07"),
        pytest.param("Errored", "Failed", "error", id="r08"),
        pytest.param("DependencyNotReady", None, "provisioning", id="dependency"),
        pytest.param("Invented", None, "provisioning", id="unknown-reason"),
    ],
)
def test_r05_r06_r07_r08_provisioning_status(
    user: Api, world: World, server_id: str, reason: str, rebuild: str | None, expected: str
) -> None:
    marker = {"rebuild": {"targetImageID": IMAGE, "state": rebuild}} if rebuild else {}
    world.set_status(server_id, conditions=[condition("Available", "True", reason)], **marker)
    assert user.get(f"{SERVERS}/{server_id}").get_json()["metadata"]["provisioningStatus"] == expected
    assert [server["metadata"]["provisioningStatus"] for server in user.get(SERVERS).get_json()] == [expected]


def test_conditions_explain_the_derived_statuses(user: Api, world: World, server_id: str) -> None:
    conditions = [condition("Available", "False", "Errored"), condition("Healthy", "False", "Degraded")]
    world.set_status(server_id, conditions=conditions)
    metadata = user.get(f"{SERVERS}/{server_id}").get_json()["metadata"]
    assert metadata["provisioningStatusDetail"] == {"reason": "Errored", "message": "because Errored"}
    assert metadata["healthStatus"] == "degraded"
    assert metadata["healthStatusDetail"] == {"reason": "Degraded", "message": "because Degraded"}


def test_r09_list_is_ordered_by_id(user: Api) -> None:
    created = [user.create(create_body(f"web-{number}")) for number in range(6)]
    assert ids(user) == sorted(created)


def test_r10_unreadable_servers_are_left_out(user: Api, admin: Api, world: World, server_id: str) -> None:
    world.network(NOWHERE, project=SECOND_PROJECT)
    hidden = admin.create(create_body(networkId=NOWHERE))
    assert ids(user) == [server_id]
    assert ids(admin) == sorted([server_id, hidden])


@pytest.mark.parametrize(
    ("name", "own", "another"),
    [
        ("regionID", REGION, NOWHERE),
        ("projectID", PROJECT, SECOND_PROJECT),
        ("networkID", NETWORK, SECOND_NETWORK),
        ("organizationID", ORGANIZATION, OTHER_ORGANIZATION),
    ],
)
@pytest.mark.usefixtures("server_id")
def test_r11_b51_filters_by_id_and_honours_every_value(user: Api, name: str, own: str, another: str) -> None:
    assert len(ids(user, f"?{name}={own}")) == 1
    assert ids(user, f"?{name}={another}") == []
    assert len(ids(user, f"?{name}={another}&{name}={own}")) == 1
    assert len(ids(user, f"?{name}={own}&{name}={another}")) == 1
    assert len(ids(user, f"?{name}={own.upper()}")) == 1


@pytest.mark.usefixtures("server_id")
def test_filters_must_all_match(user: Api) -> None:
    assert len(ids(user, f"?regionID={REGION}&networkID={NETWORK}")) == 1
    assert ids(user, f"?regionID={REGION}&networkID={SECOND_NETWORK}") == []


def test_r12_no_servers(user: Api) -> None:
    assert user.get(SERVERS).get_json() == []


def test_r13_organization_the_caller_is_not_in(user: Api, other: Api, client: FlaskClient, server_id: str) -> None:
    foreign = other.create(create_body(networkId=OTHER_NETWORK))
    assert ids(user, f"?organizationID={OTHER_ORGANIZATION}") == []
    assert ids(Api(client, "OPERATOR"), f"?organizationID={OTHER_ORGANIZATION}") == [foreign]
    assert ids(Api(client, "OPERATOR")) == sorted([server_id, foreign])


def test_r14_r15_b51_every_tag_must_match(user: Api) -> None:
    one = user.create(tagged("one", a="1", b="2", e=""))
    user.create(tagged("two", a="1"))
    assert ids(user, "?tag=a%3D1&tag=b%3D2") == [one]
    assert ids(user, "?tag=a=1&tag=b=2") == [one]
    assert ids(user, "?tag=a%3D2") == []
    assert ids(user, "?tag=e=") == [one]
    assert len(ids(user, "?tag=a=1")) == 2


@pytest.mark.parametrize("value", ["novalue", "a%3Db%3Dc", "", "a==b"])
def test_r16_malformed_tag_selector(user: Api, value: str) -> None:
    assert "tag" in assert_error(user.get(f"{SERVERS}?tag=ok=1&tag={value}"), 400, "invalid_request")


def test_r17_right_to_read_only(reader: Api, server_id: str) -> None:
    assert_error(reader.delete(f"{SERVERS}/{server_id}"), 403, "forbidden")


def test_r18_delete_of_nothing(user: Api) -> None:
    assert_error(user.delete(f"{SERVERS}/{NOWHERE}"), 404, "not_found")


def test_r19_delete_is_accepted_and_shown(user: Api, world: World, server_id: str) -> None:
    world.patch(server_id, metadata={"finalizers": ["unikorn"]})
    for _ in range(2):
        response = user.delete(f"{SERVERS}/{server_id}")
        assert (response.status_code, response.data) == (202, b"")
        assert "Content-Type" not in response.headers
    metadata = user.get(f"{SERVERS}/{server_id}").get_json()["metadata"]
    assert metadata["provisioningStatus"] == "deprovisioning"
    assert metadata["deletionTime"]
    assert_error(user.post(SERVERS, create_body()), 409, "conflict")


def test_r20_no_phase_no_power_state(user: Api, server_id: str) -> None:
    assert "powerState" not in user.get(f"{SERVERS}/{server_id}").get_json()["status"]


def test_r21_legacy_server_with_certificate_authority(user: Api, world: World) -> None:
    world.bare_server(NOWHERE, sshCertificateAuthorityID=AUTHORITY)
    assert user.get(f"{SERVERS}/{NOWHERE}").get_json()["status"]["sshInjection"] == "ca"


def test_b41_server_with_hardly_anything(user: Api, world: World) -> None:
    world.bare_server(NOWHERE)
    body = user.get(f"{SERVERS}/{NOWHERE}").get_json()
    assert body["spec"] == {"flavorId": FLAVOR, "imageId": IMAGE}
    assert body["status"]["sshInjection"] == "identityKeypair"


def test_times_are_utc_to_the_second(user: Api, server_id: str) -> None:
    created = user.get(f"{SERVERS}/{server_id}").get_json()["metadata"]["creationTime"]
    assert len(created) == len("2026-01-02T03:04:05Z")
    assert created.endswith("Z")


def test_other_namespaces_are_not_seen(user: Api, world: World, server_id: str) -> None:
    assert world.client.get(kinds.SERVER, NAMESPACE, server_id)
    assert ids(user, f"?projectID={OTHER_PROJECT}") == []
