"""What operators see: probes, metrics, log lines, and that none of them tells a secret."""

from __future__ import annotations

import base64
import io
import json
import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest
import structlog
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from server_api import logs
from server_api.http import draining
from server_api.http.application import build_app
from server_api.http.services import Services
from server_api.servers.ports import Unavailable
from server_api.settings import Settings
from tests.api.conftest import Api
from tests.api.errors import assert_error
from tests.api.world import NOWHERE, PEOPLE, World, create_body, update_body
from tests.doubles.cloud import CONSOLE_URL, ComputeDouble

SERVERS = "/api/v2/servers"
USER_DATA = "I2Nsb3VkLWNvbmZpZwpwYXNzd29yZDogaHVudGVyMgo="


MARKERS = {
    "user data": "marker-of-the-user-data",
    "private key": "-----BEGIN marker-of-the-private-key",
    "console": "marker-of-the-console-output",
    "message": "marker-of-the-message",
    "tag": "marker-of-the-tag",
}


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


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
    headers = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
    user.get(f"{SERVERS}/{NOWHERE}/consoleoutput?length=54321", headers=headers)
    [line] = [line for line in lines(log) if line["event"] == "request"]
    assert line["method"] == "GET"
    assert line["route"] == "/api/v2/servers/<server_id:serverID>/consoleoutput"
    assert line["status"] == 404
    assert line["subject"] == PEOPLE["USER"].subject
    assert line["trace_id"] == trace
    assert isinstance(line["duration_ms"], float)
    assert "54321" not in str(line)


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


def every_use(api: Api, server_id: str) -> list[TestResponse]:
    """Call everything there is for one server, in a way that succeeds when nothing fails."""
    one = f"{SERVERS}/{server_id}"
    snapshot = {"metadata": {"name": "s", "tags": [{"name": "t", "value": MARKERS["tag"]}]}, "spec": {}}
    action = {"conditionType": "gate", "reason": "Ready", "message": MARKERS["message"]}
    return [
        api.get(SERVERS),
        api.get(one),
        api.put(one, update_body(userData=b64(MARKERS["user data"] + "changed"))),
        *(api.post(f"{one}/{verb}") for verb in ("start", "stop", "softreboot", "hardreboot")),
        *(api.get(f"{one}/{verb}") for verb in ("sshkey", "consoleoutput", "consolesessions")),
        api.post(f"{one}/snapshot", snapshot),
        api.post(f"{one}/provider-create-gates", action),
        api.delete(one),
    ]


def test_b74_no_endpoint_logs_a_secret_or_tells_it_in_an_error(
    admin: Api, other: Api, world: World, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ComputeDouble, "console_output", lambda *_arguments: MARKERS["console"])
    world.key_pair(MARKERS["private key"])
    body = create_body(
        userData=b64("#!/bin/sh\n" + MARKERS["user data"]), providerCreateGates=[{"conditionType": "gate"}]
    )
    server_id = admin.create(body)
    world.patch(server_id, metadata={"finalizers": ["unikorn"]})
    world.cloud.hold(server_id, "web-0")
    errors = every_use(other, server_id)[1:]
    assert {response.status_code for response in errors} == {403}
    fine = every_use(admin, server_id)
    assert [r.status_code for r in fine if r.status_code >= 400] == [422]  # The user data of the update.
    answered = "".join(response.text for response in fine)
    assert all(MARKERS[what] in answered for what in ("private key", "console", "tag"))
    for method in ("start", "stop", "soft_reboot", "hard_reboot", "console_output", "console_url", "create_image"):
        world.cloud.fail(method, Unavailable("nova", "500 Internal Server Error"))
    errors += [response for response in every_use(admin, server_id) if response.status_code >= 400]
    world.cloud.fail("find", RuntimeError("out of order"))
    errors += [response for response in every_use(admin, server_id) if response.status_code >= 500]
    told = log.getvalue() + "".join(response.text for response in errors)
    assert "unexpected failure" in told
    assert "a dependency failed" in told
    for what, marker in MARKERS.items():
        assert marker not in told, what
        assert b64(marker)[:-4] not in told, what
    assert f"Bearer {PEOPLE['ADMIN'].token}" not in told
    assert CONSOLE_URL not in told


def test_satisfied_gate_leaves_a_line_without_its_message(admin: Api, log: io.StringIO) -> None:
    server_id = admin.create(create_body(providerCreateGates=[{"conditionType": "gate"}]))
    action = {"conditionType": "gate", "reason": "Ready", "message": MARKERS["message"]}
    admin.post(f"{SERVERS}/{server_id}/provider-create-gates", action)
    admin.post(f"{SERVERS}/{server_id}/provider-create-gates", action | {"conditionType": "unknown"})
    [line] = [line for line in lines(log) if line["event"] == "provider-create gate satisfied"]
    assert (line["server_id"], line["condition_type"]) == (server_id, "gate")
    assert (line["actor"], line["reason"]) == (PEOPLE["ADMIN"].subject, "Ready")
    assert MARKERS["message"] not in log.getvalue()


def test_unchecked_answers_are_an_alarm_in_production(services: Services, settings: Settings, log: io.StringIO) -> None:
    app = build_app(services, replace(settings, strict_authorization=False))
    app.view_functions["version.get_version"] = lambda: {"name": "forgot"}
    client = app.test_client()
    assert client.get("/api/version", headers=PEOPLE["USER"].headers).status_code == 200
    assert any(line["level"] == "error" and "authorization check" in str(line["event"]) for line in lines(log))
    assert 'server_api_unauthorized_answers_total{route="/api/version"}' in client.get("/metrics").text
