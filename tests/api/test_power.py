"""Power verbs (contract 6.8 and 9.5)."""

from __future__ import annotations

import pytest

from server_api.servers.ports import Missing, StateConflict, TimedOut, Unavailable
from tests.api.conftest import Api
from tests.api.errors import assert_error
from tests.api.world import NOWHERE, World, create_body

SERVERS = "/api/v2/servers"
METHODS = {"start": "start", "stop": "stop", "softreboot": "soft_reboot", "hardreboot": "hard_reboot"}

every_verb = pytest.mark.parametrize("verb", METHODS)


@pytest.fixture
def server_id(user: Api, world: World) -> str:
    created = user.create(create_body())
    world.cloud.hold(created, "web-0")
    world.cloud.calls.clear()
    return created


@every_verb
def test_v01_missing(user: Api, verb: str) -> None:
    assert_error(user.post(f"{SERVERS}/{NOWHERE}/{verb}"), 404, "not_found")


@pytest.mark.parametrize(
    ("verb", "phase"),
    [
        pytest.param("start", "Pending", id="v02"),
        pytest.param("stop", "Stopping", id="v03"),
        pytest.param("softreboot", "Running", id="v07-soft"),
        pytest.param("hardreboot", "Running", id="v07-hard"),
    ],
)
def test_v02_v03_v07_verb_reaches_our_instance(user: Api, world: World, server_id: str, verb: str, phase: str) -> None:
    world.set_status(server_id, phase="Running")
    world.cloud.hold(NOWHERE, "web-0")  # A stranger of the same name.
    response = user.post(f"{SERVERS}/{server_id}/{verb}")
    assert (response.status_code, response.data) == (202, b"")
    assert "Content-Type" not in response.headers
    own = next(instance for instance in world.cloud.held.values() if instance.server_id == server_id)
    assert world.cloud.calls[-1] == f"{METHODS[verb]} {own.id}"
    assert world.stored(server_id).status.phase == phase


@every_verb
def test_v04_state_does_not_allow_it(user: Api, world: World, server_id: str, verb: str) -> None:
    world.cloud.fail(METHODS[verb], StateConflict("nova", "Cannot 'start' instance 42 while it is in vm_state active"))
    assert "42" not in assert_error(user.post(f"{SERVERS}/{server_id}/{verb}"), 400, "invalid_request")


@every_verb
def test_v05_no_instance(user: Api, world: World, server_id: str, verb: str) -> None:
    world.cloud.held.clear()
    assert_error(user.post(f"{SERVERS}/{server_id}/{verb}"), 404, "not_found")


@every_verb
def test_v05_instance_vanishes_meanwhile(user: Api, world: World, server_id: str, verb: str) -> None:
    world.cloud.fail(METHODS[verb], Missing("nova", "gone"))
    assert_error(user.post(f"{SERVERS}/{server_id}/{verb}"), 404, "not_found")


@every_verb
def test_v06_b37_cloud_fails(user: Api, world: World, server_id: str, verb: str) -> None:
    """Design section 4 wins over the contract's 500: a dependency's failure is told apart from ours."""
    world.cloud.fail(METHODS[verb], Unavailable("nova", "500 from 10.0.0.1", retry_after="7"))
    response = user.post(f"{SERVERS}/{server_id}/{verb}")
    assert "10.0.0.1" not in assert_error(response, 502, "server_error")
    assert response.headers["Retry-After"] == "7"
    world.cloud.fail(METHODS[verb], TimedOut("nova", "read timed out"))
    assert_error(user.post(f"{SERVERS}/{server_id}/{verb}"), 504, "server_error")


@every_verb
def test_right_to_read_only(reader: Api, world: World, server_id: str, verb: str) -> None:
    assert_error(reader.post(f"{SERVERS}/{server_id}/{verb}"), 403, "forbidden")
    assert world.cloud.calls == []
