"""What v1's use cases do and HTTP does not show."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from server_api.servers.errors import Conflict, NotFound, Unprocessable
from server_api.servers.model import Server
from server_api.servers.ports import Missing, Refused
from server_api.servers.v1.lifecycle import LifecycleV1
from server_api.servers.v1.requests import ServerWrite
from server_api.servers.v1.scope import Scope
from tests.doubles.caller import Check, StubCaller
from tests.doubles.clock import FixedClock
from tests.doubles.directory import InMemoryDirectory
from tests.doubles.store import InMemoryServerStore
from tests.doubles.tenancy import OneProjectCloud
from tests.unit.servers.builders import (
    FLAVOR,
    IDENTITY,
    IMAGE,
    NAME,
    NETWORK,
    ORGANIZATION,
    PROJECT,
    SERVER,
    identity,
    image,
    network,
    region,
    server,
    spec,
)

SCOPE = Scope(ORGANIZATION, PROJECT, IDENTITY)
REQUEST = ServerWrite(name=NAME, flavor_id=FLAVOR, image_id=IMAGE, network_id=NETWORK)
DIGITS = [UUID(f"{digit}bcdef01-2345-4678-9abc-def012345678") for digit in (0, 9)]
LETTER = UUID("abcdef01-2345-4678-9abc-def012345678")


class World:
    """Everything that a server of v1 stands on, and the IDs that will be drawn."""

    def __init__(self, *stored: Server, ids: tuple[UUID, ...] = (LETTER,)) -> None:
        self.store = InMemoryServerStore(*stored)
        self.directory = InMemoryDirectory(identity(), network(), region())
        self.cloud = OneProjectCloud()
        self.cloud.offers.exported_images.append(image())
        drawn = iter(ids)
        self.lifecycle = LifecycleV1(self.store, self.directory, self.cloud, FixedClock(), lambda: next(drawn))


def test_w03_ids_are_drawn_until_one_begins_with_a_letter() -> None:
    world = World(ids=(*DIGITS, LETTER))

    assert world.lifecycle.create(StubCaller(), SCOPE, REQUEST).id == str(LETTER)


def test_an_id_that_is_taken_overwrites_nothing() -> None:
    world = World(server(server_id=str(LETTER)))

    with pytest.raises(Conflict):
        world.lifecycle.create(StubCaller(), SCOPE, REQUEST)
    assert world.store.writes == []


def test_the_callers_principal_is_recorded_beside_the_subject() -> None:
    world = World(server())
    created = world.lifecycle.create(StubCaller("service", "alice"), SCOPE, REQUEST).metadata
    assert (created.creator, created.principal_creator) == ("service", "alice")

    updated = world.lifecycle.update(StubCaller("service", "bob"), SCOPE, SERVER, REQUEST).metadata
    assert (updated.creator, updated.principal_creator) == ("alice", "alice-herself")
    assert (updated.modifier, updated.principal_modifier) == ("service", "bob")


def test_w13_an_update_asks_for_the_right_to_create_and_for_nothing_else() -> None:
    caller = StubCaller()

    World(server()).lifecycle.update(caller, SCOPE, SERVER, REQUEST)

    assert caller.checks == [Check("region:servers", "create", ORGANIZATION, PROJECT)]


def test_w07_an_update_does_not_ask_the_cloud() -> None:
    world = World(server())

    world.lifecycle.update(StubCaller(), SCOPE, SERVER, REQUEST)

    assert world.cloud.journal == []
    assert world.store.stored(SERVER).spec.image_id == IMAGE


def test_networks_beyond_the_first_stay() -> None:
    first, second = spec().networks[0], network(id="another")
    stored = server(spec(networks=(first, type(first)(second.id))), api_version=None, network_id=None)
    world = World(stored)

    world.lifecycle.update(StubCaller(), SCOPE, SERVER, REQUEST)

    assert [attached.id for attached in world.store.stored(SERVER).spec.networks] == [NETWORK, "another"]


Use = Callable[[LifecycleV1], object]

USES: dict[str, Use] = {
    "create": lambda lifecycle: lifecycle.create(StubCaller(), SCOPE, REQUEST),
    "update": lambda lifecycle: lifecycle.update(StubCaller(), SCOPE, SERVER, REQUEST),
    "delete": lambda lifecycle: lifecycle.delete(StubCaller(), SCOPE, SERVER),
}


@pytest.mark.parametrize("method", ["update", "delete"])
def test_a_server_that_vanishes_meanwhile_is_not_found(method: str) -> None:
    world = World(server())
    world.store.fail(method, Missing("kubernetes", "servers not found"))

    with pytest.raises(NotFound):
        USES[method](world.lifecycle)


@pytest.mark.parametrize("method", ["create", "update"])
def test_what_the_stored_schema_refuses_is_unprocessable(method: str) -> None:
    world = World(server())
    world.store.fail(method, Refused("kubernetes", "spec.networks: no"))

    with pytest.raises(Unprocessable, match=r"spec\.networks: no"):
        USES[method](world.lifecycle)
