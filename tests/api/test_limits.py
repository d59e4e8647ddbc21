"""How many requests a caller may make, and what it is told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from flask import Flask
from flask.testing import FlaskClient

from server_api.access.acl import Acl
from server_api.access.authentication import Credentials, Unauthenticated
from server_api.access.principal import Principal
from server_api.http.application import build_app
from server_api.http.services import Services
from server_api.settings import Settings
from tests.api.conftest import Api, checked_client
from tests.api.errors import assert_error
from tests.api.world import PEOPLE

SERVERS = "/api/v2/servers"
BAD = {"Authorization": "Bearer wrong"}


def client_of(app: Flask) -> FlaskClient:
    """Return a client at an address from which nothing has come yet."""
    client = checked_client(app)
    client.environ_base["REMOTE_ADDR"] = "192.0.2.1"
    return client


@pytest.fixture
def limited(services: Services, settings: Settings) -> FlaskClient:
    """An application that lets each caller make three requests, and nobody two, in this test."""
    return client_of(build_app(services, replace(settings, limit_subject="0.01:3", limit_peer="0.01:2")))


def test_there_are_no_limits_unless_configured(user: Api, client: FlaskClient) -> None:
    assert {user.get(SERVERS).status_code for _ in range(300)} == {200}
    assert {client.get(SERVERS).status_code for _ in range(300)} == {401}
    assert "RateLimit" not in user.get(SERVERS).headers


def test_a_subject_is_told_what_is_left_and_when_to_come_again(limited: FlaskClient) -> None:
    user = Api(limited, "USER")
    answers = [user.get(SERVERS) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert {answer.headers["RateLimit-Policy"] for answer in answers} == {'"subject";q=3;w=300'}
    left = [answer.headers["RateLimit"].split(";")[1] for answer in answers]
    assert left == ["r=2", "r=1", "r=0", "r=0"]
    assert_error(answers[-1], 429, "too_many_requests")
    assert 95 <= int(answers[-1].headers["Retry-After"]) <= 100
    assert all("Retry-After" not in answer.headers for answer in answers[:3])


def test_one_subject_does_not_use_up_what_is_anothers(limited: FlaskClient) -> None:
    user, reader = Api(limited, "USER"), Api(limited, "READER")
    for _ in range(5):
        user.get(SERVERS)
    assert reader.get(SERVERS).status_code == 200


def test_what_was_turned_away_had_no_effect(limited: FlaskClient) -> None:
    user, admin = Api(limited, "USER"), Api(limited, "ADMIN")
    for _ in range(3):
        user.get(SERVERS)
    body = {"metadata": {"name": "web-0"}, "spec": {}}
    assert user.post(SERVERS, body).status_code == 429
    assert admin.get(SERVERS).get_json() == []


def test_whoever_has_no_credentials_is_limited_by_address(limited: FlaskClient) -> None:
    first, second, third = (limited.get(SERVERS, headers=BAD) for _ in range(3))
    assert [answer.status_code for answer in (first, second, third)] == [401, 401, 429]
    assert third.headers["RateLimit-Policy"] == '"peer";q=2;w=200'
    elsewhere = {"REMOTE_ADDR": "192.0.2.7"}
    assert limited.get(SERVERS, headers=BAD, environ_overrides=elsewhere).status_code == 401


def test_an_ipv6_address_counts_with_its_network(limited: FlaskClient) -> None:
    addresses = ("2001:db8::1", "2001:db8::2", "2001:db8::ffff:3", "2001:db8:0:1::1")
    answers = [limited.get(SERVERS, environ_overrides={"REMOTE_ADDR": address}) for address in addresses]
    assert [answer.status_code for answer in answers] == [401, 401, 429, 401]


def test_unknown_paths_and_public_pages_count_too(limited: FlaskClient) -> None:
    paths = ("/openapi.json", "/nowhere", "/.well-known/openid-protected-resource")
    assert [limited.get(path).status_code for path in paths] == [200, 404, 429]


def test_probes_are_never_limited(limited: FlaskClient) -> None:
    for _ in range(5):
        limited.get(SERVERS)
    assert {limited.get(path).status_code for path in ("/healthz", "/readyz", "/metrics")} == {200}


def test_a_bad_token_does_not_lock_out_others_behind_the_same_address(limited: FlaskClient) -> None:
    user = Api(limited, "USER")
    assert user.get(SERVERS).status_code == 200
    for _ in range(5):
        limited.get(SERVERS, headers=BAD)
    assert user.get(SERVERS).status_code == 200


class Counting:
    """An authenticator that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.is_revoked = False

    def authenticate(self, credentials: Credentials) -> Principal:
        self.asked += 1
        if credentials.authorization != "Bearer good" or self.is_revoked:
            raise Unauthenticated("the token is not valid")
        return Principal("unikorn-compute", "system", Acl())


