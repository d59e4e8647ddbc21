"""A dependency that fails or is slow: told apart from our own failures, within our own time (design section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from flask.testing import FlaskClient

from server_api import deadline
from server_api.http.application import build_app
from server_api.http.services import Services
from server_api.servers import ports
from server_api.servers.errors import NotFound
from server_api.servers.lifecycle import Lifecycle
from server_api.settings import Settings
from tests.api.conftest import Api, checked_client
from tests.api.errors import assert_error
from tests.api.world import IMAGE, NOWHERE, PEOPLE, World, create_body, update_body

SERVERS = "/api/v2/servers"

FAILURES = [
    (ports.Unavailable, 502),
    (ports.TimedOut, 504),
    (ports.Denied, 502),
    (ports.Refused, 502),
    (ports.StateConflict, 502),
    (ports.Ambiguous, 502),
]


@pytest.mark.parametrize(("failure", "status"), FAILURES)
@pytest.mark.parametrize("method", ["catalogue", "flavors", "images"])
def test_b37_cloud_fails_a_create(
    user: Api, world: World, method: str, failure: type[ports.PortError], status: int
) -> None:
    world.cloud.fail(method, failure("nova", "https://10.0.0.1 said no", retry_after="120"))
    response = user.post(SERVERS, create_body())
    assert "10.0.0.1" not in assert_error(response, status, "server_error")
    assert response.headers["Retry-After"] == "120"
    assert user.get(SERVERS).get_json() == []


VERBS = {
    "start": ("POST", "start", None),
    "stop": ("POST", "stop", None),
    "softreboot": ("POST", "soft_reboot", None),
    "hardreboot": ("POST", "hard_reboot", None),
    "consoleoutput": ("GET", "console_output", None),
    "consolesessions": ("GET", "console_url", None),
    "snapshot": ("POST", "create_image", {"metadata": {"name": "s"}, "spec": {}}),
}
"""The verbs that ask the cloud for something: their HTTP method, what they ask for, and their body."""

VERB_FAILURES = [
    (ports.Missing, 404, "not_found"),
    (ports.StateConflict, 400, "invalid_request"),
    (ports.Unavailable, 502, "server_error"),
    (ports.TimedOut, 504, "server_error"),
    (ports.Denied, 502, "server_error"),
    (ports.Refused, 502, "server_error"),
    (ports.Ambiguous, 502, "server_error"),
]


def test_b37_cloud_fails_a_verb(admin: Api, world: World) -> None:
    server_id = admin.create(create_body())
    world.cloud.hold(server_id, "web-0")
    for verb, (method, asked, body) in VERBS.items():
        for failure, status, code in VERB_FAILURES:
            world.cloud.fail(asked, failure("nova", "https://10.0.0.1 said no"))
            response = admin.request(method, f"{SERVERS}/{server_id}/{verb}", json=body)
            assert "10.0.0.1" not in assert_error(response, status, code), (verb, failure)


def test_v17_snapshot_that_cannot_be_published_at_this_moment_may_be_tried_again(admin: Api, world: World) -> None:
    server_id = admin.create(create_body())
    world.cloud.hold(server_id, "web-0")
    world.cloud.fail("publish", ports.StateConflict("glance", "https://10.0.0.1 said no"))
    method, _, body = VERBS["snapshot"]
    response = admin.request(method, f"{SERVERS}/{server_id}/snapshot", json=body)
    assert "10.0.0.1" not in assert_error(response, 400, "invalid_request")


@pytest.mark.parametrize("asked", ["tenancy", "find", "catalogue", "images", "publish"])
def test_b37_cloud_fails_on_the_way_to_a_verb(admin: Api, world: World, asked: str) -> None:
    server_id = admin.create(create_body())
    world.cloud.hold(server_id, "web-0")
    # A conflict while publishing says that the caller may try again: see above.
    failures = [row for row in FAILURES if (asked, row[0]) != ("publish", ports.StateConflict)]
    for failure, status in failures:
        world.cloud.fail(asked, failure("glance", "https://10.0.0.1 said no"))
        for verb, (method, _, body) in VERBS.items():
            if asked in {"tenancy", "find"} or verb == "snapshot":
                response = admin.request(method, f"{SERVERS}/{server_id}/{verb}", json=body)
                assert "10.0.0.1" not in assert_error(response, status, "server_error"), (verb, failure)


@pytest.mark.parametrize("asked", ["catalogue", "images"])
def test_b37_cloud_fails_the_check_of_another_image(user: Api, world: World, asked: str) -> None:
    server_id = user.create(create_body())
    for failure, status in FAILURES[:4]:
        world.cloud.fail(asked, failure("glance", "https://10.0.0.1 said no"))
        response = user.put(f"{SERVERS}/{server_id}", update_body(imageId=NOWHERE))
        assert "10.0.0.1" not in assert_error(response, status, "server_error")
    assert user.get(f"{SERVERS}/{server_id}").get_json()["spec"]["imageId"] == IMAGE


@pytest.mark.parametrize("value", ["7\r\nX-Evil: 1", "x" * 100, "<b>"])
def test_retry_after_of_no_legal_shape_is_dropped(user: Api, world: World, value: str) -> None:
    world.cloud.fail("images", ports.Unavailable("glance", "down", retry_after=value))
    response = user.post(SERVERS, create_body())
    assert_error(response, 502, "server_error")
    assert "Retry-After" not in response.headers


@pytest.mark.parametrize(("failure", "status"), FAILURES[:3])
def test_store_fails(user: Api, monkeypatch: pytest.MonkeyPatch, failure: type[ports.PortError], status: int) -> None:
    def fail(*_arguments: object) -> None:
        raise failure("kubernetes", "no")

    for method in ("get", "list"):
        monkeypatch.setattr("server_api.store.servers.KubernetesServerStore." + method, fail)
    for path in (SERVERS, f"{SERVERS}/{NOWHERE}"):
        assert "object store" in assert_error(user.get(path), status, "server_error")


def test_b61_request_that_runs_out_of_time(
    services: Services, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_arguments: object) -> None:
        deadline.remaining(10.0)

    monkeypatch.setattr(Lifecycle, "get", slow)
    client = checked_client(build_app(services, replace(settings, request_deadline=-1.0)))
    assert_error(Api(client, "USER").get(f"{SERVERS}/{NOWHERE}"), 504, "server_error")


def test_every_request_has_its_own_time(
    services: Services, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[float] = []

    def look(*_arguments: object) -> None:
        left.append(deadline.remaining(10_000.0))
        raise NotFound("nothing to see")

    monkeypatch.setattr(Lifecycle, "get", look)
    user = Api(checked_client(build_app(services, replace(settings, request_deadline=77.0))), "USER")
    for _ in range(2):
        assert_error(user.get(f"{SERVERS}/{NOWHERE}"), 404, "not_found")
    assert len(left) == 2
    assert all(0 < seconds <= 77.0 for seconds in left)
    assert deadline.remaining(10_000.0) == 10_000.0


def test_stored_server_without_image_cannot_be_read(user: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    server_id = user.create(create_body())
    original: Callable[..., object] = Lifecycle.get

    def without_image(*arguments: object) -> object:
        server = original(*arguments)
        return replace(server, spec=replace(server.spec, image_id=None))  # type: ignore[type-var, attr-defined]

    monkeypatch.setattr(Lifecycle, "get", without_image)
    monkeypatch.setattr(
        Lifecycle, "list", lambda lifecycle, caller, _query: [without_image(lifecycle, caller, server_id)]
    )
    assert_error(user.get(f"{SERVERS}/{server_id}"), 500, "server_error")
    assert_error(user.get(SERVERS), 500, "server_error")


def test_authenticator_fails(services: Services, settings: Settings) -> None:
    class Down:
        def authenticate(self, authorization: str | None) -> None:
            raise ports.Unavailable("identity", "connection refused")

    app = build_app(replace(services, authenticator=Down()), settings)  # type: ignore[arg-type]
    client: FlaskClient = checked_client(app)
    assert_error(client.get(SERVERS, headers=PEOPLE["USER"].headers), 502, "server_error")
