from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator

import pytest

from server_api.controller.metrics import Metrics
from server_api.controller.probes import ProbeServer


class Probed:
    """A running probe server, and what it is to say."""

    def __init__(self) -> None:
        self.unhealthy: list[str] = []
        self.unready: list[str] = []
        self.server = ProbeServer("127.0.0.1:0", lambda: self.unhealthy, lambda: self.unready, Metrics().registry)
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()

    def ask(self, path: str, method: str = "GET") -> tuple[int, str, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=10)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.headers["Content-Type"], answer.read()
        finally:
            connection.close()


@pytest.fixture
def probed() -> Iterator[Probed]:
    probed = Probed()
    yield probed
    probed.server.close()
    probed.thread.join(10)
    assert not probed.thread.is_alive()


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/readyz?verbose"])
def test_all_well_is_200(probed: Probed, path: str) -> None:
    status, content_type, body = probed.ask(path)
    assert (status, content_type, json.loads(body)) == (200, "application/json", {"status": "ok"})


def test_health_and_readiness_fail_each_on_their_own_and_say_why(probed: Probed) -> None:
    probed.unready = ["the servers are not listed yet"]
    status, _, body = probed.ask("/readyz")
    assert (status, json.loads(body)["problems"]) == (503, ["the servers are not listed yet"])
    assert probed.ask("/healthz")[0] == 200
    probed.unhealthy = ["the thread informer died"]
    assert probed.ask("/healthz")[0] == 503


def test_metrics_are_in_prometheus_format(probed: Probed) -> None:
    status, content_type, body = probed.ask("/metrics")
    assert status == 200
    assert content_type.startswith("text/plain")
    assert b"# TYPE unikorn_region_server_state gauge" in body


def test_an_unknown_path_is_404(probed: Probed) -> None:
    assert probed.ask("/")[0] == 404


def test_head_has_no_body(probed: Probed) -> None:
    assert probed.ask("/healthz", "HEAD")[::2] == (200, b"")


def test_another_method_is_refused(probed: Probed) -> None:
    assert probed.ask("/metrics", "POST")[0] == 501


def test_an_address_that_is_taken_is_an_error_at_once(probed: Probed) -> None:
    with pytest.raises(OSError, match="in use"):
        ProbeServer(f"127.0.0.1:{probed.server.port}", list, list, Metrics().registry)


@pytest.mark.parametrize("bind", ["6081", "127.0.0.1", "127.0.0.1:http", ""])
def test_an_address_that_is_none_is_refused(bind: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        ProbeServer(bind, list, list, Metrics().registry)
