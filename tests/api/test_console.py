"""Console output and sessions (contract 6.8 and 9.5)."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from server_api.servers.ports import Missing, StateConflict, TimedOut, Unavailable
from tests.api.conftest import Api
from tests.api.errors import assert_error
from tests.api.world import NOWHERE, World, create_body
from tests.doubles.cloud import CONSOLE_OUTPUT, CONSOLE_URL, ComputeDouble

SERVERS = "/api/v2/servers"
METHODS = {"consoleoutput": "console_output", "consolesessions": "console_url"}

both = pytest.mark.parametrize("verb", METHODS)


@pytest.fixture
def server_id(user: Api, world: World) -> str:
    created = user.create(create_body())
    world.cloud.hold(created, "web-0")
    world.cloud.calls.clear()
    return created


@pytest.fixture
def asked_for(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """The numbers of lines that the cloud was asked for."""
    asked: list[int | None] = []

    def console_output(_compute: ComputeDouble, _instance_id: str, lines: int | None) -> str:
        asked.append(lines)
        return "login:"

    monkeypatch.setattr(ComputeDouble, "console_output", console_output)
    return asked


def test_v08_session_is_opened_anew_by_every_request(reader: Api, world: World, server_id: str) -> None:
    for _ in range(2):
        response = reader.get(f"{SERVERS}/{server_id}/consolesessions")
        assert response.status_code == 200
        assert response.headers["Cache-Control"] == "no-store"
        assert response.get_json()["url"].startswith(CONSOLE_URL)
    assert [call.split()[0] for call in world.cloud.calls].count("console_url") == 2


def test_v09_output_of_our_instance(reader: Api, world: World, server_id: str) -> None:
    world.cloud.hold(NOWHERE, "web-0")  # A stranger of the same name.
    response = reader.get(f"{SERVERS}/{server_id}/consoleoutput")
    assert response.status_code == 200
    assert response.headers["Cache-Control"] == "no-store"
    assert response.get_json() == {"contents": CONSOLE_OUTPUT}
    own = next(instance for instance in world.cloud.held.values() if instance.server_id == server_id)
    assert world.cloud.calls[-1] == f"console_output {own.id}"


@pytest.mark.parametrize(
    ("query", "lines"),
    [("?length=50", 50), ("?length=1", 1), ("?length=100000", 100_000), ("?length=0", None), ("", None)],
)
def test_v09_length_is_passed_on(
    user: Api, server_id: str, asked_for: list[int | None], query: str, lines: int | None
) -> None:
    assert user.get(f"{SERVERS}/{server_id}/consoleoutput{query}").get_json() == {"contents": "login:"}
    assert asked_for == [lines]


@pytest.mark.parametrize(
    "value",
    [
        *("abc", "", "-1", "%2B1", "1.0", "1e3", "0x10", "1_0", "%201", "1%20", "1%0A", "true", "1,2"),
        *("100001", "9" * 5000, "٣", "%C2%B2", "%ff", "5&length=5"),
    ],
)
def test_t13_b59_length_is_plain_digits_within_bounds_before_authentication(
    client: FlaskClient, user: Api, server_id: str, asked_for: list[int | None], value: str
) -> None:
    path = f"{SERVERS}/{server_id}/consoleoutput?length={value}"
    for response in (user.get(path), client.get(path)):
        description = assert_error(response, 400, "invalid_request")
        assert len(description) < 200
    assert asked_for == []


@pytest.mark.parametrize("name", ["Length", "lines", "x"])
def test_unknown_parameter_is_told_to_the_authenticated_only(
    client: FlaskClient, user: Api, server_id: str, name: str
) -> None:
    path = f"{SERVERS}/{server_id}/consoleoutput?length=5&{name}=1"
    assert_error(client.get(path), 401, "access_denied")
    assert name in assert_error(user.get(path), 400, "invalid_request")


def test_t12_malformed_id_goes_before_malformed_length(client: FlaskClient) -> None:
    assert "serverID" in assert_error(client.get(f"{SERVERS}/x/consoleoutput?length=x"), 400, "invalid_request")


@both
def test_v01_missing(user: Api, verb: str) -> None:
    assert_error(user.get(f"{SERVERS}/{NOWHERE}/{verb}"), 404, "not_found")


@both
def test_server_of_another_organization(other: Api, world: World, server_id: str, verb: str) -> None:
    assert_error(other.get(f"{SERVERS}/{server_id}/{verb}"), 403, "forbidden")
    assert world.cloud.calls == []


@both
def test_console_refused_by_the_servers_state(user: Api, world: World, server_id: str, verb: str) -> None:
    world.cloud.fail(METHODS[verb], StateConflict("nova", "Cannot do 'console' while instance 42 is building"))
    assert "42" not in assert_error(user.get(f"{SERVERS}/{server_id}/{verb}"), 400, "invalid_request")


@both
def test_v05_no_instance(user: Api, world: World, server_id: str, verb: str) -> None:
    world.cloud.held.clear()
    assert_error(user.get(f"{SERVERS}/{server_id}/{verb}"), 404, "not_found")
    world.cloud.hold(server_id, "web-0")
    world.cloud.fail(METHODS[verb], Missing("nova", "gone"))
    assert_error(user.get(f"{SERVERS}/{server_id}/{verb}"), 404, "not_found")


@both
def test_v06_b37_cloud_fails(user: Api, world: World, server_id: str, verb: str) -> None:
    """Design section 4 wins over the contract's 500: a dependency's failure is told apart from ours."""
    world.cloud.fail(METHODS[verb], Unavailable("nova", "500 from 10.0.0.1", retry_after="7"))
    response = user.get(f"{SERVERS}/{server_id}/{verb}")
    assert "10.0.0.1" not in assert_error(response, 502, "server_error")
    assert response.headers["Retry-After"] == "7"
    world.cloud.fail(METHODS[verb], TimedOut("nova", "read timed out"))
    assert_error(user.get(f"{SERVERS}/{server_id}/{verb}"), 504, "server_error")
