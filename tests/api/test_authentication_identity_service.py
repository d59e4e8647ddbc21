"""Callers from the identity service (contract 5.2, 5.3, 5.5; 9.1 and 9.2)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from server_api.access.digests import token_digest
from server_api.http.services import Services
from server_api.sandbox.identity_service import StandInIdentityService
from server_api.settings import Settings
from tests.api.conftest import checked_client
from tests.api.errors import assert_error
from tests.api.identity import app_over, document, misbehaving
from tests.api.service_caller import COMPUTE, headers
from tests.api.world import ORGANIZATION, OTHER_NETWORK, PEOPLE, PROJECT, SECOND_PROJECT, World, create_body

SERVERS = "/api/v2/servers"
NETWORK_IN_UNKNOWN_PROJECT = "aaaabbbb-1234-4678-9abc-def01234567f"


@pytest.fixture
def app(identity: StandInIdentityService, services: Services, settings: Settings) -> Flask:
    return app_over(identity.url, services, settings)


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return checked_client(app)


def test_t02_a_token_without_any_role_is_enough_for_the_version(client: FlaskClient) -> None:
    assert client.get("/api/version", headers=PEOPLE["NOBODY"].headers).status_code == 200


def test_t08_the_exchange_answers_401(client: FlaskClient, identity: StandInIdentityService) -> None:
    response = client.get(SERVERS, headers={"Authorization": "Bearer nobodys"})

    assert_error(response, 401, "access_denied")
    assert "resource_metadata=" in response.headers["WWW-Authenticate"]
    assert identity.app.calls == {"exchange": 1}


@pytest.mark.parametrize("rule", [{"status": 500}, {"status": 404}, {"status": 400, "body": "{}"}, {"drop": True}])
def test_an_exchange_that_fails_otherwise_is_401_too(
    client: FlaskClient, identity: StandInIdentityService, rule: dict[str, Any]
) -> None:
    identity.know(misbehaving({"endpoint": "exchange", **rule}))
    response = client.get(SERVERS, headers=PEOPLE["USER"].headers)

    assert assert_error(response, 401, "access_denied") == "the token could not be verified"
    assert "WWW-Authenticate" in response.headers


def test_an_unusable_passport_is_500(client: FlaskClient, identity: StandInIdentityService) -> None:
    identity.know(misbehaving({"endpoint": "exchange", "claims": {"typ": "access"}}))

    assert_error(client.get(SERVERS, headers=PEOPLE["USER"].headers), 500, "server_error")


@pytest.mark.parametrize(
    ("rule", "status", "code"),
    [
        ({"status": 401}, 401, "access_denied"),
        ({"status": 403}, 403, "forbidden"),
        ({"status": 503}, 502, "server_error"),
        ({"status": 200, "body": "{"}, 502, "server_error"),
        ({"delay": 3.0}, 504, "server_error"),
    ],
)
def test_rights_that_cannot_be_fetched_let_nobody_in(
    client: FlaskClient, identity: StandInIdentityService, rule: dict[str, Any], status: int, code: str
) -> None:
    identity.know(misbehaving({"endpoint": "acl", **rule}))

    assert_error(client.get(SERVERS, headers=PEOPLE["USER"].headers), status, code)
    assert_error(client.get("/api/version", headers=PEOPLE["ADMIN"].headers), status, code)


def test_a_malformed_path_asks_nobody(client: FlaskClient, identity: StandInIdentityService) -> None:
    assert_error(client.get(f"{SERVERS}/x", headers=PEOPLE["USER"].headers), 400, "invalid_request")
    assert identity.app.calls == {}


# Verification of projects


def create(client: FlaskClient, who: str, **spec: Any) -> Any:
    return client.post(SERVERS, json=create_body(**spec), headers=PEOPLE[who].headers)


@pytest.fixture
def unknown_project(world: World) -> str:
    """A network in a project that the identity service does not know (any more)."""
    world.network(NETWORK_IN_UNKNOWN_PROJECT, project=SECOND_PROJECT)
    return NETWORK_IN_UNKNOWN_PROJECT


def test_c06_without_the_right_to_create_the_project_is_not_asked_for(
    client: FlaskClient, identity: StandInIdentityService
) -> None:
    assert_error(create(client, "READER"), 403, "forbidden")
    assert identity.app.calls["project"] == 0


def test_c07_right_over_the_organization_and_a_project_that_is_not_known(
    client: FlaskClient, identity: StandInIdentityService, unknown_project: str, world: World
) -> None:
    assert_error(create(client, "ADMIN", networkId=unknown_project), 404, "not_found")
    path, sent = identity.app.seen[-1]
    assert path == f"/api/v1/organizations/{ORGANIZATION}/projects/{SECOND_PROJECT}"
    assert sent["Authorization"] == PEOPLE["ADMIN"].headers["Authorization"]
    assert client.get(SERVERS, headers=PEOPLE["ADMIN"].headers).get_json() == []


def test_c08_right_over_the_organization_and_a_project_that_is_known(
    client: FlaskClient, identity: StandInIdentityService
) -> None:
    assert create(client, "ADMIN").status_code == 201
    assert identity.app.calls["project"] == 1


@pytest.mark.parametrize("who", ["USER", "OPERATOR"])
def test_c09_right_to_the_project_or_to_everything_asks_for_no_project(
    client: FlaskClient, identity: StandInIdentityService, who: str
) -> None:
    assert create(client, who).status_code == 201
    assert identity.app.calls["project"] == 0


@pytest.mark.parametrize("rule", [{"status": 401}, {"status": 403}, {"status": 500}, {"drop": True}])
def test_a_project_that_cannot_be_looked_up_is_401_without_a_challenge(
    client: FlaskClient, identity: StandInIdentityService, rule: dict[str, Any]
) -> None:
    identity.know(misbehaving({"endpoint": "project", **rule}))
    response = create(client, "ADMIN")

    assert_error(response, 401, "access_denied")
    assert "WWW-Authenticate" not in response.headers


# Services


def test_c02_a_service_creates_with_its_own_rights(client: FlaskClient, identity: StandInIdentityService) -> None:
    its_headers = headers({"actor": "alice", "organizationId": ORGANIZATION, "projectId": PROJECT})
    response = client.post(SERVERS, json=create_body(), headers=its_headers)

    assert response.status_code == 201, response.text
    assert response.get_json()["metadata"]["createdBy"] == COMPUTE
    assert identity.app.calls == {"acl": 1}


def test_an_impersonating_service_has_what_the_identity_service_says_both_have(client: FlaskClient) -> None:
    def status(who: str) -> int:
        its_headers = headers({"actor": PEOPLE[who].subject}, impersonate="true")
        return client.post(SERVERS, json=create_body(name=who.lower()), headers=its_headers).status_code

    assert [status(who) for who in ("USER", "READER", "OTHER")] == [201, 403, 403]


def test_t10_a_service_without_a_principal_asks_nobody(client: FlaskClient, identity: StandInIdentityService) -> None:
    assert_error(client.get(SERVERS, headers=headers()), 400, "invalid_request")
    assert identity.app.calls == {}


# What is kept


def test_b80_twenty_requests_at_once_are_one_exchange(app: Flask, identity: StandInIdentityService) -> None:
    identity.know(misbehaving({"endpoint": "exchange", "delay": 0.2}, {"endpoint": "acl", "delay": 0.2}))

    def call(_: int) -> int:
        return app.test_client().get(SERVERS, headers=PEOPLE["USER"].headers).status_code

    with ThreadPoolExecutor(20) as pool:
        assert set(pool.map(call, range(20))) == {200}
    assert identity.app.calls == {"exchange": 1, "acl": 1}


def test_a_token_that_was_withdrawn_works_until_its_rights_are_fetched_anew(
    identity: StandInIdentityService, services: Services, settings: Settings
) -> None:
    gone = document(revoked=[token_digest(PEOPLE["USER"].token)])
    for seconds, status in ((60.0, 200), (0.0, 401)):
        identity.know(document())
        client = checked_client(app_over(identity.url, services, replace(settings, acl_cache_seconds=seconds)))
        assert client.get(SERVERS, headers=PEOPLE["USER"].headers).status_code == 200
        identity.know(gone)
        assert client.get(SERVERS, headers=PEOPLE["USER"].headers).status_code == status


def test_lists_of_many_callers_at_once_never_show_a_foreign_row(app: Flask) -> None:
    client = app.test_client()
    for who, network in (("USER", None), ("OTHER", OTHER_NETWORK)):
        spec = {"networkId": network} if network else {}
        assert client.post(SERVERS, json=create_body(**spec), headers=PEOPLE[who].headers).status_code == 201

    def seen(who: str) -> tuple[str, frozenset[str]]:
        found = app.test_client().get(SERVERS, headers=PEOPLE[who].headers).get_json()
        return who, frozenset(item["metadata"]["organizationId"] for item in found)

    people = ["USER", "OTHER", "NOBODY", "OPERATOR"] * 8
    with ThreadPoolExecutor(16) as pool:
        results = set(pool.map(seen, people))
    organizations = dict(results)
    assert len(results) == len(organizations) == 4
    assert organizations["NOBODY"] == frozenset()
    assert not organizations["USER"] & organizations["OTHER"]
    assert organizations["OPERATOR"] == organizations["USER"] | organizations["OTHER"]
