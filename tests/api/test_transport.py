"""What every request meets before a use case does: routes, credentials, content types, bodies, tracing."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import orjson
import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from server_api.http.application import build_app
from server_api.http.schemas.version import SEMANTIC_VERSION
from server_api.http.services import Services
from server_api.servers.lifecycle import Lifecycle
from server_api.settings import Settings
from tests.api.conftest import Api
from tests.api.errors import assert_error
from tests.api.world import NOWHERE, PEOPLE, World, create_body

SERVERS = "/api/v2/servers"
ONE = f"{SERVERS}/{NOWHERE}"
BODIES = (("POST", SERVERS), ("PUT", ONE), ("POST", f"{ONE}/snapshot"), ("POST", f"{ONE}/provider-create-gates"))
"""The operations that take a body."""

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def every_operation(client: FlaskClient, server_id: str = NOWHERE) -> list[tuple[str, str]]:
    """Return method and path of every operation that needs credentials, as the document describes them."""
    paths = client.get("/openapi.json").get_json()["paths"]
    operations = [
        (method.upper(), re.sub(r"\{\w+\}", NOWHERE, template.replace("{serverID}", server_id)))
        for template, methods in paths.items()
        for method, operation in methods.items()
        if method != "parameters" and operation.get("security") != []
    ]
    assert len(operations) >= 15
    return operations


def test_t01_version_needs_credentials(client: FlaskClient) -> None:
    assert_error(client.get("/api/version"), 401, "access_denied")


def test_t02_version_needs_no_permission(client: FlaskClient) -> None:
    response = client.get("/api/version", headers=PEOPLE["NOBODY"].headers)
    assert response.status_code == 200
    assert response.headers["Cache-Control"] == "no-cache"
    body = response.get_json()
    assert body["name"].startswith("unikorn-region-")
    assert re.fullmatch(SEMANTIC_VERSION, body["version"])


@pytest.mark.parametrize(("identity_url", "servers"), [("https://id.example", ["https://id.example"]), ("", [])])
def test_t03_anybody_may_ask_where_to_get_a_token(
    services: Services, settings: Settings, identity_url: str, servers: list[str]
) -> None:
    client = build_app(services, replace(settings, identity_url=identity_url)).test_client()
    response = client.get("/.well-known/openid-protected-resource", headers={"Host": "api.example.com"})
    assert response.status_code == 200
    assert response.get_json() == {
        "resource": "https://api.example.com",
        "authorization_servers": servers,
        "scopes_supported": ["openid", "email", "profile"],
        "bearer_methods_supported": ["header"],
    }
    assert response.headers.getlist("Cache-Control") == ["max-age=86400", "private"]


def test_t04_challenge_names_where_to_get_a_token(client: FlaskClient) -> None:
    response = client.get(SERVERS, headers={"Host": "api.example.com"})
    description = assert_error(response, 401, "access_denied")
    assert response.headers["WWW-Authenticate"] == (
        f'Bearer error="access_denied",error_description="{description}",'
        'resource_metadata="https://api.example.com/.well-known/openid-protected-resource"'
    )


@pytest.mark.parametrize(
    "header", ["Basic abc", "Bearer", "Bearer ", "Bearer a b", "abc", "Bearer wrong", "", "bearer\twrong"]
)
def test_t05_t06_unusable_credentials(client: FlaskClient, header: str) -> None:
    for method, path in every_operation(client):
        response = client.open(path, method=method, headers={"Authorization": header})
        assert_error(response, 401, "access_denied")
        assert "WWW-Authenticate" in response.headers


def test_scheme_is_case_insensitive(client: FlaskClient) -> None:
    assert client.get(SERVERS, headers={"Authorization": "bEARER user"}).status_code == 200


@pytest.mark.parametrize(
    "text", ["not-a-uuid", "1", "%00", "%ff", "x" * 300, NOWHERE + "0", "-" * 36, f"%7B{NOWHERE}", "%F0%9F%92%A9"]
)
def test_t12_b60_malformed_id_before_authentication(client: FlaskClient, text: str) -> None:
    for method, path in every_operation(client, server_id=text):
        if f"/servers/{text}" in path:
            response = client.open(path, method=method)
            assert "serverID" in assert_error(response, 400, "invalid_request")


def test_ids_are_accepted_in_every_textual_form(user: Api) -> None:
    server_id = user.create(create_body())
    for text in (server_id.upper(), server_id.replace("-", ""), f"urn:uuid:{server_id}", f"%7B{server_id}%7D"):
        response = user.get(f"{SERVERS}/{text}")
        assert response.status_code == 200, text
        assert response.get_json()["metadata"]["id"] == server_id


@pytest.mark.parametrize("path", ["/", "/api", "/api/v2", "/api/v2/server", f"{ONE}/reboot", f"{ONE}/start/now"])
def test_b55_unknown_path(client: FlaskClient, path: str) -> None:
    assert_error(client.get(path), 404, "not_found")


@pytest.mark.parametrize("path", [f"{SERVERS}/", f"{ONE}/", "//api/v2/servers", "/api//v2/servers", "/api/version/"])
def test_b55_a_path_is_not_redirected(user: Api, path: str) -> None:
    assert_error(user.get(path), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", SERVERS, {"GET", "HEAD", "OPTIONS", "POST"}),
        ("POST", ONE, {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"}),
        ("GET", f"{ONE}/start", {"POST", "OPTIONS"}),
        ("PATCH", "/api/version", {"GET", "HEAD", "OPTIONS"}),
        ("BREW", SERVERS, {"GET", "HEAD", "OPTIONS", "POST"}),
        ("POST", "/healthz", {"GET", "HEAD", "OPTIONS"}),
        ("POST", f"{ONE}/consoleoutput?length=x", {"GET", "HEAD", "OPTIONS"}),
        ("PUT", f"{ONE}/sshkey", {"GET", "HEAD", "OPTIONS"}),
        ("GET", f"{ONE}/snapshot", {"POST", "OPTIONS"}),
        ("GET", f"{ONE}/provider-create-gates", {"POST", "OPTIONS"}),
    ],
)
def test_b55_wrong_method_names_the_right_ones(client: FlaskClient, method: str, path: str, allowed: set[str]) -> None:
    response = client.open(path, method=method)
    assert_error(response, 405, "method_not_allowed")
    assert set(response.headers["Allow"].split(", ")) == allowed


def test_b55_head_answers_like_get_without_a_body(user: Api) -> None:
    server_id = user.create(create_body())
    response = user.request("HEAD", f"{SERVERS}/{server_id}")
    assert response.status_code == 200
    assert response.data == b""
    assert int(response.headers["Content-Length"]) > 100


def test_b55_options_names_the_methods_without_credentials(client: FlaskClient) -> None:
    response = client.options(SERVERS)
    assert response.status_code == 200
    assert set(response.headers["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS", "POST"}


def test_a_preflight_is_answered_without_credentials_when_an_origin_is_named(
    services: Services, settings: Settings
) -> None:
    client = build_app(services, replace(settings, cors_origin="https://console.example")).test_client()
    response = client.options(SERVERS, headers={"Access-Control-Request-Method": "POST"})
    assert response.status_code == 204
    assert "POST" in response.headers["Access-Control-Allow-Methods"]
    assert response.headers["Access-Control-Allow-Origin"] == "https://console.example"
    assert "traceparent" in response.headers["Access-Control-Allow-Headers"]
    assert "Content-Type" not in response.headers
    assert_error(client.options(SERVERS), 400, "invalid_request")


def post(user: Api, data: bytes | str, content_type: str | None = "application/json") -> TestResponse:
    headers = {"Content-Type": content_type} if content_type else {}
    return user.post(SERVERS, data=data, headers=headers)


@pytest.mark.parametrize(
    "body", ["", " ", "\n", "null", "[]", '"x"', "7", "true", "{", '{"a": NaN}', b"\xff\xfe", "{}{}"]
)
def test_t14_b50_body_that_is_no_object(user: Api, body: bytes | str) -> None:
    for method, path in BODIES:
        response = user.request(method, path, data=body, headers={"Content-Type": "application/json"})
        assert_error(response, 400, "invalid_request")


def test_b50_deeply_nested_body(user: Api) -> None:
    assert_error(post(user, "[" * 90_000 + "]" * 90_000), 400, "invalid_request")


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", None, "application/x-www-form-urlencoded", "application/json; charset=latin-1", "json"],
)
def test_t15_wrong_content_type(user: Api, content_type: str | None) -> None:
    """Design section 4 wins over the contract's 400."""
    headers = {"Content-Type": content_type} if content_type else {}
    for method, path in BODIES:
        response = user.request(method, path, data="{}", headers=headers)
        assert_error(response, 415, "unsupported_media_type")


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "Application/JSON", "application/json; charset=UTF-8", 'application/json;charset="utf-8"'],
)
def test_content_type_in_any_case_and_with_utf8(user: Api, content_type: str) -> None:
    assert "/metadata" in assert_error(post(user, "{}", content_type), 400, "invalid_request")


