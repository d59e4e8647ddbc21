"""What operators see: probes, metrics, log lines, and that none of them tells a secret."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest
import structlog
from flask.testing import FlaskClient

from server_api import logs
from server_api.http import draining
from server_api.http.application import build_app
from server_api.http.services import Services
from server_api.servers.ports import Unavailable
from server_api.settings import Settings
from tests.api.conftest import Api
from tests.api.errors import assert_error
from tests.api.world import NOWHERE, PEOPLE, World, create_body

SERVERS = "/api/v2/servers"
USER_DATA = "I2Nsb3VkLWNvbmZpZwpwYXNzd29yZDogaHVudGVyMgo="


@pytest.fixture
def stopping() -> Iterator[None]:
    draining.announce()
    yield
    draining.withdraw()


def test_probes_need_no_credentials(client: FlaskClient) -> None:
    for path in ("/healthz", "/readyz"):
        response = client.get(path)
        assert response.status_code == 200
        assert response.headers["Cache-Control"] == "no-cache"


@pytest.mark.usefixtures("stopping")
def test_b62_not_ready_but_answering_while_it_is_about_to_stop(client: FlaskClient, user: Api) -> None:
    assert_error(client.get("/readyz"), 503, "server_error")
    assert client.get("/healthz").status_code == 200
    assert user.get(SERVERS).status_code == 200


def test_not_ready_without_the_store(services: Services, settings: Settings) -> None:
    def unreachable() -> None:
        raise Unavailable("kubernetes", "connection refused by 10.0.0.1")

    client = build_app(replace(services, readiness=unreachable), settings).test_client()
    assert "10.0.0.1" not in assert_error(client.get("/readyz"), 503, "server_error")
    assert client.get("/healthz").status_code == 200


def counted(client: FlaskClient, labels: str) -> float:
    name = f"server_api_http_requests_total{{{labels}}} "
    lines = client.get("/metrics").text.splitlines()
    return sum(float(line.removeprefix(name)) for line in lines if line.startswith(name))


def test_requests_are_counted_by_route_and_not_by_path(client: FlaskClient, user: Api) -> None:
    one = 'method="GET",route="/api/v2/servers/<server_id:serverID>",status="404"'
    unknown = 'method="OTHER",route="unmatched",status="404"'
    before = counted(client, one), counted(client, unknown)
    user.get(f"{SERVERS}/{NOWHERE}")
    client.open("/what/ever", method="BREW")
    assert (counted(client, one), counted(client, unknown)) == (before[0] + 1, before[1] + 1)
    assert NOWHERE not in client.get("/metrics").text


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    logs.configure("debug")
    written = io.StringIO()
    for handler in root.handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(written)
    yield written
    root.handlers[:], root.level = before, level
    structlog.reset_defaults()


def lines(log: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


def test_one_line_per_request(user: Api, log: io.StringIO) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    user.get(f"{SERVERS}/{NOWHERE}?x=secret", headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    [line] = [line for line in lines(log) if line["event"] == "request"]
    assert line["method"] == "GET"
    assert line["route"] == "/api/v2/servers/<server_id:serverID>"
    assert line["status"] == 404
    assert line["subject"] == PEOPLE["USER"].subject
    assert line["trace_id"] == trace
    assert isinstance(line["duration_ms"], float)
    assert "secret" not in str(line)


def test_b74_nothing_secret_is_logged(user: Api, world: World, log: io.StringIO) -> None:
    server_id = user.create(create_body(userData=USER_DATA))
    world.cloud.hold(server_id, "web-0")
    user.put(f"{SERVERS}/{server_id}", {"metadata": {}, "spec": {"userData": USER_DATA}})
    user.post(f"{SERVERS}/{server_id}/stop")
    world.cloud.fail("tenancy", RuntimeError(f"header was Authorization: Bearer {PEOPLE['USER'].token}-token"))
    user.post(f"{SERVERS}/{server_id}/stop")
    output = log.getvalue()
    assert "unexpected failure" in output
    for secret in (USER_DATA, "hunter2", f"{PEOPLE['USER'].token}-token", f"Bearer {PEOPLE['USER'].token}"):
        assert secret not in output


def test_unchecked_answers_are_an_alarm_in_production(services: Services, settings: Settings, log: io.StringIO) -> None:
    app = build_app(services, replace(settings, strict_authorization=False))
    app.view_functions["version.get_version"] = lambda: {"name": "forgot"}
    client = app.test_client()
    assert client.get("/api/version", headers=PEOPLE["USER"].headers).status_code == 200
    assert any(line["level"] == "error" and "authorization check" in str(line["event"]) for line in lines(log))
    assert 'server_api_unauthorized_answers_total{route="/api/version"}' in client.get("/metrics").text
