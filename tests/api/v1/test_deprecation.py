"""How v1 says that it goes away: headers, 410, a counter and a log line."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import date

import pytest
import structlog
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from server_api import logs
from server_api.http.application import build_app
from server_api.http.services import Services
from server_api.http.v1.usage import CALLS
from server_api.servers.v1.lifecycle import LifecycleV1
from server_api.settings import Settings
from tests.api.conftest import Api, checked_client
from tests.api.errors import assert_error
from tests.api.v1.legacy import LIST, SERVERS, body, created, id_of
from tests.api.world import NOWHERE, ORGANIZATION, PEOPLE, World
from tests.doubles.cloud import CONSOLE_URL

ONE = f"{SERVERS}/{NOWHERE}"
SUCCESSOR = "/api/v2/servers"
USER_DATA = "bWFya2VyLW9mLXRoZS11c2VyLWRhdGE="


def successor(response: TestResponse) -> str:
    """Return the path that the response names as its successor; it has to have the other headers too."""
    assert response.headers["Deprecation"] == "@1796083200"
    assert response.headers["Sunset"] == "Fri, 31 Dec 2027 00:00:00 GMT"
    target, _, relation = response.headers["Link"].partition("; ")
    assert relation == 'rel="successor-version"'
    return target.strip("<>")


def test_every_kind_of_answer_says_so(client: FlaskClient, user: Api, admin: Api, world: World) -> None:
    path = created(user)
    server_id = id_of(path)
    world.cloud.hold(server_id, "web-0")
    assert successor(admin.get(LIST)) == f"{SUCCESSOR}?organizationID={ORGANIZATION}"
    assert successor(user.post(SERVERS, body())) == SUCCESSOR
    assert successor(user.get(path)) == f"{SUCCESSOR}/{server_id}"
    assert successor(user.put(path, body())) == f"{SUCCESSOR}/{server_id}"
    for verb in ("start", "stop", "softreboot", "hardreboot"):
        assert successor(user.post(f"{path}/{verb}")) == f"{SUCCESSOR}/{server_id}/{verb}"
    for what in ("consoleoutput", "consolesessions"):
        assert successor(user.get(f"{path}/{what}")) == f"{SUCCESSOR}/{server_id}/{what}"
    assert successor(user.delete(path)) == f"{SUCCESSOR}/{server_id}"


def test_errors_say_so_too(client: FlaskClient, user: Api, app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_arguments: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(LifecycleV1, "delete", crash)
    app.view_functions["servers-v1.get_server_v1"] = lambda **_values: {"forgot": "to ask"}
    answers = {
        400: user.get(f"{SERVERS}/not-a-uuid"),
        401: client.get(ONE),
        403: user.get(LIST),
        404: user.post(f"{ONE}/start"),
        405: user.request("PATCH", ONE),
        415: user.post(SERVERS, data="{}", headers={"Content-Type": "text/plain"}),
        422: user.post(SERVERS, body(securityGroups=[{"id": "x"}])),
        500: user.delete(ONE),
    }
    for status, response in answers.items():
        assert response.status_code == status
        assert successor(response).startswith(SUCCESSOR)
    assert successor(user.get("/api/v1/nothing")) == SUCCESSOR
    unchecked = user.get(ONE)
    assert (unchecked.status_code, successor(unchecked)) == (500, f"{SUCCESSOR}/{NOWHERE}")


@pytest.mark.parametrize("path", [SUCCESSOR, "/api/version", "/openapi.json", "/nowhere", "/api/v1x", "/healthz"])
def test_nothing_else_is_deprecated(user: Api, path: str) -> None:
    assert not {"Deprecation", "Sunset", "Link"} & set(user.get(path).headers.keys())


def client_of(services: Services, settings: Settings, who: str = "USER") -> Api:
    return Api(checked_client(build_app(services, settings)), who)


def test_sunset_is_a_setting(services: Services, settings: Settings) -> None:
    user = client_of(services, replace(settings, v1_sunset=date(2030, 6, 1)))
    assert user.get(ONE).headers["Sunset"] == "Sat, 01 Jun 2030 00:00:00 GMT"


def test_v1_is_turned_off_wholly(services: Services, settings: Settings, client: FlaskClient, world: World) -> None:
    off = replace(settings, v1_disabled="all")
    user = client_of(services, off)
    for method, path in (("GET", LIST), ("POST", SERVERS), ("GET", ONE), ("PUT", ONE), ("DELETE", ONE)):
        description = assert_error(user.request(method, path), 410, "not_found")
        assert SUCCESSOR in description
    gone = user.post(f"{ONE}/start")
    assert (gone.status_code, successor(gone)) == (410, f"{SUCCESSOR}/{NOWHERE}/start")
    assert "GET" in user.request("OPTIONS", LIST).headers["Allow"]
    assert user.get(SUCCESSOR).status_code == 200
    anonymous = build_app(services, off).test_client().get(ONE)
    assert_error(anonymous, 401, "access_denied")
    assert world.cloud.calls == []


def test_v1_is_turned_off_by_operation(services: Services, settings: Settings) -> None:
    user = client_of(services, replace(settings, v1_disabled="createServerV1, updateServerV1"))
    for method, path in (("POST", SERVERS), ("PUT", ONE)):
        assert_error(user.request(method, path, json=body()), 410, "not_found")
    assert_error(user.get(ONE), 404, "not_found")
    assert_error(user.delete(ONE), 404, "not_found")


@pytest.mark.parametrize("setting", ["createServer", "all,nonsense", "*"])
def test_an_operation_that_does_not_exist_cannot_be_turned_off(
    services: Services, settings: Settings, setting: str
) -> None:
    with pytest.raises(ValueError, match=r"SERVER_API_V1_DISABLED: no such operation: .*there are createServerV1, "):
        build_app(services, replace(settings, v1_disabled=setting))


def counted(operation: str, who: str | None, agent: str) -> float:
    subject = "unauthenticated" if who is None else PEOPLE[who].subject
    return float(CALLS.labels(operation, subject, agent)._value.get())


def test_calls_are_counted_by_operation_and_client(client: FlaskClient, user: Api, reader: Api) -> None:
    terraform = {"User-Agent": "Terraform/1.9 (+https://example.com) secret"}
    watched = (
        ("getServerV1", "USER", "Terraform"),
        ("getServerV1", "READER", "Terraform"),
        ("listServersV1", "USER", "none"),
        ("getServerV1", None, "Terraform"),
    )
    before = [counted(*labels) for labels in watched]
    user.get(ONE, headers=terraform)
    user.get(ONE, headers={"User-Agent": "Terraform/2.0"})
    reader.get(ONE, headers=terraform)
    user.get(LIST, headers={"User-Agent": ""})
    client.get(ONE, headers=terraform)
    for ignored in ("/api/v1/nothing", f"{SERVERS}/not-a-uuid"):
        user.get(ignored, headers=terraform)
    user.request("OPTIONS", ONE, headers=terraform)
    user.get(f"{SUCCESSOR}/{NOWHERE}", headers=terraform)
    assert [counted(*labels) - first for labels, first in zip(watched, before, strict=True)] == [2, 1, 1, 1]
    text = client.get("/metrics").text
    assert 'server_api_v1_requests_total{operation="getServerV1",subject="user@example.com"' in text
    assert NOWHERE not in text


def test_who_calls_an_operation_that_is_off_is_counted_too(services: Services, settings: Settings) -> None:
    before = counted("getServerV1", "USER", "curl")
    user = client_of(services, replace(settings, v1_disabled="all"))
    user.get(ONE, headers={"User-Agent": "curl/8"})
    assert counted("getServerV1", "USER", "curl") == before + 1


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


def test_one_line_says_who_called_what(user: Api, log: io.StringIO) -> None:
    agent = "Terraform/1.9 (linux) " + "x" * 300
    user.get(ONE, headers={"User-Agent": agent})
    [line] = [line for line in map(json.loads, log.getvalue().splitlines()) if line["event"] == "v1 was called"]
    assert (line["operation"], line["subject"], line["status"]) == ("getServerV1", PEOPLE["USER"].subject, 404)
    assert line["user_agent"] == agent[:200]
    assert line["trace_id"]


def test_b74_no_secret_is_logged_or_told_in_an_error(user: Api, other: Api, world: World, log: io.StringIO) -> None:
    path = created(user, body(userData=USER_DATA))
    world.cloud.hold(id_of(path), "web-0")
    opened = user.get(f"{path}/consolesessions").get_json()["url"]
    refused = [
        other.put(path, body(userData=USER_DATA)),
        user.put(path, body("other", userData=USER_DATA)),
        user.put(path, body(userData=[USER_DATA])),
        user.put(path, body(userData=USER_DATA, networks=[])),
    ]
    assert [response.status_code for response in refused] == [403, 422, 400, 400]
    world.cloud.fail("tenancy", RuntimeError("out of order"))
    refused.append(user.get(f"{path}/consolesessions"))
    told = log.getvalue() + "".join(response.text for response in refused)
    assert "out of order" in told
    for secret in (USER_DATA, "marker-of-the-user-data", opened, CONSOLE_URL, f"Bearer {PEOPLE['USER'].token}"):
        assert secret not in told
