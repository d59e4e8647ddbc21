"""Power verbs and consoles of v1 (contract 6.8 and 9.7)."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from server_api.servers.ports import Missing, StateConflict, Unavailable
from server_api.store import kinds, labels
from tests.api.conftest import Api
from tests.api.errors import assert_error
from tests.api.v1.legacy import SERVERS, created, id_of, leave, servers
from tests.api.world import NOWHERE, ORGANIZATION, PROJECT, SECOND_PROJECT, World, create_body
from tests.doubles.cloud import CONSOLE_OUTPUT, CONSOLE_URL

METHODS = {"start": "start", "stop": "stop", "softreboot": "soft_reboot", "hardreboot": "hard_reboot"}

every_verb = pytest.mark.parametrize("verb", METHODS)
every_use = pytest.mark.parametrize(
    ("method", "verb", "call"),
    [
        *(("POST", verb, call) for verb, call in METHODS.items()),
        ("GET", "consoleoutput", "console_output"),
        ("GET", "consolesessions", "console_url"),
    ],
)


@pytest.fixture
def server(user: Api, world: World) -> str:
    path = created(user)
    world.cloud.hold(NOWHERE, "web-0")  # A stranger of the same name.
    world.cloud.hold(id_of(path), "web-0")
    world.cloud.calls.clear()
    return path


@every_verb
def test_verb_reaches_our_instance_and_leaves_its_phase(user: Api, world: World, server: str, verb: str) -> None:
    world.set_status(id_of(server), phase="Running")
    response = user.post(f"{server}/{verb}")
    assert (response.status_code, response.data) == (202, b"")
    assert "Content-Type" not in response.headers
    own = next(instance for instance in world.cloud.held.values() if instance.server_id == id_of(server))
    assert world.cloud.calls[-1] == f"{METHODS[verb]} {own.id}"
    phases = {"start": "Pending", "stop": "Stopping"}
    assert world.stored(id_of(server)).status.phase == phases.get(verb, "Running")


def test_verbs_ignore_what_is_sent(user: Api, server: str) -> None:
    for data, content_type in ((b"", None), (b"{", "application/json"), (b"x", "text/plain")):
        headers = {"Content-Type": content_type} if content_type else {}
        assert user.request("POST", f"{server}/stop", data=data, headers=headers).status_code == 202


def test_console(user: Api, server: str) -> None:
    output = user.get(f"{server}/consoleoutput")
    assert (output.status_code, output.get_json()) == (200, {"contents": CONSOLE_OUTPUT})
    assert user.get(f"{server}/consoleoutput?length=1").get_json() == {"contents": "login: "}
    session = user.get(f"{server}/consolesessions")
    assert session.status_code == 200
    assert session.get_json()["url"].startswith(CONSOLE_URL)
    assert {answer.headers["Cache-Control"] for answer in (output, session)} == {"no-store"}


@every_use
def test_legacy_servers_and_those_of_v2_are_served_alike(
    user: Api, world: World, method: str, verb: str, call: str
) -> None:
    for path, name in ((leave(world), "old"), (f"{SERVERS}/{user.create(create_body())}", "web-0")):
        world.cloud.hold(id_of(path), name)
        assert user.request(method, f"{path}/{verb}").status_code in {200, 202}
        assert world.cloud.calls[-1].startswith(call)


@every_use
def test_w14_rights(client: FlaskClient, server: str, world: World, method: str, verb: str, call: str) -> None:
    """Power asks for update and consoles for read; neither asks for the other."""
    needed, other = ("READER", "UPDATER") if method == "GET" else ("UPDATER", "READER")
    assert_error(Api(client, other).request(method, f"{server}/{verb}"), 403, "forbidden")
    assert world.cloud.calls == []
    assert Api(client, needed).request(method, f"{server}/{verb}").status_code in {200, 202}


@every_use
def test_identity_of_the_path_has_to_be_the_projects(
    user: Api, world: World, server: str, method: str, verb: str, call: str
) -> None:
    placed = {labels.ORGANIZATION: ORGANIZATION, labels.PROJECT: SECOND_PROJECT}
    world.add(kinds.IDENTITY, "40000000-0000-4000-8000-000000000002", placed, {"provider": "openstack"})
    for identity in (NOWHERE, "40000000-0000-4000-8000-000000000002"):
        path = f"{servers(identity=identity)}/{id_of(server)}/{verb}"
        assert "identity" in assert_error(user.request(method, path), 404, "not_found")


def test_another_identity_of_the_project_does(user: Api, world: World, server: str) -> None:
    """The server's own identity is acted with: the path's is not compared with it (contract 1.4)."""
    placed = {labels.ORGANIZATION: ORGANIZATION, labels.PROJECT: PROJECT}
    world.add(kinds.IDENTITY, "40000000-0000-4000-8000-000000000002", placed, {"provider": "openstack"})
    path = f"{servers(identity='40000000-0000-4000-8000-000000000002')}/{id_of(server)}"
    assert user.post(f"{path}/start").status_code == 202


@every_use
def test_failures_of_the_cloud(user: Api, world: World, server: str, method: str, verb: str, call: str) -> None:
    path = f"{server}/{verb}"
    for error, status, code in (
        (StateConflict("nova", "busy"), 400, "invalid_request"),
        (Missing("nova", "gone"), 404, "not_found"),
        (Unavailable("nova", "500"), 502, "server_error"),
    ):
        world.cloud.fail(call, error)
        assert_error(user.request(method, path), status, code)
    world.cloud.held.clear()
    assert_error(user.request(method, path), 404, "not_found")


def test_t13_length_that_is_no_number_is_told_before_authentication(client: FlaskClient, server: str) -> None:
    response = client.get(f"{server}/consoleoutput?length=abc&what=ever")
    assert "length" in assert_error(response, 400, "invalid_request")