def test_oversized_body(user: Api) -> None:
    assert_error(post(user, b'{"metadata": "' + b"x" * 200_000 + b'"}'), 413, "request_entity_too_large")


def test_body_of_just_the_allowed_size(user: Api) -> None:
    body = orjson.dumps(create_body())
    for size, status in ((200_000, 409), (200_001, 413)):
        for environ in ({}, {"wsgi.input_terminated": True}):
            user.post(SERVERS, create_body())
            response = user.post(
                SERVERS,
                data=body.ljust(size),
                headers={"Content-Type": "application/json"},
                environ_overrides=environ,
            )
            assert response.status_code == status, (size, environ)


def test_oversized_body_without_a_length(user: Api) -> None:
    class Endless:
        def read(self, size: int = -1) -> bytes:
            return b" " * (size if size > 0 else 65_536)

    response = user.post(
        SERVERS,
        headers={"Content-Type": "application/json", "Transfer-Encoding": "chunked"},
        environ_overrides={"wsgi.input": Endless(), "wsgi.input_terminated": True},
    )
    assert_error(response, 413, "request_entity_too_large")


def test_body_is_parsed_after_authentication(client: FlaskClient) -> None:
    response = client.post(SERVERS, data="{", headers={"Content-Type": "text/plain"})
    assert_error(response, 401, "access_denied")


