"""Reading, listing and deleting servers in v1 (contract 1.4, 2.3 and 9.7)."""

from __future__ import annotations

import pytest

from tests.api.conftest import Api
from tests.api.errors import assert_error
from tests.api.v1.legacy import LIST, SERVERS, body, created, id_of, leave, servers
from tests.api.world import (
    IMAGE,
    NOWHERE,
    ORGANIZATION,
    OTHER_NETWORK,
    OTHER_ORGANIZATION,
    OTHER_PROJECT,
    SECOND_PROJECT,
    World,
    condition,
    create_body,
)


def ids(api: Api, query: str = "", path: str = LIST) -> list[str]:
    """Return the IDs a list answers with, in its order."""
    response = api.get(f"{path}{query}")
    assert response.status_code == 200, response.text
    return [server["metadata"]["id"] for server in response.get_json()]


def test_w15_server_of_another_project_in_the_same_organization(user: Api, admin: Api) -> None:
    server_id = id_of(created(user))
    elsewhere = f"{servers(project=SECOND_PROJECT)}/{server_id}"
    assert_error(admin.get(elsewhere), 404, "not_found")
    assert_error(admin.delete(elsewhere), 404, "not_found")
    assert_error(admin.post(f"{elsewhere}/start"), 404, "not_found")
    assert_error(admin.put(elsewhere, body()), 404, "not_found")


def test_missing(user: Api) -> None:
    for method, suffix in (("GET", ""), ("DELETE", ""), ("POST", "/stop"), ("GET", "/consoleoutput")):
        assert_error(user.request(method, f"{SERVERS}/{NOWHERE}{suffix}"), 404, "not_found")


def test_identity_of_the_path_does_not_matter_to_read_and_delete(user: Api) -> None:
    server_id = id_of(created(user))
    path = f"{servers(identity=NOWHERE)}/{server_id}"
    assert user.get(path).status_code == 200
    assert user.delete(path).status_code == 202
    assert_error(user.get(path), 404, "not_found")


def test_delete_is_accepted_and_shown(user: Api, world: World) -> None:
    path = created(user)
    world.patch(id_of(path), metadata={"finalizers": ["unikorn"]})
    for _ in range(2):
        response = user.delete(path)
        assert (response.status_code, response.data) == (202, b"")
        assert "Content-Type" not in response.headers
    assert user.get(path).get_json()["metadata"]["provisioningStatus"] == "deprovisioning"


def test_observed_values_are_shown(user: Api, world: World) -> None:
    path = created(user)
    world.set_status(id_of(path), phase="Running", privateIP="192.168.0.7", publicIP="203.0.113.7", macAddress="x")
    status = user.get(path).get_json()["status"]
    assert status == {"phase": "Running", "privateIP": "192.168.0.7", "publicIP": "203.0.113.7"}


@pytest.mark.parametrize("phase", ["Pending", "Queued", "Building", "Running", "Stopping", "Stopped"])
def test_every_phase_is_shown(user: Api, world: World, phase: str) -> None:
    path = created(user)
    world.set_status(id_of(path), phase=phase)
    assert user.get(path).get_json()["status"] == {"phase": phase}


def test_a_recorded_rebuild_masks_nothing_in_v1(user: Api, world: World) -> None:
    """Contract 4.7: that provisioned means settled is v2's promise alone."""
    server_id = user.create(create_body())
    marker = {"targetImageID": IMAGE, "state": "Rebuilding"}
    world.set_status(server_id, conditions=[condition("Available", "True", "Provisioned")], rebuild=marker)
    metadata = user.get(f"{SERVERS}/{server_id}").get_json()["metadata"]
    assert metadata["provisioningStatus"] == "provisioned"
    assert metadata["provisioningStatusDetail"]["reason"] == "Provisioned"
    assert user.get(f"/api/v2/servers/{server_id}").get_json()["metadata"]["provisioningStatus"] == "provisioning"


def test_list_has_servers_of_both_versions_by_id(user: Api, admin: Api, other: Api, world: World) -> None:
    own = [id_of(created(user)), user.create(create_body("two")), id_of(leave(world))]
    other.create(create_body(networkId=OTHER_NETWORK))
    assert ids(admin) == sorted(own)
    assert ids(admin, path=LIST.replace(ORGANIZATION, ORGANIZATION.upper())) == sorted(own)


def test_list_needs_the_right_in_the_whole_organization(user: Api, admin: Api) -> None:
    assert_error(user.get(LIST), 403, "forbidden")
    assert ids(admin) == []
    assert_error(admin.get(LIST.replace(ORGANIZATION, OTHER_ORGANIZATION)), 403, "forbidden")


def test_every_tag_must_match(user: Api, admin: Api) -> None:
    tags = [{"name": "a", "value": "1"}, {"name": "b", "value": ""}]
    one = id_of(created(user, body(metadata={"tags": tags})))
    created(user, body(metadata={"tags": tags[:1]}))
    assert ids(admin, "?tag=a%3D1&tag=b=") == [one]
    assert len(ids(admin, "?tag=a=1")) == 2
    assert ids(admin, "?tag=a=2") == []
    for malformed in ("novalue", "a=b=c", ""):
        assert "tag" in assert_error(admin.get(f"{LIST}?tag={malformed}"), 400, "invalid_request")


def test_unknown_query_parameters_are_ignored(user: Api, admin: Api, world: World) -> None:
    path = created(user)
    world.cloud.hold(id_of(path), "web-0")
    assert ids(admin, "?limit=1&organizationID=nonsense&limit=2") == [id_of(path)]
    for suffix in ("", "/consoleoutput", "/consolesessions"):
        assert user.get(f"{path}{suffix}?what=ever&length=1").status_code == 200
    assert user.post(f"{path}/stop?what=ever").status_code == 202
    assert user.put(f"{path}?what=ever", body()).status_code == 202
    assert user.delete(f"{path}?what=ever").status_code == 202
    assert user.post(f"{SERVERS}?what=ever", body()).status_code == 201


def test_another_tenant_sees_nothing(user: Api, other: Api) -> None:
    server_id = id_of(created(user))
    own = servers(organization=OTHER_ORGANIZATION, project=OTHER_PROJECT)
    assert_error(other.get(f"{own}/{server_id}"), 404, "not_found")
    assert_error(other.get(f"{SERVERS}/{server_id}"), 403, "forbidden")
