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
from tests.api.world import NOWHERE, PEOPLE, World, create_body

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
