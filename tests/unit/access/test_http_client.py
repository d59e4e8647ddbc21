"""Requests to whoever knows callers: bounded in time and size, and nothing of one in the next."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from server_api import deadline, trace
from server_api.access import http_client
from server_api.access.http_client import HttpClient, checked_url
from server_api.servers.ports import TimedOut, Unavailable
from tests.doubles.http_server import HttpServer, answer


def client(**options: object) -> HttpClient:
    return HttpClient("identity", connect_timeout=1.0, read_timeout=1.0, **options)  # type: ignore[arg-type]


def test_status_and_body_come_back_whatever_the_status() -> None:
    with HttpServer(lambda request: answer(request, 503, b'{"a": 1}', Retry_After="7")) as server:
        got = client().send("GET", server.url)

    assert (got.status, got.document(), got.retry_after) == (503, {"a": 1}, "7")


def test_no_cookie_of_one_caller_reaches_the_next() -> None:
    seen: list[str | None] = []

    def handle(request: BaseHTTPRequestHandler) -> None:
        seen.append(request.headers.get("Cookie"))
        answer(request, 200, b"{}", Set_Cookie="session=alice; Path=/")

    with HttpServer(handle) as server:
        http = client()
        for _ in range(3):
            http.send("GET", server.url)

    assert seen == [None, None, None]


def test_no_redirect_is_followed_with_a_token_in_hand() -> None:
    seen: list[str] = []

    def handle(request: BaseHTTPRequestHandler) -> None:
        seen.append(request.path)
        answer(request, 307, b"", Location="/elsewhere")

    with HttpServer(handle) as server:
        got = client().send("POST", f"{server.url}/token", form={"subject_token": "s3cret"})

    assert (got.status, seen) == (307, ["/token"])


@pytest.mark.parametrize("proxies", [False, True])
def test_no_credentials_come_from_a_netrc(proxies: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login root password toor\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("NO_PROXY", "*")
    seen: list[str | None] = []

    def handle(request: BaseHTTPRequestHandler) -> None:
        seen.append(request.headers.get("Authorization"))
        answer(request, 200, b"{}")

    with HttpServer(handle) as server:
        client(proxies=proxies).send("GET", server.url)
        client(proxies=proxies).send("GET", server.url, headers={"Authorization": "Bearer mine"})

    assert seen == [None, "Bearer mine"]


def test_b77_the_trace_goes_along() -> None:
    seen: list[str] = []

    def handle(request: BaseHTTPRequestHandler) -> None:
        seen.append(request.headers["traceparent"])
        answer(request, 200, b"{}")

    token = trace.begin()
    trace_id = trace.current()
    try:
        with HttpServer(handle) as server:
            client().send("GET", server.url)
    finally:
        trace.end(token)

    assert trace_id is not None
    assert seen[0].split("-")[1] == trace_id


def test_b61_an_answer_that_does_not_come_is_not_waited_for_longer_than_the_deadline() -> None:
    end = threading.Event()
    with HttpServer(lambda request: (end.wait(10), answer(request, 200, b"{}"))[1]) as server:
        began = time.monotonic()
        with deadline.within(0.2), pytest.raises(TimedOut):
            client().send("GET", server.url)
        assert time.monotonic() - began < 1.0
        end.set()


def test_an_answer_that_trickles_is_given_up() -> None:
    def handle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "1000")
        request.end_headers()
        try:
            for _ in range(1000):
                request.wfile.write(b"x")
                time.sleep(0.05)
        except OSError:
            pass

    with HttpServer(handle) as server:
        began = time.monotonic()
        with deadline.within(0.3), pytest.raises(TimedOut):
            client().send("GET", server.url)
        assert time.monotonic() - began < 1.0


def test_nothing_is_sent_after_the_deadline() -> None:
    seen: list[str] = []
    http_server = HttpServer(lambda request: (seen.append(request.path), answer(request, 200, b"{}"))[1])
    with http_server as server, deadline.within(0.0), pytest.raises(TimeoutError):
        client().send("GET", server.url)

    assert seen == []


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_an_answer_that_is_too_large_is_given_up(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MOST_BYTES", 100_000)
    body = b"x" * 200_000
    sent = gzip.compress(body) if encoding == "gzip" else body

    http_server = HttpServer(lambda request: answer(request, 200, sent, Content_Encoding=encoding))
    with http_server as server, pytest.raises(Unavailable, match="too large"):
        client().send("GET", server.url)


def test_a_connection_that_was_closed_meanwhile_is_opened_again() -> None:
    seen: list[int] = []

    def handle(request: BaseHTTPRequestHandler) -> None:
        seen.append(request.client_address[1])
        if len(seen) == 2:
            request.connection.shutdown(socket.SHUT_RDWR)
            request.close_connection = True
            return
        answer(request, 200, b"{}")

    with HttpServer(handle) as server:
        http = client()
        assert [http.send("GET", server.url).status for _ in range(2)] == [200, 200]

    assert len(seen) == 3


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        yield probe.getsockname()[1]


def test_nobody_there_is_told_without_url_or_headers(closed_port: int) -> None:
    with pytest.raises(Unavailable) as failure:
        client().send("GET", f"http://127.0.0.1:{closed_port}/s3cret", headers={"Authorization": "Bearer s3cret"})

    assert failure.value.dependency == "identity"
    assert "s3cret" not in str(failure.value)


def test_every_request_is_measured(closed_port: int) -> None:
    seen: list[tuple[str, str, str]] = []
    http = client(observe=lambda service, method, outcome, _seconds: seen.append((service, method, outcome)))
    with HttpServer(lambda request: answer(request, 404, b"")) as server:
        http.send("POST", server.url)
    with pytest.raises(Unavailable):
        http.send("GET", f"http://127.0.0.1:{closed_port}")

    assert seen == [("identity", "POST", "4xx"), ("identity", "GET", "failed"), ("identity", "GET", "failed")]


@pytest.mark.parametrize(
    ("url", "checked"),
    [
        ("https://identity.example.com", "https://identity.example.com"),
        ("https://identity.example.com:8443/realm/", "https://identity.example.com:8443/realm"),
        ("http://127.0.0.1:6082", "http://127.0.0.1:6082"),
        ("http://[::1]:6082", "http://[::1]:6082"),
        ("http://localhost", "http://localhost"),
    ],
)
def test_a_url_of_https_or_of_this_machine_is_accepted(url: str, checked: str) -> None:
    assert checked_url(url, "NAME") == checked


@pytest.mark.parametrize(
    "url",
    [
        "",
        "identity.example.com",
        "http://identity.example.com",
        "http://127.0.0.1.example.com",
        "ftp://identity.example.com",
        "https://",
        "https://user:pass@identity.example.com",
        "https://identity.example.com?x=1",
        "https://identity.example.com#x",
        "https://identity.example.com:port",
        "https://[::1",
    ],
)
def test_any_other_url_is_refused_by_name(url: str) -> None:
    with pytest.raises(ValueError, match=r"^NAME "):
        checked_url(url, "NAME")
