"""The private key that opens a server (contract 1.9 row 19 and 9.5)."""

from __future__ import annotations

import pytest

from server_api.store import kinds, labels
from tests.api.conftest import Api
from tests.api.errors import assert_error
from tests.api.world import AUTHORITY, IDENTITY, NAMESPACE, NOWHERE, SECOND_PROJECT, World, create_body

SERVERS = "/api/v2/servers"
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nnot really\n-----END OPENSSH PRIVATE KEY-----\n"


def test_v10_key_is_returned_as_stored(reader: Api, user: Api, world: World) -> None:
    world.key_pair(KEY)
    response = reader.get(f"{SERVERS}/{user.create(create_body())}/sshkey")
    assert response.status_code == 200
    assert response.get_json() == {"privateKey": KEY}
    assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("spec", [{"sshInjection": "none"}, {"sshCertificateAuthorityId": AUTHORITY}])
def test_v11_server_without_the_key_pair(user: Api, world: World, spec: dict[str, str]) -> None:
    world.key_pair(KEY)
    assert_error(user.get(f"{SERVERS}/{user.create(create_body(**spec))}/sshkey"), 404, "not_found")


def test_v11_legacy_server_with_certificate_authority(user: Api, world: World) -> None:
    world.key_pair(KEY)
    world.bare_server(NOWHERE, sshCertificateAuthorityID=AUTHORITY)
    assert_error(user.get(f"{SERVERS}/{NOWHERE}/sshkey"), 404, "not_found")


def test_v12_identity_with_an_empty_key(user: Api, world: World) -> None:
    world.key_pair("")
    assert_error(user.get(f"{SERVERS}/{user.create(create_body())}/sshkey"), 404, "not_found")


def test_identity_without_credentials(user: Api) -> None:
    assert_error(user.get(f"{SERVERS}/{user.create(create_body())}/sshkey"), 404, "not_found")


def test_identity_of_another_project(user: Api, world: World) -> None:
    world.key_pair(KEY)
    server_id = user.create(create_body())
    stranger = {"metadata": {"labels": {labels.PROJECT: SECOND_PROJECT}}}
    world.client.patch(kinds.IDENTITY, NAMESPACE, IDENTITY, stranger)
    assert_error(user.get(f"{SERVERS}/{server_id}/sshkey"), 404, "not_found")


def test_missing_and_unreadable_servers(user: Api, other: Api, world: World) -> None:
    world.key_pair(KEY)
    assert_error(user.get(f"{SERVERS}/{NOWHERE}/sshkey"), 404, "not_found")
    assert_error(other.get(f"{SERVERS}/{user.create(create_body())}/sshkey"), 403, "forbidden")
