"""Every endpoint and every kind of caller, with callers from the identity service and services with certificates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from server_api.access.digests import token_digest
from server_api.http.services import Services
from server_api.sandbox.identity_service import StandInIdentityService
from server_api.settings import Settings
from tests.api.identity import app_over
from tests.api.service_caller import COMPUTE
from tests.api.world import (
    AUTHORITY,
    NETWORK,
    ORGANIZATION,
    OTHER_NETWORK,
    OTHER_ORGANIZATION,
    OTHER_PROJECT,
    PROJECT,
    SECOND_PROJECT,
    SECURITY_GROUP,
    World,
    create_body,
)
from tests.doubles.identity import known, person
from tests.protection.matrix import (
    CALLERS,
    ENDPOINTS,
    EXPIRED,
    GATE,
    NAME,
    PEOPLE,
    SERVICE,
    V2,
    path,
    subject,
    token,
)


@pytest.fixture(scope="module")
def identity() -> Iterator[StandInIdentityService]:
    document = known(
        *(person(token(name), rights.document(), subject(name)) for name, rights in PEOPLE.items()),
        person(EXPIRED, PEOPLE["user"].document()),
        services={COMPUTE: SERVICE.document()},
        projects={ORGANIZATION: [PROJECT, SECOND_PROJECT], OTHER_ORGANIZATION: [OTHER_PROJECT]},
        revoked=[token_digest(EXPIRED)],
    )
    with StandInIdentityService(document) as server:
        yield server


@pytest.fixture
def app(identity: StandInIdentityService, services: Services, settings: Settings) -> Flask:
    return app_over(identity.url, services, settings)


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture
def server(client: FlaskClient, world: World) -> Callable[[], str]:
    """Return what makes sure of one server of PROJECT with its instance, whatever happened to it, and gives its ID."""
    headers = dict(CALLERS["global admin"].headers)

    def ensure() -> str:
        gates = [{"conditionType": GATE}]
        client.post(V2, json=create_body(name=NAME, providerCreateGates=gates), headers=headers)
        listed = client.get(V2, headers=headers).get_json()
        (server_id,) = [item["metadata"]["id"] for item in listed if item["metadata"]["name"] == NAME]
        for item in listed:
            if item["metadata"]["name"] != NAME:
                client.delete(f"{V2}/{item['metadata']['id']}", headers=headers)
        if not any(instance.server_id == server_id for instance in world.cloud.held.values()):
            world.cloud.hold(server_id, NAME)
        return str(server_id)

    return ensure


def entries(app: Flask) -> set[tuple[str, str]]:
    return {
        (method, rule.rule)
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }


def test_the_table_has_every_endpoint_and_no_other(app: Flask) -> None:
    assert entries(app) == ENDPOINTS.keys()


def test_the_matrix_has_a_size(record_testsuite_property: Callable[[str, object], None]) -> None:
    record_testsuite_property("protection matrix, endpoints", len(ENDPOINTS))
    record_testsuite_property("protection matrix, callers", len(CALLERS))
    assert len(ENDPOINTS) * len(CALLERS) > 600


@pytest.mark.parametrize(("method", "rule"), ENDPOINTS, ids=lambda part: part.replace("/", " ").strip())
def test_each_caller_gets_what_the_table_says(
    client: FlaskClient, server: Callable[[], str], method: str, rule: str
) -> None:
    endpoint = ENDPOINTS[method, rule]
    wrong = []
    for name, caller in CALLERS.items():
        where = path(rule, server())
        answer = client.open(where, method=method, json=endpoint.body, headers=dict(caller.headers))
        if answer.status_code != caller.expected(endpoint):
            wrong.append(f"{name}: {answer.status_code}, and not {caller.expected(endpoint)}: {answer.text[:200]}")

    assert not wrong, "\n".join(wrong)


def test_a_list_has_what_the_caller_may_read_and_nothing_else(client: FlaskClient, server: Callable[[], str]) -> None:
    server_id = server()
    for name, caller in CALLERS.items():
        if caller.refused is not None:
            continue
        listed = client.get(V2, headers=dict(caller.headers)).get_json()
        readable = caller.expected(ENDPOINTS["GET", f"{V2}/<server_id:serverID>"]) == 200
        assert [item["metadata"]["id"] for item in listed] == ([server_id] if readable else []), name


def test_a_refusal_names_nothing_of_the_tenant_it_protects(client: FlaskClient, server: Callable[[], str]) -> None:
    server_id = server()
    stranger = dict(CALLERS["user of another organization"].headers)
    secrets = (NAME, ORGANIZATION, PROJECT, subject("user"))
    for (method, rule), endpoint in ENDPOINTS.items():
        if endpoint.open or not endpoint.needs:
            continue
        answer: Any = client.open(path(rule, server_id), method=method, json=endpoint.body, headers=stranger)
        assert answer.status_code == 403, (method, rule)
        assert not [secret for secret in secrets if secret in answer.text], (method, rule, answer.text)


def test_what_another_tenant_has_is_refused_in_every_place_that_takes_an_id(
    client: FlaskClient, server: Callable[[], str]
) -> None:
    server()
    headers = dict(CALLERS["user of another organization"].headers)
    spec = create_body()["spec"]
    foreign = [
        {"networkId": NETWORK},
        {"networkId": OTHER_NETWORK, "networking": {"securityGroups": [SECURITY_GROUP]}},
        {"networkId": OTHER_NETWORK, "sshCertificateAuthorityId": AUTHORITY},
    ]
    for change in foreign:
        body = {"metadata": {"name": "intruder"}, "spec": spec | change}
        assert client.post(V2, json=body, headers=headers).status_code == 403, change
    for name, value in (("organizationID", ORGANIZATION), ("projectID", PROJECT), ("networkID", NETWORK)):
        answer = client.get(V2, query_string={name: value}, headers=headers)
        assert (answer.status_code, answer.get_json()) == (200, []), name


def test_callers_at_the_same_time_see_each_their_own(app: Flask, server: Callable[[], str]) -> None:
    """Across whatever is kept of tokens and rights from one request to the next."""
    server_id = server()
    names = ["user", "user of another project", "user of another organization", "reader"] * 10

    def listed(name: str) -> list[str]:
        answer = app.test_client().get(V2, headers=dict(CALLERS[name].headers))
        return [item["metadata"]["id"] for item in answer.get_json()]

    with ThreadPoolExecutor(8) as pool:
        found = list(zip(names, pool.map(listed, names), strict=True))

    assert found == [(name, [server_id] if name in ("user", "reader") else []) for name in names]
