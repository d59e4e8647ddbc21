"""Headers that hold browsers to little, and cross-origin requests (contract 1.12)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from flask.testing import FlaskClient

from server_api.http.application import build_app
from server_api.http.services import Services
from server_api.settings import Settings
from tests.api.conftest import Api
from tests.api.world import NOWHERE

SERVERS = "/api/v2/servers"
CONSOLE, ADMIN = "https://console.example", "https://admin.example"
PATHS = (SERVERS, f"{SERVERS}/{NOWHERE}", "/api/version", "/nowhere", "/healthz", "/metrics", "/docs", "/openapi.json")


def test_every_answer_has_them(user: Api, client: FlaskClient) -> None:
    for api in (user, client):
        for path in PATHS:
            headers = api.get(path).headers
            assert headers["X-Content-Type-Options"] == "nosniff", path
            assert headers["Referrer-Policy"] == "no-referrer", path
            assert headers["Content-Security-Policy"].startswith("default-src 'none'"), path
            assert "frame-ancestors 'none'" in headers["Content-Security-Policy"], path


def test_the_page_may_load_its_own_script(client: FlaskClient) -> None:
    [policy] = client.get("/docs").headers.getlist("Content-Security-Policy")
    assert "script-src 'self'" in policy


def test_no_origin_is_allowed_by_default(user: Api, client: FlaskClient) -> None:
    assert "Access-Control-Allow-Origin" not in user.get(SERVERS, headers={"Origin": CONSOLE}).headers
    preflight = client.options(SERVERS, headers={"Origin": CONSOLE, "Access-Control-Request-Method": "POST"})
    assert not [name for name, _ in preflight.headers if name.startswith("Access-Control")]


@pytest.mark.parametrize(
    ("setting", "asking", "allowed", "vary"),
    [
        (CONSOLE, CONSOLE, CONSOLE, None),
        (CONSOLE, "https://evil.example", CONSOLE, None),
        (f"{CONSOLE}, {ADMIN}", ADMIN, ADMIN, "Origin"),
        (f"{CONSOLE}, {ADMIN}", "https://evil.example", CONSOLE, "Origin"),
        (f"{CONSOLE}, {ADMIN}", None, CONSOLE, "Origin"),
        ("*", CONSOLE, "*", None),
    ],
)
def test_an_origin_that_is_named_is_echoed_and_any_other_gets_the_first(
    services: Services, settings: Settings, setting: str, asking: str | None, allowed: str, vary: str | None
) -> None:
    client = build_app(services, replace(settings, cors_origin=setting)).test_client()
    response = client.get("/api/version", headers={"Origin": asking} if asking else {})
    assert response.status_code == 401
    assert response.headers["Access-Control-Allow-Origin"] == allowed
    assert response.headers.get("Vary") == vary
    assert "Access-Control-Allow-Credentials" not in response.headers
