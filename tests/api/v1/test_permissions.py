"""Who may do what in v1 (contract 5.4): one right each, in the scope of the path, and no other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml
from flask.testing import FlaskClient

from server_api.access.acl import OPERATIONS
from server_api.access.digests import token_digest
from server_api.access.source import CallerAuthenticator
from server_api.access.token_file import TokenFile
from server_api.http.application import build_app
from server_api.http.services import Services
from server_api.settings import Settings
from tests.api.conftest import Api, checked_client
from tests.api.errors import assert_error
from tests.api.v1.legacy import LIST, SERVERS, body, created, id_of
from tests.api.world import ORGANIZATION, OTHER_ORGANIZATION, PROJECT, SECOND_PROJECT, World
from tests.api.world import SERVERS as PERMISSION

RIGHTS = {
    ("GET", ""): "read",
    ("PUT", ""): "create",
    ("DELETE", ""): "delete",
    ("POST", "/start"): "update",
    ("POST", "/stop"): "update",
    ("POST", "/softreboot"): "update",
    ("POST", "/hardreboot"): "update",
    ("GET", "/consoleoutput"): "read",
    ("GET", "/consolesessions"): "read",
}
"""The right that each operation on one server needs."""


def acl(scope: str, operations: list[str]) -> dict[str, Any]:
    granted = [{"name": PERMISSION, "operations": operations}]
    # What is granted beside the scope must not count.
    beside = {"id": SECOND_PROJECT, "endpoints": [{"name": PERMISSION, "operations": sorted(OPERATIONS)}]}
    return {
        "global": {"global": granted},
        "organization": {"organizations": [{"id": ORGANIZATION, "endpoints": granted, "projects": [beside]}]},
        "project": {
            "organizations": [{"id": ORGANIZATION, "projects": [{"id": PROJECT, "endpoints": granted}, beside]}]
        },
        "elsewhere": {"organizations": [{"id": OTHER_ORGANIZATION, "endpoints": granted, "projects": [beside]}]},
    }[scope]


@pytest.fixture
def call(services: Services, settings: Settings, tmp_path: Any) -> Any:
    """Return what calls the API with rights given as a scope and operations."""

    def call(method: str, path: str, scope: str, operations: list[str]) -> Any:
        tokens = tmp_path / "tokens.yaml"
        entry = {"sha256": token_digest("t"), "subject": "t", "accountType": "user", "acl": acl(scope, operations)}
        tokens.write_text(yaml.safe_dump({"tokens": [entry]}))
        tokens.chmod(0o600)
        authenticator = CallerAuthenticator(TokenFile(tokens))
        client = checked_client(build_app(replace(services, authenticator=authenticator), settings))
        return client.open(path, method=method, headers={"Authorization": "Bearer t"}, json=body())

    return call


@pytest.mark.parametrize(("method", "suffix"), RIGHTS)
@pytest.mark.parametrize("scope", ["global", "organization", "project"])
def test_w13_w14_one_right_is_enough_and_no_other_will_do(
    call: Any, user: Api, world: World, method: str, suffix: str, scope: str
) -> None:
    path = created(user)
    world.cloud.hold(id_of(path), "web-0")
    right = RIGHTS[method, suffix]
    assert_error(call(method, path + suffix, scope, sorted(OPERATIONS - {right})), 403, "forbidden")
    assert_error(call(method, path + suffix, "elsewhere", sorted(OPERATIONS)), 403, "forbidden")
    assert call(method, path + suffix, scope, [right]).status_code in {200, 202}


@pytest.mark.parametrize("scope", ["global", "organization", "project"])
def test_create_needs_the_right_to_create_and_no_other(call: Any, scope: str) -> None:
    assert_error(call("POST", SERVERS, scope, sorted(OPERATIONS - {"create"})), 403, "forbidden")
    assert call("POST", SERVERS, scope, ["create"]).status_code == 201


@pytest.mark.parametrize(("scope", "status"), [("global", 200), ("organization", 200), ("project", 403)])
def test_list_needs_the_right_to_read_in_the_organization(call: Any, scope: str, status: int) -> None:
    assert call("GET", LIST, scope, ["read"]).status_code == status
    assert_error(call("GET", LIST, scope, sorted(OPERATIONS - {"read"})), 403, "forbidden")


def test_rights_are_asked_for_before_anything_is_looked_up(client: FlaskClient, world: World) -> None:
    nobody = Api(client, "NOBODY")
    for path in (LIST, f"{SERVERS}/{ORGANIZATION}"):
        assert_error(nobody.get(path), 403, "forbidden")
    assert_error(nobody.post(SERVERS, body(networks=[{"id": "x"}])), 403, "forbidden")
