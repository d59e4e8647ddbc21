"""What requests for v1 meet before a use case does (contract 1.3, 3.5 and 9.1)."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from server_api.store import labels
from tests.api.conftest import Api
from tests.api.errors import assert_error
from tests.api.v1.legacy import LIST, SERVERS, body, created, servers
from tests.api.world import IDENTITY, NETWORK, NOWHERE, ORGANIZATION, PROJECT, World

ONE = f"{SERVERS}/{NOWHERE}"
BODIES = (("POST", SERVERS), ("PUT", ONE))


@pytest.mark.parametrize("place", ["organization", "project", "identity"])
def test_t12_malformed_id_before_authentication(client: FlaskClient, place: str) -> None:
    for text in ("not-a-uuid", "1", "%00", "x" * 300):
        path = f"{servers(**{place: text})}/{NOWHERE}"
        assert f"{place}ID" in assert_error(client.get(path), 400, "invalid_request")
    response = client.get(f"{SERVERS}/not-a-uuid")
    assert "serverID" in assert_error(response, 400, "invalid_request")


def test_t04_t05_t06_every_operation_needs_credentials(client: FlaskClient) -> None:
    for header in ({}, {"Authorization": "Basic abc"}, {"Authorization": "Bearer"}):
        for method, path in (("GET", LIST), *BODIES, ("GET", ONE), ("DELETE", ONE), ("POST", f"{ONE}/start")):
            response = client.open(path, method=method, headers=header)
            assert_error(response, 401, "access_denied")
            assert "resource_metadata" in response.headers["WWW-Authenticate"]


def test_ids_are_accepted_in_every_textual_form(user: Api) -> None:
    server_id = created(user).rsplit("/", 1)[1]
    for form in (str.upper, lambda text: text.replace("-", ""), lambda text: f"urn:uuid:{text}"):
        path = f"{servers(form(ORGANIZATION), form(PROJECT), form(IDENTITY))}/{form(server_id)}"
        assert user.get(path).get_json()["metadata"]["id"] == server_id
    shown = user.post(SERVERS, body(networks=[{"id": NETWORK.upper()}])).get_json()
    assert shown["spec"]["networks"] == [{"id": NETWORK}]


@pytest.mark.parametrize("data", ["", " ", "null", "[]", '"x"', "{", "{}{}"])
def test_t14_body_that_is_no_object(user: Api, data: str) -> None:
    for method, path in BODIES:
        response = user.request(method, path, data=data, headers={"Content-Type": "application/json"})
        assert_error(response, 400, "invalid_request")


def test_t15_wrong_content_type(user: Api) -> None:
    """Design section 4 wins over the contract's 400."""
    for method, path in BODIES:
        response = user.request(method, path, data="{}", headers={"Content-Type": "text/plain"})
        assert_error(response, 415, "unsupported_media_type")


@pytest.mark.parametrize("missing", ["metadata", "spec"])
def test_t16_half_a_body(user: Api, missing: str) -> None:
    for method, path in BODIES:
        request = {name: part for name, part in body().items() if name != missing}
        assert f"/{missing}" in assert_error(user.request(method, path, json=request), 400, "invalid_request")


@pytest.mark.parametrize("name", ["a" * 64, "web-", "", "we b", "web\n"])
def test_t17_malformed_name(user: Api, name: str) -> None:
    assert "/metadata/name" in assert_error(user.post(SERVERS, body(name)), 400, "invalid_request")


def test_t18_name_of_one_character(user: Api) -> None:
    created(user, body("a"))


@pytest.mark.parametrize("member", ["flavorId", "imageId"])
def test_t19_malformed_id_in_a_body(user: Api, member: str) -> None:
    response = user.post(SERVERS, body(**{member: "abc"}))
    assert f"/spec/{member}" in assert_error(response, 400, "invalid_request")


@pytest.mark.parametrize("member", ["networks", "securityGroups", "publicIPAllocation", "userData", "flavorId"])
def test_t21_null_is_no_value(user: Api, member: str) -> None:
    request = body()
    request["spec"][member] = None
    assert f"/spec/{member}" in assert_error(user.post(SERVERS, request), 400, "invalid_request")


@pytest.mark.parametrize("user_data", ["abc", "-_-_", "YQ", "YWI\n="])
def test_user_data_that_is_no_standard_base64(user: Api, user_data: str) -> None:
    assert "/spec/userData" in assert_error(user.post(SERVERS, body(userData=user_data)), 400, "invalid_request")


def test_t22_unknown_members_are_ignored(user: Api, world: World) -> None:
    """Those of v2 among them: v1 cannot say them."""
    request = body(colour="red", sshInjection="none", infrastructureRef="host-1")
    request["spec"]["networks"][0]["colour"] = request["metadata"]["colour"] = "red"
    server_id = created(user, request).rsplit("/", 1)[1]
    stored = world.stored(server_id)
    assert (stored.spec.ssh_injection, stored.spec.infrastructure_ref) == (None, None)
    assert "colour" not in str(stored.stored)
    assert labels.API_VERSION not in stored.stored["metadata"]["labels"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", LIST, {"GET", "HEAD", "OPTIONS"}),
        ("GET", SERVERS, {"POST", "OPTIONS"}),
        ("POST", ONE, {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"}),
        ("GET", f"{ONE}/start", {"POST", "OPTIONS"}),
    ],
)
def test_b55_wrong_method_names_the_right_ones(client: FlaskClient, method: str, path: str, allowed: set[str]) -> None:
    response = client.open(path, method=method)
    assert_error(response, 405, "method_not_allowed")
    assert set(response.headers["Allow"].split(", ")) == allowed


@pytest.mark.parametrize("verb", ["sshkey", "snapshot", "provider-create-gates"])
def test_what_came_with_v2_is_not_in_v1(user: Api, verb: str) -> None:
    assert_error(user.post(f"{ONE}/{verb}"), 404, "not_found")
