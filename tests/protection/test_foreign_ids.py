"""Another tenant's ID wherever a request takes one: what that leads to, and how little is told (contract 3.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.api import world as names
from tests.api.conftest import checked_client
from tests.api.world import World
from tests.protection import tenants
from tests.protection.matrix import (
    ENDPOINTS,
    FOREIGN_SERVER,
    HOME_SERVER,
    LIST_V1,
    ONE_V1,
    ONE_V2,
    V1,
    V2,
    Endpoint,
    bearer,
    impersonating,
)
from tests.protection.tenants import assert_refused, state, store_server, without_trace

PATH, BODY, QUERY = "path", "body", "query"


@dataclass(frozen=True)
class Reference:
    """A place in a request for an ID; a caller with every right in its own project puts a foreign one there.

    ``status`` is the answer to it, ``missing`` that to an ID that nothing has. Where both are 404 the two answers must
    not differ. A success means that the contract has the ID ignored there.
    """

    endpoint: Endpoint
    where: str
    name: str
    foreign: str
    status: int
    missing: int

    def __str__(self) -> str:
        return f"{self.endpoint} {self.where} {self.name}"


_GENERAL = {
    "organizationID": names.OTHER_ORGANIZATION,
    "projectID": names.OTHER_PROJECT,
    "identityID": tenants.FOREIGN_IDENTITY,
    "serverID": FOREIGN_SERVER,
}
_SCOPE_ONLY = [("GET", ONE_V1), ("DELETE", ONE_V1)]
"""Requests of v1 that ignore the identity of the path (contract 1.4)."""


def _in_path(endpoint: Endpoint) -> Iterator[Reference]:
    for name, foreign in _GENERAL.items():
        if f":{name}>" not in endpoint.rule:
            continue
        status, missing = 404, 404
        if name in ("organizationID", "projectID"):
            status, missing = 403, 403
        elif name == "identityID" and endpoint.key in _SCOPE_ONLY:
            status = missing = endpoint.success
        elif name == "serverID" and endpoint.rule.startswith(V2):
            status = 403
        yield Reference(endpoint, PATH, name, foreign, status, missing)


_IN_BODIES: Mapping[tuple[str, str], Mapping[str, tuple[str, int, int]]] = {
    ("POST", V2): {
        "spec.networkId": (names.OTHER_NETWORK, 403, 404),
        "spec.imageId": (names.FOREIGN_IMAGE, 404, 404),
        "spec.sshCertificateAuthorityId": (tenants.FOREIGN_AUTHORITY, 403, 404),
        "spec.networking.securityGroups": (tenants.FOREIGN_GROUP, 403, 404),
    },
    ("PUT", ONE_V2): {
        "spec.imageId": (names.FOREIGN_IMAGE, 404, 404),
        "spec.networking.securityGroups": (tenants.FOREIGN_GROUP, 403, 404),
    },
    ("POST", V1): {
        "spec.networks.id": (names.OTHER_NETWORK, 404, 404),
        "spec.imageId": (names.FOREIGN_IMAGE, 404, 404),
        # Neither existence nor scope of groups is checked (contract 1.4).
        "spec.securityGroups.id": (tenants.FOREIGN_GROUP, 201, 201),
    },
    ("PUT", ONE_V1): {
        "spec.networks.id": (names.OTHER_NETWORK, 404, 404),
        # The image of a body is ignored, whatever it is (contract 1.4).
        "spec.imageId": (names.FOREIGN_IMAGE, 202, 202),
        "spec.securityGroups.id": (tenants.FOREIGN_GROUP, 202, 202),
    },
}
_FLAVORS = "spec.flavorId"
"""Flavors are the region's and nobody's own; nor is a host, which only names of hosts are compared with."""

_FILTERS = {
    "organizationID": names.OTHER_ORGANIZATION,
    "projectID": names.OTHER_PROJECT,
    "networkID": names.OTHER_NETWORK,
}


def _references() -> Iterator[Reference]:
    for endpoint in ENDPOINTS:
        if endpoint.variant:
            continue
        yield from _in_path(endpoint)
        for name, (foreign, status, missing) in _IN_BODIES.get(endpoint.key, {}).items():
            yield Reference(endpoint, BODY, name, foreign, status, missing)


REFERENCES = tuple(_references())


@pytest.fixture
def region(world: World) -> World:
    tenants.store_foreign_references(world)
    return world


@pytest.fixture
def client(app: Flask, region: World) -> FlaskClient:
    return checked_client(app)


def path_with(reference: Reference, id_: str) -> str:
    if reference.where != PATH:
        return reference.endpoint.path
    own = reference.endpoint.rule.replace(f"<{_converter(reference.name)}:{reference.name}>", id_)
    return Endpoint("GET", own, 200).path


def _converter(name: str) -> str:
    return name.replace("ID", "_id")


def body_with(reference: Reference, id_: str) -> Mapping[str, Any] | None:
    if reference.where != BODY:
        return reference.endpoint.body_number(0)
    body = deepcopy(dict(reference.endpoint.body_number(0) or {}))
    spec = body["spec"]
    if reference.name == "spec.networks.id":
        spec["networks"] = [{"id": id_}]
    elif reference.name == "spec.securityGroups.id":
        spec["securityGroups"] = [{"id": id_}]
    elif reference.name == "spec.networking.securityGroups":
        spec["networking"] = {"securityGroups": [id_]}
    else:
        spec[reference.name.removeprefix("spec.")] = id_
    return body


def send(client: FlaskClient, reference: Reference, id_: str, headers: Mapping[str, str]) -> Any:
    return client.open(
        path_with(reference, id_),
        method=reference.endpoint.method,
        headers=dict(headers),
        json=body_with(reference, id_),
    )


WHO = {"a user": bearer("project administrator"), "a service as it": impersonating("project administrator")}


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("reference", [one for one in REFERENCES if one.endpoint.key != ("GET", LIST_V1)], ids=str)
def test_a_foreign_id_is_refused_and_nothing_is_told(
    client: FlaskClient, region: World, reference: Reference, who: str
) -> None:
    before = state(region)
    answers = {}
    for id_, status in ((reference.foreign, reference.status), (tenants.NOBODYS, reference.missing)):
        region.cloud.calls.clear()
        response = send(client, reference, id_, WHO[who])
        assert response.status_code == status, f"{reference}: {response.text}"
        if status >= 400:
            assert_refused(response, status, path_with(reference, id_), body_with(reference, id_))
            assert state(region) == before
            answers[id_] = (without_trace(response), list(region.cloud.calls))
        elif reference.endpoint.method == "DELETE":
            store_server(region, HOME_SERVER)
    if answers and reference.status == reference.missing:
        assert answers[reference.foreign] == answers[tenants.NOBODYS]


def test_a_service_cannot_find_out_which_organizations_exist(client: FlaskClient) -> None:
    path = Endpoint("GET", ONE_V1, 200).path
    refused = [
        client.get(path.replace(names.ORGANIZATION, id_), headers=impersonating("project administrator"))
        for id_ in (names.OTHER_ORGANIZATION, tenants.NOBODYS)
    ]

    if [response.status_code for response in refused] != [403, 403]:
        pytest.fail("not even refused")
    assert without_trace(refused[0]) == without_trace(refused[1])


def test_a_list_of_v1_is_of_an_organization_of_ones_own(client: FlaskClient) -> None:
    path = LIST_V1.replace("<organization_id:organizationID>", "{}")
    refused = [
        client.get(path.format(id_), headers=bearer("organization administrator"))
        for id_ in (names.OTHER_ORGANIZATION, tenants.NOBODYS)
    ]

    assert_refused(refused[0], 403, path.format(names.OTHER_ORGANIZATION))
    assert without_trace(refused[0]) == without_trace(refused[1])


@pytest.mark.parametrize("endpoint", [one for one in ENDPOINTS if one.rule.startswith(ONE_V2)], ids=str)
def test_a_refusal_is_the_same_for_an_own_and_a_foreign_server(client: FlaskClient, endpoint: Endpoint) -> None:
    refused = {}
    for id_ in (HOME_SERVER, FOREIGN_SERVER):
        path = endpoint.path.replace(HOME_SERVER, id_)
        response = client.open(path, method=endpoint.method, headers=bearer("nobody"), json=endpoint.body)
        assert_refused(response, 403, path, endpoint.body)
        refused[id_] = without_trace(response)

    assert refused[HOME_SERVER] == refused[FOREIGN_SERVER]


def test_the_names_on_a_foreign_network_cannot_be_tried_out(client: FlaskClient) -> None:
    def create(name: str, who: str) -> Any:
        body = names.create_body(name, networkId=names.OTHER_NETWORK)
        return client.post(V2, json=body, headers=bearer(who))

    assert create("taken", "user of another organization").status_code == 201
    refused = [create(name, "project administrator") for name in ("taken", "free")]

    assert [response.status_code for response in refused] == [403, 403]
    assert without_trace(refused[0]) == without_trace(refused[1])


@pytest.mark.parametrize(
    ("field", "foreign"),
    [
        ("sshCertificateAuthorityId", tenants.FOREIGN_AUTHORITY),
        ("networking", {"securityGroups": [tenants.FOREIGN_GROUP]}),
    ],
)
def test_what_one_can_read_in_both_tenancies_is_not_carried_from_one_to_the_other(
    client: FlaskClient, region: World, field: str, foreign: Any
) -> None:
    before = state(region)
    body = names.create_body(**{field: foreign})
    response = client.post(V2, json=body, headers=bearer("user in both organizations"))

    assert_refused(response, 422, V2, body)
    assert state(region) == before


def test_an_own_server_is_not_found_under_another_tenants_path(client: FlaskClient) -> None:
    path = Endpoint("GET", ONE_V1, 200).path
    path = path.replace(names.ORGANIZATION, names.OTHER_ORGANIZATION).replace(names.PROJECT, names.OTHER_PROJECT)
    headers = bearer("user in both organizations")

    assert client.get(path, headers=headers).status_code == 404
    own = path.replace(HOME_SERVER, FOREIGN_SERVER)
    assert client.get(own, headers=headers).status_code == 200


@pytest.mark.parametrize("name", _FILTERS)
@pytest.mark.parametrize("who", WHO)
def test_a_filter_shows_nothing_of_another_tenant(client: FlaskClient, name: str, who: str) -> None:
    own = {"organizationID": names.ORGANIZATION, "projectID": names.PROJECT, "networkID": names.NETWORK}[name]

    def ids(*values: str) -> set[str]:
        response = client.get(V2, query_string={name: list(values)}, headers=WHO[who])
        assert response.status_code == 200
        return {item["metadata"]["id"] for item in response.get_json()}

    assert ids(_FILTERS[name]) == ids(tenants.NOBODYS) == set()
    assert ids(own, _FILTERS[name]) == ids(own) == {HOME_SERVER}


def test_every_place_for_an_id_is_tried(app: Flask) -> None:
    """Of the application's own OpenAPI document: a new field that takes an ID must come into the table."""
    document = orjson.loads(app.test_client().get("/openapi.json").data)
    asked = set(_places(document))
    tried = {(*reference.endpoint.key, reference.where, reference.name) for reference in REFERENCES}
    tried |= {("GET", V2, QUERY, name) for name in _FILTERS}
    # A region and a flavor are nobody's.
    tried.add(("GET", V2, QUERY, "regionID"))
    tried |= {(*key, BODY, _FLAVORS) for key in _IN_BODIES}

    assert asked == tried