@pytest.fixture
def asked() -> Counting:
    return Counting()


def test_guesses_beyond_the_limit_are_not_even_looked_at(
    services: Services, settings: Settings, asked: Counting
) -> None:
    app = build_app(replace(services, authenticator=asked), replace(settings, limit_peer="0.01:2"))
    client = client_of(app)
    assert [client.get(SERVERS, headers=BAD).status_code for _ in range(6)] == [401, 401, 429, 429, 429, 429]
    assert asked.asked == 2


def test_credentials_that_were_good_are_forgotten_once_they_are_not(
    services: Services, settings: Settings, asked: Counting
) -> None:
    app = build_app(replace(services, authenticator=asked), replace(settings, limit_peer="0.01:1"))
    client, good = client_of(app), {"Authorization": "Bearer good"}
    client.get(SERVERS, headers=good)
    client.get(SERVERS, headers=BAD)
    assert client.get(SERVERS, headers=good).status_code == 200
    asked.is_revoked = True
    assert [client.get(SERVERS, headers=good).status_code for _ in range(3)] == [401, 429, 429]


def test_services_have_a_limit_of_their_own(services: Services, settings: Settings, asked: Counting) -> None:
    limits = replace(settings, limit_subject="0.01:1", limit_service="0.01:2")
    client = client_of(build_app(replace(services, authenticator=asked), limits))
    answers = [client.get(SERVERS, headers={"Authorization": "Bearer good"}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[0].headers["RateLimit-Policy"] == '"service";q=2;w=200'


def test_what_is_turned_away_is_counted(limited: FlaskClient) -> None:
    name = 'server_api_limited_requests_total{limit="subject"} '

    def counted() -> float:
        lines = limited.get("/metrics").text.splitlines()
        return sum(float(line.removeprefix(name)) for line in lines if line.startswith(name))

    before, user = counted(), Api(limited, "USER")
    for _ in range(5):
        user.get(SERVERS)
    assert counted() == before + 2


def test_a_proxy_that_is_trusted_says_whose_requests_they_are(services: Services, settings: Settings) -> None:
    behind = replace(settings, limit_peer="0.01:1", trusted_proxies="192.0.2.1")
    client = client_of(build_app(services, behind))
    addresses = ("198.51.100.1", "198.51.100.2", "198.51.100.1", "203.0.113.1, 198.51.100.1")
    answers = [client.get(SERVERS, headers={"X-Forwarded-For": address}) for address in addresses]
    assert [answer.status_code for answer in answers] == [401, 401, 429, 429]


@pytest.mark.parametrize("name", ["limit_subject", "limit_service", "limit_peer"])
def test_a_limit_that_cannot_be_understood_is_found_at_start(services: Services, settings: Settings, name: str) -> None:
    with pytest.raises(ValueError, match=f"SERVER_API_{name.upper()}.*RATE:BURST"):
        build_app(services, replace(settings, **{name: "many"}))


def test_people_are_told_apart_by_subject_and_not_by_token(limited: FlaskClient) -> None:
    assert PEOPLE["USER"].subject != PEOPLE["READER"].subject
    assert Api(limited, "USER").get(SERVERS).headers["RateLimit"].startswith('"subject";r=2')
    assert Api(limited, "READER").get(SERVERS).headers["RateLimit"].startswith('"subject";r=2')
