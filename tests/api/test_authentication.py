"""Service callers over TLS that ends in front, with rights from a file (contract 5.1, 5.7; 9.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from server_api.access.client_certificate import ClientCertificates, trusted_networks
from server_api.access.digests import token_digest
from server_api.access.source import CallerAuthenticator
from server_api.access.token_file import TokenFile
from server_api.http.application import build_app
from server_api.http.services import Services
from server_api.settings import Settings
from tests.api.conftest import checked_client
from tests.api.errors import assert_error
from tests.api.service_caller import COMPUTE, headers, principal
from tests.api.world import (
    EVERYTHING,
    GATES,
    ORGANIZATION,
    OTHER_NETWORK,
    OTHER_ORGANIZATION,
    OTHER_PROJECT,
    PEOPLE,
    PROJECT,
    REFERENCES,
    SERVERS,
    World,
    create_body,
    endpoints,
    update_body,
)

PATH = "/api/v2/servers"
PROXY = "192.0.2.10"
SERVICE = {"global": endpoints({SERVERS: EVERYTHING, GATES: ("update",), **dict.fromkeys(REFERENCES, ("read",))})}
NARROW = {"global": endpoints({SERVERS: ("read",), **dict.fromkeys(REFERENCES, ("read",))})}


@pytest.fixture
def client(services: Services, settings: Settings, tmp_path: Path) -> FlaskClient:
    """A client of the API that stands in the place of the proxy."""
    document = {
        "tokens": [
            {"sha256": token_digest(who.token), "subject": who.subject, "accountType": "user", "acl": dict(who.acl)}
            for who in PEOPLE.values()
        ],
        "services": [{"commonName": COMPUTE, "acl": SERVICE}, {"commonName": "unikorn-narrow", "acl": NARROW}],
    }
    path = tmp_path / "tokens.yaml"
    path.write_text(yaml.safe_dump(document))
    path.chmod(0o600)
    proxies = ClientCertificates(trusted_networks(f"{PROXY}/32"))
    client = checked_client(
        build_app(replace(services, authenticator=CallerAuthenticator(TokenFile(path), proxies)), settings)
    )
    client.environ_base["REMOTE_ADDR"] = PROXY
    return client


def create(client: FlaskClient, its_headers: Mapping[str, str], **spec: Any) -> TestResponse:
    return client.post(PATH, json=create_body(**spec), headers=dict(its_headers))


def test_c02_a_service_creates_as_itself_in_the_networks_project(client: FlaskClient, world: World) -> None:
    response = create(client, headers({"actor": "alice@example.com", "type": "user"}))

    assert response.status_code == 201, response.text
    metadata = response.get_json()["metadata"]
    assert metadata["createdBy"] == COMPUTE
    assert (metadata["organizationId"], metadata["projectId"]) == (ORGANIZATION, PROJECT)
    stored = world.stored(metadata["id"]).metadata
    assert (stored.creator, stored.principal_creator) == (COMPUTE, "alice@example.com")
    assert (stored.principal_organization_id, stored.principal_project_id) == (ORGANIZATION, PROJECT)


def test_a_principal_that_is_attributed_already_is_left_alone(client: FlaskClient, world: World) -> None:
    its_headers = headers({"actor": "alice", "organizationId": OTHER_ORGANIZATION, "projectId": OTHER_PROJECT})
    response = create(client, its_headers)

    assert response.status_code == 201, response.text
    metadata = response.get_json()["metadata"]
    assert (metadata["organizationId"], metadata["projectId"]) == (ORGANIZATION, PROJECT)
    stored = world.stored(metadata["id"]).metadata
    assert (stored.principal_organization_id, stored.principal_project_id) == (OTHER_ORGANIZATION, OTHER_PROJECT)


def test_an_organization_without_a_project_is_not_given_the_servers(client: FlaskClient, world: World) -> None:
    response = create(client, headers({"actor": "alice", "organizationId": OTHER_ORGANIZATION}))

    stored = world.stored(response.get_json()["metadata"]["id"]).metadata
    assert (stored.principal_organization_id, stored.principal_project_id) == (OTHER_ORGANIZATION, None)


def test_a_service_that_works_for_nobody_acts_for_itself(client: FlaskClient, world: World) -> None:
    response = create(client, headers({}))

    assert world.stored(response.get_json()["metadata"]["id"]).metadata.principal_creator == COMPUTE


def test_an_update_is_stamped_with_service_and_actor(client: FlaskClient, world: World) -> None:
    server_id = create(client, headers({"actor": "alice"})).get_json()["metadata"]["id"]
    response = client.put(
        f"{PATH}/{server_id}", json=update_body(metadata={"description": "new"}), headers=headers({"actor": "bob"})
    )

    assert response.status_code == 202, response.text
    stored = world.stored(server_id).metadata
    assert (stored.creator, stored.principal_creator) == (COMPUTE, "alice")
    assert (stored.modifier, stored.principal_modifier) == (COMPUTE, "bob")


def test_g03_the_gate_records_the_service_and_not_whom_it_works_for(client: FlaskClient, world: World) -> None:
    its_headers = headers({"actor": "alice"})
    server_id = create(client, its_headers, providerCreateGates=[{"conditionType": "ready"}]).get_json()["metadata"][
        "id"
    ]
    action = {"conditionType": "ready", "reason": "Ready", "message": "all set"}
    response = client.post(f"{PATH}/{server_id}/provider-create-gates", json=action, headers=its_headers)

    assert response.status_code == 202, response.text
    assert [gate.actor for gate in world.stored(server_id).status.provider_create_gates] == [COMPUTE]


# Refusals


@pytest.mark.parametrize("verified", [None, "NONE", "FAILED:expired", "success"])
def test_t09_a_certificate_that_was_not_verified(client: FlaskClient, verified: str | None) -> None:
    its_headers = headers({"actor": "alice"}) | {"Ssl-Client-Verify": verified or ""}

    for more in ({}, PEOPLE["USER"].headers):
        assert_error(client.get(PATH, headers=its_headers | more), 400, "invalid_request")


def test_t10_a_certificate_without_a_principal(client: FlaskClient) -> None:
    for more in ({}, PEOPLE["USER"].headers):
        response = client.get(PATH, headers=headers() | more)
        assert "X-Principal" in assert_error(response, 400, "invalid_request")


@pytest.mark.parametrize("header", ["alice", "e30,e30", principal([]), principal({"actor": 7}), "a.b.c"])
def test_t10_a_principal_that_cannot_be_decoded(client: FlaskClient, header: str) -> None:
    response = client.get(PATH, headers=headers({}) | {"X-Principal": header})

    assert header not in assert_error(response, 400, "invalid_request")


def test_t11_impersonation_without_an_actor(client: FlaskClient) -> None:
    assert_error(client.get(PATH, headers=headers({}, impersonate="true")), 400, "invalid_request")


@pytest.mark.parametrize("peer", ["192.0.2.11", "127.0.0.1", "::1", ""])
@pytest.mark.parametrize("more", [{}, PEOPLE["USER"].headers])
def test_the_headers_are_refused_from_anybody_but_the_proxy(
    client: FlaskClient, peer: str, more: dict[str, str]
) -> None:
    for its_headers in (headers({"actor": "alice"}), {"Ssl-Client-Verify": "SUCCESS"}):
        response = client.get(PATH, headers=its_headers | more, environ_base={"REMOTE_ADDR": peer})
        assert "not accepted from this address" in assert_error(response, 400, "invalid_request")


def test_the_proxy_may_say_that_there_was_no_certificate(client: FlaskClient) -> None:
    assert client.get(PATH, headers=PEOPLE["USER"].headers | {"Ssl-Client-Verify": "NONE"}).status_code == 200
    assert_error(client.get(PATH, headers={"Ssl-Client-Verify": "NONE"}), 401, "access_denied")


def test_a_malformed_path_is_told_before_anybody_is_authenticated(client: FlaskClient) -> None:
    its_headers = headers({}) | {"Ssl-Client-Verify": "NONE"}
    assert "serverID" in assert_error(client.get(f"{PATH}/x", headers=its_headers), 400, "invalid_request")


# Impersonation


def impersonating(who: str, common_name: str = COMPUTE) -> dict[str, str]:
    return headers({"actor": PEOPLE[who].subject, "type": "user"}, impersonate="true", common_name=common_name)


def test_an_impersonating_service_sees_what_the_user_sees(client: FlaskClient) -> None:
    for network in (None, OTHER_NETWORK):
        assert create(client, headers({}), **({"networkId": network} if network else {})).status_code == 201

    def projects(its_headers: dict[str, str]) -> list[str]:
        return sorted(found["metadata"]["projectId"] for found in client.get(PATH, headers=its_headers).get_json())

    assert projects(headers({})) == [PROJECT, OTHER_PROJECT]
    assert projects(impersonating("USER")) == [PROJECT]
    assert projects(impersonating("OTHER")) == [OTHER_PROJECT]
    assert projects(impersonating("NOBODY")) == []


def test_an_impersonating_service_does_nothing_that_it_may_not_itself(client: FlaskClient) -> None:
    assert_error(create(client, impersonating("USER", "unikorn-narrow")), 403, "forbidden")
    assert create(client, impersonating("USER")).status_code == 201


def test_an_impersonating_service_does_nothing_that_the_user_may_not(client: FlaskClient, world: World) -> None:
    assert_error(create(client, impersonating("READER")), 403, "forbidden")
    assert_error(create(client, impersonating("OTHER")), 403, "forbidden")
    response = create(client, impersonating("USER"))
    stored = world.stored(response.get_json()["metadata"]["id"]).metadata
    assert (stored.creator, stored.principal_creator) == (COMPUTE, PEOPLE["USER"].subject)


def test_without_a_certificate_nobody_is_anybody_else(client: FlaskClient, world: World) -> None:
    """The headers of a user are not believed, from whatever address."""
    claim = {"X-Principal": principal({"actor": "root", "organizationId": OTHER_ORGANIZATION}), "X-Impersonate": "true"}
    response = create(client, PEOPLE["USER"].headers | claim)

    assert response.status_code == 201
    stored = world.stored(response.get_json()["metadata"]["id"]).metadata
    assert (stored.principal_creator, stored.principal_organization_id) == (PEOPLE["USER"].subject, ORGANIZATION)
    assert_error(client.get(PATH, headers=claim), 401, "access_denied")


def test_a_service_without_rights_is_known_and_may_nothing(client: FlaskClient) -> None:
    its_headers = headers({"actor": PEOPLE["ADMIN"].subject}, common_name="unikorn-unknown")

    assert client.get("/api/version", headers=its_headers).status_code == 200
    assert_error(create(client, its_headers), 403, "forbidden")
    assert_error(create(client, impersonating("ADMIN", "unikorn-unknown")), 403, "forbidden")