def _places(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    rules = {_as_openapi(endpoint.rule): endpoint.rule for endpoint in ENDPOINTS}
    for path, operations in document["paths"].items():
        shared = operations.get("parameters", [])
        for method, operation in operations.items():
            if method == "parameters":
                continue
            key = method.upper(), rules[path]
            for parameter in (*shared, *operation.get("parameters", [])):
                if parameter["name"].endswith("ID"):
                    yield (*key, parameter["in"], parameter["name"])
            if "requestBody" in operation:
                schema = operation["requestBody"]["content"]["application/json"]["schema"]
                yield from ((*key, BODY, name) for name in _ids_in(document, schema, ""))


def _as_openapi(rule: str) -> str:
    for name in _GENERAL:
        rule = rule.replace(f"<{_converter(name)}:{name}>", f"{{{name}}}")
    return rule


def _ids_in(document: Mapping[str, Any], schema: Mapping[str, Any], where: str) -> Iterator[str]:
    for part in schema.get("allOf", ()):
        yield from _ids_in(document, part, where)
    schema = _resolved(document, schema)
    if "items" in schema:
        yield from _ids_in(document, schema["items"], where)
    for name, member in schema.get("properties", {}).items():
        its = f"{where}.{name}".lstrip(".")
        is_id = name == "id" or name.endswith(("Id", "ID", "Ids", "IDs")) or member.get("format") == "uuid"
        if is_id or (name == "securityGroups" and "properties" not in _resolved(document, member.get("items", {}))):
            yield its
        else:
            yield from _ids_in(document, member, its)


def _resolved(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in schema:
        return schema
    found: Mapping[str, Any] = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return found


def test_the_number_of_foreign_ids(record_testsuite_property: Callable[[str, object], None]) -> None:
    record_testsuite_property("protection matrix, places for a foreign ID", len(REFERENCES) + len(_FILTERS))

    assert len(REFERENCES) > 50
