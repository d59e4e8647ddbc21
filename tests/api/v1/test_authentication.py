"""Callers of v1, whose paths say where they want to act (contract 5.2, 5.3, 5.5, 5.7)."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from server_api.http.services import Services
from server_api.sandbox.identity_service import StandInIdentityService
from server_api.settings import Settings
from tests.api.conftest import checked_client
from tests.api.errors import assert_error
from tests.api.identity import app_over, misbehaving
from tests.api.service_caller import COMPUTE, headers
from tests.api.v1.legacy import LIST, SERVERS, body, servers
from tests.api.world import NOWHERE, ORGANIZATION, OTHER_ORGANIZATION, OTHER_PROJECT, PEOPLE, PROJECT, World


@pytest.fixture
def app(identity: StandInIdentityService, services: Services, settings: Settings) -> Flask:
    return app_over(identity.url, services, settings)


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return checked_client(app)


def test_t07_the_exchange_refuses_the_scope(client: FlaskClient, identity: StandInIdentityService) -> None:
    response = client.get(LIST, headers=PEOPLE["OTHER"].headers)

    assert_error(response, 403, "forbidden")
    assert "WWW-Authenticate" not in response.headers
    assert identity.app.calls == {"exchange": 1}


def test_rights_are_asked_for_in_the_organization_of_the_path(
    client: FlaskClient, identity: StandInIdentityService
) -> None:
    assert client.get(LIST, headers=PEOPLE["ADMIN"].headers).status_code == 200
    assert identity.app.seen[-1][0] == f"/api/v1/organizations/{ORGANIZATION}/acl"


def test_an_organization_that_nobody_knows_is_forbidden(client: FlaskClient) -> None:
    path = f"/api/v1/organizations/{NOWHERE}/servers"

    for who in ("USER", "OPERATOR"):
        assert_error(client.get(path, headers=PEOPLE[who].headers), 403, "forbidden")


def test_a_malformed_organization_asks_nobody(client: FlaskClient, identity: StandInIdentityService) -> None:
    response = client.get("/api/v1/organizations/x/servers", headers=PEOPLE["ADMIN"].headers)

    assert_error(response, 400, "invalid_request")
    assert identity.app.calls == {}


def test_c08_right_over_the_organization_and_a_project_that_is_known(
    client: FlaskClient, identity: StandInIdentityService
) -> None:
    assert client.post(SERVERS, json=body(), headers=PEOPLE["ADMIN"].headers).status_code == 201
    assert identity.app.calls["project"] == 1


def test_c07_right_over_the_organization_and_a_project_that_is_not_known(client: FlaskClient) -> None:
    response = client.post(servers(project=NOWHERE), json=body(), headers=PEOPLE["ADMIN"].headers)

    assert "project" in assert_error(response, 404, "not_found")


@pytest.mark.parametrize("who", ["USER", "OPERATOR", "CREATOR"])
def test_c09_right_to_the_project_or_to_everything_asks_for_no_project(
    client: FlaskClient, identity: StandInIdentityService, who: str
) -> None:
    assert client.post(SERVERS, json=body(), headers=PEOPLE[who].headers).status_code == 201
    assert identity.app.calls["project"] == 0


@pytest.mark.parametrize("rule", [{"status": 401}, {"status": 500}])
def test_a_project_that_cannot_be_looked_up_is_401_without_a_challenge(
    client: FlaskClient, identity: StandInIdentityService, rule: dict[str, Any]
) -> None:
    identity.know(misbehaving({"endpoint": "project", **rule}))
    response = client.post(SERVERS, json=body(), headers=PEOPLE["ADMIN"].headers)

    assert_error(response, 401, "access_denied")
    assert "WWW-Authenticate" not in response.headers


def test_a_bearer_is_attributed_to_the_scope_of_the_path(client: FlaskClient, world: World) -> None:
    response = client.post(SERVERS, json=body(), headers=PEOPLE["USER"].headers)

    stored = world.stored(response.get_json()["metadata"]["id"]).metadata
    assert (stored.creator, stored.principal_creator) == (PEOPLE["USER"].subject, PEOPLE["USER"].subject)
    assert (stored.principal_organization_id, stored.principal_project_id) == (ORGANIZATION, PROJECT)


def test_a_service_is_attributed_to_what_its_principal_says(client: FlaskClient, world: World) -> None:
    its_headers = headers({"actor": "alice", "organizationId": OTHER_ORGANIZATION, "projectId": OTHER_PROJECT})
    response = client.post(SERVERS, json=body(), headers=its_headers)

    assert response.status_code == 201, response.text
    stored = world.stored(response.get_json()["metadata"]["id"]).metadata
    assert (stored.creator, stored.principal_creator) == (COMPUTE, "alice")
    assert (stored.organization_id, stored.project_id) == (ORGANIZATION, PROJECT)
    assert (stored.principal_organization_id, stored.principal_project_id) == (OTHER_ORGANIZATION, OTHER_PROJECT)
