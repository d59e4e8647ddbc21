"""The private key of a server (contract 1.9 row 19, V10 to V12)."""

from __future__ import annotations

from typing import Any

import pytest

from server_api.servers.errors import Forbidden, NotFound
from server_api.servers.model import Server
from server_api.servers.ports import Unavailable
from server_api.servers.ssh_key import SSHKeys
from server_api.servers.surroundings import Identity, IdentityCredentials
from tests.doubles.caller import Check, StubCaller
from tests.doubles.directory import InMemoryCredentials, InMemoryDirectory
from tests.doubles.store import InMemoryServerStore
from tests.unit.servers.builders import (
    AUTHORITY,
    IDENTITY,
    ORGANIZATION,
    OTHER_ORGANIZATION,
    OTHER_PROJECT,
    PROJECT,
    SERVER,
    identity,
    server,
    spec,
)

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n-----END OPENSSH PRIVATE KEY-----\n"


class World:
    """A server whose identity has a key pair."""

    def __init__(self, stored: Server | None = None, key: str | None = KEY, **of_identity: Any) -> None:
        self.store = InMemoryServerStore(stored or server())
        self.directory = InMemoryDirectory(identity(**of_identity))
        self.credentials: dict[str, IdentityCredentials] = {
            IDENTITY: IdentityCredentials("a-user", "a-password", "a-project", "a-key-pair", key)
        }

    def key(self, caller: StubCaller | None = None) -> str:
        keys = SSHKeys(self.store, self.directory, InMemoryCredentials(self.credentials))
        return keys.private_key(caller or StubCaller(), SERVER)


@pytest.mark.parametrize("mode", ["identityKeypair", None], ids=["v10", "a server from before the modes"])
def test_v10_the_key_is_returned_as_it_is_stored(mode: str | None) -> None:
    assert World(server(spec(ssh_injection=mode))).key() == KEY


def test_reading_the_server_is_right_enough() -> None:
    caller = StubCaller()

    World().key(caller)

    assert caller.checks == [Check("region:servers", "read", ORGANIZATION, PROJECT)]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"ssh_injection": "ca", "ssh_certificate_authority_id": AUTHORITY}, id="ca"),
        pytest.param({"ssh_injection": None, "ssh_certificate_authority_id": AUTHORITY}, id="legacy with a CA"),
        pytest.param({"ssh_injection": "none"}, id="none"),
    ],
)
def test_v11_a_server_created_without_the_key_pair_has_no_key_and_none_is_looked_for(changes: dict[str, Any]) -> None:
    world = World(server(spec(**changes)))

    with pytest.raises(NotFound, match="created without"):
        world.key()
    assert world.directory.calls == []


@pytest.mark.parametrize("key", ["", None])
def test_v12_an_identity_without_a_stored_key_has_none(key: str | None) -> None:
    with pytest.raises(NotFound, match="no private key"):
        World(key=key).key()


@pytest.mark.parametrize(
    "owner",
    [
        {"organization_id": OTHER_ORGANIZATION},
        {"project_id": OTHER_PROJECT},
        {"organization_id": None},
        {"project_id": None},
    ],
    ids=lambda owner: next(iter(owner)),
)
def test_the_key_of_an_identity_that_is_not_the_tenants_is_not_given(owner: dict[str, Any]) -> None:
    with pytest.raises(NotFound):
        World(**owner).key()


def test_a_server_whose_identity_is_gone_has_no_key() -> None:
    world = World()
    world.directory.remove(identity())

    with pytest.raises(NotFound):
        world.key()


def test_a_server_whose_identity_has_no_credentials_has_no_key() -> None:
    world = World()
    world.credentials.clear()

    with pytest.raises(NotFound):
        world.key()


def test_a_server_without_an_identity_has_no_key() -> None:
    with pytest.raises(NotFound):
        World(server(identity_id=None)).key()


def test_no_server_no_key() -> None:
    with pytest.raises(NotFound, match="does not exist"):
        World(server(server_id="another")).key()


def test_a_server_of_another_generation_is_not_found() -> None:
    with pytest.raises(NotFound, match="version of the API"):
        World(server(api_version=None)).key()


def test_the_right_to_read_comes_before_whether_there_is_a_key() -> None:
    world = World(server(spec(ssh_injection="none")))

    with pytest.raises(Forbidden):
        world.key(StubCaller(refused=["region:servers read"]))


def test_a_store_that_is_down_is_not_a_missing_key() -> None:
    world = World()
    world.directory.fail(Identity, Unavailable("kubernetes", "503"))

    with pytest.raises(Unavailable):
        world.key()