def test_t23_t24_trace_of_the_caller_is_kept(client: FlaskClient) -> None:
    response = client.get("/nowhere", headers={"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"})
    assert_error(response, 404, "not_found")
    assert response.get_json()["trace_id"] == TRACE


def test_t23_b54_every_error_has_the_envelope(client: FlaskClient, user: Api) -> None:
    for method, path in every_operation(client):
        assert_error(client.open(path, method=method), 401, "access_denied")
        if NOWHERE in path:
            assert user.request(method, path, json={}).status_code >= 400
            assert_error(user.request(method, f"{path}/what/ever"), 404, "not_found")


@pytest.mark.parametrize(
    "header", [f"00-{TRACE.upper()}-00f067aa0ba902b7-01", f"00-{'0' * 32}-00f067aa0ba902b7-01", "x"]
)
def test_t23_malformed_trace_is_replaced(client: FlaskClient, header: str) -> None:
    first = client.get("/nowhere", headers={"traceparent": header}).get_json()["trace_id"]
    second = client.get("/nowhere", headers={"traceparent": header}).get_json()["trace_id"]
    assert first != second


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_arguments: Any) -> None:
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr(Lifecycle, "get", explode)


@pytest.mark.usefixtures("broken")
def test_b54_unexpected_failure_is_told_by_one_fixed_text(user: Api) -> None:
    description = assert_error(user.get(ONE), 500, "server_error")
    assert description == "The request could not be completed because of an unexpected failure."


def test_no_other_origin_may_read_an_answer_unless_one_is_named(user: Api) -> None:
    for path in (SERVERS, ONE, "/nowhere"):
        assert "Access-Control-Allow-Origin" not in user.get(path).headers


def test_a_view_that_forgot_its_check_is_a_500(app: Flask, client: FlaskClient) -> None:
    assert client.get("/api/version", headers=PEOPLE["USER"].headers).status_code == 200
    app.view_functions["version.get_version"] = lambda: {"name": "x"}
    assert_error(client.get("/api/version", headers=PEOPLE["USER"].headers), 500, "server_error")


def test_power_verbs_ignore_what_is_sent(user: Api, world: World) -> None:
    server_id = user.create(create_body())
    world.cloud.hold(server_id, "web-0")
    for data, content_type in ((b"", None), (b"{", "application/json"), (b"x" * 300_000, "text/plain")):
        headers = {"Content-Type": content_type} if content_type else {}
        response = user.request("POST", f"{SERVERS}/{server_id}/stop", data=data, headers=headers)
        assert response.status_code == 202
